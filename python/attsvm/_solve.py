from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from . import _arguments as arguments
from . import _core, _progress
from ._errors import UNFINISHED, Interrupted, warn
from ._results import number_text
from ._solution import Solution, Solutions, SolveProgress
from ._task import Task, task_at_fault, unwrap, unwrap_all
from ._types import Device, Norm, Problem


def solve_state(iteration: int, objective: float, dual_objective: float, seconds: float) -> tuple[int, str]:
    """What a bar shows of a solve."""
    gap = SolveProgress(iteration, objective, dual_objective, seconds).gap
    return iteration, f"gap {gap:.1e}" if gap < np.inf else "no separator yet"


def _warn_of(status: str, gap: float, where: str = "") -> None:
    """Says so where an answer is not optimal to its tolerance: a gap must not pass unseen."""
    if status in UNFINISHED:
        reach = f"its relative gap is {number_text(gap)}" if np.isfinite(gap) else "no gap is known"
        warn(f"{where}{UNFINISHED[status]}; {reach}")


def solve(task: Task, select: Any = None, norm: Norm = "fro", *, relax: Any = (), problem: Problem = "att",
          soft: Any = None, tolerance: float = 1e-8, time_limit: float | None = None,
          warm_start: Solution | None = None, threads: int | None = None, progress: bool | None = None,
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
        the entries or of the singular values. The names that solutions have, such as "lp:3", work too.
    relax : list of queries, or (q,) bool such as another solution's `relax`
        Their rows need only be >= 0 instead of >= 1.
    problem : "att" or "v"
        Separate kept tokens from the others, or labels by the selected tokens' values.
    soft : float, or array (q,), optional
        Penalty C > 0 of a soft margin, one for all queries or one per query. The answer then minimises
        |W|²/2 + Σ C_i ξ_i in Frobenius norm, and query i may miss its margin by ξ_i, the `xi` of the solution. There
        is always such a W; as C grows it becomes the W without slack, if that exists.
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

    Returns a `Solution`. `ConvergenceWarning` says so if its status is "limit" or "stalled". Ctrl-C raises
    `Interrupted`, whose `result` is the best answer. Releases the GIL.

    >>> import attsvm
    >>> task = attsvm.generate("random", seed=1)
    >>> attsvm.solve(task)
    Solution(status='optimal', norm='fro', objective=3.75714759, rank=6, support=17, rows=42)
    >>> attsvm.solve(task, norm="nuc").rank
    3
    >>> attsvm.solve(task, select=[7, 2, 0, 5, 0, 2], norm=("lp", 3)).status
    'optimal'
    >>> attsvm.solve(task, soft=0.5)
    Solution(status='optimal', norm='fro', objective=2.66121367, rank=6, support=17, rows=42,
             missed='6 of 6 queries')
    """
    core_task = unwrap(task)
    if warm_start is not None and not isinstance(warm_start, Solution):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"warm_start is a {type(warm_start).__name__}; must be a Solution")
    with _progress.bar(progress, "solve", None, solve_state) as bar:
        core = _core.solve(core_task, select if select is None else arguments.selection(select, core_task.longest),
                           arguments.norm(norm), arguments.queries(relax, core_task.queries, "relax"),
                           arguments.word(problem, "problem"), arguments.number(tolerance, "tolerance"),
                           arguments.positive(time_limit, "time_limit"),
                           warm_start._core if warm_start is not None else None,
                           arguments.threads(threads), _progress.receiver(callback, SolveProgress), bar,
                           arguments.penalties(soft))
    solution = Solution(core)
    if core.interrupted:
        raise Interrupted(f"solve was interrupted; .result has the best answer so far ({number_text(core.gap)} gap)",
                          solution)
    _warn_of(solution.status, core.gap)
    return solution


def solve_many(tasks: Sequence[Task], select: Any = None, norm: Norm = "fro", *, problem: Problem = "att",
               tolerance: float = 1e-8, threads: int | None = None, device: Device = "auto",
               progress: bool | None = None) -> Solutions:
    """Solves many small tasks on all cores, with the same answers as `solve`.

    `select` is as in `solve`, or a list with one of those per task. `device="cuda"` solves on a GPU the Frobenius
    problems that fit it, with the same proofs but other last bits; "auto" does so if there is one and the tasks take
    long enough. Ctrl-C raises `Interrupted` with the answers to
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
        selects: list[Any] = [select] * len(cores)
    else:
        if len(select) != len(cores):
            raise ValueError(f"select has {len(select)} entries; must have one per task, {len(cores)} in all")
        selects = []
        for k, (one, core) in enumerate(zip(select, cores)):
            with task_at_fault(k):
                selects.append(arguments.selection(one, core.longest))
    with _progress.bar(progress, "solve_many", len(cores), lambda done: (done, "")) as bar:
        found = _core.solve_many(cores, selects, arguments.norm(norm), arguments.word(problem, "problem"),
                                arguments.number(tolerance, "tolerance"), arguments.threads(threads),
                                arguments.device(device), bar)
    solutions = Solutions(found)
    if found.interrupted:
        raise Interrupted(f"solve_many was interrupted; .result has the first {len(found)} answers", solutions)
    unfinished = [k for k, status in enumerate(solutions.status) if status in UNFINISHED]
    if unfinished:
        _warn_of(solutions[unfinished[0]].status, solutions[unfinished[0]].gap,
                 f"{len(unfinished)} of {len(solutions)} tasks; the first is task {unfinished[0]}: ")
    return solutions
