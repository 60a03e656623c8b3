"""Runs of many heads, against an independent prototype in NumPy: training, files, and every head's SVM."""

import numpy as np
import pytest

H, N, T, D, STEP = 3, 4, 5, 6, 0.1


@pytest.fixture(scope="module")
def task(attsvm, tmp_path_factory):
    file = tmp_path_factory.mktemp("heads") / "task.npz"
    assert attsvm("generate", "random", "--n", N, "--T", T, "--d", D, "--seed", 3, "-o", file).code == 0
    return file


def prototype(task, v, steps, shared, W=None, joint=False):
    """Normalized gradient descent on sum_h v_h' X' softmax(X W_h z), logistic loss, in plain NumPy. Differences to the
    token of largest attention keep gradients apart from rounding while softmax saturates."""
    with np.load(task) as arrays:
        X, Z, y = arrays["tokens"].astype(float), arrays["queries"].astype(float), arrays["labels"].astype(float)
    W = np.zeros((len(v), X.shape[2], Z.shape[1])) if W is None else W.copy()
    v = v.copy()
    for _ in range(steps):
        f = np.zeros(len(y))
        parts, outputs = [], []
        for h in range(len(v)):
            logits = np.einsum("itd,de,ie->it", X, W[h], Z)
            peak = logits.argmax(1)
            s = np.exp(logits - logits.max(1, keepdims=True))
            s /= s.sum(1, keepdims=True)
            first = X[np.arange(len(y)), peak][:, None]
            gap = (X - first) @ v[h]
            drift = (s * gap).sum(1)
            f += first[:, 0] @ v[h] + drift
            parts.append(np.einsum("it,itd->id", s * (gap - drift[:, None]), X - first))
            outputs.append(np.einsum("it,itd->id", s, X))
        slope = -y / (1 + np.exp(y * f)) / len(y)
        G = np.stack([np.einsum("i,id,ie->de", slope, part, Z) for part in parts])
        norm = np.sqrt((G**2).sum()) if shared else np.sqrt((G**2).sum((1, 2), keepdims=True))
        W -= STEP * G / norm
        if joint:
            g = np.einsum("i,hid->hd", slope, np.stack(outputs))
            v -= STEP * g / np.sqrt((g**2).sum())
    return W, v


@pytest.mark.parametrize("extra", [[], ["--shared-norm"], ["--joint"], ["--arithmetic", "plain"]])
def test_runs_are_those_of_the_prototype(attsvm, task, tmp_path, extra):
    out = tmp_path / "run.npz"
    facts = attsvm("train", task, "--heads", H, "--steps", 60, "--step", STEP, *extra, "-o", out, "--json").json()
    assert facts["heads"] == H and facts["shared_norm"] == ("--shared-norm" in extra)
    start = tmp_path / "start.npz"
    attsvm("train", task, "--heads", H, "--steps", 0, "-o", start)
    with np.load(out) as run, np.load(start) as first, np.load(task) as arrays:
        assert run["W"].shape == (H, D, D) and run["v"].shape == (H, D) and run["selected"].shape == (H, N)
        assert run["attention"].shape == (H, N, T) and run["record_W"].shape == (len(run["record_step"]), H, D, D)
        v = first["v"]
        assert np.array_equal(v[0], arrays["head"]) and np.allclose((v[1:]**2).sum(1), 1)
        W, values = prototype(task, v, 60, "--shared-norm" in extra, joint="--joint" in extra)
        assert np.abs(run["W"] - W).max() < 1e-9 and np.abs(run["v"] - values).max() < 1e-9
        assert np.array_equal(run["record_W"][-1], run["W"])
        assert facts["selected"] == run["selected"].tolist() == run["attention"].argmax(2).tolist()
        assert facts["norm"] == pytest.approx(np.sqrt((W**2).sum()), rel=1e-9)


def test_factors_of_every_head(attsvm, task, tmp_path):
    run = tmp_path / "run.npz"
    assert attsvm("train", task, "--heads", 2, "--param", "KQ", "--width", 2, "--steps", 5, "-o", run).code == 0
    with np.load(run) as arrays:
        assert arrays["K"].shape == (2, D, 2) and arrays["Q"].shape == (2, D, 2)
        assert np.allclose(arrays["W"], arrays["K"] @ arrays["Q"].transpose(0, 2, 1), atol=1e-14)


