"""Tiny random models with the attribute names and the arithmetic of those that people use.

Each attention keeps what an independent reader needs: `own` (b, h, t, s), the attention it used, and `rotated`, the keys
that it multiplied.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F


def heads_of(x, count):
    """(b, t, count·d) as (b, count, t, d)."""
    return x.view(*x.shape[:2], count, -1).transpose(1, 2)


def merged(x):
    return x.transpose(1, 2).flatten(2)


def rotate(x, base=100.0, part=1.0):
    """Rotary positions on the first share of coordinates, halves paired."""
    d = int(x.shape[-1] * part)
    angles = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] / base ** (torch.arange(0, d, 2, dtype=x.dtype) / d)
    cos, sin = (torch.cat([one(angles)] * 2, -1) for one in (torch.cos, torch.sin))
    turned, rest = x[..., :d], x[..., d:]
    left, right = turned.chunk(2, -1)
    return torch.cat([turned * cos + torch.cat([-right, left], -1) * sin, rest], -1)


class BertSelfAttention(nn.Module):
    """Separate linears with biases; logits are divided and masked by adding a large negative number."""

    def __init__(self, width, heads):
        super().__init__()
        self.num_attention_heads, self.attention_head_size = heads, width // heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, hidden_states, attention_mask=None):
        q, k, v = (heads_of(one(hidden_states), self.num_attention_heads) for one in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.attention_head_size)
        if attention_mask is not None:
            scores = scores + (1.0 - attention_mask[:, None, None, :].to(scores.dtype)) * -10000.0
        self.own, self.rotated = nn.functional.softmax(scores, dim=-1), k
        return merged(torch.matmul(self.own, v))


class WhisperAttention(nn.Module):
    """Queries scaled before the product, no bias on keys, one batch of b·h products; self or cross."""

    def __init__(self, width, heads):
        super().__init__()
        self.num_heads, self.head_dim, self.scaling = heads, width // heads, (width // heads) ** -0.5
        self.k_proj = nn.Linear(width, width, bias=False)
        self.q_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(3))

    def forward(self, hidden_states, key_value_states=None, causal=False):
        source = hidden_states if key_value_states is None else key_value_states
        q, k, v = (heads_of(one, self.num_heads).flatten(0, 1) for one in
                   (self.q_proj(hidden_states) * self.scaling, self.k_proj(source), self.v_proj(source)))
        weights = torch.bmm(q, k.transpose(1, 2))
        if causal:
            hidden = torch.full((q.shape[1], k.shape[1]), torch.finfo(q.dtype).min, dtype=q.dtype).triu(1)
            weights = (weights.view(-1, self.num_heads, *weights.shape[1:]) + hidden).view(weights.shape)
        weights = F.softmax(weights, dim=-1)
        self.own, self.rotated = (one.unflatten(0, (-1, self.num_heads)) for one in (weights, k))
        return self.out_proj(merged(torch.bmm(weights, v).unflatten(0, (-1, self.num_heads))))


class Conv1D(nn.Module):
    """GPT-2's linear layer, whose weight is transposed."""

    def __init__(self, outputs, inputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs) / 4), nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


class GPT2Attention(nn.Module):
    """Queries, keys and values from one product; a causal mask written over the logits; a scale per layer."""

    def __init__(self, width, heads, layer=0):
        super().__init__()
        self.num_heads, self.layer = heads, layer
        self.c_attn = Conv1D(3 * width, width)

    def forward(self, x):
        q, k, v = (heads_of(one, self.num_heads) for one in self.c_attn(x).split(x.shape[-1], dim=2))
        scores = (q @ k.transpose(-1, -2)) / k.shape[-1] ** 0.5 / (self.layer + 1)
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        scores = torch.where(causal, scores, torch.full([], torch.finfo(scores.dtype).min, dtype=scores.dtype))
        self.own, self.rotated = scores.softmax(-1), k
        return merged(self.own @ v)


