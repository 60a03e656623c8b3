from __future__ import annotations

import os
from typing import Any, Callable, NamedTuple, Sequence

import numpy as np

from . import _arguments as arguments
from . import _core, _progress
from ._errors import Interrupted
from ._results import Many, Result
from ._task import Task, unwrap, unwrap_all


class TrainProgress(NamedTuple):
    """The state of a run before a step."""
    step: int
    loss: float
    norm: float  #: |W|_F


class Run(Result):
    """A training run: where it ended, and the points it recorded on its way. Arrays are read-only.

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
    def _of_file(cls, arrays: dict[str, Any]) -> "Run":
        """A run read from a file; its last recorded point gives loss and steps."""
        last = {name: arrays[f"record_{name}"][-1].item() for name in ("loss", "log_loss", "log_gradient")
                if len(arrays.get(f"record_{name}", ()))}
        steps = int(arrays["record_step"][-1]) if len(arrays["record_step"]) else 0
        return cls(arrays, dict(last, steps=steps, stopped="", norm=float(np.linalg.norm(arrays["W"]))))

    def _get(self, name: str, when: str = "") -> np.ndarray:
        if name not in self._arrays:
            raise AttributeError(f"this run has no {name}" + (f"; it exists only {when}" if when else ""))
        return self._arrays[name]

    def _fact(self, name: str) -> Any:
        if name not in self._facts:
            raise AttributeError(f"this run has no {name}: its file recorded no point")
        return self._facts[name]

    @property
    def W(self) -> np.ndarray:
        """(d, dz) weights at the end."""
        return self._get("W")

    @property
    def K(self) -> np.ndarray:
        """(d, w), with param="KQ": W = K Qᵀ."""
        return self._get("K", 'with param="KQ"')

    @property
    def Q(self) -> np.ndarray:
        """(dz, w), with param="KQ"."""
        return self._get("Q", 'with param="KQ"')

    @property
    def v(self) -> np.ndarray:
        """The trained head, with joint=True."""
        return self._get("v", "with joint=True")

    @property
    def settings(self) -> str:
        """The training settings, in words.

        >>> import attsvm
        >>> attsvm.train(attsvm.generate("random", seed=1), steps=10).settings
        'W, ngd, step 0.1, 10 steps, logistic loss, exact arithmetic, seed 0'
        """
        return str(self._get("settings"))

    @property
    def selected(self) -> np.ndarray:
        """(q,) the token of largest attention of each query."""
        return self._get("selected")

    @property
    def attention(self) -> np.ndarray:
        """(q, T) softmax weights at the end; 0 for tokens that a query does not see."""
        return self._get("attention")

    @property
    def log_attention(self) -> np.ndarray:
        """(q, T) their logarithms, without underflow."""
        return self._get("log_attention")

    @property
    def record_step(self) -> np.ndarray:
        """(r,) steps taken at each recorded point."""
        return self._get("record_step")

    @property
    def record_W(self) -> np.ndarray:
        """(r, d, dz)"""
        return self._get("record_W")

    @property
    def record_v(self) -> np.ndarray:
        """(r, dv), with joint=True."""
        return self._get("record_v", "with joint=True")

    @property
    def record_loss(self) -> np.ndarray:
        """(r,) mean loss over all queries."""
        return self._get("record_loss")

    @property
    def record_log_loss(self) -> np.ndarray:
        """(r,) its logarithm, without underflow."""
        return self._get("record_log_loss")

    @property
    def record_norm(self) -> np.ndarray:
        """(r,) |W|_F"""
        return self._get("record_norm")

    @property
    def record_log_gradient(self) -> np.ndarray:
        """(r,) log of the gradient's Frobenius norm."""
        return self._get("record_log_gradient")

    @property
    def record_attention(self) -> np.ndarray:
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

    def correlation(self, other: Any) -> np.ndarray:
        """(r,) ⟨W, other⟩ / (|W| |other|) at every recorded point; NaN where W is zero.

        >>> import attsvm
        >>> task = attsvm.generate("random", seed=1)
        >>> run = attsvm.train(task)
        >>> solution = attsvm.solve(task, select=run.selected)
        >>> bool(run.correlation(solution)[-1] > 0.998)
        True
        """
        from ._theory import matrix_of
        B = matrix_of(other, "other")
        if self.record_W.shape[1:] != B.shape:
            raise ValueError(f"other has shape {B.shape}; must be {self.record_W.shape[1:]} as W is")
        return np.array([_core.correlation(np.ascontiguousarray(W), B) for W in self.record_W])

    def save(self, path: Any, force: bool = False) -> None:
        """Writes a run file, as `attsvm.save` does."""
        from ._files import save
        save(path, self, force=force)

    def _file_arrays(self) -> dict[str, Any]:
        return self._arrays

    def to_dict(self) -> dict[str, Any]:
        """The arrays of the run's file, and steps, stopped, loss, norm, …"""
        return {**self._arrays, **self._facts}

    def __reduce__(self):
        return Run, (self._arrays, self._facts)

    def _shown(self) -> list[tuple[str, Any]]:
        shown: list[tuple[str, Any]] = [
            (name, self._facts[name]) for name in ("steps", "loss", "norm") if name in self._facts]
        shown += [("stopped", self.stopped)] if self.stopped else []
        return shown + ([("selected", self.selected)] if "selected" in self._arrays else [])  # files may lack it


