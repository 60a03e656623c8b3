"""Steps in PyTorch beside ours, in turn: as published (autograd, one instance at a time) and as well as it can be written. Ours computes exact
directions at any saturation; PyTorch's arithmetic is plain."""

import math

from suite import torch_steps
from suite.instances import Instance
from suite.results import spread
from suite.worker import Worker

SMALL, LARGE = Instance("random", 6, 8, 10), [Instance("random", 1000, 128, 256), Instance("random", 4000, 128, 256)]
BATCH = 1000
ONE = ("published", "by hand")
MANY = ("batched, bmm", "batched, instances last", "batched, compiled")


def run(session):
    counts = sorted({1, session.threads})
    for param in ("W",) if session.quick else ("W", "KQ"):
        for threads in counts:
            compare(session, SMALL, param, 1, threads, ONE, ours_small)
            compare(session, SMALL, param, BATCH, threads, MANY, ours_small)
    for instance in [] if session.quick else LARGE:
        for threads in counts:
            compare(session, instance, "W", 1, threads, ONE, ours_large)


def ours_small(session, instance, param, count, threads):
    (line,) = session.programs.bench("steps", "--n", instance.n, "--T", instance.T, "--d", instance.d, "--param", param, "--count", count,
                                     "--threads", threads, "--rounds", 3)
    return line


def ours_large(session, instance, param, count, threads):
    (line,) = session.programs.bench("step", instance.file(session.programs), "--threads", threads, "--rounds", 3)
    return line


def compare(session, instance, param, count, threads, ways, ours):
    """A run of ours includes no preparation, nor do the peers': their data are ready."""
    path = instance.file(session.programs)
    workers = {way: Worker(torch_steps.build, way, param, path, count, threads, warm_up=math.inf) for way in ways}
    large = instance.n > 100
    budget, limit = (0.3 if session.quick else 1.0), (60 if large else 120)  # compiling counts as the first call
    mine = []
    for _ in range(2 if session.quick else 5):
        line = ours(session, instance, param, count, threads)
        mine += line["seconds"]
        for worker in workers.values():
            worker.round(budget, limit)
    case = f"{instance.size} {param}, {count} at once, {threads} threads"
    memory = {"memory": line["peak_memory"] / line["token_bytes"]} if large else {"memory_bytes": line["peak_memory"]}
    row = session.add("training", case, "attsvm", mine, threads=threads, times_ours=1.0, steps_per_second=1 / spread(mine)["median"], **memory)
    for way, worker in workers.items():
        worker.stop()
        if worker.state != "ready":
            session.add("training", case, f"PyTorch, {way}", status=worker.state, reason=worker.reason, limit=limit)
            continue
        seconds = [one / torch_steps.STEPS / count for one in worker.seconds]
        median, extra = spread(seconds)["median"], worker.peak_memory - worker.answer
        memory = {"memory": extra / (8 * instance.n * instance.T * instance.d)} if large else {"memory_bytes": worker.peak_memory}
        session.add("training", case, f"PyTorch, {way}", seconds, threads=threads, times_ours=median / row["median"], steps_per_second=1 / median, **memory)
