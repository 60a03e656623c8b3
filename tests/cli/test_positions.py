"""Positions in the keys of a task, against the formulas in NumPy, and what they make possible."""

import numpy as np
import pytest


def waves(T, d, base):
    k = np.arange(d)
    angle = np.arange(T)[:, None] / base ** (2 * (k // 2) / d)
    return np.where(k % 2 == 0, np.sin(angle), np.cos(angle))


def turned(keys, base):
    """Coordinates i and i + d/2 as real and imaginary part."""
    T, d = keys.shape[-2:]
    turn = np.exp(1j * np.arange(T)[:, None] / base ** (2 * np.arange(d // 2) / d))
    both = (keys[..., : d // 2] + 1j * keys[..., d // 2 :]) * turn
    return np.concatenate([both.real, both.imag], axis=-1)


@pytest.mark.parametrize("base", [10000, 7.5])
@pytest.mark.parametrize("d", [6, 8])
def test_keys_have_positions_and_values_have_none(attsvm, task_file, tmp_path, base, d):
    rng = np.random.default_rng(0)
    tokens, select = rng.normal(size=(2, 5, d)), [1, 4]
    task = task_file(tokens=tokens, query_token=[3, 0], select=select, head=rng.normal(size=d))
    np.save(tmp_path / "table.npy", rng.normal(size=(7, d)).astype(np.float32))
    table = np.load(tmp_path / "table.npy").astype(float)
    for options, expected in ((["--kind", "sinusoidal", "--base", base], tokens + waves(5, d, base)),
                              (["--kind", "rotary", "--base", base], turned(tokens, base)),
                              (["--table", tmp_path / "table.npy"], tokens + table[:5])):
        result = attsvm("positions", task, "-o", tmp_path / "p.npz", "--force", "--json", *options)
        assert result.code == 0, result
        fields = result.json()
        assert fields["command"] == "positions" and fields["d"] == d and fields["attention"] == "self"
        with np.load(tmp_path / "p.npz") as placed:
            assert np.abs(placed["keys"] - expected).max() < 1e-14
            assert np.array_equal(placed["tokens"], tokens) and placed["select"].tolist() == select
            assert np.array_equal(placed["query_token"], [3, 0])


def test_positions_count_from_the_beginning_of_each_sequence(attsvm, task_file, tmp_path):
    tokens, keys = np.ones((5, 2)), np.zeros((5, 4))
    task = task_file(tokens=tokens, keys=keys, offsets=[0, 2, 5], query_token=[0, 0])
    assert attsvm("positions", task, "--kind", "sinusoidal", "-o", tmp_path / "p.npz").code == 0
    expected = waves(3, 4, 10000)
    with np.load(tmp_path / "p.npz") as placed:
        assert np.abs(placed["keys"] - expected[[0, 1, 0, 1, 2]]).max() < 1e-15
        assert np.array_equal(placed["tokens"], tokens)


@pytest.mark.parametrize("options", [["--kind", kind]
                                     for kind in ("sinusoidal", "rotary", "bias", "slope", "relative")])
def test_positions_tell_equal_tokens_apart(attsvm, task_file, tmp_path, options):
    words = np.eye(4)
    task = task_file(tokens=words[[[0, 1, 2, 1]]], query_token=[2], select=[3])
    refused = attsvm("solve", task, "-o", tmp_path / "s.npz", "--json")
    assert refused.code == 3
    assert [(row["keep"], row["drop"]) for row in refused.json()["conflict"]] == [(3, 1)]
    placed, solution = tmp_path / "p.npz", tmp_path / "q.npz"
    assert attsvm("positions", task, "-o", placed, *options).code == 0
    assert attsvm("solve", placed, "-o", solution).code == 0
    assert attsvm("verify", placed, solution).code == 0


@pytest.mark.parametrize("kind", ["bias", "slope", "relative"])
@pytest.mark.parametrize("masked", [False, True])
def test_distances_are_in_the_keys_of_each_query(attsvm, task_file, tmp_path, kind, masked):
    """Two causal queries and a third that also sees later tokens; with a mask, it sees tokens 0, 1 and 3 of five."""
    rng = np.random.default_rng(3)
    X, V = rng.normal(size=(1, 5, 2)), rng.normal(size=(1, 5, 3))
    at, seen = [1, 3, 2], [[0, 1], [0, 1, 2, 3], [0, 1, 3] if masked else [0, 1, 2, 3, 4]]
    mask = np.zeros((3, 5), bool)
    for i, tokens in enumerate(seen):
        mask[i, tokens] = True
    task = task_file(tokens=V, keys=X, query_token=at, sequence=[0, 0, 0], select=[0, 2, 3], labels=[1, -1, 1],
                     visible=mask if masked else [2, 4, 5], head=rng.normal(size=3))
    placed = tmp_path / "p.npz"
    result = attsvm("positions", task, "--kind", kind, "-o", placed, "--json")
    assert result.code == 0 and result.err == "", result
    least, largest = -1 if masked else -2, 3
    assert result.json()["distances"] == [least, largest] and result.json()["base"] is None
    with np.load(placed) as file:
        assert ("queries" in file) == (kind == "relative") and "query_token" not in file
        assert file["offsets"].tolist() == [0, 2, 6, 10 if masked else 11] and file["select"].tolist() == [0, 2, 3]
        assert file["labels"].tolist() == [1, -1, 1] and ("visible" in file) == masked
        for i, tokens in enumerate(seen):
            first, z = file["offsets"][i], X[0, at[i]]
            assert np.array_equal(file["tokens"][first: file["offsets"][i + 1]], V[0, : tokens[-1] + 1])
            if kind == "relative":
                assert np.array_equal(file["queries"][i], [*z, 1])
            for t in tokens:
                there = -(at[i] - t) if kind == "slope" else np.arange(least, largest + 1) == at[i] - t
                content = X[0, t] if kind == "relative" else np.outer(X[0, t], z).ravel()
                assert np.array_equal(file["keys"][first + t], np.append(content, there))
        if masked:
            assert [np.flatnonzero(row).tolist() for row in file["visible"]] == seen
    solution = tmp_path / "s.npz"
    assert attsvm("solve", placed, "-o", solution).code in (0, 3)
    assert attsvm("verify", placed, solution).code == 0
    run = attsvm("train", placed, "--steps", 20, "-o", tmp_path / "r.npz", "--json")
    assert run.code == 0 and len(run.json()["selected"]) == 3


@pytest.mark.parametrize("masked", [False, True])
def test_a_fixed_slope_is_in_the_logits(attsvm, task_file, tmp_path, masked):
    """The same queries as above; a second slope is added to the first, and distances keep the bias that was there."""
    rng = np.random.default_rng(4)
    X, at = rng.normal(size=(1, 5, 2)), [1, 3, 2]
    seen = [[0, 1], [0, 1, 2, 3], [0, 1, 3] if masked else [0, 1, 2, 3, 4]]
    mask = np.zeros((3, 5), bool)
    for i, tokens in enumerate(seen):
        mask[i, tokens] = True
    task = task_file(tokens=X, query_token=at, sequence=[0, 0, 0], head=[1.0, 2.0],
                     visible=mask if masked else [2, 4, 5])
    placed, run = tmp_path / "p.npz", tmp_path / "r.npz"
    result = attsvm("positions", task, "--fixed-slope", 0.75, "-o", placed, "--json")
    assert result.code == 0 and result.err == "", result
    fields = result.json()
    assert (fields["kind"], fields["slope"], fields["base"]) == ("fixed-slope", 0.75, None)
    assert fields["distances"] == [-1 if masked else -2, 3]
    expected = np.where(mask, -0.75 * (np.array(at)[:, None] - np.arange(5)), 0)
    with np.load(task) as before, np.load(placed) as after:
        assert set(after) == {*before, "bias"} and all(np.array_equal(before[name], after[name]) for name in before)
        assert np.array_equal(after["bias"], expected)

    for steps in (0, 30):  # attention of a run is the softmax of X W z + b, from the start
        assert attsvm("train", placed, "--steps", steps, "-o", run, "--force").code == 0
        with np.load(run) as file:
            assert (np.abs(file["W"]).max() > 0) == (steps > 0)
            logits = np.where(mask, (X[0] @ file["W"] @ X[0, at].T).T + expected, -np.inf)
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            assert np.abs(file["attention"] - weights / weights.sum(axis=1, keepdims=True)).max() < 1e-12

    duals = []
    for file, solution in ((task, tmp_path / "s.npz"), (placed, tmp_path / "q.npz")):
        assert attsvm("solve", file, "-o", solution).code in (0, 3)
        assert attsvm("verify", file, solution).code == 0
        duals.append(np.load(solution)["dual"].tolist())
    assert duals[0] == duals[1]  # the SVM is that of the task without the bias

    twice, far = tmp_path / "t.npz", tmp_path / "f.npz"
    assert attsvm("positions", placed, "--fixed-slope", 0.25, "-o", twice).code == 0
    assert np.abs(np.load(twice)["bias"] - expected * 4 / 3).max() < 1e-15
    assert attsvm("positions", placed, "--kind", "relative", "-o", far).code == 0
    assert np.array_equal(np.load(far)["bias"], expected[:, :4] if masked else expected)


def test_what_cannot_have_a_bias_refuses_it(attsvm, task_file, tmp_path):
    task = task_file(tokens=np.random.default_rng(0).normal(size=(1, 3, 2)), bias=np.ones((1, 3)), head=[1.0, 2.0])
    result = attsvm("stack", task, "--layers", 1, "--steps", 1, "-o", tmp_path / "s.npz")
    assert result.code == 2 and len(result.lines()) == 1 and "bias is given" in result.err, result
    assert not (tmp_path / "s.npz").exists()


def test_a_bias_costs_as_much_as_its_norm(attsvm, task_file, tmp_path):
    """Equal words: the bias alone decides, and W stays 0. Two biases 1 apart have the norm 1/sqrt(2)."""
    task = task_file(tokens=np.ones((1, 3, 2)), query_token=[2], select=[1], visible=[2])
    placed, solution = tmp_path / "p.npz", tmp_path / "s.npz"
    assert attsvm("positions", task, "--kind", "bias", "-o", placed).code == 0
    assert attsvm("solve", placed, "-o", solution).code == 0
    assert attsvm("verify", placed, solution).code == 0
    assert np.allclose(np.load(solution)["W"].ravel(), [0, 0, 0, 0, 0.5, -0.5], atol=1e-12)


def test_queries_of_their_own_have_no_position(attsvm, draw, tmp_path):
    task = draw("random")
    result = attsvm("positions", task, "--kind", "sinusoidal", "-o", tmp_path / "p.npz")
    assert result.code == 0 and result.lines() == ["attsvm: queries of cross attention are no tokens and stay without positions"]
    with np.load(task) as before, np.load(tmp_path / "p.npz") as after:
        assert np.array_equal(before["queries"], after["queries"])


@pytest.mark.parametrize("options, words", [
    ([], "give --kind"),
    (["--kind", "rotary", "--table", "t.npy"], "exclude each other"),
    (["--kind", "rotary"], "d = 5"),
    (["--kind", "sinusoidal", "--base", 1], "base = 1"),
    (["--kind", "alibi"], "alibi"),
    (["--kind", "slope", "--fixed-slope", 1], "exclude each other"),
    (["--table", "t.npy", "--fixed-slope", 1], "exclude each other"),
    (["--fixed-slope", "nan"], "slope = nan; must be a finite number"),
    (["--fixed-slope", "steep"], "steep"),
    (["--table", "short.npy"], "must be (P,5) with P >= 3"),
    (["--table", "nan.npy"], "table[0,2] = nan"),
    (["--table", "missing.npy"], "missing.npy")])
def test_refusals(attsvm, task_file, tmp_path, options, words):
    task = task_file(tokens=np.ones((1, 3, 5)))
    np.save(tmp_path / "short.npy", np.ones((2, 5)))
    table = np.ones((3, 5))
    table[0, 2] = np.nan
    np.save(tmp_path / "nan.npy", table)
    result = attsvm("positions", task, "-o", "p.npz", *options, cwd=tmp_path)
    assert result.code == 2 and result.out == "" and len(result.lines()) == 1 and words in result.err, result
    assert not (tmp_path / "p.npz").exists()


def test_next_token_tasks_are_refused(attsvm, draw, tmp_path):
    task = draw("nexttoken")
    result = attsvm("positions", task, "--kind", "sinusoidal", "-o", tmp_path / "p.npz")
    assert result.code == 2 and "next-token" in result.err and not (tmp_path / "p.npz").exists()