class Runs(Many[Run]):
    """The results of `train_many`: a sequence of `Run`, and their losses as an array."""

    __slots__ = ()
    _common = ("loss",)

    def _made(self, answer: Any) -> Run:
        return Run(*answer)

    @property
    def loss(self) -> np.ndarray:
        """(m,) mean loss at the end of each."""
        return self._core.loss

    def __repr__(self) -> str:
        return f"Runs({len(self)} runs)"


def _optimizer(given: Any) -> str:
    """The optimizer as the command line writes it: "ngd", "mirror:3", "steepest:lp:3"."""
    if isinstance(given, str):
        return given
    if isinstance(given, tuple) and len(given) == 2 and given[0] == "mirror":
        return f"mirror:{arguments.number(given[1], 'the power of mirror descent')!r}"
    if isinstance(given, tuple) and len(given) == 2 and given[0] == "steepest":
        return f"steepest:{arguments.norm(given[1])}"
    raise TypeError(f'optimizer = {given!r}; must be a str such as "ngd", ("mirror", P) or ("steepest", NORM)')


def _pair(given: Any, name: str) -> list[float] | None:
    if given is None:
        return None
    if not np.iterable(given) or isinstance(given, str):
        raise TypeError(f"{name} = {given!r}; must be two numbers")
    numbers = [arguments.number(one, name) for one in given]
    if len(numbers) != 2:
        raise ValueError(f"{name} = {given}; must be two numbers")
    return numbers


def _settings(*, param: str, joint: bool, width: int | None, optimizer: Any, momentum: float | None, betas: Any,
              newton_schulz: int | None, normalize: bool, step: float, steps: int, schedule: str, epsilon: Any,
              ridge: float, weight_decay: float | None, dropout: float, batch: int | None, loss: str, arithmetic: str,
              seed: int, record: Any, stop_direction: float | None) -> dict[str, Any]:
    epsilons = [None if one is None else arguments.number(one, "epsilon")
                for one in (epsilon if np.ndim(epsilon) else [epsilon])]
    if not 1 <= len(epsilons) <= (2 if joint else 1):
        raise ValueError(f"epsilon = {epsilon}; must be one number, or with joint=True two")
    at: list[int] = []
    every = 0
    if isinstance(record, str):
        word, _, count = record.partition(":")
        if word != "every" or not count.isdigit() or int(count) < 1:
            raise ValueError(f'record = {record!r}; must be "every:K" or a list of steps')
        every = int(count)
    elif record is not None:
        if not np.iterable(record):
            raise TypeError(f'record = {record!r}; must be a list of steps such as [0, 10, 100], or "every:K"')
        at = sorted({arguments.integer(one, "record") for one in record})
        if not at:
            raise ValueError("record is empty; leave it out to record the usual points")
    return dict(param=arguments.word(param, "param"), joint=bool(joint),
                width=0 if width is None else arguments.integer(width, "width", 1), optimizer=_optimizer(optimizer),
                momentum=None if momentum is None else arguments.number(momentum, "momentum"),
                betas=_pair(betas, "betas"),
                newton_schulz=(0 if newton_schulz is None
                               else arguments.integer(newton_schulz, "newton_schulz", 1, 1000)),
                normalize=bool(normalize), step=arguments.number(step, "step"),
                steps=arguments.integer(steps, "steps", 0, 2**52), schedule=arguments.word(schedule, "schedule"),
                epsilon=epsilons[0], head_epsilon=epsilons[1] if len(epsilons) == 2 else None,
                ridge=arguments.number(ridge, "ridge"),
                weight_decay=None if weight_decay is None else arguments.number(weight_decay, "weight_decay"),
                dropout=arguments.number(dropout, "dropout"),
                batch=0 if batch is None else arguments.integer(batch, "batch", 1),
                loss=arguments.word(loss, "loss"), arithmetic=arguments.word(arithmetic, "arithmetic"),
                seed=arguments.seed(seed), instance=0, record=None if record is None else (at, every),
                stop_direction=arguments.positive(stop_direction, "stop_direction"))


