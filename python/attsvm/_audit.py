from __future__ import annotations

import json
import os
from typing import Any, Callable, Sequence

from . import _arguments as arguments
from . import _core, _progress
from ._errors import UNFINISHED, Interrupted, warn
from ._files import writable
from ._heads import Heads
from ._results import Result
from ._types import PathLike


class Audit(Result):
    """What the heads of a model choose. `heads` has one dict per head, with the fields of `attsvm audit --json`.

    Each head has `views`: its own choices, and those with the sinks hidden if there are sinks. docs/formats.md explains
    every field.
    """

    __slots__ = ("heads", "complete", "_arrays", "_lead")

    def __init__(self, heads: list[dict[str, Any]], complete: bool, arrays: dict[str, Any], lead: dict[str, Any]):
        self.heads = heads
        self.complete = complete  #: False if a head ran into a limit
        self._arrays = arrays
        self._lead = lead  # what the page has besides the heads

    def __len__(self) -> int:
        return len(self.heads)

    def head(self, name: str) -> dict[str, Any]:
        """The head with this name, layer.head."""
        for one in self.heads:
            if f"{one['layer']}.{one['head']}" == name:
                return one
        raise KeyError(f"there is no head {name}")

    def save(self, path: PathLike, force: bool = False) -> None:
        """Writes the arrays of `to_dict` to an .npz file: the bytes of `attsvm audit -o`."""
        _core.write_npz(writable(path, force), self._arrays, bool(force))

    def page(self, path: PathLike, title: str = "Attention heads", force: bool = False) -> None:
        """Writes a page to open in a browser, as `attsvm audit --page` does: one HTML file.

        All heads as a grid, and each head with its rank curve, margin problems, support pairs and text.
        """
        heads = [{name: value for name, value in one.items() if name != "seconds"} for one in self.heads]
        page = json.dumps({**self._lead, "title": str(title), "heads": heads})
        _core.write_audit_page(writable(path, force), page, bool(force))

    def _fields(self) -> dict[str, Any]:
        """The numbers of all heads as arrays, one entry per view and head."""
        return dict(self._arrays)

    def __reduce__(self) -> Any:
        return Audit, (self.heads, self.complete, self._arrays, self._lead)

    def _shown(self) -> list[tuple[str, Any]]:
        rows: list[tuple[str, Any]] = [("heads", len(self.heads)), ("complete", self.complete)]
        for one in self.heads[:12]:
            views = [f"{view['kinds'][0]['words']} {view['kinds'][0]['share']:.0%}, r95 {view['r95']}"
                     for view in one["views"] if view["kinds"]]
            rows.append((f"{one['layer']}.{one['head']}", "; sinks hidden: ".join(views)))
        return rows

    def __repr__(self) -> str:
        return f"Audit(heads={len(self.heads)}, complete={self.complete})"

    def _warn(self) -> None:
        """Says so where the SVMs of heads were not solved, or something was left out."""
        unsolved = [(f"{one['layer']}.{one['head']}, {view['view']}, {norm}", view[norm]["status"])
                    for one in self.heads for view in one["views"] for norm in ("frobenius", "nuclear")
                    if view[norm]["status"] in UNFINISHED]
        if unsolved:
            where, status = unsolved[0]
            warn(f"audit: {len(unsolved)} SVMs of heads; the first is {where}: {UNFINISHED[status]}")
        elif not self.complete:
            warn('audit: the limit ended it; what is missing says "not run"')


