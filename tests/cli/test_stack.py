"""Stacks of layers, beside a NumPy prototype with a backward pass of its own, and what is said about their heads."""

import json

import numpy as np
import pytest


def gradients(tokens, labels, head, W, V, causal, A=None, B=None):
    """∂L/∂W of every head, by the chain rule over whole arrays."""
    n, T, d = tokens.shape
    total = np.zeros_like(W)
    if A is None:
        A = B = np.zeros((len(W), 1, d))
    mask = np.where(np.arange(T)[None, :] <= np.arange(T)[:, None], 0, -np.inf) if causal else np.zeros((T, T))
    for X0, y in zip(tokens, labels):
        X, kept, slopes = X0, [], []
        for layer in range(len(W)):
            out = X.copy()
            for h in range(W.shape[1]):
                logits = X @ W[layer, h].T @ X.T + mask  # [q,t] = x_t' W x_q
                S = np.exp(logits - logits.max(1, keepdims=True))
                S /= S.sum(1, keepdims=True)
                kept.append((layer, h, X, S))
                out = out + S @ X @ V[layer, h]
            hidden = out @ A[layer].T
            slopes.append(hidden > 0)
            X = out + np.maximum(hidden, 0) @ B[layer]
        G = np.zeros_like(X)
        G[-1] = -y / (1 + np.exp(y * X[-1] @ head)) * head / n
        below = G
        for layer, h, X, S in reversed(kept):
            if h == W.shape[1] - 1:
                G = below + (below @ B[layer].T * slopes[layer]) @ A[layer]
                below = G.copy()  # the residual
            dS = G @ (X @ V[layer, h]).T
            dA = S * (dS - (S * dS).sum(1, keepdims=True))
            total[layer, h] += X.T @ dA.T @ X
            below += S.T @ G @ V[layer, h].T + dA.T @ X @ W[layer, h].T + dA @ X @ W[layer, h]
    return total


@pytest.fixture
def task(attsvm, tmp_path):
    path = tmp_path / "task.npz"
    sizes = ["--n", 4, "--T", 5, "--d", 6]
    assert attsvm("generate", "random", "--attention", "prompt", *sizes, "--seed", 3, "-o", path).code == 0
    return path


@pytest.mark.parametrize("options, causal", [([], True), (["--full"], False), (["--mlp", 7], True),
                                             (["--full", "--mlp", 3], False)])
def test_steps_are_those_of_the_prototype(attsvm, task, tmp_path, options, causal):
    run = tmp_path / "stack.npz"
    done = attsvm("stack", task, "--layers", 3, "--heads", 2, "--init", "random", "--steps", 25, *options, "-o", run)
    assert done.code == 0, done
    with np.load(task) as t, np.load(run) as r:
        tokens, head = t["tokens"], t["head"]
        labels = t["labels"] if "labels" in t else np.ones(len(tokens))
        assert r["record_step"][0] == 0 and r["record_step"][-1] == 25 and bool(r["causal"]) == causal
        W, V, mlp = r["record_W"][0].copy(), r["V"], (r["A"], r["B"]) if "--mlp" in options else ()
        for _ in range(25):
            g = gradients(tokens, labels, head, W, V, causal, *mlp)
            W -= 0.1 * g / np.linalg.norm(g, axis=(2, 3), keepdims=True)
        assert np.abs(W - r["W"]).max() < 1e-10
        assert np.array_equal(r["W"], r["record_W"][-1])


