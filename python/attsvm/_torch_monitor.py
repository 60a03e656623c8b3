from __future__ import annotations

import warnings
from typing import Any, Callable

import numpy as np
import torch

from . import _arguments as arguments
from . import _core
from ._files import writable
from ._torch_capture import Capture, Seen, call
from ._torch_collect import ids_and_mask
from ._torch_measures import (LOOK_BACK, forecast, head_numbers, heads_of, kinds_of, norm_named_by, norms_of, optimizer_of,
                              projections, rho_of)
from ._types import Floats, PathLike

_FIELDS = {"gap": 3, "weight": 1, "entropy": 1, "largest_logit": 1, "sink_weight": 1, "sink_share": 1, "drift": 1,
           "norm": 3, "kind": 4, "forecast": 1, "rho": 3}
_NAMES = {"gap": ("gap_10", "gap_50", "gap_90"), "norm": ("norm_fro", "norm_spec", "norm_nuc"),
          "kind": ("kind_offset", "kind_constant", "kind_word", "kind_induction"),
          "rho": ("rho", "rho_null_mean", "rho_null_deviation")}
_QUERIES, _NULLS = 64, 4  # of rho: enough to see it move, few enough to be quick
_RHO_AT = frozenset(4**k for k in range(2, 32))  # measurements: SVMs are what costs most
Record = dict[str, dict[str, Any]]