_STARTS = ("W0", "K0", "Q0", "v0")


def _start(init: Any, param: str) -> tuple[str, dict[str, np.ndarray]]:
    """(how to draw the start, arrays that replace it)."""
    if init is None or init in ("zero", "random") if isinstance(init, (str, type(None))) else False:
        return init or "usual", {}
    if isinstance(init, (str, os.PathLike)):
        arrays = _core.read_npz(os.fspath(init))
        wanted = {name: arrays[name] for name in _STARTS if name in arrays}
        wanted = {name: value for name, value in wanted.items()
                  if name == "v0" or (name == "W0") != (param == "KQ")}
        if not wanted:
            raise ValueError(f"{init}: has no array to start from; param = {param} needs "
                             + ("K0 and Q0 (and v0)" if param == "KQ" else "W0 (and v0)"))
        return "usual", wanted
    if not isinstance(init, dict):
        init = {"W0": init}
    unknown = sorted(set(init) - set(_STARTS))
    if unknown:
        raise ValueError(f"init: unknown array {unknown[0]}; must be one of {', '.join(_STARTS)}")
    return "usual", {name: arguments.array(value, name) for name, value in init.items()}


def train(task: Task, *, param: str = "W", joint: bool = False, width: int | None = None, optimizer: Any = "ngd",
          momentum: float | None = None, betas: Any = None, newton_schulz: int | None = None, normalize: bool = False,
          step: float = 0.1, steps: int = 2000, schedule: str = "constant", epsilon: Any = None, ridge: float = 0.0,
          weight_decay: float | None = None, dropout: float = 0.0, batch: int | None = None, loss: str = "logistic",
          arithmetic: str = "exact", init: Any = None, seed: int = 0, record: Any = None, stop_direction: float | None = None,
          time_limit: float | None = None, threads: int | None = None, progress: bool | None = None,
          callback: Callable[[TrainProgress], Any] | None = None) -> Run:
    """Trains softmax attention on the task by gradient descent, with gradients that stay exact at saturation.

    Parameters
    ----------
    task : Task with a head
    param : "W", "KQ" or "p"
        Weights to train: W, K and Q with W = K Qᵀ, or the prompt (dz = 1).
    joint : bool
        Also train the head's v.
    width : int, optional
        Columns of K and Q; default min(d, dz).
    optimizer : str, ("mirror", P) or ("steepest", NORM)
        "gd", "ngd", "polyak", "mirror:P" (`normalize` divides its gradient by its norm), "adam", "adamw", "signum",
        "lion", "muon", or "steepest:NORM" with a norm that `solve` takes.
    momentum : float, optional
        B of gd, ngd, steepest, signum and muon: steps use the average m = B m + (1-B) g of the gradients. Default: 0,
        for signum 0.9, for muon 0.95.
    betas : two floats, optional
        Of adam and adamw, default (0.9, 0.999), and of lion, default (0.9, 0.99).
    newton_schulz : int, optional
        Iterations by which muon approximates U Vᵀ, as in practice; default: U Vᵀ itself.
    step, steps, schedule : size and number of steps; "constant", "sqrt" or "cosine"
    epsilon : float, or with joint=True two, optional
        Added to the dual norm of a gradient, for adam to the root of its second moment. Default: 0, for adam and adamw
        1e-8.
    ridge, weight_decay, dropout, batch : regularization and sampling
        weight_decay is 0.01 for adamw, else 0, unless it is given.
    loss : "logistic", "exponential" or "linear"
    arithmetic : "exact" or "plain"
        plain computes gradients as deep-learning frameworks do, rounding noise and underflow included.
    init : "zero", "random", array (d, dz), dict of W0, K0, Q0, v0, or a file that holds them; optional
        Default: zero for W and p, random for KQ.
    record : list of steps, or "every:K", optional
        Points to record; default: about 100 from the first to the last, closer together at the beginning.
    stop_direction : float, optional
        Stop once the direction of W changes by less than this while the number of steps doubles.
    time_limit, threads, progress : as in `solve`
    callback : function of a TrainProgress, optional
        Called before every step; a true return value stops. Loss and norm are computed for it at every step.

    Returns a `Run`. Ctrl-C raises `Interrupted`, whose `result` is the run so far. Releases the GIL.

    >>> import attsvm
    >>> task = attsvm.generate("random", seed=1)
    >>> attsvm.train(task)
    Run(steps=2000, loss=0.506030201, norm=197.142807, selected=[7 2 0 5 0 2])
    >>> attsvm.train(task, param="KQ", seed=3, steps=100).K.shape
    (10, 10)
    """
    settings = _settings(param=param, joint=joint, width=width, optimizer=optimizer, momentum=momentum,
                         betas=betas, newton_schulz=newton_schulz, normalize=normalize, step=step, steps=steps,
                         schedule=schedule, epsilon=epsilon, ridge=ridge, weight_decay=weight_decay,
                         dropout=dropout, batch=batch, loss=loss, arithmetic=arithmetic, seed=seed, record=record,
                         stop_direction=stop_direction)
    settings["init"], start = _start(init, param)
    if callback is not None:
        told = callback
        callback = lambda *state: told(TrainProgress(*state))  # noqa: E731
    with _progress.bar(progress, "train", steps, lambda done, *_: (done, "")) as bar:
        arrays, facts, interrupted = _core.train(unwrap(task), settings, start,
                                                 arguments.positive(time_limit, "time_limit"),
                                                 arguments.threads(threads), callback, bar)
    run = Run(arrays, facts)
    if interrupted:
        raise Interrupted(f"train was interrupted after {run.steps} steps; .result has the run so far", run)
    return run


