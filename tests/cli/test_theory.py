"""attsvm check and attsvm path."""

import os
import pathlib

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
    assert fields["separable"] is False and fields["locally_optimal"] is False
    assert fields["verdict"] == "infeasible"
    assert "but no W separates these tokens" in attsvm("check", task).out


def test_a_long_check_stops(attsvm, stopped, tmp_path):
    task = tmp_path / "task.npz"
    attsvm("generate", "random", "--n", 8, "--T", 10, "--d", 10, "-o", task)  # 1e8 selections
    args = ["check", task, "--enumerate", "--limit", 10**9, "--json"]
    limited = attsvm(*args, "--time-limit", 0.5)
    assert limited.code == 4 and "stopped" in limited.err
    result = stopped(*args, sign=r"[1-9]\d* of 100000000 selections")
    assert result.code == 130 and result.json()["enumerated"]["selections"] > 0
    for found in (limited.json(), result.json()):
        assert found["complete"] is False and found["separable"] is True
        assert found["enumerated"]["complete"] is False and found["enumerated"]["selections"] < 10**8
    assert "stopped" in attsvm("check", task, "--enumerate", "--limit", 10**9, "--time-limit", 0.1).out
    small = tmp_path / "small.npz"
    attsvm("generate", "random", "--n", 2, "--T", 3, "--d", 3, "-o", small)
    whole = attsvm("check", small, "--enumerate", "--time-limit", 60, "--json")
    assert whole.code == 0 and whole.json()["complete"] and whole.json()["enumerated"]["complete"]


def test_a_long_path_stops_inside_a_radius(attsvm, stopped, tmp_path):
    task, path = tmp_path / "task.npz", tmp_path / "path.npz"
    attsvm("generate", "random", "--n", 300, "--T", 60, "--d", 60, "-o", task)
    args = ["path", task, "--param", "KQ", "--radius", "1000", "--threads", 1, "-o", path, "--force", "--json"]
    limited = attsvm(*args, "--time-limit", 0.5)
    assert limited.code == 4
    assert limited.json()["complete"] is False
    result = stopped(*args, sign="radius 1000.*radius 1000")  # the second time inside the radius
    found = result.json()
    assert result.code == 130 and found["complete"] is False and found["radius"] == [1000]
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


def test_ten_tokens_in_the_plane_are_separable_for_every_selection(attsvm, task_file):
    """The condition of attsvm info suffices, and is not necessary: tokens on a circle, d = 2 < 9."""
    angles = 2 * np.pi * np.arange(10) / 10
    task = task_file(tokens=np.stack([np.cos(angles), np.sin(angles)], axis=1)[None], head=np.array([1, 0.3]))
    assert "not guaranteed" in attsvm("info", task).out
    found = attsvm("check", task, "--enumerate", "--json").json()["enumerated"]
    assert found["selections"] == found["separable"] == 10


def test_two_inputs_that_pull_apart(attsvm, tmp_path):
    """docs/claims.md, finding 2: all other scores are equal, and yet this start does not lead to p^mm = (1, 3)."""
    fixtures, run = pathlib.Path(os.environ["ATTSVM_FIXTURES"]), tmp_path / "run.npz"
    task = fixtures / "trust" / "global_min_task.npz"
    assert attsvm("train", task, "--param", "p", "--init", fixtures / "trust" / "global_min_start.npz", "--steps", 20000,
                  "-o", run).code == 0
    p = np.load(run)["W"][:, 0]
    p /= np.linalg.norm(p)
    assert 1 - p[0] < 1e-10, "the direction of the first input's difference"
    assert 1 - p @ np.array([1, 3]) / np.sqrt(10) > 0.68
    assert attsvm("check", task, "--run", run, "--json").json()["verdict"] == "local"


def without(path, name, to):
    with np.load(path) as arrays:
        np.savez(to, **{key: value for key, value in arrays.items() if key != name})
    return to


def test_a_run_of_another_task_is_refused(attsvm, trained, tmp_path):
    task, run = trained
    other, page = tmp_path / "other.npz", tmp_path / "page.html"
    assert attsvm("generate", "random", "--seed", 4, "-o", other).code == 0  # the same sizes
    for options in (["check", other, "--run", run], ["check", other, "--run", run, "--json"],
                    ["report", other, "--run", run, "-o", page]):
        result = attsvm(*options)
        assert result.code == 2 and result.out == "" and len(result.err.splitlines()) == 1, result
        assert str(run) in result.err and "another task" in result.err and "task_fingerprint" in result.err
    assert not page.exists()
    stranger = without(run, "task_fingerprint", tmp_path / "stranger.npz")
    assert attsvm("check", other, "--run", stranger).code == 0, "a file that does not say is taken at its word"
    assert attsvm("train", other, "--init", run, "--steps", 1, "-o", tmp_path / "onward.npz").code == 0


@pytest.mark.parametrize("change", [dict(head=lambda head: head * (1 + 1e-15)), dict(labels=lambda labels: -labels),
                                    dict(tokens=lambda tokens: tokens[::-1])], ids=lambda change: [*change][0])
def test_the_fingerprint_is_of_what_is_trained(attsvm, trained, tmp_path, change):
    task, run = trained
    with np.load(task) as arrays:
        arrays = dict(arrays)
    ((name, function),) = change.items()
    np.savez(tmp_path / "changed.npz", **{**arrays, name: function(arrays[name])})
    assert attsvm("check", tmp_path / "changed.npz", "--run", run).code == 2
    # Compressed, in another order and byte order, with a selection: the same task.
    same = {key: np.asfortranarray(value).astype(value.dtype.newbyteorder(">")) for key, value in arrays.items()}
    same["select"] = np.zeros(len(arrays["queries"]), np.int32)
    np.savez_compressed(tmp_path / "same.npz", **same)
    assert attsvm("check", tmp_path / "same.npz", "--run", run).code == 0


@pytest.mark.parametrize("fingerprint", [np.array("text"), np.array([1, 2]), np.array(0.5), np.zeros(0, np.int64)])
def test_a_fingerprint_that_is_none_is_refused(attsvm, trained, tmp_path, fingerprint):
    task, run = trained
    with np.load(run) as arrays:
        np.savez(tmp_path / "odd.npz", **{**arrays, "task_fingerprint": fingerprint})
    result = attsvm("check", task, "--run", tmp_path / "odd.npz")
    assert result.code == 2 and len(result.err.splitlines()) == 1 and "task_fingerprint" in result.err, result
