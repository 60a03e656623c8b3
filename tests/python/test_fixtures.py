"""The published experiments' reference answers, through Python; every answer is verified."""

import attsvm
import numpy as np
import pytest
from conftest import FIXTURES

TASKS = sorted(FIXTURES.glob("*.task.npz"))


def expected(path):
    return np.load(str(path).replace(".task.", ".expect."), allow_pickle=False)


def proven(task, **settings):
    solution = attsvm.solve(task, **settings)
    verdict = attsvm.verify(task, solution)
    assert verdict, verdict.reason
    return solution


def test_there_are_fixtures():
    assert len(TASKS) >= 40


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.name.split(".")[0])
def test_svms(path):
    task, expect = attsvm.load(path), expected(path)
    for norm, name in (("fro", "fro"), ("nuc", "nuc"), ("fro", "gen")):
        if f"{name}_W" in expect:
            solution = proven(task, norm=norm)
            W = expect[f"{name}_W"]
            assert solution.W.shape == W.shape
            np.testing.assert_allclose(solution.W, W, atol=2e-6 if norm == "nuc" else 1e-7)
        if f"{name}_objective" in expect:
            assert solution.objective == pytest.approx(expect[f"{name}_objective"].item(), rel=1e-9)
    if "feasible" in expect and not expect["feasible"]:
        assert proven(task).status == "infeasible"


@pytest.mark.parametrize("path", [path for path in TASKS if path.name.startswith("local_")],
                         ids=lambda path: path.name.split(".")[0])
def test_training(path):
    """The published iteration, as long as two correct implementations of it agree."""
    task, expect = attsvm.load(path), expected(path)
    factors = "K0" in expect
    init = {name: expect[name] for name in ("W0", "K0", "Q0") if name in expect}
    run = attsvm.train(task, param="KQ" if factors else "W", init=init, arithmetic="plain", epsilon=2**-52,
                       ridge=2**-52 if factors else 0, steps=2000, record=expect["record_step"].tolist())
    for k, step in enumerate(expect["record_step"]):
        if step <= 100:
            np.testing.assert_allclose(run.record_W[k], expect["record_W"][k], atol=1e-7)
    assert (run.selected == np.load(path)["select"]).all()


def test_arrays_lists_and_files_are_the_same_task():
    arrays = dict(np.load(TASKS[0]))
    from_arrays = attsvm.Task(**arrays)
    from_lists = attsvm.Task(**{name: array.tolist() for name, array in arrays.items()})
    from_file = attsvm.load(TASKS[0])
    W = attsvm.solve(from_file).W
    assert (attsvm.solve(from_arrays).W == W).all() and (attsvm.solve(from_lists).W == W).all()
