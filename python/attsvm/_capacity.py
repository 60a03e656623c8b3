from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from typing import Any, Literal

from . import _arguments as arguments
from . import _core, _progress
from ._errors import Interrupted, warn
from ._files import writable
from ._results import FieldsResult
from ._types import Device, PathLike


@dataclass(frozen=True)
class Share:
    """A share that was counted, and Wilson's interval for the chance behind it, at 95 %."""
    count: int
    of: int
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class Spread:
    """Mean and spread of what was measured."""
    count: int
    mean: float
    deviation: float | None  #: None of one number
    least: float
    most: float


@dataclass(frozen=True)
class SmallestSize:
    """Where the smallest sufficient d lies."""
    wanted: float
    low: int  #: every smaller d has a smaller chance, at 95 %
    high: int  #: this d suffices
    predicted: int | None
    points: dict[int, Share]  #: the sizes that were drawn
    complete: bool


class Capacity(FieldsResult):
    """What sizes can separate: the fields of `attsvm capacity --json`.

    `rows` n(T−1) and `unknowns` d·dz; `always`, whether theory says that every selection is separable, and `why`;
    `dimension` δ of a query's rows, `load` n·δ/(d·dz), `predicted` chance, `cover` n(T−1)/(2·d·dz); Shares `separable`,
    `all_heads`, `fits_width`, `global_` (None if not asked for); Spreads `margin`, `rank`, `rank_floor`,
    `width_margin`, `support` (None if there is nothing to measure); `undecided`; `smallest_d`, a SmallestSize or None;
    `complete`, False if the time limit ended it.
    """

    __slots__ = ()

    def _shown(self) -> list[tuple[str, Any]]:
        shown = [(name, self._values[name]) for name in ("n", "T", "d", "dz", "attention", "always", "predicted")]
        if self.separable:
            shown.append(("separable", f"{self.separable.share:.3g} ({self.separable.low:.3f} to "
                                       f"{self.separable.high:.3f})"))
        if self.rank:
            shown.append(("rank", self.rank.mean))
        if self.smallest_d:
            shown.append(("smallest_d", (self.smallest_d.low, self.smallest_d.high)))
        return shown


def _result(text: str) -> Capacity:
    values: dict[str, Any] = json.loads(text)
    values["global_"] = values.pop("global")
    for name in ("separable", "all_heads", "fits_width", "global_"):
        values[name] = values[name] and Share(**values[name])
    for name in ("margin", "rank", "rank_floor", "width_margin", "support"):
        values[name] = values[name] and Spread(**values[name])
    search = values["smallest_d"]
    if search is not None:
        search["points"] = {one["d"]: Share(**one["separable"]) for one in search["points"]}
        values["smallest_d"] = SmallestSize(**search)
    return Capacity(values)


def _command(settings: dict[str, Any], options: dict[str, Any]) -> str:
    """The call that makes the page again: the sizes, and the options that differ from their defaults."""
    usual = inspect.signature(capacity).parameters
    words = [str(settings[name]) for name in ("n", "T", "d")]
    words += [f"{name}={settings[name]!r}" for name, one in options.items() if one != usual[name].default]
    return f"attsvm.capacity({', '.join(words)})"


def capacity(n: int, T: int, d: int, *, dz: int | None = None,
             attention: Literal["cross", "self", "prompt"] = "cross", width: int | None = None, heads: int = 1,
             draws: int = 100, runs: int | None = None, want: float = 0.9, seed: int = 0,
             time_limit: float | None = None, page: PathLike | None = None, force: bool = False,
             threads: int | None = None, device: Device = "auto", progress: bool | None = None) -> Capacity:
    """What sizes can separate: chances, margins, ranks, and the smallest d that suffices, as `attsvm capacity`.

    Parameters
    ----------
    n, T, d : int
        Queries, tokens per sequence, size of tokens.
    dz : int, optional
        Size of queries; default d.
    attention : "cross", "self" or "prompt"
    width : int, optional
        Width r of a head: is there a W = K Qᵀ with r columns?
    heads : int
        Heads, each with a random selection of its own.
    draws, runs : int
        Random tasks to solve, and of these to train; default of `runs`: as many as take a few seconds.
    want : float
        Chance for which to look for the smallest d; 0: do not.
    time_limit : seconds, optional
        Ends with the counts so far: `complete` is False, and a `ConvergenceWarning` says so.
    page : path, optional
        Writes a page that shows it too; an existing file is replaced only with `force`.
    device : as in `train_many`
    threads, progress : as in `solve`

    Ctrl-C raises `Interrupted`, whose `result` has the counts so far; the page is written with these.

    >>> import attsvm
    >>> found = attsvm.capacity(6, 5, 8, draws=20, runs=0, want=0)
    >>> found.always, found.separable.count, found.separable.of
    (True, 20, 20)
    """
    file = "" if page is None else writable(page, force)
    settings: dict[str, Any] = dict(
        page=file, replace=bool(force),
        n=arguments.integer(n, "n", 1), T=arguments.integer(T, "T", 2), d=arguments.integer(d, "d", 1),
        dz=0 if dz is None else arguments.integer(dz, "dz", 1),
        attention=arguments.word(attention, "attention"),
        width=0 if width is None else arguments.integer(width, "width", 1),
        heads=arguments.integer(heads, "heads", 1), draws=arguments.integer(draws, "draws", 1),
        runs=-1 if runs is None else arguments.integer(runs, "runs"),
        want=arguments.number(want, "want"), seed=arguments.seed(seed),
        time_limit=arguments.positive(time_limit, "time_limit"))
    settings["command"] = _command(settings, dict(dz=dz, attention=attention, width=width, heads=heads, draws=draws,
                                                  runs=runs, want=want, seed=seed, page=page))
    with _progress.bar(progress, "capacity", 100, lambda work, share: (round(100 * share), work)) as bar:
        text, interrupted = _core.capacity(settings, arguments.threads(threads), arguments.device(device), bar)
    result = _result(text)
    if interrupted:
        raise Interrupted("capacity was interrupted; .result has the counts so far", result)
    if not result.complete:
        warn("capacity: the limit ended it; these are the counts so far")
    return result
