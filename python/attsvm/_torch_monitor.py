from __future__ import annotations

import os
from typing import Any, Callable

import numpy as np
import torch

from . import _core
from ._arguments import integer
from ._torch_capture import Capture, Seen, call

_FIELDS = {"gap": 3, "weight": 1, "entropy": 1, "largest_logit": 1, "first_token": 1, "drift": 1, "norm": 3}


class Monitor:
    """What `monitor` returns: measures the heads of a model while it trains.

    `steps` are the forward passes in training mode before each measurement, `layers` the names of modules, and
    `to_dict()` has every number as an array (measurements, layers, heads, …).
    """

    def __init__(self, model: torch.nn.Module, every: int, probe: Any, callback: Callable[[int, dict], Any] | None):
        self._model, self._every, self._callback = model, integer(every, "every", 1), callback
        self._probe = None if probe is None else call(probe)
        self._count, self._inside = 0, False
        self._choices: dict[str, torch.Tensor] = {}
        self._records: list[dict[str, dict[str, np.ndarray]]] = []
        self.steps: list[int] = []

    def __enter__(self) -> "Monitor":
        if "forward" in vars(self._model):
            raise ValueError("the model's forward is replaced already, by another monitor or a wrapper")
        self._forward = self._model.forward
        self._model.forward = self._watched  # type: ignore[method-assign]
        return self

    def __exit__(self, error: Any, *_: Any) -> None:
        try:
            if error is None and self._probe is not None:
                self.measure()  # where training ended
        finally:
            del self._model.forward

    def _watched(self, *args: Any, **kwargs: Any) -> Any:
        if self._model.training and not self._inside:
            if self._probe is None:
                self._probe = _kept((args, kwargs))
            if self._count % self._every == 0:
                self.measure()
            self._count += 1
        return self._forward(*args, **kwargs)

    def measure(self) -> None:
        """Measures now, on the probe, in eval mode, without gradients. Leaves modes and weights as they were."""
        if self._probe is None:
            raise ValueError("there is nothing to measure on: give a probe, or train a step first")
        if self.steps and self.steps[-1] == self._count:
            return
        args, kwargs = self._probe
        modes = [(module, module.training) for module in self._model.modules()]
        record: dict[str, dict[str, np.ndarray]] = {}
        self._inside = True
        try:
            self._model.eval()
            with torch.no_grad(), Capture(self._model, lambda seen: self._add(record, seen), lambda name: True):
                self._model(*args, **kwargs)
        finally:
            self._inside = False
            for module, mode in modes:
                module.training = mode
        if not record:
            raise ValueError("no attention was seen in the model")
        self._records.append(record)
        self.steps.append(self._count)
        if self._callback is not None:
            self._callback(self._count, record)

    def _add(self, record: dict[str, dict[str, np.ndarray]], seen: Seen) -> None:
        name = seen.name if seen.name not in record else f"{seen.name}#{len(record)}"
        choices, numbers = head_numbers(seen)
        before = self._choices.get(name)
        numbers["drift"] = torch.full_like(numbers["weight"], torch.nan) if before is None else \
            (choices != before).double().mean((0, 2))
        self._choices[name] = choices
        numbers["norm"] = _norms(self._model.get_submodule(seen.name), seen.queries.shape[1], seen.queries.shape[3])
        record[name] = {field: value.cpu().numpy() for field, value in numbers.items()}

    @property
    def layers(self) -> list[str]:
        """Names of the modules with attention, in the order in which they are called."""
        return list(self._records[0]) if self._records else []

    def to_dict(self) -> dict[str, Any]:
        """The numbers as arrays: `step` (r,), the others (r, layers, heads) or (r, layers, heads, 3)."""
        heads = max(len(one["weight"]) for one in self._records[0].values())
        arrays: dict[str, Any] = {"step": np.array(self.steps), "layer_name": self.layers}
        for field, count in _FIELDS.items():
            shape = (len(self.steps), len(self.layers), heads) + ((count,) if count > 1 else ())
            arrays[field] = np.full(shape, np.nan)
            for r, record in enumerate(self._records):
                for k, name in enumerate(self.layers):
                    value = record[name][field]
                    arrays[field][r, k, :len(value)] = value
        return arrays

    def save(self, path: Any, force: bool = False) -> None:
        """Writes `to_dict()` to an .npz file."""
        _core.write_npz(os.fspath(path), self.to_dict(), bool(force))


