from __future__ import annotations

from typing import Any, Literal

from . import _arguments as arguments
from . import _core
from ._errors import InputError
from ._task import Task, unwrap


_KINDS = ("sinusoidal", "rotary", "bias", "slope", "relative")


def with_positions(task: Task, kind: Literal["sinusoidal", "rotary", "bias", "slope", "relative"] | None = None, *,
                   base: float = 10_000, table: Any = None, fixed_slope: float | None = None) -> Task:
    """The task with positions in its keys, and so in queries that are tokens; distances are in keys alone.

    Equal tokens cannot be told apart without positions: a selection that keeps one and drops the other has no W. Values
    stay as they are, and so do queries of cross and prompt attention.

    Parameters
    ----------
    task : Task, but not of next-token prediction
    kind : {"sinusoidal", "rotary", "bias", "slope", "relative"}, optional
        Add sin and cos of t/base^(2i/d) to coordinates 2i and 2i+1 of the key of token t, or turn coordinates i and
        i + d/2 by t/base^(2i/d). The others speak of the distance from a token back to the query's own, or to the last
        token that the query sees. "bias": logits xᵀWz + b with one unknown b per distance; the task becomes prompt
        attention whose unknown is W, row by row, and then b, from the least distance up. "slope": logits xᵀWz - m times
        the distance; the slope m is the last unknown. "relative": W has a row more per distance and a column more for a
        constant 1 in the queries.
    base : float
        How much slower than the first coordinate the slowest one turns.
    table : array or tensor (at least T, d), optional
        Add row t to the key of token t, instead of a kind.
    fixed_slope : float, optional
        Take this times the distance off the logits, in the bias of the task, instead of a kind. It is given, as ALiBi's
        slopes are, and not trained.

    >>> import attsvm
    >>> twice = attsvm.Task([[[1., 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]]], query_token=[1], select=[2])
    >>> attsvm.solve(twice).status, attsvm.solve(with_positions(twice, "rotary")).status
    ('infeasible', 'optimal')
    """
    if sum(given is not None for given in (kind, table, fixed_slope)) != 1:
        raise InputError("give a kind, a table of positions or a fixed slope, and one of them alone")
    if kind is not None and kind not in _KINDS:
        raise InputError(f"kind = {kind!r}; must be one of {', '.join(_KINDS)}")
    name = kind or ("table" if table is not None else "fixed-slope")
    slope = 0.0 if fixed_slope is None else arguments.number(fixed_slope, "fixed_slope")
    return Task._of(_core.with_positions(unwrap(task), name, arguments.number(base, "base"),
                                         None if table is None else arguments.array(table, "table"), slope), {})