def test_heads_turn_to_the_svms_of_live_positions_alone(attsvm, task, tmp_path):
    run, heads = tmp_path / "stack.npz", tmp_path / "heads"
    done = attsvm("stack", task, "--steps", 4000, "-o", run, "--head-tasks", heads, "--json")
    assert done.code == 0, done
    fields = done.json()
    assert fields["stopped"] is None and fields["askers"] == "live" and fields["log_gradient_norm"][0] < -50
    for head in fields["judged"]:
        path, solution = heads / f"layer{head['layer']}_head{head['head']}.npz", tmp_path / "s.npz"
        solved = attsvm("solve", path, "-o", solution, "--force", "--json")
        assert solved.code == 0 and attsvm("verify", path, solution).code == 0
        assert abs(solved.json()["objective"] - head["objective"]) < 1e-9 * head["objective"]
        with np.load(run) as r, np.load(solution) as s, np.load(path) as t:
            W, best = r["W"][head["layer"], head["head"]], s["W"]
            cosine = (W * best).sum() / np.linalg.norm(W) / np.linalg.norm(best)
            assert len(t["query_token"]) == head["queries"]
        assert abs(cosine - head["last_correlation"]["value"]) < 1e-9
        assert head["last_correlation"]["value"] > 0.99 and head["last_rho"]["value"] > 0.9
        assert len(head["last_rho"]["null"]) == 10 and max(head["last_rho"]["null"]) < 0.8
    everywhere = attsvm("check", task, "--run", run, "--askers", "all", "--null", 0, "--json").json()["judged"]
    assert everywhere[0]["queries"] == 20 and everywhere[0]["last_rho"]["value"] < fields["judged"][0]["last_rho"]["value"]
    again = attsvm("check", task, "--run", run, "--json").json()
    assert again["judged"] == fields["judged"] and "2 layers of 1 head, causal" in again["settings"]
    table = attsvm("check", task, "--run", run).out
    assert len(table.splitlines()) == 4 and "live positions" in table


def test_heads_are_judged_on_what_mlps_leave(attsvm, task, tmp_path):
    run, heads = tmp_path / "stack.npz", tmp_path / "heads"
    options = ["--mlp", 5, "--head-tasks", heads]
    done = attsvm("stack", task, *options, "--steps", 4000, "-o", run, "--json")
    assert done.code == 0 and done.json()["mlp"] == 5
    with np.load(task) as t, np.load(run) as r, np.load(heads / "layer1_head0.npz") as read:
        assert r["A"].shape == r["B"].shape == (2, 5, 6) and "record_A" not in r
        W, V, A, B = (r[name][0] for name in "WVAB")
        for X, found in zip(t["tokens"], read["tokens"].reshape(t["tokens"].shape)):
            for q, x in enumerate(X):
                weights = np.exp((logits := X[:q + 1] @ W[0] @ x) - logits.max())
                x = x + weights / weights.sum() @ X[:q + 1] @ V[0]
                assert np.abs(found[q] - x - np.maximum(A @ x, 0) @ B).max() < 1e-10
    again = attsvm("check", task, "--run", run, "--json").json()
    assert again["judged"] == done.json()["judged"] and "2 layers of 1 head, MLP of 5, causal" in again["settings"]
    assert all(head["last_rho"]["value"] > max(head["last_rho"]["null"]) for head in again["judged"])
    assert "2 layers of 1 head, MLP of 5 units, 4000 steps" in attsvm("stack", task, *options, "--steps", 4000,
                                                                    "-o", run, "--force").out


def test_bytes_do_not_depend_on_threads(attsvm, task, tmp_path):
    files = []
    for threads in (1, 3):
        files.append(tmp_path / f"{threads}.npz")
        options = ["--heads", 2, "--mlp", 4, "--train-values", "--one-norm", "--steps", 30, "--records", 5]
        assert attsvm("stack", task, *options, "--threads", threads, "-o", files[-1]).code == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    with np.load(files[0]) as run:
        for name in "VAB":
            record = run[f"record_{name}"]
            assert np.array_equal(record[-1], run[name]) and not np.array_equal(record[0], run[name])


