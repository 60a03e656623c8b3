"""The numbers that the monitor takes of each head."""

from __future__ import annotations

import gc
from typing import Any, Sequence

import numpy as np
import torch

from ._heads import Heads
from ._torch_capture import Seen
from ._torch_collect import Collected
from ._types import Floats

KINDS = ("offset", "constant", "same word", "induction")
SATURATED = 0.99  # attention of the choice from which a head counts as hard
LOOK_BACK = 5  # measurements that the rate of growth is taken from
_SAMPLE = 1024  # queries in the heads that kinds and rho are taken of

# The norm whose largest margin steepest descent with these updates maximises, by names of classes of optimizers.
_NORMS = {"SGD": "fro", "Adam": "max", "AdamW": "max", "NAdam": "max", "RAdam": "max", "Adamax": "max", "Lion": "max",
          "SignSGD": "max", "Muon": "spec"}


def head_numbers(seen: Seen, mask: torch.Tensor | None = None) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The choices (b, h, t) and the numbers of each head, over queries that see two tokens and are not padding."""
    products = seen.queries.double() @ seen.keys.double().transpose(-1, -2)
    logits = products.masked_fill(~seen.visible, -torch.inf)
    chooses = seen.visible.sum(-1) > 1
    if mask is not None and mask.shape == (chooses.shape[0], chooses.shape[2]):
        chooses = chooses & mask.bool()[:, None]
    top = logits.topk(min(2, logits.shape[-1]), -1).values
    attention = torch.softmax(logits, -1)
    entropy = -torch.xlogy(attention, attention).sum(-1)
    first = seen.visible.to(torch.int8).argmax(-1, keepdim=True)
    choices = logits.argmax(-1)
    numbers: dict[str, list[torch.Tensor]] = {}
    for h in range(logits.shape[1]):
        rows = chooses[:, h]
        gaps = (top[:, h, :, 0] - top[:, h, :, -1])[rows]
        levels = torch.tensor([0.1, 0.5, 0.9], dtype=gaps.dtype, device=gaps.device)
        broken = ~products[:, h].isfinite()  # NaN hides in a mask: it is not above anything
        shown = torch.where(seen.visible[:, h] | broken, products[:, h].abs(), torch.zeros_like(logits[:, h]))
        numbers.setdefault("gap", []).append(torch.quantile(gaps if len(gaps) else levels.mul(torch.nan), levels))
        numbers.setdefault("weight", []).append(attention[:, h].amax(-1)[rows].mean())
        numbers.setdefault("entropy", []).append(entropy[:, h][rows].mean())
        numbers.setdefault("sink_weight", []).append(attention[:, h].gather(-1, first[:, h])[..., 0][rows].mean())
        numbers.setdefault("sink_share", []).append((choices[:, h] == first[:, h, :, 0])[rows].double().mean())
        numbers.setdefault("largest_logit", []).append(shown.max())
    return choices, {field: torch.stack(values) for field, values in numbers.items()}


def norms_of(module: torch.nn.Module, heads: int, size: int) -> torch.Tensor:
    """(heads, 3): Frobenius, spectral and nuclear norm of W_Kᵀ W_Q/√d; NaN if the projections are not recognised."""
    weights = projections(module, heads * size)
    norms = torch.full((heads, 3), torch.nan, dtype=torch.float64)
    if weights is None:
        return norms
    query, key = (one.detach().double().unflatten(0, (-1, size)) for one in weights)  # (heads or groups, d, width)
    if not (query.isfinite().all() and key.isfinite().all()):
        return norms
    for h in range(heads):
        q, k = query[h], key[h * len(key) // heads]
        values = torch.linalg.svdvals(torch.linalg.qr(k.T).R @ torch.linalg.qr(q.T).R.T) / size**0.5
        norms[h] = torch.stack([values.norm(), values.max(), values.sum()]).cpu()
    return norms


def projections(module: torch.nn.Module, width: int) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The weights (outputs, inputs) of queries and keys, under the names that libraries use."""
    for names in (("query", "key"), ("q_proj", "k_proj"), ("q_lin", "k_lin"), ("to_q", "to_k")):
        if all(isinstance(getattr(module, name, None), torch.nn.Linear) for name in names):
            return getattr(module, names[0]).weight, getattr(module, names[1]).weight
    packed = getattr(module, "in_proj_weight", None)
    if packed is None and isinstance(getattr(module, "qkv", None), torch.nn.Linear):
        packed = getattr(module, "qkv").weight
    if packed is None and hasattr(module, "c_attn"):
        packed = getattr(module, "c_attn").weight.T
    if packed is not None and packed.shape[0] == 3 * width:
        return packed[:width], packed[width:2 * width]
    query, key = getattr(module, "q_proj_weight", None), getattr(module, "k_proj_weight", None)
    return None if query is None or key is None else (query, key)


