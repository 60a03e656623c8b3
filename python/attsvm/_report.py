from __future__ import annotations

import json
import os
from typing import Any, Callable, Mapping, NamedTuple, Sequence, TypeVar

from . import _arguments as arguments
from . import _core
from ._errors import warn_of_unsolved
from ._files import load, load_run, load_solution, writable
from ._run import Run
from ._solution import Solution
from ._stack import Stack
from ._task import Task, unwrap
from ._types import PathLike


class Report(NamedTuple):
    """A page that `report` has written."""
    file: str
    data: dict[str, Any]  #: what it shows: docs/page.md explains every field

    @property
    def verdict(self) -> str | None:
        """As of `check`, about the first run, else about the selection; None if the task has no head to judge by, and
        for next tokens, many heads and stacks."""
        check = self.data.get("check")
        return None if check is None else str(check["verdict"])

    def __repr__(self) -> str:  # without the data, which are as long as the page
        return f"Report(file={self.file!r}, verdict={self.verdict!r})"


_Kind = TypeVar("_Kind", Run, Solution)


def _named(given: Any, noun: str, kind: type[_Kind], load: Callable[[PathLike], _Kind]) -> list[tuple[str, _Kind]]:
    """Names and things: a dict has both, files have a path, and others are numbered."""
    if isinstance(given, Mapping):
        pairs = [(arguments.word(name, f"name of a {noun}"), one) for name, one in given.items()]
    else:
        listed: list[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
        pairs = [(os.fspath(one) if isinstance(one, (str, os.PathLike)) else f"{noun} {k}" if len(listed) > 1 else noun, one)
                 for k, one in enumerate(listed)]
    found: list[tuple[str, _Kind]] = []
    for name, one in pairs:
        thing = load(one) if isinstance(one, (str, os.PathLike)) else one
        if not isinstance(thing, kind):
            raise TypeError(f"{noun}s: {name} is a {type(thing).__name__}; must be a {kind.__name__}, or the path of one")
        found.append((name, thing))
    return found


def _one_stack(runs: Any) -> tuple[str, Stack] | None:
    """The stack, and its name, where it is what is to be shown."""
    named: dict[str, Any] = dict(runs) if isinstance(runs, Mapping) else {}
    listed: list[Any] = list(named.values()) if named else list(runs) if isinstance(runs, (list, tuple)) else [runs]
    for k, one in enumerate(listed):
        is_path = isinstance(one, (str, os.PathLike))
        if not isinstance(one, Stack) and not (is_path and os.path.exists(one) and _core.holds_stack(os.fspath(one))):
            continue
        if len(listed) > 1:
            raise ValueError("runs: a stack is shown alone")
        thing = load(one) if is_path else one
        if isinstance(thing, Stack):
            return [*named][k] if named else os.fspath(one) if is_path else "stack", thing
    return None


def _nothing(given: Any) -> bool:
    return given is None or (hasattr(given, "__len__") and len(given) == 0)


def _command(names: Sequence[str]) -> str:
    return "attsvm.report(" + ", ".join(["task", *names]) + ")"


def report(task: Task, runs: Any = (), *, solutions: Any = (), out: PathLike, title: str = "task",
           token_names: Sequence[str] | None = None, coordinates: Sequence[int] = (), threshold: float = 1e-3,
           force: bool = False, threads: int | None = None) -> Report:
    """Writes a page that shows a task, its SVMs and runs, as `attsvm report` does: one HTML file that works from disk.

    Parameters
    ----------
    task : Task
    runs : Run or the path of one, a list of them, or a dict of them by name; or one Stack
        The page follows the tokens of the first. `Run.from_snapshots` makes runs of weights of your own. A run of many
        heads and a stack are shown alone, with all their heads; `run.head(h)` can be shown beside others.
    solutions : Solution or the path of one, a list of them, or a dict of them by name
        Answers to show, each verified. The Frobenius and the nuclear SVM are solved if they are not among them.
    out : path of the page
        An existing file is replaced only with `force`, else FileExistsError.
    title : str
    token_names : N str, optional
        Names of all tokens, sequence by sequence. Default: the task's extras["x_token_names"], else numbers.
    coordinates : list of key coordinates to offer as axes of the plane, optional
    threshold : float
        With a nonlinear head, tokens with at least this much attention are kept.

    `ConvergenceWarning` names the norms whose SVM was not solved.

    >>> import attsvm, os, tempfile
    >>> task = attsvm.generate("random", seed=1)
    >>> runs = {"small steps": attsvm.train(task, step=0.01), "large steps": attsvm.train(task, step=0.5)}
    >>> page = attsvm.report(task, runs, out=os.path.join(tempfile.mkdtemp(), "report.html"))
    >>> page.verdict, [run["file"] for run in page.data["runs"]]
    ('local', ['small steps', 'large steps'])
    """
    core = unwrap(task)
    stack = _one_stack(runs)
    if stack is not None:
        return _stack_report(core, *stack, out=out, title=title, force=force, threads=threads,
                             alone=all(map(_nothing, (solutions, token_names, coordinates))))
    shown_runs = _named(runs, "run", Run, load_run)
    shown_solutions = _named(solutions, "solution", Solution, load_solution)
    names = [arguments.word(one, "token_names")
             for one in (task.extras.get("x_token_names", ()) if token_names is None else token_names)]
    if names and len(names) != core.tokens:
        raise ValueError(f"token_names has {len(names)} texts; the task has {core.tokens} tokens")
    file = writable(out, force)
    given = dict(title=arguments.word(title, "title"), token_names=names,
                 command=_command([name for name, _ in [*shown_runs, *shown_solutions]]),
                 coordinates=[arguments.integer(one, "coordinates") for one in coordinates],
                 threshold=arguments.number(threshold, "threshold"))
    data = json.loads(_core.report(file, core, [(name, run._core_arrays()) for name, run in shown_runs],
                                   [(name, one._core) for name, one in shown_solutions], given, bool(force),
                                   arguments.threads(threads)))
    warn_of_unsolved("report", {one["norm"]: one["status"] for shown in data.get("reports", [data])
                                for one in shown["solutions"] if one["file"] is None})
    return Report(file, data)


def _stack_report(core: Any, name: str, stack: Stack, *, out: PathLike, title: str, force: bool, threads: int | None,
                  alone: bool) -> Report:
    if not alone:
        raise ValueError("solutions, token_names and coordinates are not shown beside a stack")
    file = writable(out, force)
    given = dict(title=arguments.word(title, "title"), command=_command([name]))
    data = json.loads(_core.stack_report(file, core, name, stack._file_arrays(), given, bool(force),
                                         arguments.threads(threads)))
    warn_of_unsolved("report", {f"fro of layer {one['layer']}, head {one['head']}": one["status"]
                                for one in data["judged"]})
    return Report(file, data)