@pytest.mark.parametrize("arrays, words", [
    (dict(queries=np.ones((2, 3))), "queries are given; in a stack the tokens ask"),
    (dict(keys=np.ones((2, 3, 4))), "keys are given"),
    (dict(head=None), "head is missing"),
    (dict(query_token=[2, 0], visible=[1, 1]), "query_token[0] = 2"),
])
def test_what_a_stack_cannot_read(attsvm, task_file, tmp_path, arrays, words):
    rng = np.random.default_rng(1)
    contents = {"tokens": rng.normal(size=(2, 3, 3)), "head": np.ones(3), **arrays}
    path = task_file(**{name: array for name, array in contents.items() if array is not None})
    result = attsvm("stack", path, "-o", tmp_path / "s.npz")
    assert result.code == 2 and words in result.err and str(path) in result.err, result
    assert not (tmp_path / "s.npz").exists()


def test_a_stack_of_another_task_is_refused(attsvm, task, task_file, tmp_path):
    run, rng = tmp_path / "stack.npz", np.random.default_rng(2)
    assert attsvm("stack", task, "--steps", 2, "-o", run).code == 0
    other = task_file(tokens=rng.normal(size=(2, 3, 6)), head=np.ones(6))
    result = attsvm("check", other, "--run", run)
    assert result.code == 2 and "another task" in result.err
    smaller = task_file(tokens=rng.normal(size=(2, 3, 4)), head=np.ones(4))
    assert "must be" in (err := attsvm("check", smaller, "--run", run).err) or "need" in err
    with np.load(run) as stored:
        broken = dict(stored)
    broken["record_W"] = broken["record_W"][:, :1]
    np.savez(tmp_path / "broken.npz", **broken)
    result = attsvm("check", task, "--run", tmp_path / "broken.npz")
    assert result.code == 2 and "broken.npz" in result.err and "record_W" in result.err


@pytest.mark.parametrize("name, change, words", [
    ("W", lambda W: W * np.nan, "W[0,0,0,0] = nan; must be finite"),
    ("W", lambda W: 2 * W, "W differs from the last matrices of record_W"),
    ("record_step", lambda steps: steps[::-1], "record_step[1]"),
    ("V", lambda V: 2 * V, "V differs from the last matrices of record_V"),
    ("A", lambda A: A * np.inf, "A[0,0,0] = "),
    ("A", lambda A: A[:, :, :4], "A has shape (2,3,4); must be (2,h,6)"),
    ("B", lambda B: B[:, :2], "B has shape (2,2,6); must be (2,3,6)"),
    ("B", None, "B is missing; a stack with A must have it"),
    ("record_A", None, "record_A is missing"),
    ("record_B", lambda record: record + 1, "B differs from the last matrices of record_B"),
])
def test_a_file_that_contradicts_itself_is_refused(attsvm, task, tmp_path, name, change, words):
    assert attsvm("stack", task, "--mlp", 3, "--train-values", "--steps", 20, "-o", tmp_path / "s.npz").code == 0
    arrays = dict(np.load(tmp_path / "s.npz"))
    changed = arrays.pop(name)
    np.savez(tmp_path / "bad.npz", **arrays, **({name: change(changed)} if change else {}))
    result = attsvm("check", task, "--run", tmp_path / "bad.npz")
    assert result.code == 2 and words in result.err and result.out == "", result


def test_what_does_not_apply_is_refused(attsvm, task, tmp_path):
    run, ordinary = tmp_path / "stack.npz", tmp_path / "run.npz"
    assert attsvm("stack", task, "--steps", 2, "-o", run).code == 0
    assert attsvm("train", task, "--steps", 2, "-o", ordinary).code == 0
    for option in (["--head", 0], ["--norm", "lp:3"], ["--threshold", 0.1], ["--enumerate"], ["--limit", 5]):
        result = attsvm("check", task, "--run", run, *option)
        assert result.code == 2 and f"{option[0]} cannot be used with a stack" in result.err, result
    for option in (["--askers", "all"], ["--null", 3], ["--seed", 3]):
        for words in ([], ["--run", ordinary]):
            result = attsvm("check", task, *words, *option)
            assert result.code == 2 and f"{option[0]} needs --run, a stack" in result.err, result
    for optimizer in ("muon", "steepest:nuc"):
        result = attsvm("stack", task, "--one-norm", "--optimizer", optimizer, "-o", tmp_path / "other.npz")
        assert result.code == 2 and "one-norm has no meaning with" in result.err, result


