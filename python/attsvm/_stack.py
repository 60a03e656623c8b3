from __future__ import annotations

import json
from typing import Any

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
    and `last_rho`, each with its `value` and, of random matrices, the `null`.
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


def stack(task: Task, *, layers: int = 2, heads: int = 1, mlp: int = 0, causal: bool = True, values: str = "random",
          train_values: bool = False, one_norm: bool = False, optimizer: Optimizer = "ngd", step: float = 0.1,
          steps: int = 2000, schedule: Schedule = "constant", loss: Loss = "logistic", init: str = "usual", seed: int = 0,
          records: int | None = None, askers: str = "live", null: int = 10, time_limit: float | None = None,
          threads: int | None = None, progress: bool | None = None) -> Stack:
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
    result = Stack(arrays, json.loads(judged)["judged"])
    if interrupted:
        raise Interrupted(f"stack was interrupted; .result has {int(result.record_step[-1])} steps", result)
    warn_of_unsolved("stack", {f"fro of layer {head['layer']}, head {head['head']}": head["status"]
                               for head in result.heads})
    return result
