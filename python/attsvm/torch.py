"""Attention heads of PyTorch models: for `attsvm.audit`, and watched while they train. Imported on first use.

>>> import attsvm.torch, torch
>>> _ = torch.manual_seed(0)
>>> layer = torch.nn.TransformerEncoderLayer(d_model=16, nhead=4, batch_first=True).eval()
>>> heads = attsvm.torch.heads_from(layer, torch.randn(8, 10, 16))
>>> len(heads), bool(heads.difference.max() < 1e-6)
(4, True)
>>> attsvm.audit(heads, nulls=0)
Audit(heads=4, complete=True)
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Sequence

import numpy as np
import torch

from ._heads import Heads
from ._torch_capture import Capture, Seen, call, recompute, wide
from ._torch_monitor import Monitor, monitor

__all__ = ["Monitor", "heads_from", "heads_from_cache", "monitor"]

_CROSS = ("cross", "encoder_attn", "multihead_attn")  # in names of modules: their keys are not the queries' tokens
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 0.05, torch.bfloat16: 0.05}


def heads_from(model: torch.nn.Module, inputs: Any, *, text: Sequence[Sequence[str]] | None = None,
               query_text: Sequence[Sequence[str]] | None = None, layers: str | Iterable[str] | None = None,
               separators: Iterable[str] = (), tolerance: float | None = None) -> Heads:
    """The keys and queries of every attention head of a model, seen while it reads the inputs.

    Works with whatever ends in softmax(scale · Q Kᵀ + mask) or in torch's fused attention: nn.MultiheadAttention,
    separate or fused projections, grouped queries, rotary positions, biases, norms of queries and keys, causal, padding
    and other masks. The model runs as it is, in eval mode, on its own device, once per batch, without gradients.
    float16 and bfloat16 are converted to float32. While the model runs, only one layer's attention is in memory.

    Parameters
    ----------
    model : torch.nn.Module
    inputs : what the model is called with, or a list of such batches
        A tensor, a tuple of positional arguments, or a dict of keyword arguments (what tokenizers return).
    text : list of lists of str, optional
        The tokens of each sequence as words. Tokens beyond the end of a list are padding. Without it, equal `input_ids`
        are the same word.
    query_text : list of lists of str, optional
        Cross attention: the tokens that ask.
    layers : str or list of str, optional
        Names of modules as in `model.named_modules()`; those inside them count too. Hook names of TransformerLens, such
        as "blocks.0.attn.hook_q", stand for the module they are in. Default: all. All must read the same tokens.
    separators : list of str
        Words that are sinks besides the first token of each sequence, such as "[SEP]".
    tolerance : float, optional
        Largest difference from the model's own attention. Default: 1e-9 for float64, 1e-4 for float32, 0.05 below.

    Returns
    -------
    Heads
        `difference` is the largest difference between attention recomputed in double from what was extracted and the
        model's own; for fused attention, between the outputs, in units of the largest value.

    ValueError if the difference exceeds the tolerance. That happens if something is added to the logits (ALiBi, relative
    positions, soft caps): no product of keys and queries holds it.
    """
    wanted = _named(layers)
    batches = inputs if isinstance(inputs, list) else [inputs]
    collected = _Collected(tolerance)
    if model.training:
        raise ValueError("the model is in training mode, where dropout changes what it reads; call model.eval() first")
    for batch in batches:
        args, kwargs = call(batch)
        first = next((one for one in [*args, *kwargs.values()] if isinstance(one, torch.Tensor)), None)
        given = kwargs.get("input_ids", first)
        mask = kwargs.get("attention_mask")
        collected.begin(given if given is not None and not given.is_floating_point() and given.dim() == 2 else None,
                        mask if isinstance(mask, torch.Tensor) and mask.dim() == 2 else None, text)
        with torch.no_grad(), Capture(model, collected.add, wanted, None if given is None else given.shape[0]):
            model(*args, **kwargs)
    if not collected.layers:
        raise ValueError("no attention was seen" + (f" in {layers}" if layers is not None else "") + ": a softmax of a "
                         "product, or torch's fused attention; kernels of other packages cannot be seen "
                         '(Hugging Face: attn_implementation="eager")')
    return collected.heads(text, query_text, set(separators))


def heads_from_cache(cache: Mapping[str, torch.Tensor], *, scale: float | None = None, causal: bool = True,
                     text: Sequence[Sequence[str]] | None = None, separators: Iterable[str] = (),
                     tolerance: float | None = None) -> Heads:
    """The heads in a TransformerLens cache: blocks.L.attn.hook_q and hook_k, or hook_rot_q and hook_rot_k.

    Parameters
    ----------
    cache : mapping of names to tensors (batch, position, head, d)
        If blocks.L.attn.hook_attn_scores is there, it tells what is masked; if blocks.L.attn.hook_pattern is there, the
        recomputed attention is compared with it.
    scale : float, optional
        What the logits are multiplied by. Default: 1/√d.
    causal : bool
        The mask, where the cache has no scores.
    text, separators, tolerance : as in `heads_from`

    >>> import torch
    >>> cache = {f"blocks.0.attn.hook_{name}": torch.randn(1, 5, 2, 4) for name in "qk"}
    >>> heads_from_cache(cache).names
    ['0.0', '0.1']
    """
    collected = _Collected(tolerance)
    collected.begin(None, None, text)
    for layer in sorted(int(name.split(".")[1]) for name in cache if name.endswith("attn.hook_q")):
        place = f"blocks.{layer}.attn"
        queries, keys = (wide(cache[f"{place}.hook_rot_{one}"] if f"{place}.hook_rot_{one}" in cache
                              else cache[f"{place}.hook_{one}"]).transpose(1, 2) for one in "qk")
        keys = keys.repeat_interleave(queries.shape[1] // keys.shape[1], 1)
        queries = queries * (queries.shape[-1] ** -0.5 if scale is None else scale)
        visible = torch.ones(*queries.shape[:3], keys.shape[2], dtype=torch.bool)
        scores, own = cache.get(f"{place}.hook_attn_scores"), cache.get(f"{place}.hook_pattern")
        if scores is not None:
            visible = scores > -1e3
        elif causal:
            visible = visible.tril()
        difference = torch.full((queries.shape[1],), torch.nan)
        if own is not None:
            difference = (recompute(queries, keys, visible) - own).abs().amax((0, 2, 3))
        collected.add(Seen(place, queries, keys, visible, difference, cache[f"{place}.hook_q"].dtype))
    if not collected.layers:
        raise ValueError("cache has no blocks.L.attn.hook_q")
    return collected.heads(text, None, set(separators))


def _named(layers: str | Iterable[str] | None) -> Any:
    """A function that says whether a module's name is one of `layers`, or inside one."""
    if layers is None:
        return lambda name: True
    asked = [layers] if isinstance(layers, str) else list(layers)
    names = [name.rpartition(".")[0] if name.rpartition(".")[2].startswith("hook_") else name for name in asked]
    return lambda name: any(name == one or name.startswith(one + ".") for one in names)