def test_errors_that_no_task_could_mend_do_not_name_it(attsvm, task, tmp_path):
    result = attsvm("stack", task, "--values", "identity", "--heads", 2, "-o", tmp_path / "stack.npz")
    assert result.code == 2 and "heads = 2" in result.err and str(task) not in result.err


def test_judging_ends_at_a_limit(attsvm, task, tmp_path):
    run = tmp_path / "stack.npz"
    assert attsvm("stack", task, "--steps", 2, "-o", run).code == 0
    result = attsvm("check", task, "--run", run, "--time-limit", 1e-9, "--json")
    fields = result.json()
    assert result.code == 4 and not fields["complete"] and fields["time_limit"] == 1e-9
    assert set(fields["unsolved"].values()) == {"limit"} and fields["judged"][0]["rho"][-1] is None
    result = attsvm("stack", task, "--steps", 2, "--time-limit", 1e-9, "-o", run, "--force", "--json")
    assert result.code == 4 and not result.json()["complete"] and len(result.json()["judged"]) == 2


def test_judging_ends_with_ctrl_c(attsvm, stopped, task, tmp_path):
    run, more = tmp_path / "stack.npz", ["--null", 10**9, "--json"]
    result = stopped("stack", task, "--steps", 20, "-o", run, *more, sign="judging: SVM [1-9]")
    fields = json.loads(result.out)
    assert result.code == 130 and fields["steps"] == 20 and fields["stopped"] is None and not fields["complete"]
    assert fields["judged"][0]["status"] == "optimal" and fields["judged"][0]["rho"][-1] > 0
    result = stopped("check", task, "--run", run, *more, sign="judging: SVM [1-9]")
    assert result.code == 130 and not json.loads(result.out)["complete"]
    result = stopped("check", task, "--run", run, *more[:2], sign="judging: SVM [1-9]")
    assert result.code == 130 and "null: the mean of " in result.out
    assert str(10**9) not in result.out  # but how many there are


def test_head_tasks_that_exist_are_found_before_training(attsvm, task, tmp_path):
    run, heads = tmp_path / "stack.npz", tmp_path / "heads"
    heads.mkdir()
    (heads / "layer1_head0.npz").write_bytes(b"old")
    result = attsvm("stack", task, "--steps", 2, "--head-tasks", heads, "-o", run)
    assert result.code == 2 and "layer1_head0.npz: already exists" in result.err and not run.exists()
    assert [file.read_bytes() for file in heads.iterdir()] == [b"old"]
    assert attsvm("stack", task, "--steps", 2, "--head-tasks", heads, "-o", run, "--force").code == 0
    own = tmp_path / "layer0_head0.npz"
    result = attsvm("stack", task, "--steps", 2, "--head-tasks", tmp_path, "-o", own)
    assert result.code == 2 and "also the file of the stack" in result.err and not own.exists()
    (tmp_path / "file").write_bytes(b"")
    result = attsvm("stack", task, "--steps", 2, "--head-tasks", tmp_path / "file", "-o", own)
    assert result.code == 2 and "cannot create the folder" in result.err and not own.exists()


def test_the_null_has_the_seed_of_the_stack(attsvm, task, tmp_path):
    run = tmp_path / "stack.npz"
    seed = 2**64 - 1
    first = attsvm("stack", task, "--steps", 20, "--seed", seed, "-o", run, "--json").json()
    again = attsvm("check", task, "--run", run, "--json").json()
    assert again["seed"] == seed and again["judged"] == first["judged"]
    other = attsvm("check", task, "--run", run, "--seed", 6, "--json").json()
    assert other["seed"] == 6 and other["judged"] != first["judged"]
    assert "with random signs, seed 6." in attsvm("check", task, "--run", run, "--seed", 6).out