@pytest.fixture(scope="module")
def run(attsvm, task, tmp_path_factory):
    file = tmp_path_factory.mktemp("heads") / "run.npz"
    assert attsvm("train", task, "--heads", H, "--shared-norm", "--steps", 4000, "-o", file).code == 0
    return file


def test_every_head_is_judged_by_the_svm_of_its_own_selection(attsvm, task, run, tmp_path):
    check = attsvm("check", task, "--run", run, "--json").json()
    with np.load(run) as arrays:
        W, selected = arrays["W"], arrays["selected"]
    assert [head["selected"] for head in check["heads"]] == selected.tolist()
    assert check["distinct_selections"] == len({tuple(one) for one in selected.tolist()})
    assert check["tokens_per_query"] == np.mean([len(set(column)) for column in selected.T])
    for h, head in enumerate(check["heads"]):
        solution = tmp_path / f"{h}.npz"
        solved = attsvm("solve", task, "--select", run, "--head", h, "-o", solution, "--json").json()
        assert solved["status"] == "optimal" and solved["head"] == h
        assert attsvm("verify", task, solution).code == 0
        with np.load(solution) as arrays:
            svm = arrays["W"]
        correlation = (svm * W[h]).sum() / np.linalg.norm(svm) / np.linalg.norm(W[h])
        assert head["correlation_fro"][-1] == pytest.approx(correlation, abs=1e-12)
        assert 1 - correlation < 0.05
        alone = attsvm("check", task, "--run", run, "--head", h, "--json").json()
        assert alone["correlation_fro"] == head["correlation_fro"]
    table = attsvm("check", task, "--run", run)
    assert table.code == 0 and f"{H} heads with" in table.out


def test_a_run_continues_from_another(attsvm, task, tmp_path):
    whole, half, rest = (tmp_path / name for name in ("whole.npz", "half.npz", "rest.npz"))
    for file, steps, more in ((whole, 40, []), (half, 20, []), (rest, 20, ["--init", half])):
        assert attsvm("train", task, "--heads", H, "--steps", steps, *more, "-o", file).code == 0
    with np.load(whole) as one, np.load(rest) as two:
        assert np.array_equal(one["W"], two["W"]) and np.array_equal(one["v"], two["v"])


def test_the_task_holds_one_v_per_head(attsvm, task, tmp_path):
    many, run = tmp_path / "many.npz", tmp_path / "run.npz"
    with np.load(task) as arrays:
        values = np.stack([arrays["head"], -arrays["head"]])
        np.savez(many, **{**arrays, "head": values})
    assert attsvm("train", many, "--heads", 2, "--steps", 10, "-o", run).code == 0
    with np.load(run) as arrays:
        assert np.array_equal(arrays["v"], values)
    assert "one v for each of 2 heads of attention" in attsvm("info", many).out
    best = attsvm("check", many, "--head", 1, "--json").json()
    assert best["optimal"] != attsvm("check", task, "--json").json()["optimal"] and best["head"] == 1
    assert attsvm("solve", many, "--head", 1, "-o", tmp_path / "s.npz").code == 0
    for args, words in (
            (["train", many, "-o", tmp_path / "x.npz"], "head has 2 rows, one per head; heads = 1"),
            (["solve", many, "-o", tmp_path / "x.npz"], "choose one with --head"),
            (["solve", many, "--head", 2, "-o", tmp_path / "x.npz"], "--head 2: must be from 0 to 1"),
            (["solve", many, "--select", run, "-o", tmp_path / "x.npz"], "is a run of 2 heads; choose one with --head"),
            (["report", many, "--run", run, "--run", run, "-o", tmp_path / "x.html"], "choose one with --head"),
            (["check", many, "--run", run, "--head", 2], "--head 2: must be from 0 to 1"),
            (["check", task, "--head", 0], "the task has no head with one row per head")):
        result = attsvm(*args)
        assert result.code == 2 and words in result.err and len(result.lines()) == 1, result


