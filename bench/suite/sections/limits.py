"""The limits of this machine, with one thread and with all."""


def run(session):
    for threads in sorted({1, session.threads}):
        (line,) = session.programs.bench("limits", "--threads", threads)
        session.add("limits", "stream read", f"{threads} threads", threads=threads, speed=line["read"], unit="B/s")
        session.add("limits", "GEMM", f"{threads} threads", threads=threads, speed=line["multiply"], unit="flop/s")
