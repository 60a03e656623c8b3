"""Large margin problems against the limit pass: token bytes / read speed + 2·n·d·dz / GEMM speed, the floor for looking at every row once."""

import statistics

from suite.instances import Instance

# kind, n, T, d, norm, tolerance
CASES = [
    ("random", 100, 32, 64, "fro", 1e-8),
    ("separable", 1000, 64, 256, "fro", 1e-8),
    ("low rank", 1000, 64, 256, "fro", 1e-8),
    ("separable", 2000, 128, 384, "fro", 1e-8),
    ("low rank", 2000, 128, 384, "fro", 1e-8),
    ("separable", 5000, 32, 32, "fro", 1e-8),
    ("separable", 10000, 128, 256, "fro", 1e-8),
    ("random", 100, 32, 64, "nuc", 1e-9),
    ("separable", 1000, 64, 256, "nuc", 1e-8),
    ("low rank", 1000, 64, 256, "nuc", 1e-8),
    ("separable", 2000, 128, 384, "nuc", 1e-8),
    ("head", 1000, 24, 32, "fro", 1e-8),
    ("head", 1000, 24, 32, "nuc", 1e-8),
]
CACHE = 64e6  # bytes: what may stay in a cache from one pass to the next
QUICK = [CASES[0], CASES[1], CASES[7]]


def run(session):
    for kind, n, T, d, norm, tolerance in QUICK if session.quick else CASES:
        measure(session, Instance(kind, n, T, d), norm, tolerance)


def measure(session, instance, norm, tolerance):
    programs, task = session.programs, instance.file(session.programs)
    solution = programs.folder / "large.npz"
    budget = 1 if session.quick else 10
    (line,) = programs.bench("solve", task, "--norm", norm, "--threads", session.threads, "--tolerance", tolerance, "--budget", budget,
                             "--limits", "-o", solution)
    limit = line["limit_read"] + line["limit_multiply"]
    verdict = programs.attsvm("verify", task, solution, accept=(0, 5)) if instance.matrix_bytes < 2e12 else {"valid": None}
    solution.unlink()
    if task.stat().st_size > 1e9:
        task.unlink()
    seconds = statistics.median(line["seconds"])
    cached = line["token_bytes"] < CACHE  # then memory is no limit
    binds = "cache" if cached else "memory" if line["limit_read"] > line["limit_multiply"] else "multiplier"
    to_1e_6 = line["to_1e-6"] / limit if norm == "nuc" and line["to_1e-6"] else None
    session.add("large", f"{norm} {instance.size} {instance.kind}", "attsvm", line["seconds"], threads=line["threads"], passes=seconds / limit, passes_to_1e_6=to_1e_6,
                limit=limit, share=None if cached else limit / line["pricing"], binds=binds, gap=line["gap"], rank=line["rank"] if norm == "nuc" else None,
                certified=line["certified"] if norm == "nuc" else None, memory=None if cached else line["peak_memory"] / line["token_bytes"], method=line["method"],
                verified=verdict["valid"], normal_matrices=seconds / line["normal_matrices"] if "normal_matrices" in line else None,
                status=line["status"] if line["status"] != "optimal" else "ok")
