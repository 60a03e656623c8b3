from __future__ import annotations

import os
from typing import Any, Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _arguments as arguments
from . import _core, _progress
from ._errors import Interrupted
from ._files import existing, load_run, writable
from ._run import Run, Runs, TrainProgress
from ._solution import Solution
from ._task import Task, task_at_fault, unwrap, unwrap_all
from ._types import Arithmetic, Device, Loss, Optimizer, Parametrization, PathLike, Schedule, Selector

_Start = dict[str, NDArray[Any]]


def optimizer_text(given: Any) -> str:
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


def _settings(*, param: str, joint: bool, heads: int, shared_norm: bool, width: int | None, optimizer: Any,
              momentum: float | None, betas: Any,
              newton_schulz: int | None, normalize: bool, step: float, steps: int, schedule: str, epsilon: Any,
              ridge: float, weight_decay: float | None, dropout: float, batch: int | None, loss: str,
              label_smoothing: float, selector: str, concentration: float, entropy: float, temperature: Any,
              arithmetic: str, seed: int, record: Any,
              stop_direction: float | None) -> dict[str, Any]:
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
                heads=arguments.integer(heads, "heads", 1), shared_norm=bool(shared_norm),
                width=0 if width is None else arguments.integer(width, "width", 1), optimizer=optimizer_text(optimizer),
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
                loss=arguments.word(loss, "loss"), label_smoothing=arguments.number(label_smoothing, "label_smoothing"),
                selector=arguments.word(selector, "selector"),
                concentration=arguments.number(concentration, "concentration"),
                entropy=arguments.number(entropy, "entropy"),
                temperature=_pair(temperature if np.iterable(temperature) else [temperature] * 2, "temperature"),
                arithmetic=arguments.word(arithmetic, "arithmetic"),
                seed=arguments.seed(seed), instance=0, record=None if record is None else (at, every),
                stop_direction=arguments.positive(stop_direction, "stop_direction"))


_STARTS = ("W0", "K0", "Q0", "v0")


def _start(init: Any, param: str) -> tuple[str, _Start]:
    """(how to draw the start, arrays that replace it)."""
    if init is None:
        return "usual", {}
    if isinstance(init, str) and init in ("zero", "random"):
        return init, {}
    if isinstance(init, (str, os.PathLike)):
        arrays = _core.read_npz(existing(init))
        # A run's file has its weights under the names of arrays; those of a start end in 0.
        of_run = "record_step" in arrays or "record_W" in arrays
        wanted = {name: arrays[name] if name in arrays else arrays[name[0]] for name in _STARTS
                  if name in arrays or (name[0] in arrays and of_run)}
        wanted = {name: value for name, value in wanted.items()
                  if name == "v0" or (name == "W0") != (param == "KQ")}
        if not wanted:
            raise ValueError(f"{init}: has no array to start from; param = {param} needs "
                             + ("K0 and Q0 (and v0)" if param == "KQ" else "W0 (and v0)"))
        return "usual", wanted
    if isinstance(init, Run):
        names = ("K", "Q", "v") if param == "KQ" else ("W", "v")
        init = {f"{name}0": value for name, value in init.to_dict().items() if name in names}
        if param == "KQ" and len(init) < 2:
            raise ValueError("init is a run of W; param = KQ needs one of K and Q")
    if isinstance(init, Solution):
        init = {"K0": init.K, "Q0": init.Q} if param == "KQ" else {"W0": init.W}
    if not isinstance(init, dict):
        init = {"W0": init}
    unknown = sorted(set(init) - set(_STARTS))
    if unknown:
        raise ValueError(f"init: unknown array {unknown[0]}; must be one of {', '.join(_STARTS)}")
    return "usual", {name: arguments.array(value, name) for name, value in init.items()}