def monitor(model: torch.nn.Module, every: int = 100, *, probe: Any = None,
            callback: Callable[[int, dict[str, dict[str, np.ndarray]]], Any] | None = None) -> Monitor:
    """Watches the attention heads of a model while it trains: a context to put around any training loop.

    Before every `every`-th forward pass in training mode, and at the end, the model reads a probe in eval mode without
    gradients, and each head is measured: `gap` (10, 50 and 90 % quantiles over queries of the largest logit above the
    next), `weight` (mean attention of the choice), `entropy` (mean, in nats), `largest_logit` (in absolute value),
    `first_token` (mean attention on it), `drift` (share of queries whose choice changed since the last measurement), and
    `norm` (Frobenius, spectral and nuclear norm of W = W_Kᵀ W_Q times the scale, where the module's projections have
    known names; else NaN). Training is not changed by it.

    Parameters
    ----------
    model : torch.nn.Module
    every : int
        Forward passes between measurements.
    probe : what the model is called with, optional
        A tensor, a tuple or a dict. Default: a copy of the first batch.
    callback : function of (step, {layer: {field: array}}), optional
        Called with each measurement, for example to write scalars.

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.TransformerEncoderLayer(16, 4, batch_first=True)
    >>> optimizer = torch.optim.SGD(model.parameters(), 0.1)
    >>> with monitor(model, every=10) as seen:
    ...     for _ in range(20):
    ...         optimizer.zero_grad()
    ...         model(torch.randn(2, 5, 16)).square().mean().backward()
    ...         optimizer.step()
    >>> seen.steps, seen.to_dict()["gap"].shape
    ([0, 10, 20], (3, 1, 4, 3))
    """
    return Monitor(model, every, probe, callback)


def head_numbers(seen: Seen) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The choices (b, h, t) and the numbers of each head; queries that see one token make no choice."""
    logits = (seen.queries.double() @ seen.keys.double().transpose(-1, -2)).masked_fill(~seen.visible, -torch.inf)
    chooses = (seen.visible.sum(-1) > 1)
    top = logits.topk(min(2, logits.shape[-1]), -1).values
    attention = torch.softmax(logits, -1)
    entropy = -torch.xlogy(attention, attention).sum(-1)
    first = attention.gather(-1, seen.visible.to(torch.int8).argmax(-1, keepdim=True))[..., 0]
    numbers: dict[str, list[torch.Tensor]] = {}
    for h in range(logits.shape[1]):
        rows = chooses[:, h]
        gaps = (top[:, h, :, 0] - top[:, h, :, -1])[rows]
        some = len(gaps) > 0
        levels = torch.tensor([0.1, 0.5, 0.9], dtype=gaps.dtype, device=gaps.device)
        numbers.setdefault("gap", []).append(torch.quantile(gaps, levels) if some else torch.full_like(levels, torch.nan))
        numbers.setdefault("weight", []).append(attention[:, h].amax(-1)[rows].mean())
        numbers.setdefault("entropy", []).append(entropy[:, h][rows].mean())
        numbers.setdefault("first_token", []).append(first[:, h][rows].mean())
        numbers.setdefault("largest_logit", []).append(logits[:, h][seen.visible[:, h]].abs().max())
    return logits.argmax(-1), {field: torch.stack(values) for field, values in numbers.items()}


def _norms(module: torch.nn.Module, heads: int, size: int) -> torch.Tensor:
    """(heads, 3): Frobenius, spectral and nuclear norm of W_Kᵀ W_Q/√d; NaN if the projections are not recognised."""
    weights = _projections(module, heads * size)
    norms = torch.full((heads, 3), torch.nan, dtype=torch.float64)
    if weights is None:
        return norms
    query, key = (one.detach().double().unflatten(0, (-1, size)) for one in weights)  # (heads or groups, d, width)
    for h in range(heads):
        q, k = query[h], key[h * len(key) // heads]
        values = torch.linalg.svdvals(torch.linalg.qr(k.T).R @ torch.linalg.qr(q.T).R.T) / size**0.5
        norms[h] = torch.stack([values.norm(), values.max(), values.sum()]).cpu()
    return norms


def _projections(module: torch.nn.Module, width: int) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The weights (outputs, inputs) of queries and keys, under the names that libraries use."""
    for names in (("query", "key"), ("q_proj", "k_proj"), ("q_lin", "k_lin"), ("to_q", "to_k")):
        if all(isinstance(getattr(module, name, None), torch.nn.Linear) for name in names):
            return getattr(module, names[0]).weight, getattr(module, names[1]).weight
    packed = getattr(module, "in_proj_weight", None)
    if packed is None and isinstance(getattr(module, "qkv", None), torch.nn.Linear):
        packed = module.qkv.weight  # type: ignore[union-attr]
    if packed is None and hasattr(module, "c_attn"):
        packed = module.c_attn.weight.T  # type: ignore[union-attr, operator]
    if packed is not None and packed.shape[0] == 3 * width:
        return packed[:width], packed[width:2 * width]
    query, key = getattr(module, "q_proj_weight", None), getattr(module, "k_proj_weight", None)
    return None if query is None or key is None else (query, key)


def _kept(value: Any) -> Any:
    """A copy of the tensors in arguments, so that later changes do not reach it."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        return type(value)(_kept(one) for one in value)
    return {name: _kept(one) for name, one in value.items()} if isinstance(value, dict) else value
