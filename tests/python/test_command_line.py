"""Files written from Python are those of the command line, byte for byte, and so are the findings."""

import json
import os
import subprocess
import sys

import attsvm
import numpy as np
import pytest


@pytest.fixture
def files(tmp_path, program):
    """files(*generate words): a task file, and the task loaded from it."""

    def make(*words):
        program("generate", *words, "-o", tmp_path / "task.npz", "--force")
        return tmp_path / "task.npz", attsvm.load(tmp_path / "task.npz")

    return make


def same_bytes(program, tmp_path, words, thing, codes=(0,)):
    program(*words, "-o", tmp_path / "theirs.npz", "--force", "--quiet", codes=codes)
    attsvm.save(tmp_path / "ours.npz", thing, force=True)
    assert (tmp_path / "ours.npz").read_bytes() == (tmp_path / "theirs.npz").read_bytes()
    again = attsvm.load(tmp_path / "theirs.npz")
    assert type(again) is type(thing)
    attsvm.save(tmp_path / "again.npz", again, force=True)
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "theirs.npz").read_bytes()


@pytest.mark.parametrize("words, given", [
    (["random", "--seed", 1], dict(kind="random", seed=1)),
    (["causal", "--n", 2, "--T", 5, "--d", 3], dict(kind="causal", n=2, T=5, d=3)),
    (["planted", "--norm", "nuc", "--rank", 2, "--seed", 4], dict(kind="planted", norm="nuc", rank=2, seed=4)),
    (["relu", "--attention", "self", "--shortest", 3], dict(kind="relu", attention="self", shortest=3)),
    (["quadratic", "--lambda", 0.25, "--instance", 7], dict(kind="quadratic", lam=0.25, instance=7)),
])
def test_tasks(program, tmp_path, words, given):
    same_bytes(program, tmp_path, ["generate", *words], attsvm.generate(**given))


@pytest.mark.parametrize("kind", ["random", "infeasible", "ragged"])
@pytest.mark.parametrize("options, settings", [
    ([], {}), (["--norm", "nuc"], dict(norm="nuc")), (["--norm", "lp:3"], dict(norm=("lp", 3))),
    (["--relax", "0,2"], dict(relax=[0, 2])), (["--problem", "v"], dict(problem="v")),
    (["--select", "opt", "--tolerance", "1e-6"], dict(select="opt", tolerance=1e-6))])
def test_solutions(program, tmp_path, files, kind, options, settings):
    path, task = files(kind, "--seed", 3)
    if kind == "infeasible" and "select" in settings:  # it has no head
        with pytest.raises(ValueError, match="head"):
            attsvm.solve(task, **settings)
        refused = program("solve", path, *options, "-o", tmp_path / "theirs.npz", codes=(2,))
        assert "head" in refused.stderr
        assert not (tmp_path / "theirs.npz").exists()
        return
    solution = attsvm.solve(task, **settings)
    assert attsvm.verify(task, solution)
    same_bytes(program, tmp_path, ["solve", path, *options], solution, codes=(0, 3))


def test_selections_of_sets(program, tmp_path, files):
    path, task = files("random", "--seed", 3)
    sets = [{0, 1}, {2}, {3}, {4}, {5}, {6, 7}]
    mask = np.zeros((6, 8), bool)
    for i, tokens in enumerate(sets):
        mask[i, list(tokens)] = True
    np.save(tmp_path / "select.npy", mask)
    for select in (sets, mask, mask.tolist()):
        same_bytes(program, tmp_path, ["solve", path, "--select", tmp_path / "select.npy"],
                   attsvm.solve(task, select=select), codes=(0, 3))


