# mypy: disable-error-code=no-any-return
# Arrays come from C++ by name, and only the properties here say of which type they are.
from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from . import _core
from ._errors import InfeasibleError
from ._results import Many, Result, table
from ._types import Flags, Floats, Integers, NormName, PathLike, PowerNorm, Problem, Status


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
    is none. Arrays are read-only; `to_dict(copy=True)` has copies that may be changed.

    >>> import attsvm
    >>> solution = attsvm.solve(attsvm.generate("random", seed=1))
    >>> solution.W.shape, solution.dual.shape, solution.support
    ((10, 10), (42,), 17)
    """

    __slots__ = ("_core", "_arrays")

    def __init__(self, core: _core.Solution):
        self._core = core
        self._arrays: dict[str, Any] | None = None

    def _named(self) -> dict[str, Any]:
        """The arrays by name, made once."""
        if self._arrays is None:
            self._arrays = self._core.arrays()
        return self._arrays

    def _get(self, name: str) -> Any:
        return self._named()[name]

    def _optional(self, name: str) -> Any:
        """An array that only some solutions have."""
        return self._named().get(name)

    def _claim(self, name: str) -> Any:
        """An array that a solution with only W does not have."""
        if self._core.w_only:
            raise AttributeError(f"this solution has no {name}: it holds only W, another solver's answer")
        return self._get(name)

    def _require_feasible(self, name: str) -> None:
        if self._core.status == "infeasible":
            raise InfeasibleError(f"there is no {name}: {self.conflict}", self)

    @property
    def status(self) -> Status:
        """optimal, infeasible (with a certificate), limit (stopped by a limit that was set) or stalled (the solver
        could not reach its tolerance); in the last two W is the best so far."""
        return cast(Status, self._core.status)

    @property
    def feasible(self) -> bool:
        """False where a certificate proves that no W meets the rows, or none small enough for double precision."""
        return self._core.status != "infeasible"

    @property
    def norm(self) -> NormName | PowerNorm:
        """fro, nuc, spec, max, l1, lp:P or schatten:P; names of the same norm are written in one way."""
        return cast("NormName | PowerNorm", self._core.norm)

    @property
    def problem(self) -> Problem:
        """att (separates kept tokens from the others) or v (separates labels by the kept values)."""
        return cast(Problem, self._core.problem)

    @property
    def W(self) -> Floats:
        """(d, dz) the solution. InfeasibleError if there is none."""
        self._require_feasible("W")
        return self._get("W")

    @property
    def K(self) -> Floats:
        """(d, r), nuclear norm only: W = K Qᵀ, KᵀK = QᵀQ, r the rank."""
        self._require_feasible("K")
        self._require_factors()
        return self._get("K")

    @property
    def Q(self) -> Floats:
        """(dz, r), nuclear norm only."""
        self._require_feasible("Q")
        self._require_factors()
        return self._get("Q")

    def _require_factors(self) -> None:
        if "K" not in self._named():
            raise AttributeError(f"K and Q exist only for norm='nuc'; this is {self.norm}")

    @property
    def objective(self) -> float:
        """|W| in the norm, not squared; of a soft margin |W|²/2 + Σ penalty ξ."""
        self._require_feasible("objective")
        return self._core.objective

    @property
    def dual_objective(self) -> float:
        """A proven lower bound on the objective."""
        self._require_feasible("dual_objective")
        return self._core.dual_objective

    @property
    def margin(self) -> float:
        """1/|W|: the margin by which W/|W| keeps selected tokens ahead; of a soft margin, all but those it misses."""
        size = self.objective if self.penalty is None else float(np.linalg.norm(self.W))
        return 1 / size if size > 0 else np.inf

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
    def dual(self) -> Floats:
        """(c,) one multiplier per row, scaled so that A(dual) has dual norm 1, of a soft margin so that W = A(dual);
        the certificate if infeasible."""
        return self._claim("dual")

    @property
    def slack(self) -> Floats:
        """(c,) δᵀWζ - rhs."""
        self._require_feasible("slack")
        return self._claim("slack")

    @property
    def rhs(self) -> Floats:
        """(c,) right-hand sides: 1; 0 for relaxed rows and equations."""
        return self._claim("rhs")

    @property
    def row_query(self) -> Integers:
        """(c,) the query of each row."""
        return self._claim("row_query")

    @property
    def row_keep(self) -> Integers:
        """(c,) the kept token."""
        return self._claim("row_keep")

    @property
    def row_drop(self) -> Integers:
        """(c,) the dropped token; -1 in a v problem."""
        return self._claim("row_drop")

    @property
    def row_equal(self) -> Flags:
        """(c,) bool: an equation between two kept tokens."""
        return self._claim("row_equal")

    @property
    def select(self) -> Flags:
        """(q, T) bool: the tokens kept."""
        return self._claim("select")

    @property
    def relax(self) -> Flags:
        """(q,) bool: the queries that were relaxed."""
        return self._claim("relax")

    @property
    def penalty(self) -> Floats | None:
        """(q,) the penalty C of each query of a soft margin; None where the margin is not soft."""
        return self._optional("penalty")

    @property
    def xi(self) -> Floats | None:
        """(q,) by how much each query of a soft margin may miss it; None where the margin is not soft."""
        return self._optional("xi")

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

    def save(self, path: PathLike, force: bool = False) -> None:
        """Writes a solution file, as `attsvm.save` does."""
        from ._files import save
        save(path, self, force=force)

    def _file_arrays(self) -> dict[str, Any]:
        arrays = self._core.arrays()
        return {"W": arrays["W"]} if self._core.w_only else arrays

    def _fields(self) -> dict[str, Any]:
        values = dict(self._file_arrays())
        if self.feasible and not self._core.w_only:
            values.update(gap=self.gap, violation=self.violation, rank=self.rank, support=self.support)
        if not self.feasible:
            values.update(conflict=self.conflict)
        return values

    def __reduce__(self) -> Any:
        return _restore, (self._file_arrays(), self._core.facts())

    def _shown(self) -> list[tuple[str, Any]]:
        if self._core.w_only:
            return [("W", self.W)]
        start = [("status", self.status), ("norm", self.norm)]
        if not self.feasible:
            return start + [("rows", len(self.dual)), ("conflict", f"{np.count_nonzero(self.dual)} rows")]
        xi = self.xi
        missed = [] if xi is None else [("missed", f"{np.count_nonzero(xi > 1e-6)} of {len(xi)} queries")]
        return start + [("objective", self.objective), ("rank", self.rank), ("support", self.support),
                        ("rows", len(self.dual))] + missed

    def _repr_html_(self) -> str:
        """In a notebook, shows the whole conflict."""
        shown = dict(self._shown())
        return table(self, list((shown | {"conflict": self.conflict} if "conflict" in shown else shown).items()))


def _restore(arrays: dict[str, Any], facts: tuple[Any, ...]) -> Solution:
    return Solution(_core.restore_solution(arrays, facts))


class Solutions(Many[Solution]):
    """The results of `solve_many`: a sequence of `Solution`, and their common fields as arrays."""

    __slots__ = ()
    _common = ("status", "objective")

    def _made(self, answer: Any) -> Solution:
        return Solution(answer)

    @property
    def objective(self) -> Floats:
        """(m,) NaN where infeasible."""
        return self._core.objective

    @property
    def status(self) -> list[Status]:
        return self._core.status

    @property
    def feasible(self) -> Flags:
        """(m,) bool"""
        return np.array([status != "infeasible" for status in self.status])

    def __repr__(self) -> str:
        return f"Solutions({len(self)} solutions, {int(self.feasible.sum())} feasible)"
