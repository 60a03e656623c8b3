"""attsvm generate: every kind, the same bytes for the same seed, refusals that say why."""

import json
import os
import subprocess
import time

import numpy as np
import pytest

KINDS = ["random", "self", "prompt", "causal", "ragged", "relu", "orthonormal", "quadratic", "separable", "planted", "infeasible",
         "single-global", "single-local", "multi-input", "joint-tight", "joint-loose", "losses"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_and_valid(attsvm, tmp_path, kind):
    path = tmp_path / "task.npz"
    made = attsvm("generate", kind, "--seed", 3, "-o", path, "--json")
    assert made.code == 0 and made.json()["kind"] == kind and made.json()["seed"] == 3
    info = attsvm("info", path, "--json")
    assert info.code == 0
    assert info.json()["queries"] == made.json()["queries"]
    with np.load(path) as arrays:
        assert all(np.all(np.isfinite(arrays[name])) for name in arrays.files)


def test_same_seed_same_bytes_for_any_thread_count(attsvm, tmp_path):
    for threads in (1, 2, 3):
        assert attsvm("generate", "random", "--seed", 5, "--threads", threads, "-o", tmp_path / f"{threads}.npz").code == 0
    first = (tmp_path / "1.npz").read_bytes()
    assert first == (tmp_path / "2.npz").read_bytes() == (tmp_path / "3.npz").read_bytes()
    attsvm("generate", "random", "--seed", 6, "-o", tmp_path / "other.npz")
    assert first != (tmp_path / "other.npz").read_bytes()


def test_sizes(attsvm, tmp_path):
    path = tmp_path / "task.npz"
    attsvm("generate", "relu", "--n", 4, "--T", 5, "--d", 7, "--dz", 3, "--hidden", 2, "--shortest", 2, "-o", path)
    with np.load(path) as arrays:
        assert arrays["queries"].shape == (4, 3)
        assert arrays["head_hidden"].shape == (7, 2)
        assert arrays["offsets"].shape == (5,) and 2 <= np.diff(arrays["offsets"]).min() <= np.diff(arrays["offsets"]).max() <= 5


def test_an_existing_file_needs_force(attsvm, tmp_path):
    path = tmp_path / "task.npz"
    path.write_text("mine")
    refused = attsvm("generate", "random", "-o", path, "--json")
    assert refused.code == 2 and refused.out == "" and "--force" in refused.err and str(path) in refused.err
    assert path.read_text() == "mine"
    assert attsvm("generate", "random", "-o", path, "--force").code == 0
    assert [p.name for p in tmp_path.iterdir()] == ["task.npz"]


@pytest.mark.parametrize("arguments, words", [
    (["generate", "rnadom", "-o", "x.npz"], ["rnadom", "random"]),
    (["generate", "random"], ["--out"]),
    (["generate", "random", "--n", "0", "-o", "x.npz"], ["--n"]),
    (["generate", "random", "--n", "two", "-o", "x.npz"], ["--n", "two"]),
    (["generate", "random", "--T", "3", "--shortest", "4", "-o", "x.npz"], ["shortest = 4"]),
    (["generate", "orthonormal", "--T", "30", "-o", "x.npz"], ["T = 30", "d = 10"]),
    (["generate", "losses", "--n", "3", "-o", "x.npz"], ["fixed sizes"]),
    (["generate", "planted", "--attention", "causal", "-o", "x.npz"], ["cross and prompt"]),
    (["generate", "random", "--n", "1000000000", "--T", "1000000000", "-o", "x.npz"], ["too large"]),
    (["generate", "random", "-o", "no/such/folder/x.npz"], ["no/such/folder"]),
    (["generate", "random", "--colour", "red", "-o", "x.npz"], ["unknown option --colour (see attsvm generate --help)"]),
    (["generate", "random", "--ranks=3", "--sed", "1", "-o", "x.npz"], ["unknown option --ranks; did you mean --rank?"]),
    (["info", "a.npz", "b.npz"], ["b.npz"]),
    (["generate", "separable", "--d", "4", "--rank", "5", "-o", "x.npz"], ["rank = 5", "min(d, dz) = 4"]),
    (["generate", "planted", "--n", "3", "--d", "8", "--rank", "4", "-o", "x.npz"], ["rank = 4", "min(n, d, dz) = 3"]),
    (["solv"], ["unknown verb solv; did you mean solve?"]),
    (["x"], ["unknown verb x; must be one of audit, capacity, check, ", "solve", "verify"]),
])
def test_bad_usage_is_one_clear_line(attsvm, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    result = attsvm(*arguments)
    assert result.code == 2 and result.out == ""
    assert len(result.lines()) == 1
    assert all(word in result.err for word in words), result.err
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_clear_line(attsvm):
    result = attsvm("generate", "random", "-o", "/dev/full", "--force")
    assert result.code == 2 and "/dev/full" in result.err


def test_json_reads_back(attsvm, tmp_path):
    result = attsvm("generate", "random", "-o", tmp_path / "t.npz", "--json")
    fields = json.loads(result.out)
    assert fields["command"] == "generate" and fields["seconds"] >= 0 and fields["attsvm"]
    assert result.out.count("\n") == 1 and fields["threads"] >= 1
    assert attsvm("generate", "random", "--threads", 3, "-o", tmp_path / "u.npz", "--json").json()["threads"] == 3


def test_a_killed_run_leaves_nothing_behind(tmp_path):
    """Killed at any moment, the output file is complete or not there, and nothing else is."""
    for delay in (0.02, 0.1, 0.3):
        command = [os.environ["ATTSVM_PROGRAM"], "generate", "random", "--n", "1000", "--T", "100", "--d", "100", "-o", "task.npz", "--force"]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
        time.sleep(delay)
        process.kill()
        process.wait()
        assert {p.name for p in tmp_path.iterdir()} <= {"task.npz"}
        if (tmp_path / "task.npz").exists():
            assert np.load(tmp_path / "task.npz")["tokens"].shape == (1000, 100, 100)
