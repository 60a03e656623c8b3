"""The same files through every solver that can express the problem, in turn with ours; every answer judged (suite.judge)."""

import os

from suite import peers
from suite.instances import Instance
from suite.judge import judge
from suite.results import spread
from suite.rows import load_rows
from suite.sections import chosen
from suite.worker import Worker

SIZES = [(6, 8, 10), (15, 5, 20), (5, 15, 20), (30, 16, 32), (100, 32, 64), (1000, 64, 256), (2000, 128, 384)]
# kind of problem, norm, sizes
PROBLEMS = [
    ("random", "fro", SIZES[:5]),
    ("random", "nuc", SIZES[:5]),
    ("random", "max", [SIZES[0], SIZES[3]]),
    ("random", "l1", [SIZES[0], SIZES[3]]),
    ("random", "spec", [SIZES[0], SIZES[3]]),
    ("separable", "fro", SIZES[5:]),
    ("separable", "nuc", SIZES[5:]),
    ("prompt", "fro", [*SIZES[:3], SIZES[4]]),
    ("sets", "fro", SIZES[:4]),
    ("sets", "nuc", SIZES[:3]),
]
TITLES = {"random": "Att-SVM", "separable": "Att-SVM", "prompt": "p-SVM", "sets": "Gen-SVM"}
TOLERANCE = 1e-9  # of ours, on the gap; small problems are solved to rounding anyway
SMALL = 300  # rows: sampled more often
ENOUGH = 10  # seconds of timing per peer
MEMORY = int(0.8 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def run(session):
    for kind, norm, sizes in PROBLEMS:
        if session.quick and kind == "separable":
            continue
        for size in sizes[:1] if session.quick else sizes:
            case(session, Instance(kind, *size), norm)


def case(session, instance, norm):
    title = f"{TITLES[instance.kind]} {norm} {instance.size}"
    if not chosen(session.cases, title):
        return
    task = instance.file(session.programs)
    # (rounds, seconds per round, limit of a solve in seconds)
    rounds, budget, limit = (5, 0.2, 30) if instance.rows < SMALL else (3, 0.5, 60)
    if session.quick:
        rounds, budget, limit = 3, 0.1, 3
    ours = Ours(session, task, norm, 1 if instance.rows < 10_000 else session.threads)
    contenders = able_peers(instance, norm)
    # Large ones one after another: together they would fill the memory.
    groups = [contenders] if instance.rows < 1000 else [[one] for one in contenders]
    found = {}
    for group in groups if fits(instance) else []:
        workers = {one: start(one, task, norm) for one in group if not hopeless(one, found)}
        for _ in range(rounds):
            ours.round(budget)
            for worker in workers.values():
                if sum(worker.seconds) < ENOUGH:
                    worker.round(budget, limit)
        for worker in workers.values():
            worker.stop()
        found |= workers
    for _ in range(0 if found else rounds):
        ours.round(budget)
    mine = session.add("solvers", title, "attsvm", **ours.outcome())
    rows = load_rows(task) if found else None
    for peer, setting in contenders:
        if (peer, setting) in found:
            told = outcome(found[peer, setting], limit, mine, lambda W: judge(session.programs, task, rows, W, norm, mine["bound"]))
        else:
            told = {"status": "not tried", "reason": "its default ran out of time"} if found else {"status": "too large", "matrix_bytes": instance.matrix_bytes}
        session.add("solvers", title, f"{peer.name}, {setting}", **told)


def hopeless(contender, found):
    """Its looser setting ran out of time already."""
    peer, setting = contender
    return setting == "tight" and (peer, "default") in found and found[peer, "default"].state == "out of time"


def able_peers(instance, norm):
    """(peer, setting) of those that can express the problem."""
    return [(peer, setting) for peer in peers.all_peers() if norm in peer.norms and (peer.equalities or instance.kind != "sets") for setting in peer.settings]


def fits(instance):
    """The rows written out, and once more in a peer's own form."""
    return 2 * instance.matrix_bytes < MEMORY


def start(contender, task, norm):
    peer, setting = contender
    return Worker(peers.serve, task, peer.name, norm, setting == "tight", memory=MEMORY)


class Ours:
    """attsvm on one file: times from attsvm_bench, the answer through a file and `attsvm verify`."""

    def __init__(self, session, task, norm, threads):
        self.session, self.task, self.norm, self.threads, self.seconds = session, task, norm, threads, []
        self.solution = session.programs.folder / "ours.npz"

    def round(self, budget):
        (self.line,) = self.session.programs.bench("solve", self.task, "--norm", self.norm, "--tolerance", TOLERANCE, "--budget", budget, "--threads", self.threads,
                                                   "-o", self.solution)
        self.seconds += self.line["seconds"]

    def outcome(self):
        """Of the last solve that was timed."""
        verdict = self.session.programs.attsvm("verify", self.task, self.solution, accept=(0, 5))
        if not verdict["valid"]:
            raise RuntimeError(f"{self.task}: our own answer does not verify")
        return {"seconds": self.seconds, "threads": self.threads, "objective": verdict["objective"], "bound": verdict["dual_objective"], "gap": verdict["gap"], "violation": verdict["violation"],
                "rank": self.line["rank"] if self.line["status"] == "optimal" else None, "verified": verdict["valid"], "says": self.line["status"], "times_ours": 1.0}


def outcome(worker, limit, mine, judged):
    """What a row says of a peer: its times and what its answer is worth, or what happened instead."""
    if worker.state == "out of time" and not worker.seconds:
        return {"status": "out of time", "limit": limit, "times_ours": limit / mine["median"]}
    if worker.state != "ready" and not worker.seconds:
        return {"status": worker.state, "reason": worker.reason}
    answer = worker.answer
    found = judged(answer.W) if answer.W is not None else {"gap": None, "violation": None, "rank": None, "verified": False}
    return {"seconds": worker.seconds, "times_ours": spread(worker.seconds)["median"] / mine["median"], "says": answer.says, **found}