class Monitor:
    """What `monitor` returns: measures the heads of a model while it trains.

    `steps` are the forward passes in training mode before each measurement, `layers` the names of modules, `warnings`
    what was warned of, and `to_dict()` has every number as an array (measurements, layers, heads, …).
    """

    def __init__(self, model: torch.nn.Module, every: int, probe: Any, optimizer: Any, norm: Any, explosion: float,
                 callback: Callable[[int, Record], Any] | None):
        self._model, self._every, self._callback = model, arguments.integer(every, "every", 1), callback
        self._probe = None if probe is None else call(probe)
        self._optimizer, self._norm = optimizer, norm if norm in (None, "auto") else arguments.norm(norm)
        self._explosion = arguments.positive(explosion, "explosion")
        self._count, self._inside, self._warned = 0, False, set()  # type: ignore[var-annotated]
        self._choices: dict[str, torch.Tensor] = {}
        self._records: list[Record] = []
        self.steps: list[int] = []
        self.warnings: list[str] = []
        self.rho_norm: str | None = None  #: the norm of rho, once it was measured

    def __enter__(self) -> "Monitor":
        if "forward" in vars(self._model):
            raise ValueError("the model's forward is replaced already, by another monitor or a wrapper")
        self._forward = self._model.forward
        self._model.forward = self._watched  # type: ignore[method-assign, unused-ignore]
        return self

    def __exit__(self, error: Any, *_: Any) -> None:
        try:
            if error is None and self._probe is not None:
                self.measure(rho=True)  # where training ended
        finally:
            del self._model.forward

    def _watched(self, *args: Any, **kwargs: Any) -> Any:
        if self._model.training and not self._inside:
            if self._probe is None:
                self._probe = _kept((args, kwargs))
            if self._count % self._every == 0:
                self.measure(rho=len(self.steps) in _RHO_AT)
            self._count += 1
        return self._forward(*args, **kwargs)

    def measure(self, rho: bool = False) -> None:
        """Measures now, on the probe, in eval mode, without gradients. Leaves modes and weights as they were.

        With `rho` also that, which takes SVMs.
        """
        if self._probe is None:
            raise ValueError("there is nothing to measure on: give a probe, or train a step first")
        if self.steps and self.steps[-1] == self._count:
            return
        args, kwargs = self._probe
        modes = [(module, module.training) for module in self._model.modules()]
        record: Record = {}
        self._inside = True
        try:
            self._model.eval()
            with torch.no_grad(), Capture(self._model, lambda seen: self._add(record, seen, rho), lambda _: True):
                self._model(*args, **kwargs)
        finally:
            self._inside = False
            for module, mode in modes:
                module.training = mode
        if not record:
            raise ValueError("no attention was seen in the model")
        self._records.append(record)
        self.steps.append(self._count)
        for name, numbers in record.items():
            gaps = np.stack([one[name]["gap"][:, 1] for one in self._records[-LOOK_BACK:]])
            numbers["forecast"] = forecast(self.steps, gaps, numbers["weight"])
            self._look_for_explosions(name, numbers["largest_logit"])
        if self._callback is not None:
            self._callback(self._count, record)

    def _add(self, record: Record, seen: Seen, with_rho: bool) -> None:
        name = seen.name if seen.name not in record else f"{seen.name}#{len(record)}"
        _, ids, mask = ids_and_mask(*self._probe)  # type: ignore[misc]
        choices, numbers = head_numbers(seen, mask)
        before, count, size = self._choices.get(name), seen.queries.shape[1], seen.queries.shape[3]
        numbers["drift"] = torch.full_like(numbers["weight"], torch.nan) if before is None else \
            choices.ne(before).double().mean((0, 2))
        self._choices[name] = choices
        module = self._model.get_submodule(seen.name)
        numbers["norm"] = norms_of(module, count, size)
        record[name] = {field: value.cpu().numpy() for field, value in numbers.items()}
        heads = heads_of(seen, ids, mask)
        record[name]["kind"], record[name]["kind_words"] = kinds_of(heads, count)
        norm = self._norm_for(module, count * size) if with_rho and self._norm is not None else None
        record[name]["rho"] = np.full((count, 3), np.nan) if norm is None else rho_of(heads, count, norm, _QUERIES, _NULLS)

    def _norm_for(self, module: torch.nn.Module, width: int) -> str | None:
        if self.rho_norm is None and self._norm == "auto":
            optimizer = self._optimizer if self._optimizer is not None else optimizer_of(self._model)
            apart = projections(module, width)
            trained = apart is not None and all(one.requires_grad for one in apart)
            self.rho_norm = None if optimizer is None else norm_named_by(optimizer, trained)
        elif self.rho_norm is None:
            self.rho_norm = self._norm
        return self.rho_norm

    def _look_for_explosions(self, name: str, largest: Floats) -> None:
        for h, value in enumerate(largest):
            if (name, h) in self._warned or value <= self._explosion:
                continue
            self._warned.add((name, h))
            words = f"step {self._count}: {name}, head {h}: its largest logit is {value:.4g}"
            words += f", above {self._explosion:g}" if np.isfinite(value) else ""
            self.warnings.append(words)
            warnings.warn(words + "; attention that is 0 or 1 to rounding passes no gradient (smaller steps, or norms of "
                          "queries and keys, prevent that)", RuntimeWarning, stacklevel=4)

    @property
    def layers(self) -> list[str]:
        """Names of the modules with attention, in the order in which they are called."""
        return list(self._records[0]) if self._records else []

    def to_dict(self) -> dict[str, Any]:
        """The numbers as arrays: `step` (r,), the others (r, layers, heads) or (r, layers, heads, k)."""
        if not self._records:
            raise ValueError("nothing was measured: train a step, or call measure()")
        heads = max(len(one["weight"]) for one in self._records[0].values())
        arrays: dict[str, Any] = {"step": np.array(self.steps), "layer_name": self.layers}
        for field, count in _FIELDS.items():
            shape = (len(self.steps), len(self.layers), heads) + ((count,) if count > 1 else ())
            arrays[field] = np.full(shape, np.nan)
            for r, record in enumerate(self._records):
                for k, name in enumerate(self.layers):
                    value = record[name][field]
                    arrays[field][r, k, :len(value)] = value
        arrays["kind_words"] = [word for record in self._records for name in self.layers
                                for word in (record[name]["kind_words"] + [""] * heads)[:heads]]
        arrays["rho_norm"] = self.rho_norm or ""
        if self.warnings:
            arrays["warnings"] = list(self.warnings)
        return arrays

    def save(self, path: PathLike, force: bool = False) -> None:
        """Writes `to_dict()` to an .npz file, of which `attsvm report` makes a page."""
        _core.write_npz(writable(path, force), self.to_dict(), bool(force))


