"""Masks through the command line: every file speaks of tokens as the task numbers them."""

import json
import re

import numpy as np
import pytest

RNG = np.random.default_rng(1)
TOKENS, QUERIES, HEAD = RNG.normal(size=(4, 7, 20)), RNG.normal(size=(4, 20)), RNG.normal(size=20)
MASKS = {
    "left padding": np.arange(7) >= np.array([[0], [2], [4], [5]]),
    "windows": abs(np.arange(7) - np.array([[1], [3], [4], [6]])) <= 1,
    "gaps": np.array([[1, 0, 1, 1, 0, 0, 1], [0, 1, 0, 1, 0, 1, 0], [1] * 7, [0, 0, 0, 1, 0, 0, 0]], bool),
}


def removed(mask):
    """The same task without the hidden tokens."""
    kept = [TOKENS[i][mask[i]] for i in range(4)]
    offsets = np.cumsum([0] + [len(one) for one in kept])
    return dict(tokens=np.concatenate(kept), offsets=offsets, queries=QUERIES, head=HEAD)


@pytest.mark.parametrize("name", MASKS)
def test_all_verbs_agree_with_the_task_without_the_hidden_tokens(attsvm, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    mask = MASKS[name]
    place = [np.flatnonzero(row) for row in mask]
    np.savez("mask.npz", tokens=TOKENS, queries=QUERIES, head=HEAD, visible=mask)
    np.savez("less.npz", **removed(mask))

    def both(*words):
        answers = []
        for task in ("mask", "less"):
            done = attsvm(*[str(word).replace("@", task) for word in words])
            assert done.code == 0, done.err
            answers.append(done.json() if "--json" in words else done.out)
        return answers

    info, less = both("info", "@.npz", "--json")
    assert info["masked"] and not less["masked"]
    assert info["optimal"] == [int(place[i][t]) for i, t in enumerate(less["optimal"])]
    for norm in ("fro", "nuc"):
        a, b = both("solve", "@.npz", "--norm", norm, "-o", f"@.{norm}.npz", "--json")
        assert a["objective"] == b["objective"] and a["support"] == b["support"]
        both("verify", "@.npz", f"@.{norm}.npz")
        x, y = np.load(f"mask.{norm}.npz"), np.load(f"less.{norm}.npz")
        assert (x["W"] == y["W"]).all() and (x["dual"] == y["dual"]).all()
        assert x["row_drop"].tolist() == [place[i][t] for i, t in zip(y["row_query"], y["row_drop"])]
        assert not (x["select"] & ~mask).any()
    for arithmetic in ("exact", "plain"):
        both("train", "@.npz", "--arithmetic", arithmetic, "--steps", 300, "-o", f"@.{arithmetic}.npz")
        x, y = np.load(f"mask.{arithmetic}.npz"), np.load(f"less.{arithmetic}.npz")
        assert (x["record_W"] == y["record_W"]).all() and (x["record_loss"] == y["record_loss"]).all()
        assert (x["attention"][~mask] == 0).all() and np.isneginf(x["log_attention"][~mask]).all()
        shown = np.concatenate([y["attention"][i, :len(place[i])] for i in range(4)])
        np.testing.assert_array_equal(x["attention"][mask], shown)
        assert x["selected"].tolist() == [place[i][t] for i, t in enumerate(y["selected"])]
    a, b = both("check", "@.npz", "--run", "@.exact.npz", "--json")
    for field in ("verdict", "separable", "locally_optimal", "correlation_fro", "correlation_nuc", "rho"):
        assert a[field] == b[field], field
    assert a["selected"] == [int(place[i][t]) for i, t in enumerate(b["selected"])]
    assert [one["token"] for one in a["support"]] == [int(place[one["query"]][one["token"]]) for one in b["support"]]
    a, b = both("path", "@.npz", "--radius", "1,10", "-o", "@.path.npz", "--json")
    assert (np.load("mask.path.npz")["W"] == np.load("less.path.npz")["W"]).all()


def test_the_page_knows_hidden_tokens(attsvm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mask = MASKS["gaps"]
    np.savez("t.npz", tokens=TOKENS, queries=QUERIES, head=HEAD, visible=mask)
    assert attsvm("train", "t.npz", "--steps", 50, "-o", "run.npz").code == 0
    done = attsvm("report", "t.npz", "--run", "run.npz", "-o", "page.html")
    assert done.code == 0, done.err
    text = (tmp_path / "page.html").read_text()
    data = json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.S).group(1))
    queries = data["queries"]
    assert queries["visible"] == mask.sum(axis=1).tolist()
    assert queries["reach"] == [7, 6, 7, 4]
    assert queries["hidden"] == [np.flatnonzero(~row[:reach]).tolist() for row, reach in zip(mask, queries["reach"])]
    assert [len(one) for one in data["plane"]["scores"]] == queries["reach"]
    for i, one in enumerate(data["runs"][0]["attention"]):
        assert mask[i, one["tokens"]].all()


@pytest.mark.parametrize("arrays, words", [
    (dict(visible=MASKS["gaps"] & (np.arange(4)[:, None] != 2)), "visible[2] has no True"),
    (dict(visible=MASKS["gaps"][:3]), "visible has type bool and shape (3,7); must be (4,7) bool or (4) integers"),
    (dict(visible=MASKS["gaps"], select=[0, 2, 0, 3]), "select[1] = 2; must be a visible token, 1, 3, 5"),
    (dict(visible=MASKS["gaps"], select=np.ones((4, 7), bool)), "select[0,1] = True; query 0 sees only tokens 0, 2"),
    (dict(visible=MASKS["gaps"].astype(float)), "visible has shape (4,7) and numbers; a mask must be bool"),
    (dict(visible=MASKS["gaps"].astype(np.int64)), "visible has shape (4,7) and numbers; a mask must be bool"),
])
def test_refusals(attsvm, task_file, tmp_path, arrays, words):
    path = task_file(tokens=TOKENS, queries=QUERIES, **arrays)
    done = attsvm("solve", path, "-o", tmp_path / "s.npz")
    assert done.code == 2 and words in done.err and len(done.lines()) == 1
    assert not (tmp_path / "s.npz").exists()


def test_info_tells_what_is_copied(attsvm, task_file):
    out = attsvm("info", task_file(tokens=TOKENS, queries=QUERIES, visible=MASKS["gaps"])).out
    assert "masked" in out and "7 tokens copied next to each other" in out
    assert "tokens copied" not in attsvm("info", task_file(tokens=TOKENS, queries=QUERIES, visible=MASKS["windows"])).out
