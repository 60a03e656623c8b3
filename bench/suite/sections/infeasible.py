"""Rows that no W can meet: who notices, who is wrong. Ours proves it, and `attsvm verify` checks the proof."""

from suite import peers
from suite.instances import Instance
from suite.sections.solvers import Ours, peers_for, report
from suite.judge import judge
from suite.rows import load_rows
from suite.worker import Worker

# Planted conflicts, and random draws (10,5,3) of which most have none
CASES = [Instance("infeasible", 6, 8, 10), Instance("infeasible", 15, 5, 20), Instance("infeasible", 30, 16, 32), Instance("random", 10, 5, 3)]


def run(session):
    for norm in ("fro", "nuc"):
        for instance in [CASES[0], CASES[3]] if session.quick else CASES:
            case(session, instance, norm)


def verdict_of(row):
    """noticed: says so. wrong: calls an answer optimal that meets no rows. silent: neither."""
    if row["status"] != "ok":
        return row["status"]
    if row["says"] == "infeasible":
        return "noticed"
    return "wrong" if row["says"] in ("optimal", "optimal_inaccurate") else "gave up"


def case(session, instance, norm):
    title, task = f"{instance.kind} {norm} {instance.size}", instance.file(session.programs)
    budget, limit = (0.1, 3) if session.quick else (0.5, 30)
    contenders = peers_for(session, instance, norm, task)
    ours = Ours(session, task, norm, 1)
    ours.round(budget)
    mine = ours.report(title, "infeasible")
    mine["verdict"] = verdict_of(mine)
    rows = load_rows(task)
    for (peer, setting), worker in contenders:
        if isinstance(worker, Worker):
            worker.round(budget, limit)
        row = report(session, title, f"{peer.name}, {setting}", worker, limit, mine, lambda W: judge(session.programs, task, rows, W, norm, None), "infeasible")
        row["verdict"] = verdict_of(row)
