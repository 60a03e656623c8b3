"""attsvm check and attsvm path."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest


@pytest.fixture
def trained(attsvm, tmp_path):
    """A task of published size and a run on it that was recorded."""
    task, run = tmp_path / "task.npz", tmp_path / "run.npz"
    assert attsvm("generate", "random", "--seed", 3, "-o", task).code == 0
    assert attsvm("train", task, "--record", "every:500", "-o", run).code == 0
    return task, run


def test_a_run_is_judged(attsvm, trained):
    task, run = trained
    result = attsvm("check", task, "--run", run, "--json")
    assert result.code == 0 and result.err == ""
    fields = result.json()
    with np.load(run) as arrays:
        assert fields["selected"] == arrays["selected"].tolist()
        assert fields["record_step"] == arrays["record_step"].tolist()
    assert fields["separable"] is True
    assert fields["verdict"] == ("global" if fields["selected"] == fields["optimal"] else "local")
    assert fields["locally_optimal"] is True
    assert len(fields["correlation_fro"]) == len(fields["correlation_nuc"]) == len(fields["record_step"])
    assert fields["correlation_fro"][0] is None, "W = 0 has no direction"
    assert 0.98 < fields["correlation_fro"][-1] <= 1 and fields["correlation_nuc"][-1] < fields["correlation_fro"][-1]
    assert all(entry["score_gap"] > 0 for entry in fields["support"])
    assert fields["objective_fro"] <= fields["objective_nuc"]


def test_correlations_are_those_of_the_solver(attsvm, trained, tmp_path):
    task, run = trained
    fields = attsvm("check", task, "--run", run, "--json").json()
    np.save(tmp_path / "select.npy", np.array(fields["selected"]))
    for norm, name in (("fro", "correlation_fro"), ("nuc", "correlation_nuc")):
        solution = tmp_path / f"{norm}.npz"
        assert attsvm("solve", task, "--norm", norm, "--select", tmp_path / "select.npy", "-o", solution).code == 0
        assert attsvm("verify", task, solution).code == 0
        W, V = np.load(run)["W"], np.load(solution)["W"]
        assert abs((W * V).sum() / np.linalg.norm(W) / np.linalg.norm(V) - fields[name][-1]) < 1e-9


def test_a_selection_is_judged_without_a_run(attsvm, trained):
    task, _ = trained
    fields = attsvm("check", task, "--json").json()
    assert fields["selected"] == fields["optimal"] and fields["verdict"] == "global"
    assert "correlation_fro" not in fields


def test_a_head_of_hidden_units_keeps_sets(attsvm, tmp_path):
    task, run = tmp_path / "task.npz", tmp_path / "run.npz"
    attsvm("generate", "relu", "--n", 3, "--T", 4, "--d", 6, "--seed", 2, "-o", task)
    attsvm("train", task, "--record", "0,100,2000", "--init", "random", "-o", run)
    fields = attsvm("check", task, "--run", run, "--json").json()
    for name in ("correlation_gen", "correlation_equivalence", "correlation_single"):
        assert len(fields[name]) == 3
    weights = np.load(run)["attention"]
    assert fields["kept"] == [[t for t in range(4) if row[t] >= 1e-3] for row in weights]
    assert "R" in fields


def test_all_local_optima(attsvm, tmp_path):
    task = tmp_path / "task.npz"
    attsvm("generate", "random", "--n", 3, "--T", 4, "--d", 3, "--seed", 1, "-o", task)
    fields = attsvm("check", task, "--enumerate", "--json").json()
    found = fields["enumerated"]
    assert found["selections"] == 64 and found["separable"] <= 64
    if fields["separable"]:
        assert fields["optimal"] in found["locally_optimal"]
    refusal = attsvm("check", task, "--enumerate", "--limit", 10)
    assert refusal.code == 2 and "10" in refusal.err and refusal.out == ""


def test_optimal_tokens_that_no_w_keeps(attsvm, tmp_path):
    task = tmp_path / "task.npz"
    np.savez(task, tokens=np.array([[[0.0], [1.0], [0.0]]]), keys=np.array([[[0.0], [1.0], [2.0]]]), head=np.ones(1))
    fields = attsvm("check", task, "--json").json()
    assert fields["selected"] == fields["optimal"] == [1] and fields["is_optimal"] is True
    assert fields["separable"] is False and fields["locally_optimal"] is False and fields["verdict"] == "global"
    assert "but no W separates these tokens" in attsvm("check", task).out


def interrupted(*args):
    """What the program prints when Ctrl-C comes after a second, and how long it takes to end."""
    program = subprocess.Popen([os.environ["ATTSVM_PROGRAM"], *map(str, args)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(1)
        program.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, _ = program.communicate(timeout=60)
        return program.returncode, json.loads(out), time.monotonic() - began
    finally:
        program.kill()


def test_a_long_check_stops(attsvm, tmp_path):
    task = tmp_path / "task.npz"
    attsvm("generate", "random", "--n", 8, "--T", 10, "--d", 10, "-o", task)  # 1e8 selections
    args = ["check", task, "--enumerate", "--limit", 10**9, "--json"]
    limited = attsvm(*args, "--time-limit", 0.5)
    assert limited.code == 4 and "stopped" in limited.err
    code, fields, seconds = interrupted(*args)
    assert code == 130 and seconds < 5
    for found in (limited.json(), fields):
        assert found["complete"] is False and found["separable"] is True
        assert found["enumerated"]["complete"] is False and 0 < found["enumerated"]["selections"] < 10**8
    assert "stopped" in attsvm("check", task, "--enumerate", "--limit", 10**9, "--time-limit", 0.1).out
    small = tmp_path / "small.npz"
    attsvm("generate", "random", "--n", 2, "--T", 3, "--d", 3, "-o", small)
    whole = attsvm("check", small, "--enumerate", "--time-limit", 60, "--json")
    assert whole.code == 0 and whole.json()["complete"] and whole.json()["enumerated"]["complete"]


def test_a_long_path_stops_inside_a_radius(attsvm, tmp_path):
    task, path = tmp_path / "task.npz", tmp_path / "path.npz"
    attsvm("generate", "random", "--n", 300, "--T", 60, "--d", 60, "-o", task)
    args = ["path", task, "--param", "KQ", "--radius", "1000", "--threads", 1, "-o", path, "--force", "--json"]
    limited = attsvm(*args, "--time-limit", 0.5)
    assert limited.code == 4 and limited.json()["seconds"] < 10
    code, fields, seconds = interrupted(*args)
    assert code == 130 and seconds < 10
    for found in (limited.json(), fields):
        assert found["complete"] is False and found["radius"] == [1000]
        assert found["stationarity"][0] > 1e-8 and abs(found["norm"][0] - 1000) < 1e-6
    with np.load(path) as arrays:
        assert arrays["W"].shape == (1, 60, 60)


def test_what_does_not_fit_is_refused(attsvm, trained, tmp_path):
    task, run = trained
    np.savez(tmp_path / "small.npz", W=np.ones((2, 2)))
    np.savez(tmp_path / "none.npz", K=np.ones((2, 2)))
    np.savez(tmp_path / "nan.npz", W=np.full((10, 10), np.nan))
    np.savez(tmp_path / "ragged.npz", W=np.ones((10, 10)), record_W=np.ones((3, 2, 2)))
    for name, word in (("small", "W has shape"), ("none", "W is missing"), ("nan", "W[0,0]"), ("ragged", "record_W")):
        result = attsvm("check", task, "--run", tmp_path / f"{name}.npz")
        assert result.code == 2 and word in result.err and name in result.err, result.err
    assert attsvm("check", task, "--run", run, "--select", "opt").code == 2


@pytest.mark.parametrize("param", ["W", "KQ"])
def test_a_path_tends_to_its_svm(attsvm, tmp_path, param):
    task, path = tmp_path / "task.npz", tmp_path / "path.npz"
    attsvm("generate", "random", "--n", 3, "--T", 4, "--d", 5, "--seed", 1, "-o", task)
    result = attsvm("path", task, "--param", param, "--radius", "1,10,100,1000", "--starts", 2, "-o", path, "--json")
    assert result.code == 0, result
    fields = result.json()
    assert fields["radius"] == [1, 10, 100, 1000]
    assert max(fields["stationarity"]) <= 1e-8
    assert np.allclose(fields["norm"], fields["radius"], rtol=1e-9)
    assert fields["loss"] == sorted(fields["loss"], reverse=True)
    assert fields["correlation"][-1] > 1 - 1e-3
    with np.load(path) as arrays:
        assert arrays["W"].shape == (4, 5, 5)
        assert arrays["selected"].tolist() == fields["selected"]
        norms = np.linalg.norm(arrays["W"], "nuc" if param == "KQ" else "fro", axis=(1, 2))
        assert np.allclose(norms, fields["radius"], rtol=1e-6)
        if param == "KQ":
            assert np.allclose(arrays["K"] @ arrays["Q"].transpose(0, 2, 1), arrays["W"])


def test_paths_are_the_same_for_any_number_of_threads(attsvm, tmp_path):
    task = tmp_path / "task.npz"
    attsvm("generate", "random", "--n", 3, "--T", 4, "--d", 5, "-o", task)
    for threads in (1, 2):
        assert attsvm("path", task, "--starts", 2, "--threads", threads, "-o", tmp_path / f"{threads}.npz").code == 0
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes()


def test_path_refuses_what_makes_no_sense(attsvm, tmp_path):
    task = tmp_path / "task.npz"
    attsvm("generate", "random", "-o", task)
    for radii in ("", "0", "1,1", "10,1", "a", "1,,2", "nan"):
        result = attsvm("path", task, "--radius", radii, "-o", tmp_path / "p.npz")
        assert result.code == 2 and result.out == "" and len(result.err.splitlines()) == 1, (radii, result)
        assert "--radius" in result.err and "task.npz" not in result.err
    assert attsvm("path", task, "--param", "p", "-o", tmp_path / "p.npz").code == 2
    assert not (tmp_path / "p.npz").exists()
