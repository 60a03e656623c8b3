"""Weights that were trained elsewhere: check, margin, runs made of snapshots, starts; and answers that stop short."""

import warnings

import attsvm
import numpy as np
import pytest


@pytest.fixture(scope="module")
def task():
    return attsvm.generate("random", n=6, T=8, d=10, seed=1)


@pytest.fixture(scope="module")
def run(task):
    return attsvm.train(task, steps=500, record="every:100")


def test_snapshots_are_a_run(task, run):
    again = attsvm.Run.from_snapshots(task, run.record_W, steps=run.record_step, optimizer="ngd")
    for name in ("record_loss", "record_log_loss", "record_norm", "record_log_gradient", "record_attention", "attention",
                 "selected", "W", "record_W", "record_step"):
        np.testing.assert_allclose(getattr(again, name), getattr(run, name), rtol=1e-12, err_msg=name)
    assert again.steps == 500 and again.loss == pytest.approx(run.loss) and "steps=500" in repr(again)
    assert again.settings == "W, ngd"
    with pytest.raises(AttributeError, match="settings"):
        attsvm.Run.from_snapshots(task, run.W).settings


def test_snapshots_of_factors(task):
    run = attsvm.train(task, param="KQ", width=4, steps=50, seed=2)
    again = attsvm.Run.from_snapshots(task, K=run.K, Q=run.Q, steps=[50], optimizer="ngd")
    np.testing.assert_allclose(again.W, run.K @ run.Q.T, rtol=1e-12)
    assert again.log_gradient == pytest.approx(run.log_gradient)
    assert attsvm.check(task, again).implied_norm == "nuc"


def test_weights_are_checked_like_runs(task, run):
    whole = attsvm.check(task, run)
    again = attsvm.check(task, list(run.record_W), steps=run.record_step, optimizer="ngd", norms=["lp:3"])
    assert again.verdict == whole.verdict and again.implied_norm == "fro" and again.advice == ""
    np.testing.assert_allclose(again.rho["fro"], whole.rho["fro"], rtol=1e-9)
    assert again.rho_exponent["fro"] == pytest.approx(whole.rho_exponent["fro"])
    one = attsvm.check(task, run.W)
    assert one.rho["max"] == pytest.approx(whole.rho["max"][-1:]) and one.implied_norm is None
    torch = pytest.importorskip("torch")
    tensor = attsvm.check(task, torch.tensor(run.W, requires_grad=True))
    assert tensor.rho["max"] == pytest.approx(one.rho["max"], rel=1e-12)


@pytest.mark.parametrize("words, call", [
    ("steps is missing", lambda task, W: attsvm.check(task, [W, W])),
    ("one per point", lambda task, W: attsvm.check(task, [W, W], steps=[1])),
    ("ascend", lambda task, W: attsvm.check(task, [W, W], steps=[2, 2])),
    ("either W", lambda task, W: attsvm.Run.from_snapshots(task)),
    ("either W", lambda task, W: attsvm.Run.from_snapshots(task, W, K=W, Q=W)),
    ("either W", lambda task, W: attsvm.Run.from_snapshots(task, K=W)),
    ("as many", lambda task, W: attsvm.Run.from_snapshots(task, K=[W, W], Q=W, steps=[1, 2])),
    ("must all be the same", lambda task, W: attsvm.check(task, [W, W[:5]], steps=[1, 2])),
    ("shape", lambda task, W: attsvm.check(task, W[:5])),
    ("shape", lambda task, W: attsvm.margin(task, W[:5])),
    ("a Run has its own", lambda task, W: attsvm.check(task, attsvm.Run.from_snapshots(task, W), steps=[1])),
    ("norms need a run", lambda task, W: attsvm.check(task, norms=["max"])),
])
def test_what_does_not_fit_is_refused(task, run, words, call):
    with pytest.raises(ValueError, match=words):
        call(task, np.array(run.W))


def test_the_margin_is_that_of_the_rows(task, run):
    arrays = task.to_dict()
    logits = np.einsum("ntd,de,ne->nt", arrays["tokens"], run.W, arrays["queries"])
    rows = np.arange(6)
    gaps = logits[rows, run.selected][:, None] - logits
    gaps[rows, run.selected] = np.inf
    query, drop = np.unravel_index(gaps.argmin(), gaps.shape)
    found = attsvm.margin(task, run.W)
    assert found.smallest == pytest.approx(gaps.min(), rel=1e-12)
    assert found.closest == (query, run.selected[query], drop)
    assert (found.select.argmax(1) == run.selected).all() and found.select.sum() == 6
    for norm, size in (("fro", np.linalg.norm(run.W)), ("nuc", np.linalg.norm(run.W, "nuc")), ("max", abs(run.W).max())):
        svm = attsvm.solve(task, select=run.selected, norm=norm)
        assert attsvm.verify(task, svm).valid
        assert found.rho[norm] == pytest.approx(gaps.min() / size * svm.objective, rel=1e-9)
        assert found.largest_margin[norm] == pytest.approx(1 / svm.objective)
    other = attsvm.margin(task, run.W, select=task.optimal, norms=[("lp", 3)])
    assert set(other.rho) == {"lp:3"}
    bare = attsvm.Task(arrays["tokens"], queries=arrays["queries"])
    assert attsvm.margin(bare, run.W).rho == pytest.approx(found.rho)


def test_runs_are_starts(task, run, tmp_path):
    file = tmp_path / "run.npz"
    run.save(file)
    whole = attsvm.train(task, steps=700)
    for init in (run, file, str(file)):
        np.testing.assert_allclose(attsvm.train(task, init=init, steps=200).W, whole.W, rtol=1e-9)
    factors = attsvm.train(task, param="KQ", steps=20)
    assert np.array_equal(attsvm.train(task, param="KQ", init=factors, steps=0).K, factors.K)
    with pytest.raises(ValueError, match="run of W"):
        attsvm.train(task, param="KQ", init=run)


def test_files_that_are_missing_or_there(task, tmp_path):
    for wrong in (lambda: attsvm.load(tmp_path / "no.npz"), lambda: attsvm.train(task, init=tmp_path / "no.npz")):
        with pytest.raises(FileNotFoundError, match="no.npz") as caught:
            wrong()
        assert isinstance(caught.value, attsvm.InputError)
    task.save(tmp_path / "task.npz")
    with pytest.raises(FileExistsError, match="force=True") as caught:
        task.save(tmp_path / "task.npz")
    assert isinstance(caught.value, attsvm.InputError) and "--force" not in str(caught.value)


def test_answers_that_stop_short_warn():
    large = attsvm.generate("random", n=60, T=24, d=40, seed=1)
    with pytest.warns(attsvm.ConvergenceWarning, match="limit ended the solve; its relative gap is"):
        attsvm.solve(large, norm="max", time_limit=0.05)
    # Tokens that hardly differ: their rows contradict each other almost, and rounding ends the solve.
    tokens = np.array([[[0.0, 0], [1, 1e-9], [-1, 1e-9]]])
    hard = attsvm.Task(tokens * 1e3, queries=np.array([[1.0, 0.3]]), select=np.array([0]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = attsvm.solve(hard, norm="l1")
    assert (solution.status == "stalled") == any(issubclass(one.category, attsvm.ConvergenceWarning) for one in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attsvm.solve(attsvm.generate("random", seed=1))
