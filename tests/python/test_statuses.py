"""An answer that stopped short of its tolerance is never taken for an optimum: in Python, JSON, exit codes and pages."""

import json
import warnings

import attsvm
import numpy as np
import pytest

TASK = attsvm.generate("random", seed=1)
OUT_OF_REACH = 1e-30  # no double arithmetic closes a gap this far
# Two rows that contradict each other up to 1e-11: separable, but out of reach in the nuclear norm and the largest entry.
HARD = attsvm.Task([[[0.0, 0.0], [1.0, 1e-11], [-1.0, 1e-11]]], queries=[[1.0, 0.3]], select=[0], head=[1.0, 1.0])


@pytest.mark.parametrize("norm", ["fro", "nuc", "max", ("lp", 3)])
def test_a_solver_that_stalls_says_so(norm, tmp_path, program):
    with pytest.warns(attsvm.ConvergenceWarning, match="could not reach its tolerance; its relative gap is") as caught:
        solution = attsvm.solve(TASK, norm=norm, tolerance=OUT_OF_REACH)
    assert caught[0].filename == __file__
    assert solution.status == "stalled" and attsvm.verify(TASK, solution)
    solution.save(tmp_path / "svm.npz")
    assert attsvm.load_solution(tmp_path / "svm.npz").status == "stalled"
    TASK.save(tmp_path / "task.npz")
    name = norm if isinstance(norm, str) else "lp:3"
    theirs = program("solve", tmp_path / "task.npz", "--norm", name, "--tolerance", OUT_OF_REACH, "-o", tmp_path / "theirs.npz", "--json",
                     codes=(4,))
    assert json.loads(theirs.stdout)["status"] == "stalled"


def test_what_double_precision_can_reach_is_kept():
    task = attsvm.generate("separable", n=20, T=10, d=16, seed=0)
    with pytest.warns(attsvm.ConvergenceWarning, match="could not reach"):
        solution = attsvm.solve(task, norm="max", tolerance=OUT_OF_REACH)
    assert solution.gap < 1e-12 and attsvm.verify(task, solution, tolerance=1e-12)


def test_a_limit_is_a_limit():
    large = attsvm.generate("random", n=60, T=24, d=40, seed=1)
    with pytest.warns(attsvm.ConvergenceWarning, match="limit ended the solve; its relative gap is"):
        assert attsvm.solve(large, norm="max", time_limit=1e-3).status == "limit"


def test_many_answers_name_the_first_that_stopped_short():
    with pytest.warns(attsvm.ConvergenceWarning, match="2 of 2 tasks; the first is task 0: .*could not reach") as caught:
        solutions = attsvm.solve_many([TASK, TASK], tolerance=OUT_OF_REACH)
    assert solutions.status == ["stalled"] * 2 and caught[0].filename == __file__


def test_the_estimator_warns_too():
    model = pytest.importorskip("attsvm.estimator").AttentionSVM(norm="nuc", tolerance=OUT_OF_REACH)
    rng = np.random.default_rng(0)
    with pytest.warns(attsvm.ConvergenceWarning, match="could not reach its tolerance") as caught:
        model.fit(rng.normal(size=(4, 3, 8)), [0, 1, 2, 0])
    assert model.solution_.status == "stalled" and caught[0].filename == __file__