def monitor(model: torch.nn.Module, every: int = 100, *, probe: Any = None, optimizer: Any = None, norm: Any = "auto",
            explosion: float = 100.0, callback: Callable[[int, Record], Any] | None = None) -> Monitor:
    """Watches the attention heads of a model while it trains: a context to put around any training loop.

    Before every `every`-th forward pass in training mode, and at the end, the model reads a probe in eval mode without
    gradients, and each head is measured. A choice is the token with the largest logit.

    - `gap`: 10, 50 and 90 % quantiles over queries of the choice's logit above the next
    - `weight`, `entropy`: mean attention of the choice, and mean entropy in nats
    - `largest_logit`: in absolute value
    - `sink_weight`, `sink_share`: mean attention on the first token that a query sees; share of choices that are it
    - `kind`, `kind_words`: shares of choices that have an offset, a place or word, the query's own word, or its
      continuation in common, and the largest in words, as in `attsvm.audit`
    - `drift`: share of queries whose choice changed since the last measurement
    - `norm`: Frobenius, spectral and nuclear norm of W = W_Kᵀ W_Q times the scale, where the module's projections have
      known names; else NaN
    - `forecast`: the step at which `weight` reaches 0.99 if gaps keep growing at the rate of the last five
      measurements; NaN if they do not grow
    - `rho`: the smallest gap over the head's norm as a share of the largest possible one, in head space on 64 queries,
      with mean and deviation of four random heads. Taken at measurements 16, 64, 256, … and the last. That an optimizer
      brings it near 1 in the norm of its theory is a conjecture for models: compare it with its null.

    Training is not changed by it.

    Parameters
    ----------
    model : torch.nn.Module
    every : int
        Forward passes between measurements.
    probe : what the model is called with, optional
        A tensor, a tuple or a dict. Default: a copy of the first batch.
    optimizer : torch.optim.Optimizer, optional
        Default: the one that holds the model's parameters.
    norm : "auto", a norm as in `attsvm.solve`, or None
        The norm of rho. "auto": spectral for Muon, largest entry for Adam and sign descent, for SGD nuclear, or Frobenius
        where queries and keys do not both have trained projections; none for other optimizers. None: no rho.
    explosion : float
        Warns of heads whose logits exceed it. From about 100 on, the weights of other tokens vanish in float32.
    callback : function of (step, {layer: {field: array}}), optional
        Called with each measurement; `scalars_to` makes one that writes to TensorBoard.

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.TransformerEncoderLayer(16, 4, batch_first=True)
    >>> optimizer = torch.optim.SGD(model.parameters(), 0.1)
    >>> with monitor(model, every=10) as seen:
    ...     for _ in range(20):
    ...         optimizer.zero_grad()
    ...         model(torch.randn(2, 5, 16)).square().mean().backward()
    ...         optimizer.step()
    >>> seen.steps, seen.to_dict()["gap"].shape, seen.rho_norm
    ([0, 10, 20], (3, 1, 4, 3), 'nuc')
    """
    return Monitor(model, every, probe, optimizer, norm, explosion, callback)


def scalars_to(writer: Any, prefix: str = "attention") -> Callable[[int, Record], None]:
    """A callback for `monitor` that writes scalars, such as attention/encoder.layer.0/head 3/gap_50.

    `writer` is a SummaryWriter of TensorBoard, or anything else with add_scalar(tag, value, step). Numbers that are not
    known are left out.

    >>> class Printer:
    ...     def add_scalar(self, tag, value, step): print(tag, value, step)
    >>> scalars_to(Printer())(20, {"layer": {"weight": np.array([0.5, np.nan])}})
    attention/layer/head 0/weight 0.5 20
    """
    def write(step: int, record: Record) -> None:
        for layer, numbers in record.items():
            for field, values in numbers.items():
                if field not in _FIELDS:
                    continue
                for h, value in enumerate(np.asarray(values, float).reshape(len(values), -1)):
                    for name, one in zip(_NAMES.get(field, (field,)), value):
                        if np.isfinite(one):
                            writer.add_scalar(f"{prefix}/{layer}/head {h}/{name}", float(one), step)

    return write


def _kept(value: Any) -> Any:
    """A copy of the tensors in arguments, so that later changes do not reach it."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        return type(value)(_kept(one) for one in value)
    return {name: _kept(one) for name, one in value.items()} if isinstance(value, dict) else value
