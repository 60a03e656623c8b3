"""Ten thousand calls leave nothing behind."""

import gc
import pickle
import resource
import sys

import attsvm
import numpy as np
import pytest

CALLS = 10_000


def growth(call, calls):
    """Bytes that the process grew by over the second half of the calls; the first half warms up."""
    for _ in range(calls // 2):
        call()
    gc.collect()
    before = resource_bytes()
    for _ in range(calls - calls // 2):
        call()
    gc.collect()
    return resource_bytes() - before


def resource_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_solving():
    tokens, queries, head = (np.random.default_rng(0).normal(size=s) for s in ((6, 8, 10), (6, 10), (10,)))

    def call():
        task = attsvm.Task(tokens, queries=queries, head=head)
        solution = attsvm.solve(task)
        assert solution.W.shape == (10, 10)
        return solution.dual

    assert growth(call, CALLS) < 1 << 20


def test_conflicts_and_refusals():
    task = attsvm.generate("infeasible", seed=1)

    def call():
        try:
            attsvm.solve(task).W
        except attsvm.InfeasibleError:
            pass
        try:
            attsvm.solve(task, norm="none")
        except ValueError:
            pass

    assert growth(call, CALLS) < 1 << 20


def test_runs_and_files(tmp_path):
    task = attsvm.generate("random", seed=1)

    def call():
        run = attsvm.train(task, steps=5, callback=lambda now: False)
        run.save(tmp_path / "run.npz", force=True)
        return pickle.loads(pickle.dumps(attsvm.load(tmp_path / "run.npz"))).record_W

    assert growth(call, 2000) < 1 << 20


def test_many():
    tasks = [attsvm.generate("random", seed=1, instance=k) for k in range(50)]

    def call():
        return attsvm.solve_many(tasks)[3].W, attsvm.train_many(tasks[:4], steps=3)[1].W

    assert growth(call, 1000) < 1 << 20


def test_weights_of_ones_own(tmp_path):
    task = attsvm.generate("random", n=3, T=4, d=5, seed=1)
    points = [k * np.ones((5, 5)) + np.eye(5) for k in (1, 2)]

    def call():
        run = attsvm.Run.from_snapshots(task, points, steps=[1, 2], optimizer="gd")
        attsvm.margin(task, run, norms=["fro", "max"])
        attsvm.train(task, steps=2, init=run, out=tmp_path / "run.npz", force=True)
        attsvm.load_run(tmp_path / "run.npz").to_dict(copy=True)
        try:
            attsvm.train_many([task, task], init=[None, np.full((5, 5), np.nan)])
        except attsvm.InputError:
            pass
        return attsvm.check(task, run, norms=["lp:3"], progress=False), attsvm.check(task, time_limit=5)

    assert growth(call, 600) < 1 << 20


def test_next_token_tasks():
    task = attsvm.generate("nexttoken", n=8, instance=3)
    run = attsvm.train(task, optimizer="gd", steps=2)

    def call():
        return attsvm.check(task).graph, attsvm.check(task, run.W, progress=False).to_dict(copy=True)

    assert growth(call, 400) < 1 << 20


def test_masks_and_soft_margins():
    tokens, mask = np.random.default_rng(0).normal(size=(4, 6, 5)), np.arange(6) >= np.array([[0], [2], [1], [3]])

    def call():
        task = attsvm.Task(tokens, visible=mask, select=[5, 5, 5, 5])
        solution = attsvm.solve(task, soft=0.5)
        return solution.xi, attsvm.verify(task, solution), task.attention(solution), task.seen(1), task.keys(2)

    assert growth(call, 2000) < 1 << 20


def test_heads():
    keys = np.random.default_rng(0).normal(size=(1, 12, 3))

    def call():
        heads = attsvm.Heads(keys, np.roll(keys, 1, axis=1), position=np.arange(12), text=[f"t{k}" for k in range(12)])
        audit = attsvm.audit(heads, nulls=1, progress=False)
        return heads.task(0).tokens, heads.kinds(0), heads.rho(0, nulls=1), audit.to_dict(copy=True)

    assert growth(call, 400) < 1 << 20


def test_calls_that_take_longer():
    task = attsvm.generate("random", attention="prompt", n=3, T=4, d=5, seed=1)

    def call():
        attsvm.stack(task, steps=5, null=1)
        attsvm.path(task, [1, 10], starts=1)
        attsvm.capacity(3, 3, 4, draws=3, runs=0, want=0)
        attsvm.claims("rank", tasks=1)
        return attsvm.local_optima(attsvm.generate("random", n=2, T=3, d=4)).locally_optimal

    assert growth(call, 200) < 1 << 20


def test_the_estimator():
    estimator = pytest.importorskip("attsvm.estimator")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 4, 5)), rng.integers(4, size=8)

    def call():
        model = estimator.AttentionSVM(C=1.0).fit(x, y, sample_weight=np.arange(8))
        return model.predict_proba(x), model.score(x, y), pickle.loads(pickle.dumps(model)).W_

    assert growth(call, 1000) < 1 << 20


def test_interruptions():
    """The answer that an exception carries goes with it, and so does what a callback that raises has seen."""
    task = attsvm.generate("random", seed=1)

    def fail(now):
        raise RuntimeError("enough")

    def call():
        try:
            attsvm.train(task, steps=50, callback=fail)
        except RuntimeError:
            pass
        return attsvm.train(task, steps=50, callback=lambda now: now.step == 3).record_W

    assert growth(call, 2000) < 1 << 20


def test_pages(tmp_path):
    task = attsvm.generate("random", n=3, T=4, d=5, seed=1)
    run = attsvm.train(task, steps=10)
    assert growth(lambda: attsvm.report(task, run, out=tmp_path / "page.html", force=True), 100) < 1 << 20


def test_arrays_are_let_go():
    tokens = np.ones((2, 3, 4))
    task = attsvm.Task(tokens, head=np.ones(4))
    view = task.tokens
    del task
    gc.collect()
    assert sys.getrefcount(tokens) > 2  # the view needs it
    assert (view == 1).all()
    del view
    gc.collect()
    assert sys.getrefcount(tokens) == 2
