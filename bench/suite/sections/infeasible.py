"""Rows that no W can meet: who notices, who is wrong. Ours proves it, and `attsvm verify` checks the proof."""

from suite.instances import Instance
from suite.judge import judge
from suite.rows import load_rows
from suite.sections.solvers import Ours, able_peers, outcome, start

# Planted conflicts, and random draws (10,5,3) of which most have none
CASES = [Instance("infeasible", 6, 8, 10), Instance("infeasible", 15, 5, 20), Instance("infeasible", 30, 16, 32), Instance("random", 10, 5, 3)]


def run(session):
    for norm in ("fro", "nuc"):
        for instance in [CASES[3]] if session.quick else CASES:
            case(session, instance, norm)


def verdict_of(found):
    """noticed: says so. wrong: calls an answer optimal although no W meets the rows. gave up: neither."""
    if found.get("status", "ok") != "ok":
        return found["status"]
    if found["says"] == "infeasible":
        return "noticed"
    return "wrong" if found["says"].startswith("optimal") else "gave up"


def case(session, instance, norm):
    title, task = f"{instance.kind} {norm} {instance.size}", instance.file(session.programs)
    budget, limit = (0.1, 3) if session.quick else (0.5, 10)
    ours = Ours(session, task, norm, 1)
    ours.round(budget)
    found = ours.outcome()
    mine = session.add("infeasible", title, "attsvm", verdict=verdict_of(found), **found)
    rows = load_rows(task)
    for peer, setting in able_peers(instance, norm):
        worker = start((peer, setting), task, norm)
        worker.round(budget, limit)
        worker.stop()
        found = outcome(worker, limit, mine, lambda W: judge(session.programs, task, rows, W, norm, None))
        session.add("infeasible", title, f"{peer.name}, {setting}", verdict=verdict_of(found), **found)
