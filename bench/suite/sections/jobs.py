"""Published experiments the way their authors run them, one run per setting, and `attsvm reproduce` of the same at the same count, figures
included. Ours runs every experiment in exact arithmetic, too, and draws again where no SVM exists: it does more."""

import math
import shutil
import subprocess
import time

from suite import published
from suite.worker import Worker

RUNS = 1  # per setting, where the papers have many
LIMIT = 900  # seconds that a share of an experiment may take; one that takes longer counts as that long


def run(session):
    folder = session.programs.folder / "reproduction"
    whole = {"paper": 0.0, "ours": 0.0}
    for job in published.JOBS:
        if session.quick and not job.quick:
            continue
        theirs = Worker(published.build, job.name, RUNS)
        limit = 120 if session.quick else LIMIT
        theirs.round(0, limit)
        theirs.stop()
        count = ["--threads", 1, *(["--runs", RUNS] if job.full > 1 else [])]
        mine = [reproduce(session, job.name, folder, count) for _ in range(3)]
        ours = session.add("jobs", job.name, "attsvm reproduce", mine, runs=RUNS, of=job.full, ratio=1.0)
        if theirs.state != "ready":
            session.add("jobs", job.name, "PyTorch and cvxpy", status=theirs.state, reason=theirs.reason, limit=limit)
            whole["paper"] += limit * job.full / RUNS if theirs.state == "out of time" else math.nan
            whole["at least"] = True
            continue
        seconds = theirs.seconds[0]
        full = seconds * job.full / RUNS
        session.add("jobs", job.name, "PyTorch and cvxpy", [seconds], runs=RUNS, of=job.full, ratio=seconds / ours["median"], extrapolated=full)
        whole["paper"] += full
    if session.quick:
        return
    session.add("jobs", "svm-rank, at full count", "attsvm reproduce", [reproduce(session, "svm-rank", folder, [])], ratio=1.0)
    whole["ours"] = reproduce(session, "all", folder, [])
    session.add("jobs", "all, at full counts", "attsvm reproduce", [whole["ours"]], ratio=1.0)
    who = "PyTorch and cvxpy" + (", at least" if "at least" in whole else "")
    if math.isfinite(whole["paper"]):  # their runs do not depend on each other either: one process per core
        session.add("jobs", "all, at full counts", who, extrapolated=whole["paper"], ratio=whole["paper"] / session.threads / whole["ours"])


def reproduce(session, name, folder, count):
    shutil.rmtree(folder, ignore_errors=True)
    begin = time.perf_counter()
    subprocess.run([session.programs.build / "attsvm", "reproduce", name, "--out", folder, "--quiet", *map(str, count)], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - begin
    shutil.rmtree(folder, ignore_errors=True)
    return seconds