def test_a_run_with_an_array_V_is_no_stack(attsvm, task, tmp_path):
    run, other = tmp_path / "run.npz", tmp_path / "other.npz"
    assert attsvm("train", task, "--steps", 5, "-o", run).code == 0
    with np.load(run) as stored:
        np.savez(other, V=np.eye(6), **stored)
    result = attsvm("check", task, "--run", other, "--json")
    assert result.code == 0 and "verdict" in result.json()


def test_a_page_of_a_stack(attsvm, task, tmp_path):
    stack, run, page = tmp_path / "stack.npz", tmp_path / "run.npz", tmp_path / "page.html"
    assert attsvm("stack", task, "--heads", 2, "--steps", 100, "--null", 0, "-o", stack).code == 0
    told = attsvm("report", task, "--run", stack, "-o", page, "--json").json()
    assert (told["layers"], told["heads"], told["null_draws"], told["runs"]) == (2, 2, 10, [str(stack)])
    data = json.loads(page.read_text().split('id="data">')[1].split("</script>")[0])
    assert data["judged"][0]["last_rho"] | {"mean_distance": 0} == attsvm(
        "check", task, "--run", stack, "--json").json()["judged"][0]["last_rho"] | {"mean_distance": 0}
    assert attsvm("train", task, "--steps", 5, "-o", run).code == 0
    no = tmp_path / "no.html"
    for args in (["--run", run], ["--head", 0], ["--coordinates", "0,1"]):
        result = attsvm("report", task, "--run", stack, *args, "-o", no)
        assert result.code == 2 and "stack.npz: is a stack" in result.err and not no.exists(), result
    other = tmp_path / "other.npz"
    assert attsvm("generate", "random", "--attention", "prompt", "--n", 4, "--T", 5, "--d", 6, "--seed", 4, "-o",
                  other).code == 0
    result = attsvm("report", other, "--run", stack, "-o", no)
    assert result.code == 2 and result.err.startswith(f"attsvm: {stack}: ") and not no.exists(), result


def test_the_page_of_a_stack_whose_judging_ctrl_c_ends(attsvm, stopped, tmp_path):
    task, stack, page = tmp_path / "t.npz", tmp_path / "stack.npz", tmp_path / "page.html"
    assert attsvm("generate", "random", "--attention", "prompt", "--n", 60, "--T", 20, "--d", 16, "-o", task).code == 0
    assert attsvm("stack", task, "--layers", 3, "--heads", 4, "--steps", 3, "--null", 0, "-o", stack).code == 0
    result = stopped("report", task, "--run", stack, "-o", page, "--json", sign="judging: SVM ")
    told = result.json()
    assert result.code == 130 and not told["complete"] and told["bytes"] == page.stat().st_size
    data = json.loads(page.read_text().split('id="data">')[1].split("</script>")[0])
    assert not data["complete"] and len(data["judged"]) == 12
    assert None in [head["rho"][-1] for head in data["judged"]]


def test_the_page_of_many_sequences_shows_the_attention_of_the_first(attsvm, tmp_path):
    task, stack, page = tmp_path / "t.npz", tmp_path / "stack.npz", tmp_path / "page.html"
    assert attsvm("generate", "random", "--attention", "prompt", "--n", 1005, "--T", 2, "--d", 3, "-o", task).code == 0
    assert attsvm("stack", task, "--layers", 2, "--steps", 5, "--null", 0, "-o", stack).code == 0
    assert attsvm("report", task, "--run", stack, "-o", page).code in (0, 4)
    data = json.loads(page.read_text().split('id="data">')[1].split("</script>")[0])["attention"]
    assert data["sequences"] == 1000
    for name in ("positions", "live"):
        assert [len(layer) for layer in data[name]] == [1000, 1000]
    with np.load(task) as given, np.load(stack) as run:
        X, W = given["tokens"], run["W"].reshape(2, -1, 3, 3)[0, 0]
    for s in (0, 999):
        assert data["positions"][0][s] == [0, 1]
        logits = X[s] @ W @ X[s, 1]
        np.testing.assert_allclose(data["weights"][0][0][s][1], np.exp(logits) / np.exp(logits).sum(), rtol=1e-12)