@pytest.mark.parametrize("options, settings", [
    ([], {}),
    (["--param", "KQ", "--seed", 5, "--record", "every:500"], dict(param="KQ", seed=5, record="every:500")),
    (["--joint", "--epsilon", "1e-9,1e-8", "--record", "0,10,100"],
     dict(joint=True, epsilon=(1e-9, 1e-8), record=[0, 10, 100])),
    (["--optimizer", "mirror:3", "--normalize", "--steps", 50], dict(optimizer=("mirror", 3), normalize=True, steps=50)),
    (["--optimizer", "adam", "--loss", "exponential", "--schedule", "cosine", "--batch", 2, "--dropout", 0.1],
     dict(optimizer="adam", loss="exponential", schedule="cosine", batch=2, dropout=0.1)),
    (["--optimizer", "steepest:lp:3", "--momentum", 0.5, "--steps", "1e2"],
     dict(optimizer=("steepest", ("lp", 3)), momentum=0.5, steps=1e2)),
    (["--optimizer", "lion", "--betas", "0.8,0.95", "--steps", 50],
     dict(optimizer="lion", betas=(0.8, 0.95), steps=50)),
    (["--optimizer", "muon", "--newton-schulz", 5, "--joint", "--epsilon", "1e-9,1e-8", "--steps", 50],
     dict(optimizer="muon", newton_schulz=5, joint=True, epsilon=(1e-9, 1e-8), steps=50)),
    (["--optimizer", "adamw", "--epsilon", 0, "--steps", 50], dict(optimizer="adamw", epsilon=0, steps=50)),
    (["--arithmetic", "plain", "--init", "random", "--weight-decay", 0.01],
     dict(arithmetic="plain", init="random", weight_decay=0.01)),
    (["--label-smoothing", 0.2, "--optimizer", "gd", "--steps", 50],
     dict(label_smoothing=0.2, optimizer="gd", steps=50)),
    (["--selector", "gumbel", "--entropy", 0.01, "--temperature", "2:0.5", "--steps", 50],
     dict(selector="gumbel", entropy=0.01, temperature=(2, 0.5), steps=50)),
    (["--selector", "dirichlet", "--concentration", 4, "--temperature", 2, "--steps", 50],
     dict(selector="dirichlet", concentration=4, temperature=2, steps=50)),
    (["--stop-direction", 0.001], dict(stop_direction=0.001)),
])
def test_runs(program, tmp_path, files, options, settings):
    path, task = files("random", "--seed", 3)
    run = attsvm.train(task, **settings)
    same_bytes(program, tmp_path, ["train", path, *options], run)
    theirs = json.loads(program("train", path, *options, "-o", tmp_path / "run.npz", "--force", "--json").stdout)
    assert theirs["loss"] == run.loss and theirs["steps"] == run.steps and theirs["selected"] == run.selected.tolist()


def test_starts(program, tmp_path, files):
    path, task = files("random", "--seed", 3)
    W0 = np.random.default_rng(0).normal(size=(10, 10))
    np.savez(tmp_path / "start.npz", W0=W0)
    for init in (W0, {"W0": W0}, tmp_path / "start.npz"):
        same_bytes(program, tmp_path, ["train", path, "--init", tmp_path / "start.npz", "--steps", 20],
                   attsvm.train(task, init=init, steps=20))


@pytest.mark.parametrize("options, settings", [
    (["--radius", "1,10"], dict(radius=[1, 10])),
    (["--param", "KQ", "--radius", "1,5", "--starts", 2], dict(param="KQ", radius=[1, 5], starts=2))])
def test_paths(program, tmp_path, files, options, settings):
    path, task = files("random", "--n", 3, "--T", 4, "--d", 4)
    same_bytes(program, tmp_path, ["path", path, *options], attsvm.path(task, **settings), codes=(0, 4))


def test_many_are_the_ones_of_each(tmp_path):
    tasks = [attsvm.generate("random", seed=1, instance=k) for k in range(40)]
    for settings in (dict(), dict(norm="nuc")):
        for task, solution in zip(tasks, attsvm.solve_many(tasks, **settings)):
            one = attsvm.solve(task, **settings)
            assert attsvm.verify(task, solution)
            assert (one.W == solution.W).all() and (one.dual == solution.dual).all()
    runs = attsvm.train_many(tasks, steps=100, record=[0, 50])
    for task, run in zip(tasks, runs):
        one = attsvm.train(task, steps=100, record=[0, 50])
        np.testing.assert_array_equal(run.record_W, one.record_W)
        assert run.loss == one.loss


def test_threads_do_not_change_the_answer():
    task = attsvm.generate("random", n=40, T=16, d=24, seed=2)
    one, two = (attsvm.solve(task, threads=count) for count in (1, 2))
    assert attsvm.verify(task, one)
    assert (one.W == two.W).all() and (one.dual == two.dual).all()


@pytest.mark.parametrize("words", [["random", "--seed", 1], ["relu", "--seed", 2], ["random", "--n", 2, "--T", 3]])
def test_checks(program, tmp_path, files, words):
    path, task = files(*words)
    run = attsvm.train(task, record="every:400")
    run.save(tmp_path / "run.npz")
    theirs = json.loads(program("check", path, "--run", tmp_path / "run.npz", "--json").stdout)
    ours = attsvm.check(task, run)
    for name in ("verdict", "reason", "separable", "answer"):
        assert getattr(ours, name) == theirs[name]
    for name in ("optimal", "selected", "record_step"):
        assert getattr(ours, name).tolist() == theirs[name]
    for name in ("correlation_fro", "correlation_nuc"):
        assert [None if np.isnan(x) else x for x in getattr(ours, name)] == theirs[name]
    assert ours.rho.keys() == theirs["rho"].keys()
    for norm, rho in ours.rho.items():
        assert [None if np.isnan(x) else x for x in rho] == theirs["rho"][norm]
        exponent = ours.rho_exponent[norm]
        assert (None if np.isnan(exponent) else exponent) == theirs["rho_exponent"][norm]
    for name in ("implied_norm", "implied_norm_proven", "implied_norm_why", "rho_status", "rho_rises", "complete"):
        assert getattr(ours, name) == theirs[name], name
    assert [token._asdict() for token in ours.support] == theirs["support"]
    alone = json.loads(program("check", path, "--json").stdout)
    assert attsvm.check(task).verdict == alone["verdict"]


