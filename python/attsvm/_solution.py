from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

import numpy as np

from . import _arguments as arguments
from . import _core, _progress
from ._errors import InfeasibleError, Interrupted
from ._results import Many, Result, number_text, table
from ._task import Task, unwrap, unwrap_all


class SolveProgress(NamedTuple):
    """The state of a solve."""
    iteration: int
    objective: float  #: of the best feasible W so far; infinite while there is none
    dual_objective: float  #: proven lower bound
    seconds: float

    @property
    def gap(self) -> float:
        """Relative difference of the two."""
        return max(0.0, self.objective - self.dual_objective) / self.objective if self.objective < np.inf else np.inf


class Row(NamedTuple):
    """One row of a certificate: query `query` keeps token `keep` over `drop`, with this weight in the contradiction."""
    query: int
    keep: int
    drop: int
    equal: bool
    weight: float


class Solution(Result):
    """An answer of `solve`: W of smallest norm that keeps the selected tokens, with its proof; or the proof that there
    is none. Arrays are read-only.

    >>> import attsvm
    >>> solution = attsvm.solve(attsvm.generate("random", seed=1))
    >>> solution.W.shape, solution.dual.shape, solution.support
    ((10, 10), (42,), 17)
    """

    __slots__ = ("_core", "_arrays")

    def __init__(self, core: Any):
        self._core = core
        self._arrays: dict[str, Any] | None = None

    def _get(self, name: str) -> Any:
        if self._arrays is None:
            self._arrays = self._core.arrays()
        return self._arrays[name]

    def _claim(self, name: str) -> Any:
        """An array that a solution with only W does not have."""
        if self._core.w_only:
            raise AttributeError(f"this solution has no {name}: it holds only W, another solver's answer")
        return self._get(name)

    def _require_feasible(self, name: str) -> None:
        if self._core.status == "infeasible":
            raise InfeasibleError(f"there is no {name}: {self.conflict}", self)

    @property
    def status(self) -> str:
        """optimal, infeasible (with a certificate), limit (stopped by a limit that was set) or stalled (the solver
        could not reach its tolerance); in the last two W is the best so far."""
        return self._core.status

    @property
    def feasible(self) -> bool:
        """False where a certificate proves that no W meets the rows, or none small enough for double precision."""
        return self._core.status != "infeasible"

    @property
    def norm(self) -> str:
        """fro, nuc, spec, max, l1, lp:P or schatten:P; names of the same norm are written in one way."""
        return self._core.norm

    @property
    def problem(self) -> str:
        """att (separates kept tokens from the others) or v (separates labels by the kept values)."""
        return self._core.problem

    @property
    def W(self) -> np.ndarray:
        """(d, dz) the solution. InfeasibleError if there is none."""
        self._require_feasible("W")
        return self._get("W")

    @property
    def K(self) -> np.ndarray:
        """(d, r), nuclear norm only: W = K Qᵀ, KᵀK = QᵀQ, r the rank."""
        self._require_feasible("K")
        self._require_factors()
        return self._get("K")

    @property
    def Q(self) -> np.ndarray:
        """(dz, r), nuclear norm only."""
        self._require_feasible("Q")
        self._require_factors()
        return self._get("Q")

    def _require_factors(self) -> None:
        if self._arrays is None:
            self._arrays = self._core.arrays()
        if "K" not in self._arrays:
            raise AttributeError(f"K and Q exist only for norm='nuc'; this is {self.norm}")

    @property
    def objective(self) -> float:
        """|W| in the norm, not squared."""
        self._require_feasible("objective")
        return self._core.objective

    @property
    def dual_objective(self) -> float:
        """A proven lower bound on the objective."""
        self._require_feasible("dual_objective")
        return self._core.dual_objective

    @property
    def margin(self) -> float:
        """1/objective: the margin by which W/|W| keeps selected tokens ahead."""
        return 1 / self.objective if self.objective > 0 else np.inf

    @property
    def gap(self) -> float:
        """Relative difference of objective and bound."""
        self._require_feasible("gap")
        return self._core.gap

    @property
    def violation(self) -> float:
        """Largest violation of a row by W."""
        self._require_feasible("violation")
        return self._core.violation

    @property
    def rank(self) -> int:
        """Rank of W; for the nuclear norm, the number of columns of K and Q."""
        self._require_feasible("rank")
        return self._core.rank

    @property
    def rank_certified(self) -> bool:
        """Nuclear norm: whether it is proven that all optima have this rank, up to `outside_mass`."""
        return self._core.rank_certified

    @property
    def unique(self) -> bool | None:
        """Whether no other W is optimal; None where that is not settled, and for solutions read from a file. If False,
        W is one of many optima, not necessarily the one of least Frobenius norm."""
        return self._core.unique

    @property
    def support(self) -> int:
        """How many rows are met with equality."""
        self._require_feasible("support")
        return self._core.support

    @property
    def dual(self) -> np.ndarray:
        """(c,) one multiplier per row, scaled so that A(dual) has dual norm 1; the certificate if infeasible."""
        return self._claim("dual")

    @property
    def slack(self) -> np.ndarray:
        """(c,) δᵀWζ - rhs."""
        self._require_feasible("slack")
        return self._claim("slack")

    @property
    def rhs(self) -> np.ndarray:
        """(c,) right-hand sides: 1; 0 for relaxed rows and equations."""
        return self._claim("rhs")

    @property
    def row_query(self) -> np.ndarray:
        """(c,) the query of each row."""
        return self._claim("row_query")

    @property
    def row_keep(self) -> np.ndarray:
        """(c,) the kept token."""
        return self._claim("row_keep")

    @property
    def row_drop(self) -> np.ndarray:
        """(c,) the dropped token; -1 in a v problem."""
        return self._claim("row_drop")

    @property
    def row_equal(self) -> np.ndarray:
        """(c,) bool: an equation between two kept tokens."""
        return self._claim("row_equal")

    @property
    def select(self) -> np.ndarray:
        """(q, T) bool: the tokens kept."""
        return self._claim("select")

    @property
    def relax(self) -> np.ndarray:
        """(q,) bool: the queries that were relaxed."""
        return self._claim("relax")

    @property
    def tolerance(self) -> float:
        """The requested relative gap."""
        return self._claim("tolerance")

    @property
    def iterations(self) -> int:
        """Iterations of the solver; 0 for a solution from a file."""
        return self._core.iterations

    @property
    def method(self) -> str:
        """Which solver was used; "file" for a solution from a file."""
        return self._core.method

    @property
    def warm_started(self) -> bool:
        """Whether a warm start was given and used."""
        return self._core.warm_started

    @property
    def history(self) -> list[SolveProgress]:
        """The progress that the solver reported."""
        return [SolveProgress(*one) for one in self._core.history]

    @property
    def certificate(self) -> list[Row]:
        """For an infeasible problem, the rows that contradict each other, largest weight first; else an empty list."""
        if self.feasible:
            return []
        weights = self.dual
        order = sorted(np.flatnonzero(weights), key=lambda k: -abs(weights[k]))
        return [Row(int(self.row_query[k]), int(self.row_keep[k]), int(self.row_drop[k]), bool(self.row_equal[k]),
                    float(weights[k])) for k in order]

    @property
    def conflict(self) -> str:
        """The certificate in words; empty if there is a solution."""
        if self.feasible:
            return ""
        words = self._core.words or [
            f"query {row.query}: keep token {row.keep} over {row.drop} (weight {row.weight:.3g})"
            for row in self.certificate[:20]]
        return "no W keeps the selection, for these rows cannot hold together:\n  " + "\n  ".join(words)

    def correlation(self, other: Any) -> float:
        """⟨W, other⟩ / (|W| |other|) with a matrix, another solution or a run."""
        from ._theory import correlation
        return correlation(self, other)

    def save(self, path: Any, force: bool = False) -> None:
        """Writes a solution file, as `attsvm.save` does."""
        from ._files import save
        save(path, self, force=force)

    def _file_arrays(self) -> dict[str, Any]:
        arrays = self._core.arrays()
        return {"W": arrays["W"]} if self._core.w_only else arrays

    def to_dict(self) -> dict[str, Any]:
        """The arrays, numbers and words of the solution's file, and gap, violation, … if there is a W."""
        values = dict(self._file_arrays())
        if self.feasible and not self._core.w_only:
            values.update(gap=self.gap, violation=self.violation, rank=self.rank, support=self.support)
        if not self.feasible:
            values.update(conflict=self.conflict)
        return values

    def __reduce__(self):
        return _restore, (self._file_arrays(), self._core.facts())

    def _shown(self) -> list[tuple[str, Any]]:
        if self._core.w_only:
            return [("W", self.W)]
        start = [("status", self.status), ("norm", self.norm)]
        if not self.feasible:
            return start + [("rows", len(self.dual)), ("conflict", f"{np.count_nonzero(self.dual)} rows")]
        return start + [("objective", self.objective), ("rank", self.rank), ("support", self.support),
                        ("rows", len(self.dual))]

    def _repr_html_(self) -> str:
        """In a notebook, shows the whole conflict."""
        shown = dict(self._shown())
        return table(self, list((shown | {"conflict": self.conflict} if "conflict" in shown else shown).items()))


def _restore(arrays: dict[str, Any], facts: tuple) -> Solution:
    return Solution(_core.restore_solution(arrays, facts))


class Solutions(Many[Solution]):
    """The results of `solve_many`: a sequence of `Solution`, and their common fields as arrays."""

    __slots__ = ()
    _common = ("status", "objective")

    def _made(self, answer: Any) -> Solution:
        return Solution(answer)

    @property
    def objective(self) -> np.ndarray:
        """(m,) NaN where infeasible."""
        return self._core.objective

    @property
    def status(self) -> list[str]:
        return self._core.status

    @property
    def feasible(self) -> np.ndarray:
        """(m,) bool"""
        return np.array([status != "infeasible" for status in self.status])

    def __repr__(self) -> str:
        return f"Solutions({len(self)} solutions, {int(self.feasible.sum())} feasible)"


def _bar_state(iteration: int, objective: float, dual_objective: float, seconds: float) -> tuple[int, str]:
    gap = SolveProgress(iteration, objective, dual_objective, seconds).gap
    return iteration, f"gap {gap:.1e}" if gap < np.inf else "no separator yet"


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
    return solutions
