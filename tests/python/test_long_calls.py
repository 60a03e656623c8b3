"""Long calls release the GIL, show progress, call callbacks, and stop on Ctrl-C with the result so far."""

import multiprocessing
import os
import pty
import signal
import subprocess
import sys
import textwrap
import threading
import time
from unittest import mock

import attsvm
import numpy as np
import pytest

SMALL = attsvm.generate("random", seed=1)
LARGE = attsvm.generate("separable", n=600, T=48, d=48, seed=1)  # seconds of solving


class Watched:
    """Calls that show their bar tell of their progress: `begun` is set once `sign(*state)` is true of the bar's state."""

    def __init__(self, sign=lambda *state: True):
        self.begun = begun = threading.Event()

        class Bar(attsvm._progress.Bar):
            def __call__(self, *state):
                super().__call__(*state)
                if sign(*state):
                    begun.set()

        self._patch = mock.patch.object(attsvm._progress, "Bar", Bar)

    def __enter__(self):
        self._patch.start()
        return self

    def __exit__(self, *_):
        self._patch.stop()


def interrupted(call, sign=lambda *state: True):
    """Presses Ctrl-C once the bar of the call, which would go on for long, shows the sign; returns the exception."""
    with Watched(sign) as watched:

        def press():
            watched.begun.wait()
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=press, daemon=True)
        thread.start()
        with pytest.raises(attsvm.Interrupted) as caught:
            call()
        thread.join()
    return caught.value


def another_solve():
    """A sign: the bar has come to a further solve."""
    last = [(-1, -1.0)]

    def sign(iteration, _objective, _bound, seconds):
        before, last[0] = last[0], (iteration, seconds)
        return iteration < before[0] or seconds < before[1]

    return sign


def test_training_stops_on_ctrl_c():
    stop = interrupted(lambda: attsvm.train(SMALL, steps=10**9, progress=True), lambda step, *_: step > 0)
    assert isinstance(stop, KeyboardInterrupt)
    run = stop.result
    assert 0 < run.steps < 10**9 and np.isfinite(run.W).all()
    again = attsvm.train(SMALL, steps=run.steps)
    assert (again.W == run.W).all()


def test_many_runs_stop_on_ctrl_c():
    tasks = [attsvm.generate("random", seed=1, instance=k) for k in range(20)]
    stop = interrupted(lambda: attsvm.train_many(tasks, steps=10**8, progress=True))
    assert len(stop.result) == 20
    assert all(np.isfinite(run.W).all() for run in stop.result)


def test_solving_stops_on_ctrl_c():
    stop = interrupted(lambda: attsvm.solve(LARGE, tolerance=1e-14, norm="nuc", progress=True),
                       lambda _, objective, *__: objective < np.inf)  # it has a feasible W
    assert stop.result.status == "limit" and stop.result.W.shape == (48, 48)
    assert attsvm.verify(LARGE, stop.result)


def test_many_solves_stop_on_ctrl_c():
    tasks = [attsvm.generate("random", n=8, T=8, d=10, seed=1, instance=k) for k in range(500)] * 200
    stop = interrupted(lambda: attsvm.solve_many(tasks, norm="nuc", progress=True), lambda done: done > 0)
    assert 0 < len(stop.result) < len(tasks)
    assert attsvm.verify(tasks[0], stop.result[0])


def test_paths_and_claims_stop_on_ctrl_c():
    task = attsvm.generate("random", n=20, T=8, d=10, seed=1)
    stop = interrupted(lambda: attsvm.path(task, np.geomspace(1, 1e4, 100).tolist(), starts=500, progress=True),
                       lambda start, radius: start > 0 or radius > 1)
    assert len(stop.result.radius) > 0
    stop = interrupted(lambda: attsvm.claims("direction", tasks=10**6, progress=True), lambda done: done > 0)
    assert stop.result[0].tasks > 0


def test_checks_stop_on_ctrl_c():
    task = attsvm.generate("random", n=100, T=30, d=60)  # spectral, max and l1 take seconds each
    run = attsvm.train(task, steps=100)
    check = interrupted(lambda: attsvm.check(task, run, progress=True), another_solve()).result
    assert not check.complete and check.rho["fro"][-1] > 0 and np.isnan(check.rho["l1"]).all()


HEADED = attsvm.Task(LARGE.tokens, queries=LARGE.queries, head=np.ones(48), select=LARGE.select)


def test_checks_of_a_selection_and_margins_stop_on_ctrl_c(capsys):
    check = interrupted(lambda: attsvm.check(HEADED, progress=True)).result
    assert not check.complete and set(check.unsolved.values()) == {"limit"}
    assert "check" in capsys.readouterr().err
    W = np.random.default_rng(0).normal(size=(48, 48))
    margin = interrupted(lambda: attsvm.margin(LARGE, W, norms="nuc", progress=True)).result
    assert margin.smallest > 0 and margin.rho_status["nuc"] == "limit" and np.isnan(margin.rho["nuc"])
    assert "margin" in capsys.readouterr().err