def test_rho_of_an_optimum_is_one():
    task = attsvm.generate("random", seed=1)
    run = attsvm.train(task, optimizer="steepest:schatten:3", steps=200)
    check = attsvm.check(task, run)
    assert check.implied_norm == "schatten:3" and not check.implied_norm_proven
    assert list(check.rho) == ["fro", "nuc", "spec", "max", "l1", "schatten:3"]
    for norm in check.rho:
        W = attsvm.solve(task, select=run.selected, norm=norm).W
        assert attsvm.verify(task, attsvm.solve(task, select=run.selected, norm=norm))
        assert attsvm.check(task, W, optimizer=("steepest", ("schatten", 3))).rho[norm] == pytest.approx([1], abs=1e-9)
        assert (check.rho[norm][1:] <= 1 + 1e-9).all() and check.rho[norm].shape == run.record_step.shape


def test_a_check_stops_at_its_time_limit():
    task = attsvm.generate("random", n=90, T=32, d=62)
    check = attsvm.check(task, attsvm.train(task, steps=100), time_limit=0.01)
    assert not check.complete and check.rho_status["l1"] == "limit" and np.isnan(check.rho["l1"]).all()
    with pytest.raises(ValueError, match="time_limit"):
        attsvm.check(task, attsvm.train(task, steps=1), time_limit=-1)


def test_a_run_of_another_task_is_refused(tmp_path):
    task, other = (attsvm.generate("random", seed=seed) for seed in (1, 2))
    run = attsvm.train(task, steps=10)
    run.save(tmp_path / "run.npz")
    for one in (run, attsvm.load(tmp_path / "run.npz")):
        assert attsvm.check(task, one).selected.tolist() == run.selected.tolist()
        with pytest.raises(attsvm.InputError, match="another task"):
            attsvm.check(other, one)
    with np.load(tmp_path / "run.npz") as arrays:
        np.savez(tmp_path / "old.npz", **{name: arrays[name] for name in arrays if name != "task_fingerprint"})
    attsvm.check(other, attsvm.load(tmp_path / "old.npz"))


def test_tokens_that_no_w_keeps():
    task = attsvm.Task([[[0.0], [1.0], [0.0]]], keys=[[[0.0], [1.0], [2.0]]], head=[1.0])
    check = attsvm.check(task)
    assert check.verdict == "infeasible" and check.is_optimal and not check.separable


def test_local_optima(program, files):
    path, task = files("random", "--n", 3, "--T", 4, "--d", 5)
    theirs = json.loads(program("check", path, "--enumerate", "--json").stdout)["enumerated"]
    ours = attsvm.local_optima(task)
    assert ours.selections == theirs["selections"] and ours.separable == theirs["separable"]
    assert ours.locally_optimal.tolist() == theirs["locally_optimal"]


def test_claims(program, tmp_path):
    theirs = json.loads(program("claims", "direction", "--tasks", 6, "--json", "--out", tmp_path).stdout)["claims"]
    ours = attsvm.claims("direction", tasks=6)
    assert [(one.claim.name, one.tasks, one.held, one.worst) for one in ours] == [
        (one["name"], one["tasks"], one["held"], one["worst"]) for one in theirs]


def test_studies(program, tmp_path):
    program("reproduce", "svm-rank", "--runs", 1, "--out", tmp_path / "theirs")
    report = attsvm.reproduce("svm-rank", runs=1, out=tmp_path / "ours")
    assert report.stopped == "" and report["svm-rank"].complete
    for name in ("data.csv", "data.json"):
        assert (tmp_path / "ours/svm-rank" / name).read_bytes() == (tmp_path / "theirs/svm-rank" / name).read_bytes()
    assert report["svm-rank"].findings[0].paper


def test_python_m_attsvm_is_the_program(program, tmp_path):
    def module(*words):
        return subprocess.run([sys.executable, "-m", "attsvm", *map(str, words)], capture_output=True, text=True,
                              cwd=tmp_path)

    assert module("--version").stdout == program("--version").stdout
    done = module("generate", "random", "--seed", 1, "-o", "task.npz")
    assert done.returncode == 0, done.stderr
    done = module("solve", "task.npz", "-o", "solution.npz", "--json")
    assert json.loads(done.stdout)["status"] == "optimal"
    done = module("solve", "missing.npz", "-o", "other.npz")
    assert done.returncode == 2 and "missing.npz" in done.stderr and done.stdout == ""
    assert not os.path.exists(tmp_path / "other.npz")


def test_an_existing_file_is_kept(tmp_path):
    task = attsvm.generate("random")
    task.save(tmp_path / "task.npz")
    with pytest.raises(ValueError, match="task.npz"):
        task.save(tmp_path / "task.npz")
    task.save(tmp_path / "task.npz", force=True)
    (tmp_path / "text.npz").write_text("not a zip file")
    np.savez(tmp_path / "other.npz", something=np.ones(3))
    for name in ("text.npz", "other.npz", "missing.npz"):
        with pytest.raises(ValueError, match=name):
            attsvm.load(tmp_path / name)
