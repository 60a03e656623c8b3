"""Weights that were trained elsewhere: check, margin, runs made of snapshots, starts, plots and pages."""

import json
import os

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


def test_prompts_are_vectors():
    task = attsvm.generate("prompt", seed=1)
    run = attsvm.train(task, steps=200, record="every:50")
    whole = attsvm.check(task, run)
    vectors = [W[:, 0] for W in run.record_W]
    for points in (vectors, np.array(vectors), run.record_W):
        again = attsvm.check(task, points, steps=run.record_step, optimizer="ngd")
        np.testing.assert_allclose(again.rho["fro"], whole.rho["fro"], rtol=1e-9)
    for one in (vectors[-1], run.W, vectors[-1].tolist()):
        assert attsvm.check(task, one).rho["fro"] == pytest.approx(whole.rho["fro"][-1:])
        np.testing.assert_allclose(task.attention(one), run.attention)


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
    np.savez(tmp_path / "theirs.npz", W=run.W, record_W=run.record_W)  # another program's, without steps
    for init in (run.W, tmp_path / "theirs.npz"):
        np.testing.assert_allclose(attsvm.train(task, init=init, steps=200).W, whole.W, rtol=1e-9)
    svm = attsvm.solve(task, norm="nuc")
    assert (attsvm.train(task, init=svm, steps=0).W == svm.W).all()
    assert (attsvm.train(task, param="KQ", width=svm.K.shape[1], init=svm, steps=0).K == svm.K).all()
    for one in (run, svm):
        np.testing.assert_array_equal(task.attention(one), task.attention(one.W))


def test_files_that_are_missing_or_there(task, tmp_path):
    for wrong in (lambda: attsvm.load(tmp_path / "no.npz"), lambda: attsvm.train(task, init=tmp_path / "no.npz")):
        with pytest.raises(FileNotFoundError, match="no.npz") as caught:
            wrong()
        assert isinstance(caught.value, attsvm.InputError)
    task.save(tmp_path / "task.npz")
    with pytest.raises(FileExistsError, match="force=True") as caught:
        task.save(tmp_path / "task.npz")
    assert isinstance(caught.value, attsvm.InputError) and "--force" not in str(caught.value)
    heads = attsvm.Heads(np.eye(6)[None], np.eye(6)[None])
    audit = attsvm.audit(heads, nulls=0)
    for write in (task.save, heads.save, audit.save, audit.page, lambda path: attsvm.train(task, steps=1, out=path),
                  lambda path: attsvm.report(task, out=path)):
        with pytest.raises(FileExistsError, match="force=True"):
            write(tmp_path / "task.npz")
        with pytest.raises(FileNotFoundError, match="there is no folder .*nowhere") as caught:
            write(tmp_path / "nowhere/task.npz")
        assert isinstance(caught.value, attsvm.InputError)
    assert attsvm.load(os.fsencode(tmp_path / "task.npz")).n_queries == 6


def test_another_programs_run_is_shown(task, tmp_path):
    W = np.arange(300.0).reshape(3, 10, 10)
    np.savez(tmp_path / "run.npz", W=W[-1], record_W=W)
    run = attsvm.load(tmp_path / "run.npz")
    assert isinstance(run, attsvm.Run) and repr(run) == f"Run(norm={np.linalg.norm(W[-1]):.9g})"
    assert run._repr_html_().endswith("</table>")
    assert attsvm.check(task, run).rho["fro"].shape == (3,)
    with pytest.raises(AttributeError, match="steps"):
        run.steps
    np.savez(tmp_path / "steps.npz", W=W[-1], record_W=W, record_step=[0, 5, 9])
    assert attsvm.load_run(tmp_path / "steps.npz").steps == 9
    np.savez(tmp_path / "wrong.npz", W=W[-1], record_W=W[:, :2])
    with pytest.raises(attsvm.InputError, match="wrong.npz: record_W has shape"):
        attsvm.load(tmp_path / "wrong.npz")


def test_snapshots_are_saved_and_read(task, run, tmp_path):
    made = attsvm.Run.from_snapshots(task, run.record_W, steps=run.record_step, optimizer="adam")
    made.save(tmp_path / "made.npz")
    again = attsvm.load_run(tmp_path / "made.npz")
    assert again.settings == made.settings == "W, adam" and (again.record_W == run.record_W).all()
    assert attsvm.check(task, again).implied_norm == "max"
    with pytest.raises(ValueError, match="optimizer = sgd"):
        attsvm.Run.from_snapshots(task, run.W, optimizer="sgd")