class TimmAttention(nn.Module):
    """One linear for all three, with norms of queries and keys, and a learned scale per head."""

    def __init__(self, width, heads):
        super().__init__()
        self.num_heads, self.scale = heads, (width // heads) ** -0.5
        self.qkv = nn.Linear(width, 3 * width)
        self.q_norm, self.k_norm = nn.LayerNorm(width // heads), nn.LayerNorm(width // heads)
        self.logit_scale = nn.Parameter(torch.linspace(0.5, 2, heads)[:, None, None])

    def forward(self, x):
        q, k, v = self.qkv(x).reshape(*x.shape[:2], 3, self.num_heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        q, k = self.q_norm(q) * self.scale, self.k_norm(k)
        self.own, self.rotated = ((q @ k.transpose(-2, -1)) * self.logit_scale).softmax(dim=-1), k
        return merged(self.own @ v)


class LlamaAttention(nn.Module):
    """Rotary positions and grouped queries: keys repeated, or broadcast over the group."""

    def __init__(self, width, heads, groups, repeat=True, fused=False):
        super().__init__()
        self.num_heads, self.groups, self.repeat, self.fused = heads, groups, repeat, fused
        size = width // heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(width, groups * size, bias=False) for _ in range(2))

    def forward(self, x):
        q = rotate(heads_of(self.q_proj(x), self.num_heads))
        k, v = rotate(heads_of(self.k_proj(x), self.groups)), heads_of(self.v_proj(x), self.groups)
        each = self.num_heads // self.groups
        hidden = torch.full((x.shape[1], x.shape[1]), -torch.inf, dtype=x.dtype).triu(1)
        self.rotated = k.repeat_interleave(each, 1)
        logits = q @ self.rotated.transpose(2, 3) / math.sqrt(q.shape[-1]) + hidden
        self.own = torch.exp(logits) / torch.exp(logits).sum(-1, keepdim=True)  # no softmax: beside what the layer does
        if self.fused:
            return merged(F.scaled_dot_product_attention(q, self.rotated, v.repeat_interleave(each, 1), is_causal=True))
        if self.repeat:
            return merged(F.softmax(logits, dim=-1) @ v.repeat_interleave(each, 1))
        q, k, v = q.unflatten(1, (self.groups, each)), k[:, :, None], v[:, :, None]
        return merged((F.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + hidden, dim=-1) @ v).flatten(1, 2))


class NeoXAttention(nn.Module):
    """Queries, keys and values of each head beside each other; rotary positions on half of the coordinates; a window."""

    def __init__(self, width, heads, window=3):
        super().__init__()
        self.num_attention_heads, self.window = heads, window
        self.query_key_value = nn.Linear(width, 3 * width)

    def forward(self, x):
        q, k, v = heads_of(self.query_key_value(x), self.num_attention_heads).chunk(3, -1)
        q, k = rotate(q, part=0.5), rotate(k, part=0.5)
        scores = torch.baddbmm(torch.zeros(1, dtype=x.dtype), q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2), beta=1.0,
                               alpha=q.shape[-1] ** -0.5).unflatten(0, q.shape[:2])
        near = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril().triu(1 - self.window)
        self.own, self.rotated = torch.softmax(scores.masked_fill(~near, -1e9), -1), k
        return merged(self.own @ v)


class HookPoint(nn.Identity):
    pass


class HookedAttention(nn.Module):
    """TransformerLens: einsum over named axes, in either order, and hook points around everything."""

    def __init__(self, width, heads, keys_first=False):
        super().__init__()
        self.keys_first = keys_first
        self.W_Q, self.W_K, self.W_V = (nn.Parameter(torch.randn(heads, width, width // heads) / 4) for _ in range(3))
        self.b_Q, self.b_K = (nn.Parameter(torch.randn(heads, width // heads)) for _ in range(2))
        for name in ("hook_q", "hook_k", "hook_rot_q", "hook_rot_k", "hook_attn_scores", "hook_pattern"):
            setattr(self, name, HookPoint())

    def forward(self, x):
        q = self.hook_q(torch.einsum("btm,hmd->bthd", x, self.W_Q) + self.b_Q)
        k = self.hook_k(torch.einsum("btm,hmd->bthd", x, self.W_K) + self.b_K)
        v = torch.einsum("btm,hmd->bthd", x, self.W_V)
        q, k = (hook(rotate(one.transpose(1, 2)).transpose(1, 2)) for hook, one in ((self.hook_rot_q, q), (self.hook_rot_k, k)))
        scores = torch.einsum("bkhd,bqhd->bhqk", k, q) if self.keys_first else torch.einsum("bqhd,bkhd->bhqk", q, k)
        scores = scores / q.shape[-1] ** 0.5
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = self.hook_attn_scores(scores.masked_fill(hidden, -torch.inf))
        self.own, self.rotated = self.hook_pattern(F.softmax(scores, dim=-1)), k.transpose(1, 2)
        return torch.einsum("bhqk,bkhd->bqhd", self.own, v).flatten(2)


class Alibi(BertSelfAttention):
    """Adds a bias that grows with distance, which no product of keys and queries holds."""

    def forward(self, x):
        q, k, v = (heads_of(one(x), self.num_attention_heads) for one in (self.query, self.key, self.value))
        far = (torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])).abs().to(x.dtype)
        return merged(torch.softmax(q @ k.transpose(-1, -2) - 0.5 * far, -1) @ v)


class Stack(nn.Module):
    """Layers with residual connections, under the names that their libraries use."""

    def __init__(self, *layers):
        super().__init__()
        self.layer = nn.ModuleList(nn.ModuleDict({"attention": one}) for one in layers)

    def forward(self, x, **masks):
        for one in self.layer:
            x = x + one["attention"](x, **masks)
        return x


class Lens(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.blocks = nn.ModuleList(nn.ModuleDict({"attn": one}) for one in layers)

    def forward(self, x):
        for one in self.blocks:
            x = x + one["attn"](x)
        return x
