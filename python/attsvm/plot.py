"""Plots with matplotlib: pip install attsvm[plot].

Every function draws into `ax`, or into a new figure, and returns the Axes.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Sequence

import numpy as np

from . import _arguments as arguments
from ._files import existing
from ._path import Path
from ._run import Run, correlations
from ._snapshots import points_of
from ._solution import Solution
from ._studies import StudyResult
from ._task import Task
from ._types import Flags, Floats, Integers

try:
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import MaxNLocator
except ImportError as error:
    raise ImportError("attsvm.plot needs matplotlib: pip install attsvm[plot]") from error

__all__ = ["attention", "correlation", "figure", "paths", "regularization_path", "singular_values"]


#: Colour, line and marker together tell curves apart, in black and white too; as on the page and in the SVG figures.
_STYLES = [("#0072b2", "-", "o"), ("#d55e00", "--", "s"), ("#00855f", ":", "^"), ("#b8558e", "-.", "D"),
           ("#a86f00", (0, (6, 3)), "v"), ("#2f8fcb", (0, (10, 3)), "o"), ("#30343a", (0, (1, 1)), "s"),
           ("#7d8590", (0, (5, 2, 1, 2, 1, 2)), "x")]


def _style(k: int, points: int = 8) -> dict[str, Any]:
    """The style of curve k, with a marker at about eight of its points."""
    color, line, marker = _STYLES[k % len(_STYLES)]
    return dict(color=color, linestyle=line, marker=marker, markersize=4, markevery=max(1, points // 8))


def _name(one: Any, k: int) -> str:
    """The name of a solution, from its norm."""
    if isinstance(one, Solution):
        return {"fro": "Frobenius SVM", "nuc": "nuclear SVM", "spec": "spectral SVM"}.get(one.norm, f"{one.norm} SVM")
    return "run" if isinstance(one, Run) else f"W {k}"


def _axes(ax: Axes | None) -> Axes:
    return plt.subplots()[1] if ax is None else ax


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


class _Track(NamedTuple):
    """The recorded points of a run, or points of your own."""
    steps: Integers
    W: Floats  #: (r, d, dz)


def _tracks(runs: Any) -> list[_Track]:
    """Of runs, or stacks (r, d, dz) of W; a list may hold both. Without steps, points are numbered."""
    tracks: list[_Track] = []
    for k, run in enumerate(_listed(runs)):
        if isinstance(run, Run):
            points = run.record_W
            steps = run.to_dict().get("record_step")
        else:
            points, steps = points_of(run, f"runs[{k}]"), None
        tracks.append(_Track(np.arange(len(points)) if steps is None else steps, points))
    return tracks


def paths(runs: Any, solutions: Any = (), *, task: Task | None = None, queries: Sequence[int] = (0,),
          coordinates: tuple[int, int] = (0, 1), labels: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Paths of W z through training, and the rays that the SVM predicts.

    Parameters
    ----------
    runs : Run, array (r, d, dz) of W along a training of your own, or list of these
    solutions : Solution, array (d, dz), or list of them
        Drawn as rays from the origin.
    task : Task, optional
        Gives z of each of `queries`; prompt attention (dz = 1) needs none.
    coordinates : which two coordinates of W z to draw
    labels : names of the runs, optional

    >>> import attsvm, attsvm.plot
    >>> task = attsvm.generate("single-global")
    >>> run = attsvm.train(task, param="p", record="every:10")
    >>> attsvm.plot.paths(run, attsvm.solve(task, select=run.selected)).get_xlabel()
    'coordinate 0 of W z'
    """
    ax = _axes(ax)
    first, second = coordinates
    tracks = _tracks(runs)
    if tracks and task is None and tracks[0].W.shape[2] > 1:
        raise ValueError("task is needed: it has the queries z of W z")
    z = [np.ones(1) if task is None else task.query(i) for i in queries]
    ends: list[float] = []
    for k, track in enumerate(tracks):
        for j, i in enumerate(queries):
            points = track.W @ z[j]
            name = labels[k] if labels else f"run {k}" if len(tracks) > 1 else "training"
            ax.plot(points[:, first], points[:, second], label=f"{name}, query {i}" if len(queries) > 1 else name,
                    **_style(k * len(queries) + j, len(points)))
            ends.append(float(np.abs(points[:, [first, second]]).max()))
    reach = 1.1 * max(ends, default=1.0)
    for k, solution in enumerate(_listed(solutions)):
        W = arguments.weights(solution, "solutions")
        for j in range(len(z)):
            ray = (W @ z[j])[[first, second]]
            ray = ray / max(float(np.linalg.norm(ray)), 1e-300) * reach
            # The colour of a ray shows its query, and the line style its solution.
            ax.plot([0, ray[0]], [0, ray[1]], color=_style(j)["color"] if len(z) > 1 else "black",
                    linestyle=["--", ":", "-."][k % 3], linewidth=1.2, zorder=1,
                    label=_name(solution, k) if j == 0 else None)
    ax.set_xlabel(f"coordinate {first} of W z")
    ax.set_ylabel(f"coordinate {second} of W z")
    ax.set_aspect("equal", "datalim")
    ax.legend()
    return ax


