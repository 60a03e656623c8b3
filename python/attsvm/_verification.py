from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import _arguments as arguments
from . import _core
from ._files import existing
from ._results import Result
from ._solution import Solution
from ._task import Task, unwrap
from ._types import Norm


class Verification(Result):
    """What `verify` proved about a solution from the task, NaN where there is nothing to prove: `objective`,
    `gap` and `violation` are upper bounds, `dual_objective` and `norm_bound` lower ones.

    Its truth value is `valid`.
    """

    __slots__ = ("valid", "status", "reason", "objective", "dual_objective", "gap", "violation", "scaling",
                 "homogeneous", "distance", "residual", "norm_bound", "rank", "own_selection", "relaxed", "question",
                 "arithmetic", "remark")

    def __init__(self, **values: Any):
        for name in self.__slots__:
            setattr(self, name, values[name])

    valid: bool
    status: str
    reason: str
    objective: float
    dual_objective: float
    gap: float
    violation: float
    scaling: float
    """W times one plus this meets every row >= 1."""
    homogeneous: float
    """Largest violation of a row = 0 or >= 0, relative to the norm of the row times that of W."""
    distance: float
    """Distance to the nearest matrix that meets the rows = 0 and >= 0, relative to |W|; NaN if not computed."""
    residual: float
    norm_bound: float
    """For a certificate: no W of smaller Frobenius norm meets the rows."""
    rank: int | None
    """For the nuclear norm: the rank of W, equal to the number of columns of K and Q."""
    own_selection: bool
    """The rows are those of the task's own selection, else of its optimal tokens."""
    relaxed: list[int]
    """Queries whose >= 1 was read as >= 0."""
    question: str
    """Which rows were checked, if not those of the task's own selection."""
    arithmetic: str
    """The arithmetic of the proof."""
    remark: str
    """What was left out because the problem is large."""

    def __bool__(self) -> bool:
        return self.valid

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __reduce__(self) -> Any:
        return _verification, (self.to_dict(),)

    def _shown(self) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in self.to_dict().items()
                if value not in ("", None, []) and not (isinstance(value, float) and np.isnan(value))]


def _verification(values: dict[str, Any]) -> Verification:
    return Verification(**values)


def verify(task: Task, solution: Any, norm: Norm | None = None, tolerance: float = 1e-8) -> Verification:
    """Proves every claim of a solution from the raw arrays, in ball arithmetic. Links none of the solvers' code.

    Parameters
    ----------
    task : Task
    solution : Solution, path of a solution file, or array (d, dz)
        A matrix is another solver's answer: only its feasibility is checked, for the task's own selection, else the
        optimal tokens.
    norm : as in `solve`, optional
        The norm that a matrix minimises; default "fro".
    tolerance : float
        Largest relative gap of a valid optimum, whatever the file says.

    >>> import attsvm
    >>> task = attsvm.generate("random", seed=1)
    >>> bool(attsvm.verify(task, attsvm.solve(task)))
    True
    >>> bool(attsvm.verify(task, 0.9 * attsvm.solve(task).W))
    False
    """
    if isinstance(solution, Solution):
        core = solution._core
    elif isinstance(solution, (str, os.PathLike)):
        core = _core.load_solution(existing(solution))
    else:
        core = _core.solution_of(arguments.array(solution, "solution"))
    return Verification(**_core.verify(unwrap(task), core, "" if norm is None else arguments.norm(norm),
                                       arguments.number(tolerance, "tolerance")))
