"""Results: repr, tables, pickling and conversion to dicts."""

import copy
import pickle

import attsvm
import numpy as np
import pytest

TASK = attsvm.generate("random", seed=1)


def things():
    run = attsvm.train(TASK, param="KQ", steps=50, record="every:10")
    return {"task": attsvm.generate("planted", seed=2), "solution": attsvm.solve(TASK),
            "nuclear": attsvm.solve(TASK, norm="nuc"), "conflict": attsvm.solve(attsvm.generate("infeasible", seed=1)),
            "verification": attsvm.verify(TASK, attsvm.solve(TASK)), "run": run, "check": attsvm.check(TASK, run),
            "path": attsvm.path(attsvm.generate("random", n=2, T=3, d=3), [1, 10], starts=1),
            "solutions": attsvm.solve_many([TASK, attsvm.generate("infeasible", seed=1)]),
            "runs": attsvm.train_many([TASK, TASK], steps=10)}


def same(a, b):
    assert a.keys() == b.keys()
    for name, value in a.items():
        if isinstance(value, dict):
            same(value, b[name])
        elif name == "items":
            for one, other in zip(value, b[name], strict=True):
                same(one, other)
        elif isinstance(value, np.ndarray):
            assert value.dtype == b[name].dtype
            np.testing.assert_array_equal(value, b[name])
        elif isinstance(value, float) and np.isnan(value):
            assert np.isnan(b[name])
        else:
            assert value == b[name], name


@pytest.mark.parametrize("name", things())
def test_pickle_dict_and_words(name):
    thing = things()[name]
    for again in (pickle.loads(pickle.dumps(thing)), copy.deepcopy(thing)):
        assert type(again) is type(thing)
        same(thing.to_dict(), again.to_dict())
        assert repr(again) == repr(thing)
    assert repr(thing).startswith(type(thing).__name__ + "(") and "\n" not in repr(thing)
    page = thing._repr_html_()
    assert page.startswith("<table>") and page.endswith("</table>")


def test_a_run_whose_file_has_no_selected_is_shown(tmp_path):
    arrays = attsvm.train(TASK, steps=5).to_dict()
    kept = {name: arrays[name] for name in ("W", "record_step", "record_W", "record_loss", "settings")}
    np.savez(tmp_path / "run.npz", **kept)
    run = attsvm.load(tmp_path / "run.npz")
    assert repr(run).startswith("Run(steps=5, ") and "selected" not in repr(run)
    assert run._repr_html_().endswith("</table>")
    with pytest.raises(AttributeError, match="this run has no selected"):
        run.selected


def test_a_pickled_solution_still_verifies_and_starts_others():
    solution = pickle.loads(pickle.dumps(attsvm.solve(TASK, norm="nuc")))
    assert attsvm.verify(TASK, solution)
    assert solution.history and solution.rank_certified
    assert attsvm.solve(TASK, norm="nuc", warm_start=solution).warm_started


def test_arrays_are_read_only_and_outlive_their_object():
    W = attsvm.solve(TASK).W
    with pytest.raises(ValueError):
        W[0, 0] = 1
    assert np.isfinite(W).all() and W.flags.c_contiguous and W.dtype == np.float64


@pytest.mark.parametrize("norm", ["fro", "nuc", ("lp", 3)])
def test_a_conflict_raises_with_the_certificate_in_words(norm, tmp_path):
    task = attsvm.generate("infeasible", seed=1)
    solution = attsvm.solve(task, norm=norm)
    assert attsvm.verify(task, solution)
    assert solution.status == "infeasible" and not solution.feasible
    for read in (solution, pickle.loads(pickle.dumps(solution))):
        for name in ("W", "K", "Q", "objective", "dual_objective", "margin", "gap", "violation", "rank", "support", "slack"):
            with pytest.raises(attsvm.InfeasibleError, match=f"there is no [a-zA-Z_]+: no W keeps.*\n  query . keep token|"
                                                             "query [0-9]+: keep token") as caught:
                getattr(read, name)
            assert caught.value.solution is read
    rows = solution.certificate
    assert rows and rows == sorted(rows, key=lambda row: -abs(row.weight))
    assert sum(row.weight for row in rows) == pytest.approx(1)
    solution.save(tmp_path / "conflict.npz")
    with pytest.raises(attsvm.InfeasibleError, match="keep token"):
        attsvm.load(tmp_path / "conflict.npz").W


def test_a_notebook_tells_the_conflict():
    page = attsvm.solve(attsvm.Task([[[0.0], [1.0], [2.0]]], select=[1]))._repr_html_()
    assert "keep token 1 over 0" in page and "keep token 1 over 2" in page and "<br>" in page