def heads_of(seen: Seen, ids: torch.Tensor | None, mask: torch.Tensor | None) -> Heads | None:
    """The heads of one layer on the first sequences of the probe; None if a number is not finite."""
    few = slice(max(1, _SAMPLE // seen.queries.shape[2]))
    seen = seen._replace(queries=seen.queries[few], keys=seen.keys[few], visible=seen.visible[few],
                         difference=torch.zeros_like(seen.difference))  # heads_from is where fidelity is judged
    if not (seen.queries.isfinite().all() and seen.keys.isfinite().all() and seen.visible.any()):
        return None
    collected = Collected(None)
    whole = ids is not None and ids.shape[1] == seen.visible.shape[3]
    collected.begin(ids[few] if whole and ids is not None else None, None if mask is None else mask[few], None)
    collected.add(seen)
    return collected.heads(None, None, set())


def kinds_of(heads: Heads | None, count: int) -> tuple[Floats, list[str]]:
    """(heads, 4) shares of the kinds, and the largest of each head in words."""
    shares, words = np.full((count, len(KINDS)), np.nan), [""] * count
    for h in range(count if heads is not None else 0):
        found = heads.kinds(h)  # type: ignore[union-attr]
        for one in found:
            shares[h, KINDS.index(one["kind"])] = one["share"]
        words[h] = found[0]["words"] if found else ""
    return shares, words


def rho_of(heads: Heads | None, count: int, norm: str, queries: int, nulls: int) -> Floats:
    """(heads, 3): rho, and mean and deviation of its null."""
    values = np.full((count, 3), np.nan)
    for h in range(count if heads is not None else 0):
        found = heads.rho(h, norm, queries=queries, nulls=nulls, threads=1)  # type: ignore[union-attr]
        values[h] = found["value"], found["null_mean"], found["null_deviation"]
    return values


def forecast(steps: Sequence[int], gaps: Floats, weight: Floats) -> Floats:
    """The step at which the choice's attention reaches 99 % if gaps keep growing as they do; NaN: never, or not known.

    `gaps` (r, …) are medians at the steps, `weight` (…) the attention at the last. The rate is the least-squares slope
    over the last five measurements. Where the choice has odds e^a, a gap that is larger by b makes the odds of the
    choice against the next e^(a+b); so log 99 − a is what the gap still has to grow.
    """
    times, gaps = np.asarray(steps[-LOOK_BACK:], float), np.asarray(gaps[-LOOK_BACK:])
    away = times - times.mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        missing = np.log(SATURATED / (1 - SATURATED)) - np.log(weight / (1 - weight))
        rate = np.tensordot(away, gaps, 1) / np.square(away).sum()  # NaN for a single measurement
        ahead = np.where(rate > 0, missing / rate, np.nan)
    return np.where(missing <= 0, times[-1], times[-1] + ahead)


def optimizer_of(model: torch.nn.Module) -> Any:
    """The one optimizer, among all objects that are alive, that holds parameters of the model; else None."""
    own = {id(one) for one in model.parameters()}
    found = [one for one in gc.get_objects() if issubclass(type(one), torch.optim.Optimizer) and  # asks objects nothing
             any(id(parameter) in own for group in one.param_groups for parameter in group["params"])]
    return found[0] if len(found) == 1 else None


def norm_named_by(optimizer: Any, trained_apart: bool) -> str | None:
    """The norm that theory names; gradient descent on keys and queries apart has another one than on W itself."""
    for kind in type(optimizer).__mro__:
        if kind.__name__ in _NORMS:
            norm = _NORMS[kind.__name__]
            return "nuc" if norm == "fro" and trained_apart else norm
    return None
