"""Runs of many heads: their arrays, each head as a run of its own, and what takes one head alone."""

import attsvm
import numpy as np
import pytest


@pytest.fixture(scope="module")
def task():
    return attsvm.generate("random", n=4, T=5, d=6, seed=3)


@pytest.fixture(scope="module")
def run(task):
    return attsvm.train(task, heads=3, shared_norm=True, steps=2000, record="every:500")


def test_each_head_is_a_run_of_its_own(task, run, tmp_path):
    assert run.heads == 3 and run.W.shape == (3, 6, 6) and run.record_W.shape == (5, 3, 6, 6)
    assert np.array_equal(run.v[0], task.head)
    for h in range(3):
        head = run.head(h)
        assert head.heads == 1 and np.array_equal(head.W, run.W[h]) and np.array_equal(head.record_W, run.record_W[:, h])
        check = attsvm.check(task, head)
        svm = attsvm.solve(task, select=head.selected)
        assert svm.status == "optimal" and attsvm.verify(task, svm).valid
        assert check.correlation_fro == pytest.approx(head.correlation(svm), abs=1e-12, nan_ok=True)
        assert check.correlation_fro[-1] > 0.95
    run.save(tmp_path / "run.npz")
    again = attsvm.load(tmp_path / "run.npz")
    assert again.heads == 3 and np.array_equal(again.head(2).attention, run.head(2).attention)


def test_what_takes_one_head_refuses_many(task, run):
    with pytest.raises(attsvm.InputError, match=r"is a run of 3 heads; choose one with run.head\(h\)"):
        attsvm.check(task, run)
    with pytest.raises(ValueError, match="h = 3"):
        run.head(3)
    with pytest.raises(ValueError, match="this run has one head"):
        run.head(0).head(0)


def test_runs_go_on_from_others_and_from_given_values(task, run):
    first = attsvm.train(task, heads=3, shared_norm=True, steps=1000)
    assert np.array_equal(attsvm.train(task, heads=3, shared_norm=True, steps=1000, init=first).W, run.W)
    values = np.arange(12.0).reshape(2, 6)
    assert np.array_equal(attsvm.train(task, heads=2, steps=1, init={"v0": values}).v, values)
    many = attsvm.Task(task.tokens, queries=task.queries, labels=task.labels, head=values)
    (one,) = attsvm.train_many([many], heads=2, steps=3)
    assert np.array_equal(one.W, attsvm.train(many, heads=2, steps=3).W)


def test_one_head_starts_from_one_matrix_and_one_vector(task):
    W, v = np.zeros((3, 6, 6)), np.arange(6.0)
    for init, words in (({"W0": W[:1]}, r"W0 has shape \(1,6,6\); must be a matrix or a vector$"),
                        ({"W0": np.zeros((2, 3, 6))}, "W0 has shape"),
                        ({"v0": v.reshape(2, 3)}, r"v0 has shape \(2,3\); must be a vector")):
        with pytest.raises(attsvm.InputError, match=words):
            attsvm.train(task, steps=1, init=init)
    assert attsvm.train(task, heads=3, steps=1, init={"W0": W}).heads == 3
    with pytest.raises(attsvm.InputError, match="W has shape"):
        task.attention(W[:1])


def test_a_page_shows_all_heads(task, run, tmp_path):
    page = attsvm.report(task, run, out=tmp_path / "page.html")
    assert page.data["kind"] == "heads" and page.verdict is None
    assert [one["verdict"] for one in page.data["runs"]] == [attsvm.check(task, run.head(h)).verdict for h in range(3)]
    assert page.data["tokens_per_query"] == np.mean([len(set(tokens)) for tokens in run.selected.T])
    with pytest.raises(attsvm.InputError, match="is a run of 3 heads; a page shows all of them, or one"):
        attsvm.report(task, [run, run.head(0)], out=tmp_path / "no.html")
    assert not (tmp_path / "no.html").exists()


def test_how_hard_the_attention_of_a_head_is(task, run):
    attention = run.attention[1]
    found = task.selecting(run.W[1])
    assert found.entropy == pytest.approx(-np.sum(attention * run.log_attention[1]) / len(attention), rel=1e-12)
    scores = [task.tokens[i, t] @ task.head for i, t in enumerate(run.selected[1])]
    assert found.accuracy == np.mean(np.array(scores) * task.labels > 0)
    with pytest.raises(attsvm.InputError, match="W has shape"):
        task.selecting(np.zeros((6, 5)))


def test_the_attention_of_a_task_without_a_single_head_cannot_be_judged(task):
    for head, words in ((None, "head is missing; selecting needs it"),
                        (np.ones((2, 6)), "head has one v per head of attention; selecting needs a single v")):
        other = attsvm.Task(task.tokens, queries=task.queries, labels=task.labels, head=head)
        with pytest.raises(attsvm.InputError, match=words):
            other.selecting(np.zeros((6, 6)))