def train(task: Task, *, param: Parametrization = "W", joint: bool = False, heads: int = 1,
          shared_norm: bool = False, width: int | None = None,
          optimizer: Optimizer = "ngd", momentum: float | None = None, betas: Any = None,
          newton_schulz: int | None = None, normalize: bool = False, step: float = 0.1, steps: int = 2000,
          schedule: Schedule = "constant", epsilon: Any = None, ridge: float = 0.0, weight_decay: float | None = None,
          dropout: float = 0.0, batch: int | None = None, loss: Loss = "logistic", label_smoothing: float = 0.0,
          selector: Selector = "soft", concentration: float = 10.0, entropy: float = 0.0, temperature: Any = 1.0,
          arithmetic: Arithmetic = "exact", init: Any = None, seed: int = 0, record: Any = None,
          stop_direction: float | None = None, out: PathLike | None = None, resume: bool = False, force: bool = False,
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
    heads : int
        Heads of attention whose outputs add up, each with a W and a v of its own: the rows of the task's head, then
        drawn ones of length 1, or `v0` of `init`. `Run.head` tells what the run's arrays are then.
    shared_norm : bool
        Many heads: divide steps by one norm over all heads instead of one per head.
    width : int, optional
        Columns of K and Q; default min(d, dz).
    optimizer : str, ("mirror", P) or ("steepest", NORM)
        "gd", "ngd", "polyak", "adam", "adamw", "signum", "lion", "muon", mirror descent of power P (`normalize` divides
        its gradient by its norm), or steepest descent in a norm that `solve` takes.
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
    label_smoothing : float
        Weight, shared equally by both labels, that the logistic loss takes from the query's own label.
    selector : "soft", "gumbel" or "dirichlet"
        How steps take attention from logits: as the softmax; as one token that Gumbel noise draws, with the softmax's
        gradient (straight through); or as weights drawn from the Dirichlet distribution with parameters
        `concentration` times the softmax. Records show the softmax.
    entropy : float
        Weight of the attention's mean entropy, which is added to what is minimised, not to the loss.
    temperature : float, or two
        Steps divide logits by it; two numbers are the first and the last of a geometric schedule.
    arithmetic : "exact" or "plain"
        plain computes gradients as deep-learning frameworks do, rounding noise and underflow included.
    init : "zero", "random", array (d, dz), dict of W0, K0, Q0, v0, Run, Solution, or the file of a start or run; optional
        Default: zero for W and p, random for KQ.
    record : list of steps, or "every:K", optional
        Points to record; default: about 100 from the first to the last, closer together at the beginning.
    stop_direction : float, optional
        Stop once the direction of W changes by less than this while the number of steps doubles.
    out : path, optional
        Writes the run to this file. While it runs, its state is saved beside it every five seconds.
    resume, force : bool
        With `out`: continue the run that a time limit, Ctrl-C or a crash ended, to the same bits (all other arguments
        must be as they were); replace a file that is there.
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
    settings = _settings(param=param, joint=joint, heads=heads, shared_norm=shared_norm, width=width,
                         optimizer=optimizer, momentum=momentum, betas=betas,
                         newton_schulz=newton_schulz, normalize=normalize, step=step, steps=steps, schedule=schedule,
                         epsilon=epsilon, ridge=ridge, weight_decay=weight_decay,
                         dropout=dropout, batch=batch, loss=loss, label_smoothing=label_smoothing,
                         selector=selector, concentration=concentration, entropy=entropy, temperature=temperature,
                         arithmetic=arithmetic, seed=seed, record=record, stop_direction=stop_direction)
    settings["init"], start = _start(init, param)
    if out is None and (resume or force):
        raise ValueError(f"{'resume' if resume else 'force'}=True needs out, the file of the run")
    file = "" if out is None else os.fspath(out)
    if file and not (resume and os.path.exists(file + ".journal")):
        writable(file, force)
    with _progress.bar(progress, "train", steps, lambda done, *_: (done, "")) as bar:
        arrays, facts, interrupted = _core.train(unwrap(task), settings, start,
                                                 arguments.positive(time_limit, "time_limit"), file, force, resume,
                                                 arguments.threads(threads),
                                                 _progress.receiver(callback, TrainProgress), bar)
    run = Run(load_run(file)._arrays if file else arrays, facts)
    if interrupted:
        raise Interrupted(f"train was interrupted after {run.steps} steps; .result has the run so far", run)
    return run


def train_many(tasks: Sequence[Task], *, param: Parametrization = "W", joint: bool = False, heads: int = 1,
               shared_norm: bool = False, width: int | None = None,
               optimizer: Optimizer = "ngd", momentum: float | None = None, betas: Any = None,
               newton_schulz: int | None = None, normalize: bool = False, step: float = 0.1, steps: int = 2000,
               schedule: Schedule = "constant", epsilon: Any = None, ridge: float = 0.0,
               weight_decay: float | None = None, dropout: float = 0.0, batch: int | None = None,
               loss: Loss = "logistic", label_smoothing: float = 0.0, selector: Selector = "soft",
               concentration: float = 10.0, entropy: float = 0.0, temperature: Any = 1.0,
               arithmetic: Arithmetic = "exact", init: Any = None, seed: int = 0, record: Any = None,
               stop_direction: float | None = None, threads: int | None = None, device: Device = "auto",
               progress: bool | None = None) -> Runs:
    """Trains many small tasks at once, several per vector register, on all cores.

    Arguments are those of `train`; `init` may also be a list with one start per task, and `record` is by default the
    first and the last point. `device="cuda"` trains on a GPU what fits it, with the same bits; "auto" does so if there
    is one and the runs take long enough. Run k draws its start and its minibatches as number k of the seed. Ctrl-C raises
    `Interrupted` with the runs so far.

    >>> import attsvm
    >>> tasks = [attsvm.generate("random", seed=1, instance=k) for k in range(20)]
    >>> runs = attsvm.train_many(tasks, steps=500)
    >>> len(runs), runs[0].steps
    (20, 500)
    """
    cores = unwrap_all(tasks)
    settings = _settings(param=param, joint=joint, heads=heads, shared_norm=shared_norm, width=width,
                         optimizer=optimizer, momentum=momentum, betas=betas,
                         newton_schulz=newton_schulz, normalize=normalize, step=step, steps=steps, schedule=schedule,
                         epsilon=epsilon, ridge=ridge, weight_decay=weight_decay,
                         dropout=dropout, batch=batch, loss=loss, label_smoothing=label_smoothing,
                         selector=selector, concentration=concentration, entropy=entropy, temperature=temperature,
                         arithmetic=arithmetic, seed=seed, record=record, stop_direction=stop_direction)
    starts: list[_Start] = []
    if isinstance(init, (list, tuple)):
        if len(init) != len(cores):
            raise ValueError(f"init has {len(init)} entries; must have one per task, {len(cores)} in all")
        for k, one in enumerate(init):
            with task_at_fault(k):
                starts.append(_start(one, param)[1])
        settings["init"] = "usual"
    else:
        settings["init"], start = _start(init, param)
        starts = [start] * len(cores) if start else []
    with _progress.bar(progress, "train_many", None, lambda done, *_: (done, "steps of the runs at hand")) as bar:
        core = _core.train_many(cores, settings, starts, arguments.threads(threads),
                                arguments.device(device), bar)
    runs = Runs(core)
    if core.interrupted:
        raise Interrupted("train_many was interrupted; .result has the runs so far", runs)
    return runs