class _Collected:
    """What the passes have shown so far, on the CPU: per layer one list entry per batch."""

    def __init__(self, tolerance: float | None):
        self.layers: dict[str, list[Seen]] = {}
        self._tolerance = tolerance
        self._batches: list[tuple[Any, Any]] = []
        self._lengths: list[int] | None = None
        self._self: dict[str, bool] = {}

    def begin(self, ids: torch.Tensor | None, mask: torch.Tensor | None, text: Any) -> None:
        self._batches.append((ids, mask))
        self._lengths = None if text is None else [len(one) for one in text]

    def add(self, seen: Seen) -> None:
        most = _TOLERANCE[seen.dtype] if self._tolerance is None else self._tolerance
        worst = float(seen.difference.max())
        if worst > most:
            raise ValueError(
                f"{seen.name}: attention recomputed from its queries and keys differs from the model's own by {worst:.2g}, "
                f"more than {most:g}; something else is added to its logits, such as ALiBi, relative positions or a cap")
        name, calls = seen.name, 2
        while len(self.layers.get(name, ())) == len(self._batches):  # called again in the same pass
            name, calls = f"{seen.name}#{calls}", calls + 1
        self._self[name] = seen.visible.shape[2] == seen.visible.shape[3] and \
            not any(word in seen.name for word in _CROSS)
        self.layers.setdefault(name, []).append(
            seen._replace(queries=seen.queries.cpu(), keys=seen.keys.cpu(), visible=seen.visible.cpu(),
                          difference=seen.difference.cpu()))

    def heads(self, text: Any, query_text: Any, separators: set[str]) -> Heads:
        first = next(iter(self.layers))
        shapes = {name: [tuple(one.visible.shape[i] for i in (0, 2, 3)) + (one.keys.shape[3],) for one in seen]
                  for name, seen in self.layers.items()}
        for name, shape in shapes.items():
            if shape != shapes[first] or self._self[name] != self._self[first]:
                raise ValueError(f"{first} and {name} read different tokens, or have heads of different size; choose with "
                                 f"layers= among {', '.join(self.layers)}")
        real, asks = self._real(self.layers[first], self._self[first])
        arrays: dict[str, Any] = {}
        lengths = [int(row.sum()) for row in real]
        arrays["offsets"] = np.cumsum([0, *lengths])
        arrays["sequence"] = np.repeat(np.arange(len(asks)), [int(row.sum()) for row in asks])
        if self._self[first]:  # the place of each asking token among the real ones of its sequence
            arrays["position"] = np.concatenate([(np.cumsum(row) - 1)[ask] for row, ask in zip(real, asks)])
        self._stack(arrays, real, asks)
        self._words(arrays, real, asks, text, query_text, separators)
        return Heads(**arrays)

    def _real(self, seen: list[Seen], own: bool) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Which tokens of each sequence are not padding, and which of them ask."""
        real: list[np.ndarray] = []
        asks: list[np.ndarray] = []
        for one, (_, mask) in zip(seen, self._batches):
            visible = one.visible.any(1).numpy()
            for b in range(len(visible)):
                there = visible[b].any(0)
                if mask is not None and mask.shape == (len(visible), visible.shape[2]):
                    there &= mask[b].cpu().numpy() != 0
                if self._lengths is not None:
                    if len(real) >= len(self._lengths):
                        raise ValueError(f"text has {len(self._lengths)} sequences; the inputs have more")
                    there &= np.arange(len(there)) < self._lengths[len(real)]
                looks = (visible[b] & there).any(1)
                real.append(there)
                asks.append(there & looks if own else looks)
        return real, asks

    def _stack(self, arrays: dict[str, Any], real: list[np.ndarray], asks: list[np.ndarray]) -> None:
        keys: list[np.ndarray] = []
        masks: list[np.ndarray] = []
        queries, key_head, layer, head, difference = [], [], [], [], []
        longest = max(int(row.sum()) for row in real)
        for number, seen in enumerate(self.layers.values()):
            for h in range(seen[0].queries.shape[1]):
                rows = [(one, b) for one in seen for b in range(len(one.queries))]
                mine = np.concatenate([one.keys[b, h].numpy()[there] for (one, b), there in zip(rows, real)])
                if not (h and np.array_equal(mine, keys[-1])):  # heads of a group share their keys
                    keys.append(mine)
                queries.append(np.concatenate([one.queries[b, h].numpy()[ask] for (one, b), ask in zip(rows, asks)]))
                mask = np.zeros((len(queries[-1]), longest), bool)
                begin = 0
                for (one, b), there, ask in zip(rows, real, asks):
                    part = one.visible[b, h].numpy()[ask][:, there]
                    mask[begin:begin + len(part), :part.shape[1]] = part
                    begin += len(part)
                masks.append(mask if not masks or (mask != masks[0]).any() else masks[0])
                key_head.append(len(keys) - 1)
                layer.append(number)
                head.append(h)
                difference.append(max(float(one.difference[h]) for one in seen))
        arrays.update(keys=np.stack(keys), queries=np.stack(queries), layer=layer, head=head, difference=difference)
        if len(keys) < len(queries):
            arrays["key_head"] = key_head
        count = masks[0].sum(1)
        if any(mask is not masks[0] for mask in masks):
            arrays["visible"] = np.stack(masks)
        elif (masks[0] == (np.arange(longest) < count[:, None])).all():
            arrays["visible"] = count
        else:
            arrays["visible"] = masks[0]

    def _words(self, arrays: dict[str, Any], real: list[np.ndarray], asks: list[np.ndarray], text: Any, query_text: Any,
               separators: set[str]) -> None:
        sink = np.zeros(arrays["offsets"][-1], bool)
        sink[arrays["offsets"][:-1]] = True
        if text is not None:
            if len(text) != len(real):
                raise ValueError(f"text has {len(text)} sequences; the inputs have {len(real)}")
            arrays["text"] = [words[t] for words, there in zip(text, real) for t in np.flatnonzero(there)]
            sink |= [word in separators for word in arrays["text"]]
        elif separators:
            raise ValueError("separators are words, and there is no text")
        rows = [row for ids, _ in self._batches if ids is not None for row in ids.cpu().numpy()]
        if len(rows) == len(real) and all(len(row) == len(there) for row, there in zip(rows, real)):
            arrays["ids"] = np.concatenate([row[there] for row, there in zip(rows, real)])
        if query_text is not None:
            if len(query_text) != len(asks):
                raise ValueError(f"query_text has {len(query_text)} sequences; the inputs have {len(asks)}")
            arrays["query_text"] = [words[t] for words, ask in zip(query_text, asks) for t in np.flatnonzero(ask)]
        arrays["sink"] = sink
