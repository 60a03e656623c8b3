from __future__ import annotations

import warnings
from typing import Any, Callable, Sequence

import numpy as np

from . import _arguments as arguments
from . import _core, _progress
from ._errors import ConvergenceWarning, Interrupted
from ._results import number_text
from ._solution import Solution, Solutions, SolveProgress
from ._task import Task, unwrap, unwrap_all


def _bar_state(iteration: int, objective: float, dual_objective: float, seconds: float) -> tuple[int, str]:
    gap = SolveProgress(iteration, objective, dual_objective, seconds).gap
    return iteration, f"gap {gap:.1e}" if gap < np.inf else "no separator yet"


_UNFINISHED = {"stalled": "the solver could not reach its tolerance", "limit": "the limit ended the solve"}


def _warn_of(status: str, gap: float, where: str = "") -> None:
    """Says so where an answer is not optimal to its tolerance: a gap must not pass unseen."""
    if status in _UNFINISHED:
        reach = f"its relative gap is {number_text(gap)}" if np.isfinite(gap) else "no gap is known"
        warnings.warn(f"{where}{_UNFINISHED[status]}; {reach}", ConvergenceWarning, stacklevel=3)


def solve(task: Task, select: Any = None, norm: Any = "fro", *, relax: Sequence[int] = (), problem: str = "att",
          tolerance: float = 1e-8, time_limit: float | None = None, warm_start: Solution | None = None,
          threads: int | None = None, progress: bool | None = None,
          callback: Callable[[SolveProgress], Any] | None = None) -> Solution:
    """Finds the W of smallest norm that keeps the selected tokens ahead of the others by a margin of one, with a proof;
    or proves that there is none.

    Parameters
    ----------
    task : Task
    select : "opt", "file", array (q,) of tokens, mask (q, T), or a list of sets; optional
        What to keep. Default: the task's own selection ("file"), else the tokens of highest score ("opt").
    norm : "fro", "nuc", "spec", "max", "l1", ("lp", P) or ("schatten", P)
        Frobenius (what training W tends to), nuclear (K and Q, with vanishing regularization), spectral (largest
        singular value), largest absolute entry, sum of absolute entries, or the norm of power P, from 1 to infinity, of
        the entries or of the singular values. "lp:3" works too.
    relax : list of queries
        Their rows need only be >= 0 instead of >= 1.
    problem : "att" or "v"
        Separate kept tokens from the others, or labels by the selected tokens' values.
    tolerance : float
        Relative gap to reach; problems of at most 1,500 rows are solved to rounding.
    time_limit : seconds, optional
        Seconds after which the best answer so far is returned, with status "limit".
    warm_start : Solution, optional
        Of the same or a similar problem with as many rows.
    threads : int, optional
        Default: all cores. The answer does not depend on it.
    progress : bool, optional
        A bar. Default: in terminals and notebooks, once the call takes longer than half a second.
    callback : function of a SolveProgress, optional
        Called at every iteration of the solvers for larger problems; a true return value stops with status "limit".

    Returns a `Solution`. Ctrl-C raises `Interrupted`, whose `result` is the best answer. Releases the GIL.

    >>> import attsvm
    >>> task = attsvm.generate("random", seed=1)
    >>> attsvm.solve(task)
    Solution(status='optimal', norm='fro', objective=3.75714759, rank=6, support=17, rows=42)
    >>> attsvm.solve(task, norm="nuc").rank
    3
    >>> attsvm.solve(task, select=[7, 2, 0, 5, 0, 2], norm=("lp", 3)).status
    'optimal'
    """
    core_task = unwrap(task)
    if warm_start is not None and not isinstance(warm_start, Solution):
        raise TypeError(f"warm_start is a {type(warm_start).__name__}; must be a Solution")
    if callback is not None:
        told = callback
        callback = lambda *state: told(SolveProgress(*state))  # noqa: E731
    with _progress.bar(progress, "solve", None, _bar_state) as bar:
        core = _core.solve(core_task, select if select is None else arguments.selection(select, core_task.longest),
                           arguments.norm(norm), [arguments.integer(i, "relax") for i in relax] if len(relax) else [],
                           arguments.word(problem, "problem"), arguments.number(tolerance, "tolerance"),
                           arguments.positive(time_limit, "time_limit"),
                           warm_start._core if warm_start is not None else None,
                           arguments.threads(threads), callback, bar)
    solution = Solution(core)
    if core.interrupted:
        raise Interrupted(f"solve was interrupted; .result has the best answer so far ({number_text(core.gap)} gap)",
                          solution)
    _warn_of(solution.status, core.gap)
    return solution


def solve_many(tasks: Sequence[Task], select: Any = None, norm: Any = "fro", *, problem: str = "att",
               tolerance: float = 1e-8, threads: int | None = None, progress: bool | None = None) -> Solutions:
    """Solves many small tasks on all cores, with the same answers as `solve`.

    `select` is as in `solve`, or a list with one of those per task. Ctrl-C raises `Interrupted` with the answers to
    the first tasks.

    >>> import attsvm
    >>> tasks = [attsvm.generate("random", seed=1, instance=k) for k in range(100)]
    >>> solutions = attsvm.solve_many(tasks)
    >>> solutions
    Solutions(100 solutions, 100 feasible)
    >>> bool(solutions[3].objective == attsvm.solve(tasks[3]).objective)
    True
    """
    cores = unwrap_all(tasks)
    if select is None or isinstance(select, str):
        selects = [select] * len(cores)
    else:
        if len(select) != len(cores):
            raise ValueError(f"select has {len(select)} entries; must have one per task, {len(cores)} in all")
        selects = [arguments.selection(one, core.longest) for one, core in zip(select, cores)]
    with _progress.bar(progress, "solve_many", len(cores), lambda done: (done, "")) as bar:
        core = _core.solve_many(cores, selects, arguments.norm(norm), arguments.word(problem, "problem"),
                                arguments.number(tolerance, "tolerance"), arguments.threads(threads), bar)
    solutions = Solutions(core)
    if core.interrupted:
        raise Interrupted(f"solve_many was interrupted; .result has the first {len(core)} answers", solutions)
    unfinished = [k for k, status in enumerate(solutions.status) if status in _UNFINISHED]
    if unfinished:
        _warn_of(solutions[unfinished[0]].status, solutions[unfinished[0]].gap,
                 f"{len(unfinished)} of {len(solutions)} tasks; the first is task {unfinished[0]}: ")
    return solutions
