"""Makes `Heads` of what passes through a model have shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ._heads import Heads
from ._torch_capture import Seen

Rows = NDArray[Any]  #: of one sequence: flags, or numbers

_CROSS = ("cross", "encoder_attn", "multihead_attn")  # in names of modules: their keys are not the queries' tokens
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 0.05, torch.bfloat16: 0.05}


def ids_and_mask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[
        torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    """The tensor that a model is called with; the same if it holds words; and which of them are not padding."""
    first = next((one for one in [*args, *kwargs.values()] if isinstance(one, torch.Tensor)), None)
    given, mask = kwargs.get("input_ids", first), kwargs.get("attention_mask")
    words = given is not None and not given.is_floating_point() and given.dim() == 2
    return given, given if words else None, mask if isinstance(mask, torch.Tensor) and mask.dim() == 2 else None


class Collected:
    """What the passes have shown so far, on the CPU: per layer one list entry per batch."""

    def __init__(self, tolerance: float | None):
        self.layers: dict[str, list[Seen]] = {}
        self._tolerance = tolerance
        self._batches: list[tuple[Any, Any]] = []
        self._lengths: list[int] | None = None
        self._self: dict[str, bool] = {}

    def begin(self, ids: torch.Tensor | None, mask: torch.Tensor | None, text: Any) -> None:
        self._batches.append((ids, mask))
        for k, words in enumerate([] if text is None else text):
            if isinstance(words, str):
                raise TypeError(f"text[{k}] is a str; must be the list of that sequence's tokens")
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
        visible = seen.visible.cpu()
        if (visible == visible[:, :1]).all():  # one mask for all heads, and one for all layers: masks are large
            visible = visible[:, :1].clone()
        for other in self.layers.values():
            if len(other) == len(self._batches) and torch.equal(other[-1].visible, visible):
                visible = other[-1].visible
                break
        self._self[name] = seen.visible.shape[2] == seen.visible.shape[3] and \
            not any(word in seen.name for word in _CROSS)
        self.layers.setdefault(name, []).append(
            seen._replace(queries=seen.queries.cpu(), keys=seen.keys.cpu(), visible=visible,
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

    def _real(self, seen: list[Seen], own: bool) -> tuple[list[Rows], list[Rows]]:
        """Which tokens of each sequence are not padding, and which of them ask."""
        real: list[Rows] = []
        asks: list[Rows] = []
        for one, (_, mask) in zip(seen, self._batches):
            visible = one.visible.any(1).numpy()
            for b in range(len(visible)):
                there = visible[b].any(0)
                if mask is not None and mask.shape == (len(visible), visible.shape[2]):
                    there &= mask[b].cpu().numpy() != 0
                if self._lengths is not None:
                    if len(real) >= len(self._lengths):
                        raise ValueError(f"text has {len(self._lengths)} sequences; the inputs have more")
                    if self._lengths[len(real)] > len(there):
                        raise ValueError(f"text[{len(real)}] has {self._lengths[len(real)]} tokens; "
                                         f"that sequence has {len(there)}")
                    there &= np.arange(len(there)) < self._lengths[len(real)]
                looks = (visible[b] & there).any(1)
                real.append(there)
                asks.append(there & looks if own else looks)
        return real, asks

    def _stack(self, arrays: dict[str, Any], real: list[Rows], asks: list[Rows]) -> None:
        keys: list[Rows] = []
        masks: list[Rows] = []
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
                    part = one.visible[b, min(h, one.visible.shape[1] - 1)].numpy()[ask][:, there]
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

    def _words(self, arrays: dict[str, Any], real: list[Rows], asks: list[Rows], text: Any, query_text: Any,
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