def test_what_is_not_there_says_so(tmp_path):
    solution = attsvm.solve(TASK)
    with pytest.raises(AttributeError, match="nuc"):
        solution.K
    np.savez(tmp_path / "other.npz", W=solution.W)
    other = attsvm.load(tmp_path / "other.npz")
    with pytest.raises(AttributeError, match="holds only W"):
        other.dual
    np.testing.assert_array_equal(other.W, solution.W)
    assert "Solution" in repr(other)
    assert attsvm.verify(TASK, other) and attsvm.verify(TASK, solution.W)
    verdict = attsvm.verify(TASK, solution.W * 0.9)
    assert not verdict.valid and verdict.reason
    with pytest.raises(ValueError, match="norm"):
        attsvm.verify(TASK, solution, norm="nuc")
    with pytest.raises(AttributeError, match="KQ"):
        attsvm.train(TASK, steps=1).K
    assert solution.certificate == [] and solution.conflict == ""


def test_many_problems_say_where_they_were_solved():
    tasks = [attsvm.generate("random", seed=1, instance=k) for k in range(5)]
    here, anywhere = (attsvm.solve_many(tasks, device=on) for on in ("cpu", "auto"))
    for one, other in zip(here, anywhere):  # too few for a GPU
        assert one.method == other.method == "block pivoting"
        assert (one.W == other.W).all()
    with pytest.raises(ValueError, match="device"):
        attsvm.solve_many(tasks, device="gpu")
    try:
        solutions = attsvm.solve_many(tasks, device="cuda")
    except attsvm.InputError as error:
        assert "no GPU to use" in str(error) and "\n" not in str(error)
    else:
        assert {one.method for one in solutions} == {"block pivoting on a GPU"}
        assert all(attsvm.verify(task, one) for task, one in zip(tasks, solutions))


def test_sequences_of_answers():
    tasks = [attsvm.generate("random", n=5, T=5, d=2, seed=0, instance=k) for k in range(30)]
    solutions = attsvm.solve_many(tasks)
    assert len(solutions) == 30 and len(solutions[2:5]) == 3
    assert (solutions[-1].dual == solutions[29].dual).all()
    with pytest.raises(IndexError):
        solutions[30]
    assert 0 < solutions.feasible.sum() < 30
    for task, solution, objective in zip(tasks, solutions, solutions.objective):
        assert attsvm.verify(task, solution)
        assert np.isnan(objective) if not solution.feasible else solution.objective == objective
    again = pickle.loads(pickle.dumps(solutions))
    assert again.status == solutions.status == [one.status for one in again]
    np.testing.assert_array_equal(again.feasible, solutions.feasible)
    runs = attsvm.train_many(tasks[:5], steps=10)
    assert [run.loss for run in runs] == runs.loss.tolist()


def test_correlations():
    run, solution = attsvm.train(TASK, record="every:1000"), attsvm.solve(TASK)
    values = run.correlation(solution)
    assert np.isnan(values[0]) and values[-1] == attsvm.correlation(run, solution) == solution.correlation(run)
    np.testing.assert_allclose(values[-1], np.sum(run.W * solution.W) / np.linalg.norm(run.W) / np.linalg.norm(solution.W))
    with pytest.raises(ValueError, match="other"):
        run.correlation(np.ones((2, 2)))


def test_other_answers_show_themselves_too(tmp_path):
    found = attsvm.local_optima(attsvm.generate("random", n=2, T=3, d=4, seed=1))
    [claim] = attsvm.claims("rank", tasks=2)
    report = attsvm.reproduce("svm-rank", runs=1, out=tmp_path)
    for thing in (found, claim, report, report["svm-rank"]):
        assert thing.to_dict().keys() == set(thing._fields)
        page = thing._repr_html_()
        assert f"attsvm.{type(thing).__name__}" in page and page.endswith("</table>")
        assert type(pickle.loads(pickle.dumps(thing))) is type(thing)
    assert "&#x27;" in report["svm-rank"]._repr_html_()  # texts are text, not markup


def test_a_run_says_what_it_was_trained_with(tmp_path):
    run = attsvm.train(TASK, param="KQ", optimizer="mirror:3", normalize=True, steps=5, seed=7)
    assert run.settings == ("KQ, mirror:3, step 0.1, 5 steps, logistic loss, exact arithmetic, seed 7, normalized")
    run.save(tmp_path / "run.npz")
    assert attsvm.load(tmp_path / "run.npz").settings == run.settings