def test_checks_of_a_selection_have_limits():
    with pytest.warns(attsvm.ConvergenceWarning, match="check: norm [a-z]+: the limit ended"):
        assert not attsvm.check(HEADED, time_limit=0.01).complete
    with pytest.warns(attsvm.ConvergenceWarning, match="margin: norm nuc: the limit ended"):
        attsvm.margin(LARGE, np.eye(48), norms="nuc", time_limit=0.01)


def test_studies_stop_on_ctrl_c(tmp_path):
    stop = interrupted(lambda: attsvm.reproduce("svm-rank", runs=10**5, out=tmp_path, progress=True))
    assert not stop.result.studies[0].complete


def test_the_interpreter_is_free_meanwhile():
    """Another thread, which ends the call, gets through its work while the call runs."""
    ticks = []
    with Watched() as watched:

        def tick():
            watched.begun.wait()
            for k in range(200):
                ticks.append(k)
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=tick, daemon=True)
        thread.start()
        with pytest.raises(attsvm.Interrupted):
            attsvm.train(SMALL, steps=10**9, progress=True)
        thread.join()
    assert len(ticks) == 200


def test_calls_from_several_threads():
    tasks = [attsvm.generate("random", seed=2, instance=k) for k in range(8)]
    expected = [(attsvm.solve(task).W, attsvm.train(task, steps=200).W) for task in tasks]
    failures = []

    def work(k):
        for _ in range(25):
            if not (attsvm.solve(tasks[k]).W == expected[k][0]).all():
                failures.append(k)
            if not (attsvm.train(tasks[k], steps=200).W == expected[k][1]).all():
                failures.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def _solve(_):
    return attsvm.solve_many([SMALL] * 4)[0].objective


@pytest.mark.filterwarnings("ignore:This process")
def test_calls_from_forked_processes():
    attsvm.solve_many([SMALL] * 4)  # the parent has its threads
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(_solve, range(4)).get(timeout=300) == [attsvm.solve(SMALL).objective] * 4


def test_callbacks():
    seen = []
    run = attsvm.train(SMALL, callback=lambda now: seen.append(now) or now.step == 5)
    assert run.steps == 5 and run.stopped == "asked" and [now.step for now in seen] == [0, 1, 2, 3, 4, 5]
    assert seen[5].loss == run.loss and seen[5].norm == run.norm
    seen.clear()
    solution = attsvm.solve(LARGE, callback=lambda now: seen.append(now) or len(seen) == 3)
    assert solution.status == "limit" and len(seen) == 3 and isinstance(seen[0], attsvm.SolveProgress)
    assert attsvm.verify(LARGE, solution).violation == pytest.approx(solution.violation)  # not yet feasible, and honest
    radii = []
    path = attsvm.path(SMALL, [1, 10], starts=3, callback=lambda start, radius: radii.append(radius) or len(radii) == 4)
    assert not path.complete and radii == [1, 10, 1, 10]


@pytest.mark.parametrize("call", [
    lambda fail: attsvm.train(SMALL, callback=fail), lambda fail: attsvm.solve(LARGE, callback=fail),
    lambda fail: attsvm.path(SMALL, [1], callback=lambda *_: fail(_))])
def test_an_exception_in_a_callback_comes_out(call):
    class Mine(Exception):
        pass

    def fail(now):
        raise Mine("from the callback")

    with pytest.raises(Mine, match="from the callback"):
        call(fail)


def test_time_limits():
    run = attsvm.train(SMALL, steps=10**9, time_limit=0.2)
    assert run.stopped == "asked" and 0 < run.steps < 10**9
    solution = attsvm.solve(LARGE, norm="nuc", tolerance=1e-14, time_limit=0.2)
    verdict = attsvm.verify(LARGE, solution)  # a slow machine may have no feasible W by then, and says so
    assert solution.status == "limit" and bool(verdict) == (solution.violation <= 1e-9)
    assert verdict.violation == pytest.approx(solution.violation)


LONG = """
    import sys
    sys.modules["tqdm"] = None  # as if it were not installed
    import attsvm
    task = attsvm.generate("random", seed=1)
    attsvm.train(task, steps=10**9, time_limit=1.2)
"""


def test_a_bar_in_terminals_and_silence_elsewhere():
    script = textwrap.dedent(LONG)
    silent = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert silent.returncode == 0 and silent.stdout == silent.stderr == ""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", script], stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # the terminal's other end is closed
        pass
    assert process.wait(timeout=60) == 0
    assert b"train:" in shown and b"/1000000000" in shown and shown.endswith(b"\r\x1b[K")


def test_progress_can_be_asked_for_and_refused(capsys):
    attsvm.train(SMALL, steps=10**9, time_limit=0.3, progress=True)
    assert "train" in capsys.readouterr().err
    attsvm.train(SMALL, steps=10**9, time_limit=0.3, progress=False)
    assert capsys.readouterr().err == ""