def test_a_run_goes_on_where_it_stopped(task, tmp_path, program):
    whole = attsvm.train(task, optimizer="adam", steps=3000, record="every:500")
    file = tmp_path / "run.npz"
    settings = dict(optimizer="adam", steps=3000, record="every:500", out=file)
    part = attsvm.train(task, callback=lambda now: now.step == 1200, **settings)
    assert part.steps == 1200 and part.stopped == "asked" and attsvm.load_run(file).record_step.tolist() == [0, 500, 1000]
    with pytest.raises(attsvm.InputError, match="resume=True"):
        attsvm.train(task, **settings | {"force": False, "out": tmp_path / "run.npz"} if not file.unlink() else {})
    with pytest.raises(attsvm.InputError, match="journal"):
        attsvm.train(task, resume=True, **settings | {"steps": 2000})
    rest = attsvm.train(task, resume=True, **settings)
    for name, value in whole.to_dict().items():
        np.testing.assert_array_equal(rest.to_dict()[name], value, err_msg=name)
    assert not (tmp_path / "run.npz.journal").exists()
    task.save(tmp_path / "task.npz")
    program("train", tmp_path / "task.npz", "--optimizer", "adam", "--steps", 3000, "--record", "every:500", "-o",
            tmp_path / "theirs.npz")
    assert file.read_bytes() == (tmp_path / "theirs.npz").read_bytes()
    with pytest.raises(FileExistsError, match="force=True"):
        attsvm.train(task, **settings)
    attsvm.train(task, force=True, **settings)
    for wrong in ("resume", "force"):
        with pytest.raises(ValueError, match=f"{wrong}=True needs out"):
            attsvm.train(task, **{wrong: True})


def test_plots_take_arrays(task, run):
    plot = pytest.importorskip("attsvm.plot")
    svm = attsvm.solve(task, select=run.selected)

    def curves(ax):
        return [line.get_xydata() for line in ax.lines]

    for drawn, expected in ((plot.correlation(np.array(run.record_W), svm.W), plot.correlation(run, svm)),
                            (plot.paths(np.array(run.record_W), svm.W, task=task), plot.paths(run, svm, task=task))):
        for ours, theirs in zip(curves(drawn), curves(expected), strict=True):
            np.testing.assert_allclose(ours[:, 1], theirs[:, 1], equal_nan=True)
    both = plot.correlation([run, np.array(run.record_W)], [svm, svm.W])
    assert len(both.lines) == 4
    numbers = [[text.get_text() for text in plot.attention(task, run.W, solution=one).texts] for one in (svm, np.array(svm.W))]
    assert sorted(map(float, numbers[0])) == pytest.approx(sorted(map(float, numbers[1])), abs=0.011)
    with pytest.raises(ValueError, match=r"runs\[0\] has shape"):
        plot.correlation(np.ones(3), svm)


def test_pages_show_what_the_command_line_shows(task, run, tmp_path, program):
    if attsvm._core.page_problem():
        pytest.skip(attsvm._core.page_problem())
    runs = {"gd.npz": attsvm.train(task, optimizer="gd", steps=50), "ngd.npz": run}
    task.save(tmp_path / "task.npz")
    for name, one in runs.items():
        one.save(tmp_path / name)
    nuclear = attsvm.solve(task, select=runs["gd.npz"].selected, norm="nuc")
    nuclear.save(tmp_path / "nuclear.npz")
    program("report", "task.npz", "--run", "gd.npz", "--run", "ngd.npz", "--solution", "nuclear.npz", "-o", "theirs.html", cwd=tmp_path)
    page = attsvm.report(task, runs, solutions={"nuclear.npz": nuclear}, out=tmp_path / "ours.html", title="task.npz")
    theirs = (tmp_path / "theirs.html").read_text()
    begin = theirs.index("{", theirs.index('type="application/json"'))
    expected, _ = json.JSONDecoder().raw_decode(theirs[begin:])
    for data in (expected, page.data):
        data["settings"].pop("command", None)
        data.pop("command", None)
    assert repr(page) == f"Report(file={page.file!r}, verdict={page.verdict!r})"
    assert page.data == expected and page.verdict == expected["check"]["verdict"] and page.file == str(tmp_path / "ours.html")
    single = attsvm.report(task, tmp_path / "ngd.npz", out=tmp_path / "single.html", token_names=[f"t{k}" for k in range(48)])
    assert [one["file"] for one in single.data["runs"]] == [str(tmp_path / "ngd.npz")]
    assert '"t47"' in (tmp_path / "single.html").read_text()
    assert attsvm.report(attsvm.Task(task.tokens, select=[0] * 6), out=tmp_path / "bare.html").verdict is None
    for error, words, call in (
            (FileExistsError, "force=True", lambda: attsvm.report(task, out=tmp_path / "single.html")),
            (TypeError, "must be a Run", lambda: attsvm.report(task, run.W, out=tmp_path / "new.html")),
            (TypeError, "must be a Solution", lambda: attsvm.report(task, solutions=[run], out=tmp_path / "new.html")),
            (ValueError, "48 tokens", lambda: attsvm.report(task, token_names=["a"], out=tmp_path / "new.html")),
            (FileNotFoundError, "no.npz", lambda: attsvm.report(task, "no.npz", out=tmp_path / "new.html")),
            (attsvm.InputError, "another task",
             lambda: attsvm.report(attsvm.generate("random", seed=2), run, out=tmp_path / "new.html"))):
        with pytest.raises(error, match=words):
            call()
    assert not (tmp_path / "new.html").exists()
