"""Weights that were trained elsewhere, as the arrays of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _arguments as arguments
from ._run import Run, Steps
from ._task import Task
from ._types import Floats, Integers, Loss, Optimizer, Parametrization


def points_of(value: Any, name: str, columns: int = 0) -> Floats:
    """(r, rows, columns) float64 of one matrix, a stack, or a list of matrices or tensors. With one column, vectors are
    matrices too."""
    if isinstance(value, (list, tuple)) and value:
        shapes = {tuple(np.shape(one) if not hasattr(one, "shape") else one.shape) for one in value}
        if len(shapes) > 1:
            raise ValueError(f"{name} has matrices of shapes {sorted(shapes)}; must all be the same")
    points: Floats = np.asarray(arguments.array(value, name), dtype=np.float64)
    if columns == 1 and (points.ndim == 1 or (points.ndim == 2 and points.shape[1] > 1)):
        points = points[..., None]
    if points.ndim == 2:
        points = points[None]
    if points.ndim != 3:
        raise ValueError(f"{name} has shape {points.shape}; must be a matrix, or (r, rows, columns)")
    return points


def _steps(steps: Steps | None, count: int) -> Integers:
    if steps is None:
        if count > 1:
            raise ValueError(f"steps is missing; must be the steps taken before each of the {count} points")
        return np.zeros(1, dtype=np.int64)
    list_of_steps = [arguments.integer(one, "steps", 0) for one in steps]
    if len(list_of_steps) != count:
        raise ValueError(f"steps has {len(list_of_steps)} entries; must have one per point, {count} in all")
    if any(a >= b for a, b in zip(list_of_steps, list_of_steps[1:])):
        raise ValueError(f"steps = {list_of_steps}; must ascend")
    return np.array(list_of_steps, dtype=np.int64)


def _kept(task: Task, runs: list[Run]) -> Floats:
    """(r,) mean weight of the tokens that the last point selects, or of the labels."""
    if task.kind == "next-token":
        return np.array([run.label_attention.mean() for run in runs])
    chosen = np.arange(len(runs[-1].selected)), runs[-1].selected
    return np.array([run.attention[chosen].mean() for run in runs])


def run_of(task: Task, W: Any, K: Any, Q: Any, steps: Steps | None, optimizer: Optimizer | None,
           loss: Loss) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays and facts of a `Run`. Every point is one from which training takes no step."""
    from ._train import optimizer_text, train
    factored = W is None
    if factored == (K is None and Q is None) or (K is None) != (Q is None):
        raise ValueError("must have either W, or both K and Q")
    if factored:
        first, second = points_of(K, "K"), points_of(Q, "Q")
        if len(first) != len(second):
            raise ValueError(f"K has {len(first)} points and Q has {len(second)}; must be as many")
        starts: list[dict[str, Floats]] = [{"K0": k, "Q0": q} for k, q in zip(first, second)]
    else:
        starts = [{"W0": one} for one in points_of(W, "W", task.dz)]
    at = _steps(steps, len(starts))
    param: Parametrization = "KQ" if factored else "W"
    width = starts[0]["K0"].shape[1] if factored else None
    runs = [train(task, param=param, width=width, optimizer="ngd" if optimizer is None else optimizer, init=start, steps=0,
                  loss=loss, progress=False) for start in starts]
    last = runs[-1]
    arrays: dict[str, Any] = {name: value for name, value in last.to_dict().items() if isinstance(value, np.ndarray)}
    arrays.update(record_step=at, record_W=np.stack([run.W for run in runs]), record_attention=_kept(task, runs))
    for name in ("loss", "log_loss", "norm", "log_gradient"):
        arrays[f"record_{name}"] = np.array([getattr(run, name) for run in runs])
    for value in arrays.values():
        value.flags.writeable = False
    if optimizer is not None:
        arrays["settings"] = f"{param}, {optimizer_text(optimizer)}"
    return arrays, dict(steps=int(at[-1]), stopped="", loss=last.loss, log_loss=last.log_loss, norm=last.norm,
                        log_gradient=last.log_gradient)