def test_a_page_shows_the_head_that_is_chosen(attsvm, task, run, tmp_path):
    page = tmp_path / "page.html"
    told = attsvm("report", task, "--run", run, "--head", 2, "-o", page, "--json").json()
    assert told["verdict"] == attsvm("check", task, "--run", run, "--head", 2, "--json").json()["verdict"]
    assert "run.npz, head 2" in page.read_text()


def test_a_page_shows_all_heads(attsvm, task, run, tmp_path):
    page, solution = tmp_path / "page.html", tmp_path / "svm.npz"
    told = attsvm("report", task, "--run", run, "-o", page, "--json").json()
    check = attsvm("check", task, "--run", run, "--json").json()
    assert told["heads"] == told["heads_in_full"] == len(check["heads"])
    assert told["verdicts"] == [head["verdict"] for head in check["heads"]]
    assert told["distinct_selections"] == check["distinct_selections"]
    assert told["tokens_per_query"] == check["tokens_per_query"]
    assert attsvm("solve", task, "-o", solution).code == 0
    result = attsvm("report", task, "--run", run, "--solution", solution, "-o", tmp_path / "no.html")
    assert result.code == 2 and "choose one with --head" in result.err and not (tmp_path / "no.html").exists()


def test_one_head_starts_from_one_matrix_and_one_vector(attsvm, task, tmp_path):
    start, out = tmp_path / "start.npz", tmp_path / "run.npz"
    for arrays, words in (({"W0": np.zeros((1, D, D))}, f"W0 has shape (1,{D},{D}); must be a matrix or a vector"),
                          ({"W0": np.zeros((2, D // 2, D))}, "W0 has shape"),
                          ({"v0": np.ones((2, D // 2))}, f"v0 has shape (2,{D // 2}); must be a vector")):
        np.savez(start, **arrays)
        result = attsvm("train", task, "--steps", 1, "--init", start, "-o", out)
        assert result.code == 2 and words in result.err and len(result.lines()) == 1, result
    np.savez(start, W0=np.zeros((H, D, D)), v0=np.ones((H, D)))
    assert attsvm("train", task, "--heads", H, "--steps", 1, "--init", start, "-o", out).code == 0


def test_theory_proves_nothing_for_many_heads_and_changing_temperatures(attsvm, task, run, tmp_path):
    heads = attsvm("check", task, "--run", run, "--json").json()["heads"]
    assert [one["implied_norm_proven"] for one in heads] == [False] * H
    assert not attsvm("check", task, "--run", run, "--head", 0, "--json").json()["implied_norm_proven"]
    for temperature, proven in (("2", True), ("2:1", False)):
        file = tmp_path / f"{proven}.npz"
        assert attsvm("train", task, "--temperature", temperature, "--steps", 50, "-o", file).code == 0
        assert attsvm("check", task, "--run", file, "--json").json()["implied_norm_proven"] is proven


def test_a_page_compares_a_head_with_runs_of_one(attsvm, task, run, tmp_path):
    one, page = tmp_path / "one.npz", tmp_path / "page.html"
    assert attsvm("train", task, "--steps", 20, "-o", one).code == 0
    told = attsvm("report", task, "--run", one, "--run", run, "--head", 2, "-o", page)
    assert told.code == 0 and "run.npz, head 2" in told.out and "one.npz:" in told.out, told
    for runs in ([], ["--run", one]):
        result = attsvm("report", task, *runs, "--head", 2, "-o", tmp_path / "no.html")
        assert result.code == 2 and "--head 2: there is no run of many heads" in result.err, result
        assert not (tmp_path / "no.html").exists()


def test_next_token_tasks_have_one_head(attsvm, tmp_path):
    corpus = tmp_path / "corpus.npz"
    np.savez(corpus, ids=np.array([0, 1, 2, 1, 0]), offsets=np.array([0, 3, 5]), embeddings=np.eye(3),
             next=np.array([1, 1]))
    for words in (["check", corpus], ["solve", corpus, "-o", tmp_path / "s.npz"]):
        assert attsvm(*words).code == 0
        result = attsvm(*words, "--head", 1, "--force") if words[0] == "solve" else attsvm(*words, "--head", 1)
        assert result.code == 2 and "--head cannot be used with a next-token task" in result.err, result
