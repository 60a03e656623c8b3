from __future__ import annotations

import json
from typing import Any, Literal

from . import _arguments as arguments
from . import _core, _progress
from ._errors import Interrupted, warn_of_unsolved
from ._results import Result
from ._task import Task, unwrap
from ._types import Loss, Optimizer, PathLike, Schedule


class Stack(Result):
    """Layers of attention heads after training, each head beside the SVM of what it selects.

    Arrays of the stack's file: `W`, `V` (L, H, d, d); `causal`; `record_step`, `record_loss`, `record_log_loss` (r,);
    `record_W` (r, L, H, d, d), with train_values=True `record_V`; `record_log_gradient` (r, L, H); `settings`. With an
    MLP also `A`, `B` (L, h, d), and `record_A`, `record_B` where it is trained.

    `heads` has one dict per head: `layer`, `head`; `queries`, how many positions ask, and what each `selected`;
    `attention_min`; `status` and `objective` of the SVM; `correlation` and `rho` at every record; `last_correlation`
    and `last_rho`, each with its `value` and, of random matrices, the `null` and its `mean`.
    """

    __slots__ = ("_arrays", "heads")

    def __init__(self, arrays: dict[str, Any], heads: list[dict[str, Any]]):
        self._arrays = arrays
        self.heads = heads

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._arrays:
            raise AttributeError(f"this stack has no {name}")
        return self._arrays[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._arrays]

    def judge(self, task: Task, *, askers: Literal["live", "all"] = "live", null: int = 10, seed: int | None = None,
              time_limit: float | None = None, threads: int | None = None, progress: bool | None = None) -> Stack:
        """The same stack with `heads` judged again, as `attsvm check` does: one that `load` has read has none.

        `askers`, `null` and `time_limit` are those of `stack`, `seed` is that of the null, by default the stack's own.

        >>> import attsvm
        >>> task = attsvm.generate("random", attention="prompt", n=4, T=5, d=6, seed=3)
        >>> result = attsvm.stack(task, steps=100)
        >>> result.judge(task).heads == result.heads
        True
        """
        given: dict[str, Any] = dict(askers=arguments.word(askers, "askers"), null=arguments.integer(null, "null"),
                                     seed=None if seed is None else arguments.seed(seed),
                                     time_limit=arguments.positive(time_limit, "time_limit"))
        with _progress.bar(progress, "judge", None, lambda done: (done, "SVMs")) as bar:
            judged, interrupted = _core.judge_stack(unwrap(task), self._arrays, given, arguments.threads(threads), bar)
        return _judged(self._arrays, judged, interrupted, "judge")

    def head_tasks(self, task: Task, *, askers: Literal["live", "all"] = "live",
                   threads: int | None = None) -> dict[tuple[int, int], Task]:
        """What each (layer, head) reads in the end, with what it selects, as a task for `solve`, `verify` and `margin`.

        >>> import attsvm
        >>> task = attsvm.generate("random", attention="prompt", n=4, T=5, d=6, seed=3)
        >>> result = attsvm.stack(task, steps=1000)
        >>> tasks = result.head_tasks(task)
        >>> solution = attsvm.solve(tasks[1, 0])
        >>> bool(attsvm.correlation(result.W[1, 0], solution) > 0.9)
        True
        """
        layers = _core.layer_tasks(unwrap(task), self._arrays, dict(askers=arguments.word(askers, "askers")),
                                   arguments.threads(threads))
        return {(layer, head): Task(**{**Task._of(core, {}).to_dict(), "select": core.attention(W)[1]})
                for layer, core in enumerate(layers) for head, W in enumerate(self.W[layer])}

    def save(self, path: PathLike, force: bool = False) -> None:
        """Writes a stack file, as `attsvm.save` does."""
        from ._files import save
        save(path, self, force=force)

    def _file_arrays(self) -> dict[str, Any]:
        return self._arrays

    def _fields(self) -> dict[str, Any]:
        """The arrays of the stack's file, and `heads`."""
        return {**self._arrays, "heads": self.heads}

    def __reduce__(self) -> Any:
        return Stack, (self._arrays, self.heads)

    def _shown(self) -> list[tuple[str, Any]]:
        return [("layers", self.W.shape[0]), ("heads", self.W.shape[1]), ("steps", int(self.record_step[-1])),
                ("correlation", [head["last_correlation"]["value"] for head in self.heads]),
                ("rho", [head["last_rho"]["value"] for head in self.heads])]