def correlation(runs: Any, solutions: Any, *, labels: Sequence[str] | None = None,
                distance: bool = False, ax: Axes | None = None) -> Axes:
    """Correlation of W with one or several SVM solutions at every recorded step.

    Parameters
    ----------
    runs : Run, array (r, d, dz) of W along a training of your own, or list of these
    solutions : Solution, array (d, dz), or list of them
        Every run is compared with every solution.
    labels : names of the curves, optional; run by run
    distance : bool
        Draw 1 - correlation on logarithmic axes instead.

    >>> import attsvm, attsvm.plot
    >>> task = attsvm.generate("random", seed=1)
    >>> run = attsvm.train(task, record="every:100")
    >>> attsvm.plot.correlation(run, attsvm.solve(task, select=run.selected)).get_ylabel()
    'correlation with the SVM'
    """
    ax = _axes(ax)
    solutions = _listed(solutions)
    tracks = _tracks(runs)
    for k, track in enumerate(tracks):
        for j, solution in enumerate(solutions):
            value = correlations(track.W, arguments.weights(solution, "solutions"))
            curve = k * len(solutions) + j
            name = labels[curve] if labels else _name(solution, j) + (f", run {k}" if len(tracks) > 1 else "")
            ax.plot(track.steps, 1 - value if distance else value, label=name, **_style(curve, len(value)))
    if distance:
        ax.set_xscale("log")
        ax.set_yscale("log")
    ax.set_xlabel("steps")
    ax.set_ylabel("1 - correlation with the SVM" if distance else "correlation with the SVM")
    ax.legend()
    return ax


def _margins(task: Task, solution: Any) -> tuple[Flags, Floats]:
    """(q, T) which tokens are kept, and how far the kept one is ahead of each dropped one; NaN for all others."""
    margins = np.full((task.n_queries, task.longest), np.nan)
    if isinstance(solution, Solution):
        margins[solution.row_query, solution.row_drop] = solution.slack + solution.rhs
        return solution.select, margins
    logits = task.log_attention(arguments.weights(solution, "solution"))  # up to a constant per query
    kept = np.arange(task.longest) == logits.argmax(1)[:, None]
    seen = np.isfinite(logits) & ~kept
    margins[seen] = (logits.max(1)[:, None] - logits)[seen]
    return kept, margins


