# mypy: disable-error-code=no-any-return
# Arrays come from C++ by name, and only the properties here say of which type they are.
from __future__ import annotations

from typing import Any, NamedTuple, Sequence, Union

import numpy as np

from . import _arguments as arguments
from . import _core
from ._results import Many, Result
from ._task import Task
from ._types import Floats, Integers, Loss, Optimizer, PathLike

Steps = Union[Sequence[int], Integers]


class TrainProgress(NamedTuple):
    """The state of a run before a step."""
    step: int
    loss: float
    norm: float  #: |W|_F


class Run(Result):
    """A training run: where it ended, and the points it recorded on its way. Arrays are read-only;
    `to_dict(copy=True)` has copies that may be changed.

    r points were recorded; q queries, T the longest sequence.

    >>> import attsvm
    >>> run = attsvm.train(attsvm.generate("random", seed=1), record="every:500")
    >>> run.record_step
    array([   0,  500, 1000, 1500, 2000])
    >>> run.record_W.shape, run.selected
    ((5, 10, 10), array([7, 2, 0, 5, 0, 2]))
    """

    __slots__ = ("_arrays", "_facts")

    def __init__(self, arrays: dict[str, Any], facts: dict[str, Any]):
        self._arrays, self._facts = arrays, facts

    @classmethod
    def _of_file(cls, arrays: dict[str, Any]) -> Run:
        """A run read from a file; its last recorded point gives loss and steps, as far as the file has them."""
        facts: dict[str, Any] = {name: arrays[f"record_{name}"][-1].item() for name in ("loss", "log_loss", "log_gradient")
                                 if len(arrays.get(f"record_{name}", ()))}
        if len(arrays.get("record_step", ())):
            facts["steps"] = int(arrays["record_step"][-1])
        return cls(arrays, {**facts, "stopped": "", "norm": float(np.linalg.norm(arrays["W"]))})

    @classmethod
    def from_snapshots(cls, task: Task, W: Any = None, *, K: Any = None, Q: Any = None, steps: Steps | None = None,
                       optimizer: Optimizer | None = None, loss: Loss = "logistic") -> Run:
        """A run from weights that were trained elsewhere, for `check`, `report` and plots.

        Parameters
        ----------
        task : Task with a head, or of next-token prediction
        W : array (d, dz), or (r, d, dz) or a list of r matrices
            The weights at the end, or at r points of the training, tensors too. Prompts may be vectors.
        K, Q : arrays (d, w) and (dz, w), or (r, d, w) and (r, dz, w), instead of W
            W = K Qᵀ.
        steps : r integers, optional
            Steps taken before each point, ascending. May be left out for a single point.
        optimizer : as in `train`, optional
            What trained them; `check` then knows which SVM theory names.
        loss : as in `train`

        >>> import attsvm, numpy as np
        >>> task = attsvm.generate("random", seed=1)
        >>> points = [k * attsvm.solve(task).W for k in (1, 2, 3)]
        >>> run = attsvm.Run.from_snapshots(task, points, steps=[10, 20, 30], optimizer="gd")
        >>> run.record_step, attsvm.check(task, run).verdict
        (array([10, 20, 30]), 'global')
        """
        from ._snapshots import run_of
        return cls(*run_of(task, W, K, Q, steps, optimizer, loss))

    def _get(self, name: str, when: str = "") -> Any:
        if name not in self._arrays:
            raise AttributeError(f"this run has no {name}" + (f"; it exists only {when}" if when else ""))
        return self._arrays[name]

    def _fact(self, name: str) -> Any:
        if name not in self._facts:
            raise AttributeError(f"this run has no {name}: its file does not say")
        return self._facts[name]

    @property
    def heads(self) -> int:
        """How many heads of attention were trained."""
        return len(self.W) if self.W.ndim == 3 else 1

    def head(self, h: int) -> Run:
        """Head h of a run of many heads, as a run of its own: for `check`, `report`, plots and `solve`. Its losses are
        those of all heads together.

        >>> import attsvm
        >>> task = attsvm.generate("random", seed=1)
        >>> run = attsvm.train(task, heads=3)
        >>> run.W.shape, run.head(2).W.shape, run.head(0).selected
        ((3, 10, 10), (10, 10), array([7, 2, 0, 5, 0, 2]))
        >>> attsvm.check(task, run.head(2)).separable
        True
        """
        if self.heads == 1:
            raise ValueError("this run has one head")
        h = arguments.integer(h, "h", 0, self.heads - 1)
        arrays = dict(self._arrays)
        for name in ("W", "K", "Q", "v", "attention", "log_attention", "selected"):
            if name in arrays:
                arrays[name] = arrays[name][h]
        for name in ("record_W", "record_v"):
            if name in arrays:
                arrays[name] = arrays[name][:, h]
        return Run(arrays, self._facts)

    @property
    def W(self) -> Floats:
        """(d, dz) weights at the end. With many heads this and what depends on it has one entry per head before all
        else: W (H, d, dz), K, Q, v (H, dv), `selected` (H, q), `attention` (H, q, T), `record_W` (r, H, d, dz).
        """
        return self._get("W")

    @property
    def K(self) -> Floats:
        """(d, w), with param="KQ": W = K Qᵀ."""
        return self._get("K", 'with param="KQ"')

    @property
    def Q(self) -> Floats:
        """(dz, w), with param="KQ"."""
        return self._get("Q", 'with param="KQ"')

    @property
    def v(self) -> Floats:
        """The trained head, with joint=True; of many heads also if it is not trained."""
        return self._get("v", "with joint=True or many heads")

    @property
    def settings(self) -> str:
        """The training settings, in words.

        >>> import attsvm
        >>> attsvm.train(attsvm.generate("random", seed=1), steps=10).settings
        'W, ngd, step 0.1, 10 steps, logistic loss, exact arithmetic, seed 0'
        """
        return str(self._get("settings"))

    @property
    def selected(self) -> Integers:
        """(q,) the token of largest attention of each query."""
        return self._get("selected")

    @property
    def attention(self) -> Floats:
        """(q, T) softmax weights at the end; 0 for tokens that a query does not see."""
        return self._get("attention")

    @property
    def log_attention(self) -> Floats:
        """(q, T) their logarithms, without underflow."""
        return self._get("log_attention")

    @property
    def label_attention(self) -> Floats:
        """(q,) weight of all copies of the label at the end; next-token tasks only, instead of the two above."""
        return self._get("label_attention")

    @property
    def record_step(self) -> Integers:
        """(r,) steps taken at each recorded point."""
        return self._get("record_step")

    @property
    def record_W(self) -> Floats:
        """(r, d, dz)"""
        return self._get("record_W")

    @property
    def record_v(self) -> Floats:
        """(r, dv), with joint=True."""
        return self._get("record_v", "with joint=True")

    @property
    def record_loss(self) -> Floats:
        """(r,) mean loss over all queries."""
        return self._get("record_loss")

    @property
    def record_log_loss(self) -> Floats:
        """(r,) its logarithm, without underflow."""
        return self._get("record_log_loss")

    @property
    def record_norm(self) -> Floats:
        """(r,) |W|_F"""
        return self._get("record_norm")

    @property
    def record_log_gradient(self) -> Floats:
        """(r,) log of the gradient's Frobenius norm."""
        return self._get("record_log_gradient")

    @property
    def record_attention(self) -> Floats:
        """(r,) mean weight of the finally selected tokens."""
        return self._get("record_attention")

    @property
    def steps(self) -> int:
        """Steps taken; for a run from a file, those of its last recorded point (as are `loss` and others)."""
        return self._fact("steps")

    @property
    def stopped(self) -> str:
        """Why the run ended early; empty if it took all its steps."""
        return self._fact("stopped")

    @property
    def loss(self) -> float:
        """Mean loss at the end; may round to 0."""
        return self._fact("loss")

    @property
    def log_loss(self) -> float:
        """Its logarithm, without underflow."""
        return self._fact("log_loss")

    @property
    def norm(self) -> float:
        """|W|_F"""
        return self._fact("norm")

    @property
    def log_gradient(self) -> float:
        """Log of the gradient's Frobenius norm; -inf for zero."""
        return self._fact("log_gradient")

    def correlation(self, other: Any) -> Floats:
        """(r,) ⟨W, other⟩ / (|W| |other|) at every recorded point; NaN where W is zero.

        >>> import attsvm
        >>> task = attsvm.generate("random", seed=1)
        >>> run = attsvm.train(task)
        >>> solution = attsvm.solve(task, select=run.selected)
        >>> bool(run.correlation(solution)[-1] > 0.998)
        True
        """
        B = arguments.weights(other, "other")
        if self.record_W.shape[1:] != B.shape:
            raise ValueError(f"other has shape {B.shape}; must be {self.record_W.shape[1:]} as W is")
        return correlations(self.record_W, B)

    def save(self, path: PathLike, force: bool = False) -> None:
        """Writes a run file, as `attsvm.save` does."""
        from ._files import save
        save(path, self, force=force)

    def _file_arrays(self) -> dict[str, Any]:
        return self._arrays

    def _core_arrays(self) -> dict[str, Any]:
        """Those of the file that C++ can take, in C order."""
        return {name: np.ascontiguousarray(value) if isinstance(value, np.ndarray) and value.ndim else value
                for name, value in self._arrays.items() if isinstance(value, (np.ndarray, str))}

    def _fields(self) -> dict[str, Any]:
        return {**self._arrays, **self._facts}

    def __reduce__(self) -> Any:
        return Run, (self._arrays, self._facts)

    def _shown(self) -> list[tuple[str, Any]]:
        shown: list[tuple[str, Any]] = [
            (name, self._facts[name]) for name in ("steps", "loss", "norm") if name in self._facts]
        shown += [("stopped", self.stopped)] if self.stopped else []
        return shown + ([("selected", self.selected)] if "selected" in self._arrays else [])  # files may lack it


def correlations(points: Floats, other: Floats) -> Floats:
    """(r,) of points (r, d, dz) with a matrix (d, dz)."""
    return np.array([_core.correlation(np.ascontiguousarray(W), other) for W in points])


class Runs(Many[Run]):
    """The results of `train_many`: a sequence of `Run`, and their losses as an array."""

    __slots__ = ()
    _common = ("loss",)

    def _made(self, answer: Any) -> Run:
        return Run(*answer)

    @property
    def loss(self) -> Floats:
        """(m,) mean loss at the end of each."""
        return self._core.loss

    def __repr__(self) -> str:
        return f"Runs({len(self)} runs)"