def audit(heads: Any, inputs: Any = None, *, text: Sequence[Sequence[str]] | None = None, queries: int = 1000,
          drop: float = 0.1, nulls: int = 10, tolerance: float = 1e-8, null_tolerance: float = 1e-3, seed: int = 0,
          only: list[str] | None = None, time_limit: float | None = None, journal: Any = None, threads: int | None = None,
          progress: bool | None = None, callback: Callable[[int, int], Any] | None = None) -> Audit:
    """Describes attention heads by what they choose, as `attsvm audit` does.

    For each head, with its own choices and with the sinks hidden: the kind of its choices, gaps, the rank that keeps
    them on held-out text, the SVM of its choices in two norms with support pairs as text, and all of it beside random
    heads. A choice is the largest logit. The numbers say how choices are made on this text, not what a head is for.

    Parameters
    ----------
    heads : Heads, or a PyTorch model
    inputs, text : optional
        With a model: what it reads, and the words of that, as in `attsvm.torch.heads_from`, which has more options.
    queries : int
        N, the most queries per SVM. Norms, ranks and shares grow with N: compare heads at equal N only.
    drop : float
        Share of queries that are left out because their two best tokens nearly tie.
    nulls : int
        Random heads to compare each head with.
    tolerance, null_tolerance : float
        Relative gap of the head's own SVMs, and of those of the random heads.
    only : list of str, optional
        Names of heads, such as ["0.3", "1.8"].
    time_limit : float, optional
        Seconds per head. A head that runs into it keeps what it has; what is missing says "not run".
    journal : path, optional
        Keeps the heads that are done in this file until all are: the same call continues after it was stopped or
        killed, and ends with the same numbers. A call with `only` leaves other heads in it. A journal of other heads or
        settings is refused.
    threads, progress : as in `solve`; every head runs on one thread
    callback : function of (heads done, heads), optional
        Called often; a true return value stops.

    `ConvergenceWarning` says so where SVMs of heads were not solved. Ctrl-C raises `Interrupted`, whose `result` has
    the heads so far.

    >>> import attsvm, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> keys = rng.normal(size=(1, 40, 8))
    >>> heads = attsvm.Heads(keys, np.roll(4 * keys, 1, axis=1), position=np.arange(40))  # queries are neighbours
    >>> [own, hidden] = attsvm.audit(heads, nulls=2).heads[0]["views"]
    >>> own["kinds"][0]["words"], own["frobenius"]["status"]
    ('offset -1', 'optimal')
    """
    heads = _heads_in(heads, inputs, text)
    names = heads.names
    chosen = []
    for name in only or []:
        if name not in names:
            raise ValueError(f"only: there is no head {name!r}; must be layer.head, such as {names[0]!r}")
        chosen.append(names.index(name))
    settings = dict(queries=arguments.integer(queries, "queries", 1), drop=arguments.number(drop, "drop"),
                    nulls=arguments.integer(nulls, "nulls"), tolerance=arguments.number(tolerance, "tolerance"),
                    null_tolerance=arguments.number(null_tolerance, "null_tolerance"), seed=arguments.seed(seed),
                    only=chosen, time_limit=arguments.positive(time_limit, "time_limit"))
    with _progress.bar(progress, "audit", len(chosen) or len(heads), lambda done, _: (done, "")) as bar:
        text, lead, arrays, complete, interrupted = _core.audit(
            heads._core, settings, "" if journal is None else os.fspath(journal), arguments.threads(threads), callback,
            bar)
    result = Audit(json.loads(text), complete, arrays, json.loads(lead))
    if interrupted:
        raise Interrupted("audit was interrupted; .result has the heads so far", result)
    result._warn()
    return result


def _heads_in(given: Any, inputs: Any, text: Any) -> Heads:
    """The heads, or those of a model that reads the inputs."""
    if isinstance(given, Heads):
        if inputs is not None or text is not None:
            raise TypeError("heads is attsvm.Heads, which have read their text; inputs and text are for a model")
        return given
    if inputs is None or not callable(getattr(given, "named_modules", None)):
        raise TypeError(f"heads is a {type(given).__name__}; must be attsvm.Heads (attsvm.torch.heads_from makes them), or "
                        "a PyTorch model with its inputs")
    from .torch import heads_from  # here, because torch is optional
    return heads_from(given, inputs, text=text)
