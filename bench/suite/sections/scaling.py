"""Time against n, T, d and threads around one size, everything else fixed, and the exponents that fit."""

from suite.fit import exponent
from suite.instances import Instance

BASE = {"n": 400, "T": 32, "d": 64}
FACTORS = {"n": (0.25, 0.5, 1, 2, 4, 8), "T": (0.25, 0.5, 1, 2, 4, 8), "d": (0.5, 1, 2, 4, 8)}
THREADED = Instance("separable", 2000, 64, 128)


def run(session):
    for norm in ("fro", "nuc"):
        if norm == "fro" or not session.quick:
            for name, factors in FACTORS.items():
                grow(session, norm, name, factors[1:4] if session.quick else factors[:5] if norm == "nuc" else factors)
        threads(session, norm)


def seconds_of(session, instance, norm, threads):
    (line,) = session.programs.bench("solve", instance.file(session.programs), "--norm", norm, "--threads", threads, "--budget", 0.5 if session.quick else 2)
    return line["seconds"], line["method"]


def grow(session, norm, name, factors):
    points = []
    for factor in factors:
        size = int(BASE[name] * factor)
        seconds, method = seconds_of(session, Instance("separable", **{**BASE, name: size}), norm, 1)
        row = session.add("scaling", f"{norm}, {name} grows", f"{name} = {size}", seconds, threads=1, variable=name, size=size, method=method)
        points.append((size, row["median"], method))
    points = [(size, median) for size, median, way in points if way == method]  # of the method that large problems get
    power, error = exponent(points)
    session.add("scaling", f"{norm}, {name} grows", "fit", exponent=power, error=error, variable=name, base=BASE, method=method, points=len(points))


def threads(session, norm):
    if session.quick:
        return
    for count in range(1, session.threads + 1):
        seconds, method = seconds_of(session, THREADED, norm, count)
        session.add("scaling", f"{norm}, threads grow {THREADED.size}", f"{count} threads", seconds, threads=count, variable="threads", size=count, method=method)
