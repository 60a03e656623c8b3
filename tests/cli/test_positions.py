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


@pytest.mark.parametrize("options", [["--kind", "sinusoidal"], ["--kind", "rotary"]])
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
