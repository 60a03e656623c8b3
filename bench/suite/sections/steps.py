"""Training steps of attsvm: alone, many at once, by optimizer, and one pass over large tasks against its limit (each token read once, and both products)."""

import statistics

from suite.instances import Instance

SMALL = [(6, 8, 10), (15, 5, 20), (5, 15, 20)]
LARGE = [(1000, 128, 256), (4000, 128, 256)]


def run(session):
    rounds = 3 if session.quick else 11
    for n, T, d in SMALL[:1] if session.quick else SMALL:
        for param in ("W", "KQ"):
            for arithmetic in ("exact",) if session.quick else ("exact", "plain"):
                for count, threads in ((1, 1), (1000, 1), (1000, session.threads)):
                    (line,) = session.programs.bench("steps", "--n", n, "--T", T, "--d", d, "--param", param, "--count", count, "--threads", threads,
                                                     "--arithmetic", arithmetic, "--rounds", rounds)
                    session.add("steps", f"({n},{T},{d}) {param}, {count} at once", f"{arithmetic}, {threads} threads", line["seconds"], threads=threads,
                                binds="arithmetic", memory_bytes=line["peak_memory"])
    optimizers(session, rounds)
    for size in LARGE[:1] if session.quick else LARGE:
        for threads in (1, session.threads):
            large(session, Instance("random", *size), threads, rounds)


def optimizers(session, rounds):
    n, T, d = SMALL[0]
    lines = session.programs.bench("optimizers", "--n", n, "--T", T, "--d", d, "--threads", session.threads, "--rounds", rounds)
    ngd = statistics.median(lines[0]["seconds"])
    for line in lines:
        session.add("steps", f"({n},{T},{d}) W by optimizer", line["name"], line["seconds"], threads=line["threads"], binds="arithmetic",
                    times_ngd=statistics.median(line["seconds"]) / ngd)


def large(session, instance, threads, rounds):
    task = instance.file(session.programs)
    (line,) = session.programs.bench("step", task, "--threads", threads, "--rounds", rounds)
    seconds, reading, multiplying = statistics.median(line["seconds"]), line["limit_read"], line["limit_multiply"]
    session.add("steps", f"{instance.size} W, 1 at once", f"exact, {threads} threads", line["seconds"], threads=threads,
                share=(reading + multiplying) / seconds, share_of_two_reads=2 * reading / seconds, binds="memory" if reading > multiplying else "multiplier",
                memory=line["peak_memory"] / line["token_bytes"])