def attention(task: Task, weights: Any, *, solution: Any = None, ax: Axes | None = None) -> Axes:
    """Heat map of the attention, queries down and tokens across; with a solution its margins as numbers.

    Parameters
    ----------
    task : Task
    weights : Run, Solution or array (d, dz)
        Whose softmax to show.
    solution : Solution or array (d, dz), optional
        Writes δᵀWζ of every dropped token (how far the kept one is ahead) into its cell and frames the kept ones; with
        an array, the tokens of largest logit are kept.

    >>> import attsvm, attsvm.plot
    >>> task = attsvm.generate("random", seed=1)
    >>> attsvm.plot.attention(task, attsvm.train(task), solution=attsvm.solve(task)).get_title()
    'attention; numbers: margins of the Frobenius SVM'
    """
    ax = _axes(ax)
    log = task.log_attention(arguments.weights(weights, "weights"))
    shown = np.where(np.isneginf(log), np.nan, np.exp(log))
    image = ax.imshow(shown, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    ax.figure.colorbar(image, ax=ax, label="softmax weight")
    if solution is not None:
        kept, margins = _margins(task, solution)
        for query, token in np.argwhere(np.isfinite(margins)):
            ax.text(token, query, f"{margins[query, token]:.2g}", ha="center", va="center", fontsize=7,
                    color="white" if shown[query, token] > 0.5 else "black")
        for query, token in np.argwhere(kept):
            corner = (token - 0.5, query - 0.5)
            ax.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="crimson", linewidth=1.5))
    ax.set_xlabel("token")
    ax.set_ylabel("query")
    ax.set_title("attention" + (f"; numbers: margins of the {_name(solution, 0)}" if solution is not None else ""))
    return ax