def _judged(arrays: dict[str, Any], judged: str, interrupted: bool, call: str) -> Stack:
    result = Stack(arrays, json.loads(judged)["judged"])
    if interrupted:
        raise Interrupted(f"{call} was interrupted; .result has {int(result.record_step[-1])} steps", result)
    warn_of_unsolved(call, {f"fro of layer {head['layer']}, head {head['head']}": head["status"]
                            for head in result.heads})
    return result


def stack(task: Task, *, layers: int = 2, heads: int = 1, mlp: int = 0, causal: bool = True,
          values: Literal["random", "identity"] = "random", train_values: bool = False, one_norm: bool = False,
          optimizer: Optimizer = "ngd", step: float = 0.1, steps: int = 2000, schedule: Schedule = "constant",
          loss: Loss = "logistic", init: Literal["usual", "zero", "random"] = "usual", seed: int = 0,
          records: int | None = None, askers: Literal["live", "all"] = "live", null: int = 10,
          time_limit: float | None = None, threads: int | None = None, progress: bool | None = None) -> Stack:
    """Trains layers of attention heads with residuals, and judges each head beside its own SVM, as `attsvm stack`.

    Parameters
    ----------
    task : Task with a head, and without keys and queries of its own
    layers, heads : int
        Layers, and heads of every layer.
    mlp : int
        ReLU units of an MLP after the attention of every layer; 0: none.
    causal : bool
        A token sees those up to itself; else all.
    values : "random" or "identity"
        The V with which heads start.
    train_values : bool
        Train V too, and the MLP.
    one_norm : bool
        Measure a step over all matrices together, not matrix by matrix.
    optimizer, step, steps, schedule, loss : as in `train`
    init : "usual" or "zero", which is zero, or "random"
    records : int
        Points to record, first and last included. Default: 100, or fewer where weights are so large that these would
        fill more than 256 MiB.
    askers : "live" or "all"
        Positions whose selections a head's SVM has to meet: those on which the output depends once attention has
        saturated, or all.
    null : int
        Random matrices beside which a head is judged.
    time_limit : float
        Seconds after which to stop, training and judging together. A head that was not judged by then has the status
        "limit".
    threads, progress : as in `solve`

    Ctrl-C raises `Interrupted`, whose `result` is the stack so far.

    >>> import attsvm
    >>> task = attsvm.generate("random", attention="prompt", n=4, T=5, d=6, seed=3)
    >>> result = attsvm.stack(task, steps=1000)
    >>> result.W.shape, all(head["last_correlation"]["value"] > 0.9 for head in result.heads)
    ((2, 1, 6, 6), True)
    """
    from ._train import optimizer_text
    settings: dict[str, Any] = dict(
        layers=arguments.integer(layers, "layers", 1), heads=arguments.integer(heads, "heads", 1),
        mlp=arguments.integer(mlp, "mlp"), causal=bool(causal), values=arguments.word(values, "values"),
        train_values=bool(train_values), one_norm=bool(one_norm), optimizer=optimizer_text(optimizer),
        step=arguments.number(step, "step"), steps=arguments.integer(steps, "steps"),
        schedule=arguments.word(schedule, "schedule"), loss=arguments.word(loss, "loss"),
        init=arguments.word(init, "init"), seed=arguments.seed(seed),
        records=None if records is None else arguments.integer(records, "records", 2),
        askers=arguments.word(askers, "askers"),
        null=arguments.integer(null, "null"), time_limit=arguments.positive(time_limit, "time_limit"))
    with _progress.bar(progress, "stack", max(settings["steps"], 1), lambda at: (at, "")) as bar:
        arrays, judged, interrupted = _core.stack(unwrap(task), settings, arguments.threads(threads), bar)
    return _judged(arrays, judged, interrupted, "stack")
