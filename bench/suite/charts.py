"""Charts of a run, drawn by gnuplot as small SVG files. Lines differ in dashes and points too, so that they can be read without colour."""

import math
import subprocess

from suite.fit import exponent
from suite.table import COMPARABLE

COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#6a3d9a", "#777777", "#8c510a")


def quoted(text):
    return '"' + text.replace('"', "'") + '"'


def draw(path, settings, curves, style="linespoints"):
    """curves: (label, [(x, y), ...]); settings: lines of gnuplot."""
    curves = [(label, points) for label, points in curves if points]
    if not curves:
        return False
    text = ['set terminal svg size 760,440 font "sans,13" background rgb "white"', f'set output "{path}"', "set grid ytics lc rgb '#dddddd'",
            "set key outside right top reverse Left samplen 2", "set border 3", "set tics nomirror", *settings]
    for k, (_, points) in enumerate(curves):
        text += [f"$curve{k} << END", *(f"{x:.8g} {y:.8g}" for x, y in points), "END"]
    dashes = style != "points"
    look = [f"lw {2.5 if k == 0 else 1.4} " + (f"dt {k % 5 + 1} " if dashes else "") + f"pt {k + 4} ps 0.8 lc rgb '{COLOURS[k % len(COLOURS)]}'" for k in range(len(curves))]
    text.append("plot " + ", ".join(f"$curve{k} with {style} {look[k]} title {quoted(label)}" for k, (label, _) in enumerate(curves)))
    subprocess.run(["gnuplot"], input="\n".join(text) + "\n", text=True, check=True)
    return True


def family(who):
    """The peer without its setting and form."""
    return who.split(",")[0]


def size_of(case):
    return case[case.index("("):]


def rows_count(size):
    n, T, _ = map(int, size.strip("()").split(","))
    return n * (T - 1)


def times_by_size(results, path, problem, title):
    """Seconds against size: ours, and of each peer the fastest answer that is worth something."""
    rows = [row for row in results.rows if row["section"] == "solvers" and row["case"].startswith(problem + " (")]
    sizes = sorted({size_of(row["case"]) for row in rows}, key=rows_count)
    best = {}
    for row in rows:
        if row.get("median") and (row["who"] == "attsvm" or (row.get("gap") is not None and row["gap"] <= COMPARABLE)):
            place = best.setdefault(family(row["who"]), {})
            at = sizes.index(size_of(row["case"]))
            place[at] = min(row["median"], place.get(at, math.inf))
    tics = ", ".join(f'"{size}" {k}' for k, size in enumerate(sizes))
    settings = [f"set title {quoted(title)}", f"set xtics ({tics}) rotate by 20 right", f"set xrange [-0.3:{len(sizes) - 0.7}]", "set logscale y", 'set format y "10^{%T}"',
                'set ylabel "seconds per solve"', 'set xlabel "(n,T,d)"']
    return draw(path, settings, [(name, sorted(points.items())) for name, points in best.items()])


def time_and_gap(results, path, case):
    """Every answer's time against the gap that it really has; both settings of a peer are joined."""
    curves = {}
    for row in results.rows:
        if row["section"] == "solvers" and row["case"] == case and row.get("median") and row.get("gap") is not None:
            name = row["who"].removesuffix(", default").removesuffix(", tight")
            curves.setdefault(name, []).append((row["median"], max(row["gap"], 1e-16)))
    settings = [f"set title {quoted(case + ': time and true gap of default and tight settings')}", "set logscale xy", 'set format "10^{%T}"', 'set xlabel "seconds per solve"',
                'set ylabel "relative gap, 10^{-16} and less at the bottom"']
    return draw(path, settings, list(curves.items()))


def scaling(results, path):
    """Time against each size, as multiples of the base."""
    curves, rows = [], [row for row in results.rows if row["section"] == "scaling"]
    for case in dict.fromkeys(row["case"] for row in rows if row.get("variable") in ("n", "T", "d")):
        points = [(row["size"], row["median"]) for row in rows if row["case"] == case and row.get("median")]
        fit = next(row for row in rows if row["case"] == case and row["who"] == "fit")
        base = fit["base"][fit["variable"]]
        label = f"{case.split(',')[0]}: {fit['variable']}^{{{exponent(points)[0]:.2f}}}"
        curves.append((label, [(size / base, seconds) for size, seconds in points]))
    settings = ['set title "Time of a solve as one size grows, one thread"', "set logscale x 2", "set logscale y", 'set format y "10^{%T}"', 'set xlabel "times (400,32,64)"',
                'set ylabel "seconds per solve"']
    return draw(path, settings, curves)


def saturation(results, path):
    curves = {}
    for row in results.rows:
        if row["section"] == "saturation":
            if row["error_direction"] is not None:
                curves.setdefault(row["who"], []).append((row["scale"], max(row["error_direction"], 1e-17)))
    settings = ['set title "Error of the gradient\'s direction at multiples of the max-margin W (6,8,10)"', "set logscale xy", 'set format y "10^{%T}"', 'set xlabel "times W^{mm}"',
                'set ylabel "error of the direction"', "set yrange [1e-17:10]"]
    return draw(path, settings, list(curves.items()))


def training(results, path):
    """Seconds per step and instance, W of (6,8,10): one curve per way, over threads and counts."""
    cases = [f"(6,8,10) W, {count} at once, {threads} threads" for count in (1, 1000) for threads in (1, 2)]
    curves = {}
    for row in results.rows:
        if row["section"] == "training" and row["case"] in cases and row.get("median"):
            curves.setdefault(row["who"], []).append((cases.index(row["case"]), row["median"]))
    tics = ", ".join(f'"{count}, {threads} thread{"s" if threads > 1 else ""}" {k}' for k, (count, threads) in enumerate((c, t) for c in ("one run", "1,000 runs") for t in (1, 2)))
    settings = ['set title "A training step of (6,8,10), per run"', f"set xtics ({tics}) rotate by 15 right", "set xrange [-0.3:3.3]", "set logscale y", 'set format y "10^{%T}"',
                'set ylabel "seconds per step and run"', "set lmargin 14"]
    return draw(path, settings, list(curves.items()), "points")


def draw_all(results, folder):
    """Names of the charts that there were numbers for."""
    folder.mkdir(exist_ok=True)
    charts = {
        "frobenius": lambda path: times_by_size(results, path, "Att-SVM fro", "Frobenius norm: fastest answer with a gap of at most 1e-6"),
        "nuclear": lambda path: times_by_size(results, path, "Att-SVM nuc", "Nuclear norm: fastest answer with a gap of at most 1e-6"),
        "accuracy-frobenius": lambda path: time_and_gap(results, path, "Att-SVM fro (15,5,20)"),
        "accuracy-nuclear": lambda path: time_and_gap(results, path, "Att-SVM nuc (15,5,20)"),
        "scaling": lambda path: scaling(results, path),
        "training": lambda path: training(results, path),
        "saturation": lambda path: saturation(results, path),
    }
    return {name for name, chart in charts.items() if chart(folder / f"{name}.svg")}