def singular_values(*weights: Any, labels: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Singular values of W, largest first, of solutions, runs or matrices.

    >>> import attsvm, attsvm.plot
    >>> task = attsvm.generate("random", seed=1)
    >>> attsvm.plot.singular_values(attsvm.solve(task), attsvm.solve(task, norm="nuc")).get_yscale()
    'log'
    """
    ax = _axes(ax)
    for k, one in enumerate(weights):
        sigma = np.linalg.svd(arguments.weights(one, "weights"), compute_uv=False)
        sigma = np.where(sigma > 1e-13 * sigma.max(initial=0), sigma, np.nan)
        ax.plot(np.arange(1, len(sigma) + 1), sigma, label=labels[k] if labels else _name(one, k), **_style(k))
    ax.set_yscale("log")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("number")
    ax.set_ylabel("singular value")
    ax.legend()
    return ax


def regularization_path(path: Path, *, ax: Axes | None = None) -> Axes:
    """Distance of the path's direction from the SVM's against the radius.

    >>> import attsvm, attsvm.plot
    >>> path = attsvm.path(attsvm.generate("random", n=3, T=4, d=5, seed=1), [1, 10, 100], starts=2)
    >>> attsvm.plot.regularization_path(path).get_xlabel()
    'radius'
    """
    ax = _axes(ax)
    ax.loglog(path.radius, np.maximum(1 - path.correlation, 1e-16), "o-")
    ax.set_xlabel("radius")
    ax.set_ylabel("1 - correlation with the SVM")
    return ax


def _label(text: str) -> str:
    """W^{mm} and z_1 as mathematics."""
    words = [f"${word}$" if ("^" in word or "_" in word) and not word.endswith("_") else word
             for word in text.split(" ")]
    return " ".join(word.replace(",$", "$,") for word in words)


def _draw_grid(panel: dict[str, Any], ax: Axes) -> None:
    """Numbers from 0 to 1 in coloured cells; the framed ones are marked."""
    grid = panel["grid"]
    values, errors = np.array(grid["values"], float), np.array(grid["errors"], float)
    ax.imshow(values, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            ax.text(column, row, f"{value:.3f} ±{errors[row, column]:.3f}", ha="center", va="center", fontsize=5,
                    color="white" if value > 0.6 else "black",
                    weight="bold" if grid["outlined"][row] == column else "normal")
    ax.set_xticks(range(len(grid["columns"])), grid["columns"])
    ax.set_yticks(range(len(grid["rows"])), grid["rows"], fontsize=6)
    ax.set_title(_label(panel["title"]), fontsize=9)
    ax.set_xlabel(panel["x_label"])


def _numbers(values: Any) -> Floats:
    return np.array(values, np.float64)  # None becomes NaN


def _draw_panel(panel: dict[str, Any], ax: Axes) -> None:
    if "grid" in panel:
        return _draw_grid(panel, ax)
    for k, curve in enumerate(panel["curves"]):
        x, y, mark = _numbers(curve["x"]), _numbers(curve["y"]), curve["mark"]
        style = _style(curve.get("style", k), len(x))
        color = style["color"]
        label = _label(curve["label"]) if curve["label"] else None
        if mark == "boxes":
            ax.bar(x, _numbers(curve["high"]) - _numbers(curve["low"]), bottom=_numbers(curve["low"]), label=label,
                   width=curve.get("width", 0.8), color=color, alpha=0.6, edgecolor=color,
                   hatch=["", "//", "\\\\"][k % 3])
            continue
        if mark in ("points", "bars"):
            style.update(markevery=1, markersize=3)
        if mark == "points":
            style["linestyle"] = "none"
        if curve.get("thin"):
            style.update(marker="", linewidth=1)
        ax.plot(x, y, label=label, **style)
        if "low" in curve and mark == "band":
            ax.fill_between(x, _numbers(curve["low"]), _numbers(curve["high"]), color=color, alpha=0.2)
        elif "low" in curve:
            ax.vlines(x, _numbers(curve["low"]), _numbers(curve["high"]), color=color)
    if panel.get("log_x"):
        ax.set_xscale("log")
    if panel.get("log_y"):
        ax.set_yscale("log")
    if "x_range" in panel:
        ax.set_xlim(panel["x_range"])
    if "y_range" in panel:
        ax.set_ylim(panel["y_range"])
    if panel.get("square"):
        ax.set_aspect("equal")
    elif not panel.get("log_x") and all(x is not None and float(x).is_integer()
                                        for curve in panel["curves"] for x in curve["x"]):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_title(_label(panel["title"]), fontsize=9)
    ax.set_xlabel(panel["x_label"])
    ax.set_ylabel(panel["y_label"])
    if any(curve["label"] for curve in panel["curves"]):
        ax.legend(fontsize=6)


def figure(study: StudyResult | dict[str, Any] | str, panel: int | None = None, *, ax: Any = None) -> Any:
    """A published figure, drawn from the results of `reproduce`.

    Parameters
    ----------
    study : StudyResult, its data, or the path of a data.json
    panel : int, optional
        Draw this one alone, into `ax`; else all of them. `ax` may then be an array of Axes, one per panel.

    Returns the Axes of the panel, or an array of them.

    >>> import attsvm, attsvm.plot, tempfile
    >>> report = attsvm.reproduce("svm-rank", runs=1, out=tempfile.mkdtemp())
    >>> len(attsvm.plot.figure(report["svm-rank"]))
    4
    """
    if isinstance(study, StudyResult):
        data = study.data
    elif isinstance(study, (str, os.PathLike)):
        import json
        with open(existing(study), encoding="utf-8") as file:
            data = json.load(file)
    else:
        data = study
    panels = data["figure"]["panels"]
    if panel is not None:
        ax = _axes(ax)
        _draw_panel(panels[panel], ax)
        return ax
    if ax is None:
        columns = 2 if len(panels) > 1 else 1
        rows = -(-len(panels) // columns)
        drawn, grid = plt.subplots(rows, columns, figsize=(5.5 * columns, 3.8 * rows), squeeze=False,
                                   layout="constrained")
        drawn.suptitle(_label(data["figure"]["title"]), fontsize=11)
        ax = grid.ravel()
        for unused in ax[len(panels):]:
            unused.remove()
    axes = np.atleast_1d(ax).ravel()[:len(panels)]
    if len(axes) < len(panels):
        raise ValueError(f"ax has {len(axes)} Axes; the figure has {len(panels)} panels")
    for k, (one, where) in enumerate(zip(panels, axes)):
        _draw_panel(one, where)
        if len(panels) > 1:
            where.set_title(f"({chr(97 + k)}) {where.get_title()}", fontsize=9)
    return axes
