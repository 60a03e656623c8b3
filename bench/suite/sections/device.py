"""Batches on a GPU, end to end from tasks in host memory and in the kernels alone, beside what the card can do at most, PyTorch on the same card,
and the CPU. Fails where there is no GPU."""

import math

from suite import torch_steps
from suite.instances import Instance
from suite.results import spread
from suite.worker import Worker

#        size          instances  for the kernels alone, on the CPU
CASES = [((6, 8, 10), 1_000_000, 31_680, 10_000),
         ((10, 20, 32), 50_000, 4_000, 500),
         ((30, 16, 32), 10_000, 1_500, 100)]
STEPS = 1000
OPTIMIZERS = ("gd", "steepest:max", "signum", "adam")
TORCH = ("batched, bmm", "batched, bmm, graph", "batched, instances last", "batched, compiled", "batched, compiled, graph")
#        size          problems   CPU: problems
SOLVES = [((6, 8, 10), 1_000_000, 20_000), ((4, 6, 6), 1_000_000, 20_000), ((8, 8, 16), 200_000, 20_000), ((10, 10, 16), 200_000, 20_000)]
TORCH_INSTANCES = 100_000  # of (6,8,10); fewer of larger sizes, with as many numbers


def run(session):
    (limits,) = session.programs.bench("device-limits")
    for what, unit in (("multiply", "flop/s"), ("read", "B/s")):
        session.add("device", "limits", what, speed=limits[what], unit=unit, device=limits["device"])
    for size, count, kernel, on_cpu in CASES:
        count = count // 10 if session.quick else count
        for param in ("W", "KQ") if size == CASES[0][0] else ("W",):
            ours(session, size, param, "ngd", count, (kernel, 10_000), on_cpu)
        if not session.quick:
            torch(session, size)
    for size, count, on_cpu in SOLVES:
        solves(session, size, count // 10 if session.quick else count, on_cpu)
    for optimizer in OPTIMIZERS:
        ours(session, CASES[0][0], "W", optimizer, 50_000, (31_680, 10_000) if optimizer == "gd" else (10_000, 4_000), 2_000)


def ours(session, size, param, optimizer, count, kernel, on_cpu):
    n, T, d = size
    kernel, kernel_steps = kernel
    (line,) = session.programs.bench("device", "--n", n, "--T", T, "--d", d, "--param", param, "--optimizer", optimizer, "--count", count,
                                     "--steps", STEPS, "--kernel-count", kernel, "--kernel-steps", kernel_steps, "--cpu-count", on_cpu, "--rounds", 2 if session.quick else 3)
    case = f"({n},{T},{d}) {param}, {optimizer}"
    for who, seconds, instances in (("attsvm, kernels", "kernel_seconds", kernel), ("attsvm, end to end", "seconds", count),
                                    (f"attsvm, CPU, {line['threads']} threads", "cpu_seconds", on_cpu)):
        session.add("device", case, who, line[seconds], steps_per_second=1 / spread(line[seconds])["median"], instances=instances)


def solves(session, size, count, on_cpu):
    n, T, d = size
    for line in session.programs.bench("device-solves", "--n", n, "--T", T, "--d", d, "--count", count, "--cpu-count", on_cpu):
        facts = {name: line[name] for name in ("worst_gap", "handed_over", "unsolved", "factorisations", "invalid", "threads") if name in line}
        session.add("device", f"({n},{T},{d}) fro", f"attsvm, {line['name']}", line["seconds"],
                    problems_per_second=1 / spread(line["seconds"])["median"], problems=line["problems"], **facts)


def torch(session, size):
    instance = Instance("random", *size)
    n, T, d = size
    count = TORCH_INSTANCES * 6 * 8 * 10 // (n * T * d)
    for way in TORCH:
        worker = Worker(torch_steps.build, way, "W", instance.file(session.programs), count, session.threads, "cuda", warm_up=math.inf)
        for _ in range(3):
            worker.round(0.5, 120)
        worker.stop()
        case = f"({n},{T},{d}) W, ngd"
        if worker.state != "ready":
            session.add("device", case, f"PyTorch, {way}", status=worker.state, reason=worker.reason)
            continue
        seconds = [one / torch_steps.STEPS / count for one in worker.seconds]
        session.add("device", case, f"PyTorch, {way}", seconds, steps_per_second=1 / spread(seconds)["median"], instances=count)
