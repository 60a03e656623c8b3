from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from . import _arguments as arguments
from . import _core, _progress
from ._errors import Interrupted, warn
from ._results import Result
from ._task import Task, unwrap
from ._types import Loss, Parametrization, PathLike


class Path(Result):
    """A regularization path: the minimiser of the loss at each radius. Every array has one entry per radius (r).

    `radius`, `loss`, `log_loss`, `norm`, `stationarity`, `inside`, `minima`, `correlation` (r,); `selected` (r, q);
    `W` (r, d, dz); with param="KQ" `K`, `Q`; with joint=True `v`, `head_norm`, `head_correlation`, `relaxed`.
    """

    __slots__ = ("_arrays", "complete")

    def __init__(self, arrays: dict[str, Any], complete: bool):
        self._arrays = arrays
        self.complete = complete  #: False if the path was stopped early

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._arrays:
            raise AttributeError(f"this path has no {name}")
        return self._arrays[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._arrays]

    def save(self, path: PathLike, force: bool = False) -> None:
        """Writes a path file, as `attsvm.save` does."""
        from ._files import save
        save(path, self, force=force)

    def _file_arrays(self) -> dict[str, Any]:
        return self._arrays

    def _fields(self) -> dict[str, Any]:
        """The arrays of the path's file."""
        return dict(self._arrays)

    def __reduce__(self) -> Any:
        return Path, (self._arrays, self.complete)

    def _shown(self) -> list[tuple[str, Any]]:
        return [(name, self._arrays[name]) for name in ("radius", "loss", "correlation") if name in self._arrays]


def path(task: Task, radius: Sequence[float] = (1, 10, 100, 1000), *, param: Parametrization = "W", joint: bool = False,
         width: int | None = None, loss: Loss = "logistic", head_radius: float = 1.0, starts: int = 8, seed: int = 0,
         tolerance: float = 1e-8, time_limit: float | None = None, threads: int | None = None,
         progress: bool | None = None, callback: Callable[[int, float], Any] | None = None) -> Path:
    """Follows the minimiser of the loss over growing balls: |W|_F <= R, |K|² + |Q|² <= 2R, or |p| <= R.

    Parameters
    ----------
    task : Task with a head
    radius : list of numbers, ascending
    param : "W", "KQ" or "p"
    joint : bool
        Also minimise over the head, in a ball of radius `head_radius` · R.
    width : int, optional
        Columns of K and Q; default min(d, dz).
    loss : "logistic", "exponential" or "linear"
    starts : int
        Random points of the first ball from which the path is followed; the lowest loss is reported.
    tolerance : float
        Largest `stationarity` of a minimum.
    time_limit, threads, progress : as in `solve`
    callback : function of (start, radius), optional
        Called before each minimisation; a true return value stops.

    `ConvergenceWarning` says so if radii are missing, or the `stationarity` of one is above the tolerance. Ctrl-C
    raises `Interrupted`, whose `result` is the path so far.

    >>> import attsvm
    >>> result = attsvm.path(attsvm.generate("random", n=3, T=4, d=5, seed=1), [1, 10, 100], starts=2)
    >>> result.W.shape, bool((result.stationarity < 1e-8).all())
    ((3, 5, 5), True)
    """
    radii = [arguments.number(one, "radius") for one in (radius if np.ndim(radius) else [radius])]
    settings = dict(radii=radii, param=arguments.word(param, "param"), joint=bool(joint),
                    width=0 if width is None else arguments.integer(width, "width", 1),
                    loss=arguments.word(loss, "loss"), head_radius=arguments.number(head_radius, "head_radius"),
                    starts=arguments.integer(starts, "starts", 1), seed=arguments.seed(seed),
                    tolerance=arguments.number(tolerance, "tolerance"))
    with _progress.bar(progress, "path", starts + 1, lambda start, at: (start, f"radius {at:g}")) as bar:
        arrays, complete, interrupted = _core.path(unwrap(task), settings, arguments.positive(time_limit, "time_limit"),
                                                   arguments.threads(threads), callback, bar)
    result = Path(arrays, complete)
    if interrupted:
        raise Interrupted(f"path was interrupted; .result has {len(arrays.get('radius', ()))} radii", result)
    if not complete:
        warn("path: the limit ended it; radii are missing, or the last is not converged")
    elif (above := np.flatnonzero(result.stationarity > tolerance)).size:
        warn(f"path: {above.size} of {len(radii)} radii are not converged; the first is {radii[above[0]]:g}, whose "
             f"stationarity is {result.stationarity[above[0]]:.2g}")
    return result
