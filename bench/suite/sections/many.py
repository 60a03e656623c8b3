"""Small problems one by one and all at once, every answer verified; and a census of assorted shapes."""

SIZES = [(6, 8, 10), (15, 5, 20), (5, 15, 20), (10, 5, 4), (30, 16, 32)]


def run(session):
    for norm in ("fro", "nuc"):
        for n, T, d in SIZES[:3] if session.quick else SIZES:
            count = (20 if n == 30 else 500) * (10 if norm == "fro" and not session.quick else 1)
            lines = session.programs.bench("many", "--n", n, "--T", T, "--d", d, "--norm", norm, "--count", count, "--threads", session.threads)
            for line in lines:
                session.add("many", f"{norm} ({n},{T},{d})", line["name"], line["seconds"], threads=line["threads"], problems=count, gap=line["worst_gap"],
                            infeasible=line["infeasible"], wrong=line["wrong"], uncertain_ranks=line["uncertain_ranks"], binds="arithmetic")
    (line,) = session.programs.bench("census", "--count", 10_000 if session.quick else 100_000)
    session.add("many", "fro, assorted shapes", "census", line["seconds"], threads=line["threads"], problems=line["problems"], gap=line["worst_gap"],
                infeasible=line["infeasible"], wrong=line["wrong"], uncertain_ranks=line["uncertain_ranks"], binds="arithmetic")