def test_what_hangs_on_a_stalled_svm_is_not_known(tmp_path, program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        status = {norm: attsvm.solve(HARD, norm=norm).status for norm in ("fro", "nuc", "max")}
    assert status == {"fro": "optimal", "nuc": "stalled", "max": "stalled"}
    with pytest.warns(attsvm.ConvergenceWarning, match="check: norm nuc: the solver could not") as caught:
        check = attsvm.check(HARD)
    assert caught[0].filename == __file__
    assert check.unsolved == {"nuc": "stalled"} and check.complete and np.isnan(check.objective_nuc)
    with pytest.warns(attsvm.ConvergenceWarning, match="margin: norm max: the solver could not"):
        margin = attsvm.margin(HARD, attsvm.solve(HARD), norms=["fro", "max"])
    assert margin.rho["fro"] == pytest.approx(1) and np.isnan(margin.rho["max"]) and margin.rho_status["max"] == "stalled"
    HARD.save(tmp_path / "task.npz")
    theirs = program("check", "task.npz", "--json", codes=(4,), cwd=tmp_path)
    assert json.loads(theirs.stdout)["unsolved"] == {"nuc": "stalled"} and "norm nuc stalled" in theirs.stderr
    assert "(Frobenius), nuclear: stalled" in program("check", "task.npz", codes=(4,), cwd=tmp_path).stdout
    if not attsvm._core.page_problem():
        with pytest.warns(attsvm.ConvergenceWarning, match="report: norm nuc"):
            page = attsvm.report(HARD, out=tmp_path / "page.html")
        assert [one["status"] for one in page.data["solutions"]] == ["optimal", "stalled"]
        shown = program("report", "task.npz", "-o", "theirs.html", codes=(4,), cwd=tmp_path).stdout
        assert "stalled with a gap of" in shown


def test_heads_whose_svms_stopped_short(tmp_path):
    rng = np.random.default_rng(0)
    heads = attsvm.Heads(rng.normal(size=(1, 30, 4)), rng.normal(size=(2, 30, 4)), key_head=[0, 0])
    with pytest.warns(attsvm.ConvergenceWarning, match="audit: . SVMs of heads; the first is 0.0, own, .*could not") as caught:
        audit = attsvm.audit(heads, nulls=0, tolerance=OUT_OF_REACH)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert "stalled" in {view[norm]["status"] for view in audit.heads[0]["views"] for norm in ("frobenius", "nuclear")}
    large = attsvm.Heads(rng.normal(size=(1, 1500, 40)), rng.normal(size=(1, 1500, 40)), position=np.arange(1500))
    with pytest.warns(attsvm.ConvergenceWarning, match="audit: .*the limit ended"):
        assert not attsvm.audit(large, time_limit=0.05).complete


def test_paths_that_stop_short(tmp_path, program):
    task = attsvm.generate("random", n=3, T=4, d=5, seed=1)
    with pytest.warns(attsvm.ConvergenceWarning, match="path: 2 of 2 radii are not converged; the first is 1, whose "
                                                       "stationarity is") as caught:
        path = attsvm.path(task, [1, 10], starts=1, tolerance=OUT_OF_REACH)
    assert caught[0].filename == __file__ and path.complete and (path.stationarity > OUT_OF_REACH).all()
    task.save(tmp_path / "task.npz")
    program("path", "task.npz", "--radius", "1,10", "--starts", 1, "--tolerance", OUT_OF_REACH, "-o", "path.npz", codes=(4,),
            cwd=tmp_path)
    with pytest.warns(attsvm.ConvergenceWarning, match="path: the limit ended it"):
        assert not attsvm.path(task, [1, 10], starts=1, callback=lambda *_: True).complete


def test_counts_that_stop_short():
    with pytest.warns(attsvm.ConvergenceWarning, match="capacity: the limit ended it") as caught:
        found = attsvm.capacity(40, 20, 30, draws=10**6, runs=0, want=0, time_limit=0.05)
    assert not found.complete and caught[0].filename == __file__


def test_optima_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = attsvm.train(TASK, steps=50)
        attsvm.solve(TASK)
        attsvm.solve_many([TASK])
        attsvm.check(TASK, run)
        attsvm.margin(TASK, run)
        attsvm.path(attsvm.generate("random", n=3, T=4, d=5, seed=1), [1, 10], starts=1)
        attsvm.capacity(6, 5, 8, draws=5, runs=0, want=0)
        attsvm.audit(attsvm.Heads(np.eye(6)[None], np.eye(6)[None]), nulls=0)
