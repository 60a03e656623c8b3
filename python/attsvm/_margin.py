from __future__ import annotations

from typing import Any, NamedTuple

from . import _arguments as arguments
from . import _core, _progress
from ._errors import Interrupted, warn_of_unsolved
from ._results import copied, table
from ._solve import solve_state
from ._task import Task, unwrap
from ._types import Flags


class Margin(NamedTuple):
    """How far W keeps the selected tokens ahead. Dicts are by the name of the norm."""
    smallest: float  #: least difference of logits between a kept and a dropped token; infinite if none is dropped
    closest: tuple[int, int, int] | None  #: where it is: query, kept token, dropped token
    rho: dict[str, float]  #: smallest / norm of W, as a share of the largest such margin of any W; NaN: not known
    largest_margin: dict[str, float]  #: that margin, 1 / the least norm of the SVM; NaN unless its solve ended optimal
    rho_status: dict[str, str]  #: how that solve ended
    select: Flags  #: (q, T) bool, the tokens that are kept

    def to_dict(self, *, copy: bool = False) -> dict[str, Any]:
        """All fields by name. With `copy`, arrays are copies that may be changed."""
        return copied(self._asdict()) if copy else self._asdict()

    def _repr_html_(self) -> str:
        return table(self, [*self._asdict().items()])


def margin(task: Task, W: Any, select: Any = None, *, norms: Any = ("fro", "nuc", "spec", "max", "l1"),
           time_limit: float | None = None, threads: int | None = None, progress: bool | None = None) -> Margin:
    """How far weights of your own keep tokens ahead, and how much of the largest possible margin that is.

    Parameters
    ----------
    task : Task; it needs no head
    W : array or tensor (d, dz), Solution or Run
    select : as in `solve`, optional
        Default: the tokens that W itself selects.
    norms : norm as in `solve`, or a list of them
    time_limit : seconds for each norm's solve, optional
    threads, progress : as in `solve`

    `ConvergenceWarning` names the norms whose SVM was not solved. Ctrl-C raises `Interrupted`, whose `result` has what
    is known.

    >>> import attsvm
    >>> task = attsvm.generate("random", seed=1)
    >>> solution = attsvm.solve(task, norm="max")
    >>> found = attsvm.margin(task, 3 * solution.W, norms=["fro", "max"])
    >>> round(found.smallest, 9), round(found.rho["max"], 9), found.rho["fro"] < 1
    (3.0, 1.0, True)
    """
    core = unwrap(task)
    with _progress.bar(progress, "margin", None, solve_state) as bar:
        values = _core.margin(core, arguments.weights(W, "W"),
                              None if select is None else arguments.selection(select, core.longest),
                              arguments.norms(norms), arguments.positive(time_limit, "time_limit"),
                              arguments.threads(threads), bar)
    interrupted = values.pop("interrupted")
    result = Margin(**values)
    if interrupted:
        raise Interrupted("margin was interrupted; .result has what is known", result)
    warn_of_unsolved("margin", result.rho_status)
    return result