def train_many(tasks: Sequence[Task], *, param: str = "W", joint: bool = False, width: int | None = None,
               optimizer: Any = "ngd", momentum: float | None = None, betas: Any = None,
               newton_schulz: int | None = None, normalize: bool = False, step: float = 0.1, steps: int = 2000,
               schedule: str = "constant", epsilon: Any = None, ridge: float = 0.0, weight_decay: float | None = None,
               dropout: float = 0.0, batch: int | None = None, loss: str = "logistic", arithmetic: str = "exact",
               init: Any = None, seed: int = 0, record: Any = None, stop_direction: float | None = None,
               threads: int | None = None, progress: bool | None = None) -> Runs:
    """Trains many small tasks at once, several per vector register, on all cores.

    Arguments are those of `train`; `init` may also be a list with one start per task, and `record` is by default the
    first and the last point. Run k draws its start and its minibatches as number k of the seed. Ctrl-C raises
    `Interrupted` with the runs so far.

    >>> import attsvm
    >>> tasks = [attsvm.generate("random", seed=1, instance=k) for k in range(20)]
    >>> runs = attsvm.train_many(tasks, steps=500)
    >>> len(runs), runs[0].steps
    (20, 500)
    """
    cores = unwrap_all(tasks)
    settings = _settings(param=param, joint=joint, width=width, optimizer=optimizer, momentum=momentum,
                         betas=betas, newton_schulz=newton_schulz, normalize=normalize, step=step, steps=steps,
                         schedule=schedule, epsilon=epsilon, ridge=ridge, weight_decay=weight_decay,
                         dropout=dropout, batch=batch, loss=loss, arithmetic=arithmetic, seed=seed, record=record,
                         stop_direction=stop_direction)
    starts: list[dict[str, np.ndarray]] = []
    if isinstance(init, (list, tuple)):
        if len(init) != len(cores):
            raise ValueError(f"init has {len(init)} entries; must have one per task, {len(cores)} in all")
        starts = [_start(one, param)[1] for one in init]
        settings["init"] = "usual"
    else:
        settings["init"], start = _start(init, param)
        starts = [start] * len(cores) if start else []
    with _progress.bar(progress, "train_many", None, lambda done, *_: (done, "steps of the runs at hand")) as bar:
        core = _core.train_many(cores, settings, starts, arguments.threads(threads), bar)
    runs = Runs(core)
    if core.interrupted:
        raise Interrupted("train_many was interrupted; .result has the runs so far", runs)
    return runs
