"""Next-token tasks, against an independent prototype in NumPy: graphs, the graph SVM, training, the finite part."""

import os
import subprocess
import sys

import numpy as np
import pytest


def graphs_of(ids, offsets, labels, K):
    """last token -> (edges, reach): reach[i, j] if a path leads from i to j; by transitive closure."""
    graphs = {}
    for s, y in enumerate(labels):
        sequence = ids[offsets[s]:offsets[s + 1]]
        edges = graphs.setdefault(int(sequence[-1]), set())
        edges.update((int(y), int(x)) for x in sequence if x != y)
    out = {}
    for last, edges in sorted(graphs.items()):
        reach = np.eye(K, dtype=bool)
        for i, j in edges:
            reach[i, j] = True
        for k in range(K):
            reach |= reach[:, k:k + 1] & reach[k:k + 1, :]
        out[last] = (edges, reach)
    return out


def rows_of(ids, offsets, labels, K):
    """(last, keep, drop, equal) in the order of files."""
    rows = []
    for last, (edges, reach) in graphs_of(ids, offsets, labels, K).items():
        both = reach & reach.T
        for j in range(K):
            first = int(np.argmax(both[j]))
            if first != j:
                rows.append((last, first, j, True))
        rows += [(last, i, j, False) for i, j in edges if not both[i, j]]
    return sorted(rows)


def nnls(E, f):
    """min |E u - f| over u >= 0 (Lawson and Hanson)."""
    u, passive = np.zeros(E.shape[1]), np.zeros(E.shape[1], bool)
    for _ in range(10 * E.shape[1]):
        gain = np.where(passive, -np.inf, E.T @ (f - E @ u))
        if gain.max() <= 1e-12:
            break
        passive[np.argmax(gain)] = True
        while True:
            z = np.zeros_like(u)
            z[passive] = np.linalg.lstsq(E[:, passive], f, rcond=None)[0]
            if z[passive].min() > 0:
                break
            falling = passive & (z <= 0)
            u += np.min(u[falling] / (u[falling] - z[falling])) * (z - u)
            passive &= u > 1e-14
        u = z
    return u


def least_norm(A, equal):
    """argmin |w| with A w = 0 on equal rows and >= 1 on the others; None if there is none."""
    span = np.zeros((A.shape[1], 0))
    if equal.any():
        _, s, Vt = np.linalg.svd(A[equal], full_matrices=False)
        span = Vt[s > 1e-10 * s[0]].T
    G = A[~equal] - A[~equal] @ span @ span.T
    if not len(G):
        return np.zeros(A.shape[1])
    E = np.vstack([G.T, np.ones(len(G))])
    f = np.r_[np.zeros(A.shape[1]), 1]
    r = E @ nnls(E, f) - f
    return None if np.linalg.norm(r) < 1e-9 else -r[:-1] / r[-1]


def loss_and_gradient(arrays, W, cut=None):
    """Mean of -log of the attention on all copies of the label; cut(s): the places of a sequence that count."""
    ids, offsets, E = arrays["ids"], arrays["offsets"], arrays["embeddings"]
    loss, gradient = 0, np.zeros_like(W)
    n = len(arrays["next"])
    for s, y in enumerate(arrays["next"]):
        sequence = ids[offsets[s]:offsets[s + 1]]
        z = E[sequence[-1]]
        if cut is not None:
            sequence = sequence[cut(s)]
        a = E[sequence] @ W @ z
        p = np.exp(a - a.max())
        p /= p.sum()
        on = (sequence == y) * p
        loss -= np.log(on.sum()) / n
        gradient += np.outer(E[sequence].T @ (p - on / on.sum()), z) / n
    return loss, gradient


def load(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def draw_many(draw):
    """Tasks of several shapes: cyclic, acyclic, ragged, with repeated tokens."""
    for seed, options in enumerate([(), ("--n", 12), ("--n", 20, "--vocabulary", 5, "--d", 4), ("--T", 9, "--d", 3),
                                    ("--n", 3, "--T", 3), ("--n", 8, "--shortest", 1, "--T", 6),
                                    ("--n", 40, "--vocabulary", 8, "--d", 2, "--T", 3),
                                    ("--n", 30, "--vocabulary", 9, "--d", 12, "--T", 6)]):
        yield draw("nexttoken", *options, "--instance", seed)


def test_rows_and_optimum_are_those_of_the_prototype(attsvm, solve, draw, tmp_path):
    seen = set()
    for task in draw_many(draw):
        arrays = load(task)
        E = arrays["embeddings"]
        rows = rows_of(arrays["ids"], arrays["offsets"], arrays["next"], len(E))
        A = np.array([np.outer(E[i] - E[j], E[k]).ravel() for k, i, j, _ in rows]).reshape(len(rows), -1)
        equal = np.array([row[3] for row in rows], bool)
        w = least_norm(A, equal)
        fields, solution, _ = solve(task, code=3 if w is None else 0)
        assert [tuple(row) for row in zip(*(solution[name].tolist() for name in
                                            ("row_query", "row_keep", "row_drop", "row_equal")))] == rows
        assert (solution["rhs"] == np.where(equal, 0, 1)).all()
        assert fields["problem"] == solution["problem"] == "graph" and "select" not in solution
        graphs = graphs_of(arrays["ids"], arrays["offsets"], arrays["next"], len(E))
        assert fields["graphs"] == len(graphs) and fields["edges"] == sum(len(edges) for edges, _ in graphs.values())
        assert fields["orders"] == (~equal).sum() and fields["constraints"] == len(rows)
        seen |= {"tied" if equal.any() else "free", "infeasible" if w is None else "solved"}
        if w is not None:
            assert fields["objective"] == pytest.approx(np.linalg.norm(w), rel=1e-7)
            assert np.abs(solution["W"].ravel() - w).max() <= 1e-5 * np.linalg.norm(w)
    assert seen >= {"tied", "solved", "infeasible"}


@pytest.mark.parametrize("norm", ["nuc", "spec", "max", "l1", "lp:3", "schatten:4"])
def test_every_norm_is_certified(solve, draw, norm):
    task = draw("nexttoken", "--n", 8, "--instance", 3)
    frobenius = solve(task)[1]["W"]
    fields, solution, _ = solve(task, "--norm", norm, "--tolerance", 1e-7)
    assert fields["status"] == "optimal"
    E, W = load(task)["embeddings"], solution["W"]
    value = np.einsum("kd,de,ke->k", E[solution["row_keep"]] - E[solution["row_drop"]], W, E[solution["row_query"]])
    assert (value - solution["rhs"] >= -1e-8).all()
    if norm == "nuc":
        assert fields["objective"] <= np.linalg.norm(frobenius, "nuc") * (1 + 1e-9)


def test_verify_rebuilds_the_rows(attsvm, solve, draw, tmp_path):
    task = draw("nexttoken", "--n", 12, "--d", 12, "--instance", 1)
    _, solution, _ = solve(task)
    assert solution["row_equal"].any() and not solution["row_equal"].all()
    strict, tied = np.argmin(solution["row_equal"]), np.argmax(solution["row_equal"])
    names = ("row_query", "row_keep", "row_drop", "row_equal", "rhs", "slack", "dual")

    def judged(**changed):
        np.savez(tmp_path / "changed.npz", **{**solution, **changed})
        return attsvm("verify", task, tmp_path / "changed.npz", "--json")

    assert judged().code == 0
    for k in (strict, tied):
        assert judged(**{name: np.delete(solution[name], k) for name in names}).code == 5
    for name in ("row_query", "row_keep", "row_drop"):
        other = solution[name].copy()
        other[strict] = (other[strict] + 1) % 6
        assert judged(**{name: other}).code == 5
    assert judged(problem=np.array("att")).code == 5
    assert judged(W=solution["W"] * 1.01).code == 5
    # Another label makes another graph.
    arrays = load(task)
    first = arrays["ids"][:arrays["offsets"][1]]
    arrays["next"][0] = first[first != arrays["next"][0]][0]
    np.savez(tmp_path / "other.npz", **arrays)
    assert attsvm("verify", tmp_path / "other.npz", tmp_path / "solution.npz").code == 5
    np.savez(tmp_path / "alone.npz", W=solution["W"])
    assert attsvm("verify", task, tmp_path / "alone.npz").code == 0
    np.savez(tmp_path / "alone.npz", W=-solution["W"])
    assert attsvm("verify", task, tmp_path / "alone.npz").code == 5


def test_repeated_edges_are_verified_in_linear_time(attsvm, tmp_path):
    """One graph of 65535 edges, one short of a power of two, then one of them again and again."""
    last = 362
    sequences = [np.r_[0, 169:last + 1], *(np.arange(i, last + 1) for i in range(1, last)),
                 np.r_[last - 1, np.full(200_000, last)]]
    np.savez(tmp_path / "task.npz", ids=np.concatenate(sequences), next=[s[0] for s in sequences],
             offsets=np.cumsum([0] + [len(s) for s in sequences]),
             embeddings=np.c_[-np.arange(last + 1.), np.ones(last + 1)])
    np.savez(tmp_path / "W.npz", W=np.array([[0., 1], [0, 0]]))  # logit -i of token i
    result = attsvm("verify", tmp_path / "task.npz", tmp_path / "W.npz")
    assert result.code == 0, result


GOOD = {"ids": np.array([0, 1, 2, 1, 0]), "offsets": np.array([0, 3, 5]), "embeddings": np.eye(3),
        "next": np.array([1, 1])}


@pytest.mark.parametrize("changed, words", [
    ({"ids": np.array([0, 1, 3, 1, 0])}, ["ids[2] = 3", "0 to 2"]),
    ({"ids": np.array([0, -1, 2, 1, 0])}, ["ids[1] = -1", "0 to 2"]),
    ({"ids": np.array([0., 1, 2, 1, 0])}, ["ids has type float64", "integers"]),
    ({"ids": np.zeros((5, 1), int)}, ["ids has shape (5,1)", "(N)"]),
    ({"next": np.array([1, 2])}, ["next[1] = 2", "sequence 1", "ids[3] to ids[4]"]),
    ({"next": np.array([1])}, ["next has shape (1)", "(2)"]),
    ({"offsets": np.array([0, 3, 3, 5]), "next": np.array([1, 1, 1])}, ["offsets[2] = 3", "no sequence may be empty"]),
    ({"offsets": np.array([0, 3])}, ["offsets[1] = 3", "5"]),
    ({"embeddings": np.eye(3) * np.nan}, ["embeddings[0,0]", "finite"]),
    ({"embeddings": np.ones(3)}, ["embeddings has shape (3)", "(K,d)"]),
    ({"tokens": np.ones((2, 3, 3))}, ["tokens and ids are both given"]),
    ({"keys": np.ones((2, 3, 3))}, ["keys and ids are both given"]),
    ({"queries": np.ones((2, 3))}, ["queries and ids are both given"]),
    ({"select": np.array([0, 0])}, ["select and ids are both given"]),
    ({"head": np.ones(3)}, ["head and ids are both given"]),
    ({"vocabulary": np.array(["a", "b"])}, ["vocabulary has 2 texts", "3"]),
    ({"ids": None}, ["ids is missing"]),
    ({"embeddings": None}, ["embeddings is missing"]),
    ({"offsets": None}, ["offsets is missing"]),
    ({"next": None}, ["next is missing"]),
])
def test_bad_files(attsvm, task_file, tmp_path, changed, words):
    path = task_file(**{k: v for k, v in {**GOOD, **changed}.items() if v is not None})
    for verb in ("info",), ("solve", "-o", tmp_path / "out.npz"), ("train", "-o", tmp_path / "out.npz"):
        result = attsvm(verb[0], path, *verb[1:])
        assert result.code == 2 and result.out == "" and len(result.lines()) == 1, result
        assert all(word in result.err for word in [str(path), *words]), result.err
    assert not (tmp_path / "out.npz").exists()


def test_options_without_meaning(attsvm, task_file, tmp_path):
    path = task_file(**GOOD)
    for options in (("--select", "0,0"), ("--relax", "0"), ("--problem", "v")):
        result = attsvm("solve", path, "-o", tmp_path / "out.npz", *options)
        assert result.code == 2 and options[0] in result.err and "next-token" in result.err
    for options in (("--joint",), ("--dropout", 0.5), ("--label-smoothing", 0.1), ("--optimizer", "polyak")):
        result = attsvm("train", path, "-o", tmp_path / "out.npz", *options)
        assert result.code == 2 and "next-token" in result.err, result
    assert attsvm("check", path, "--enumerate").code == 2
    result = attsvm("report", path, "--coordinates", "0", "-o", tmp_path / "out.html")
    assert result.code == 2 and "coordinates" in result.err and "next-token" in result.err, result
    assert not (tmp_path / "out.html").exists()
    for verb in (("path", path, "-o", tmp_path / "out.npz"), ("path", path, "--joint", "-o", tmp_path / "out.npz")):
        result = attsvm(*verb)
        assert result.code == 2 and f"{path}: a next-token task has no head" in result.err, result
    assert not (tmp_path / "out.npz").exists()


def test_other_types_of_numbers(solve, task_file):
    first = solve(task_file(**GOOD))[1]
    arrays = {name: (array.astype(np.int16) if array.dtype.kind == "i" else array.astype(">f4"))
              for name, array in GOOD.items()}
    other = solve(task_file("other.npz", save=np.savez_compressed, **arrays), out="other_svm.npz")[1]
    assert (first["W"] == other["W"]).all()


def test_info(attsvm, task_file):
    path = task_file(**GOOD)
    fields = attsvm("info", path, "--json").json()
    assert (fields["attention"], fields["vocabulary"], fields["sequences"], fields["tokens"], fields["d"]) == (
        "next-token", 3, 2, 5, 3)
    assert fields["separability"]["holds"] is True
    assert "next-token" in attsvm("info", path).out


def test_conflicts_in_words(attsvm, task_file):
    words = np.array(["the", "cat", "dog"])
    arrays = {"ids": np.array([1, 2, 0, 2, 1, 0]), "offsets": np.array([0, 3, 6]), "embeddings": np.eye(3),
              "next": np.array([1, 2]), "vocabulary": words}
    result = attsvm("check", task_file(**arrays))
    assert result.code == 0 and "after «the»: «cat» before «dog», and back" in result.out, result
    fields = attsvm("check", task_file(**arrays), "--json").json()
    assert fields["components"] == 1 and fields["graph"][0]["components"] == [[1, 2]]
    assert fields["graph"][0]["edges"] == [[1, 0], [1, 2], [2, 0], [2, 1]]
    # Symmetric: the two get half of the attention each, and no preference is learnt.
    assert fields["finite_dimension"] == 1 and fields["finite_norm"] == pytest.approx(0, abs=1e-12)


def test_infeasible_in_words(attsvm, solve, task_file):
    E = np.array([[1., 0], [0, 1], [0, 1]])  # tokens 1 and 2 look the same
    path = task_file(ids=np.array([1, 2, 0]), offsets=np.array([0, 3]), embeddings=E, next=np.array([1]))
    fields, _, _ = solve(path, code=3)
    assert "after «#0»: «#1» over «#2», but the two tokens are equal" in fields["words"][0]


def test_a_stalled_svm_is_no_fact(attsvm, task_file):
    """Rows that contradict each other up to 1e-11: out of reach in the nuclear norm."""
    path = task_file(ids=np.array([0, 1, 2, 3]), offsets=np.array([0, 4]), next=np.array([0]),
                     embeddings=np.array([[0, 0], [1, 1e-11], [-1, 1e-11], [1, 0.3]]))
    result = attsvm("check", path, "--json")
    fields = result.json()
    assert result.code == 4 and "norm nuc stalled" in result.err, result
    assert fields["unsolved"] == {"nuc": "stalled"} and fields["objective_nuc"] is None and fields["separable"]
    result = attsvm("check", path)
    assert result.code == 4 and "(Frobenius), nuclear: stalled" in result.out, result


def test_training_is_gradient_descent_on_the_log_loss(attsvm, draw, tmp_path):
    for task in draw_many(draw):
        arrays = load(task)
        d = arrays["embeddings"].shape[1]
        steps = 30
        result = attsvm("train", task, "--optimizer", "gd", "--step", 1, "--steps", steps, "--record", f"0,{steps}",
                        "-o", tmp_path / "run.npz", "--force", "--json")
        assert result.code == 0, result
        W = np.zeros((d, d))
        for _ in range(steps):
            W -= loss_and_gradient(arrays, W)[1]
        run = load(tmp_path / "run.npz")
        assert np.abs(run["W"] - W).max() <= 1e-12 * steps
        assert run["record_loss"][-1] == pytest.approx(loss_and_gradient(arrays, W)[0], rel=1e-11)
        assert result.json()["attention_mean"] == pytest.approx(run["record_attention"][-1], rel=1e-14)
        assert -np.log(run["record_attention"][-1]) <= run["record_loss"][-1] + 1e-12  # Jensen
        plain = attsvm("train", task, "--optimizer", "gd", "--step", 1, "--steps", steps, "--arithmetic", "plain",
                       "-o", tmp_path / "plain.npz", "--force")
        assert plain.code == 0 and np.abs(load(tmp_path / "plain.npz")["W"] - W).max() <= 1e-12 * steps


def test_plain_arithmetic_far_from_the_label(attsvm, task_file, tmp_path):
    """The attention on the label is e^-800, which is no double: loss and gradient are finite all the same."""
    path = task_file(ids=np.array([1, 1, 0]), offsets=np.array([0, 3]), embeddings=np.eye(2), next=np.array([1]))
    np.savez(tmp_path / "start.npz", W0=np.array([[800., 0], [0, 0]]))
    result = attsvm("train", path, "--arithmetic", "plain", "--optimizer", "gd", "--step", 1, "--steps", 1, "--init",
                    tmp_path / "start.npz", "--record", "0,1", "-o", tmp_path / "run.npz")
    assert result.code == 0, result
    run = load(tmp_path / "run.npz")
    assert run["W"].tolist() == [[799, 0], [1, 0]]
    assert run["record_loss"] == pytest.approx([800 - np.log(2), 798 - np.log(2)], rel=1e-14)


@pytest.mark.parametrize("options", [("--param", "KQ"), ("--optimizer", "adam"), ("--optimizer", "muon"),
                                     ("--batch", 4), ("--loss", "exponential")])
def test_every_way_of_training(attsvm, draw, tmp_path, options):
    task = draw("nexttoken", "--n", 10)
    files = []
    for threads in (1, 2):
        files.append(tmp_path / f"run{threads}.npz")
        result = attsvm("train", task, "--steps", 50, "--step", 0.05, *options, "--threads", threads, "-o", files[-1])
        assert result.code == 0, result
    assert files[0].read_bytes() == files[1].read_bytes()
    losses = load(files[0])["record_loss"]
    assert losses[-1] < losses[0]


def test_direction_and_finite_part(attsvm, draw, tmp_path):
    task = draw("nexttoken", "--n", 8, "--instance", 3)
    arrays = load(task)
    E, ids, offsets, labels = (arrays[name] for name in ("embeddings", "ids", "offsets", "next"))
    graphs = graphs_of(ids, offsets, labels, len(E))
    both = {last: reach & reach.T for last, (_, reach) in graphs.items()}
    basis = [np.outer(E[i] - E[j], E[k]).ravel() for k, tied in both.items() for i in range(len(E))
             for j in range(i) if tied[i, j]]
    assert basis, "no component of several tokens"
    _, s, Vt = np.linalg.svd(np.array(basis), full_matrices=False)
    B = Vt[s > 1e-10 * s[0]].T

    def cut(s):
        sequence = ids[offsets[s]:offsets[s + 1]]
        return both[sequence[-1]][labels[s]][sequence]

    def slope(y):
        return B.T @ loss_and_gradient(arrays, (B @ y).reshape(E.shape[1], -1), cut)[1].ravel()

    y = np.zeros(B.shape[1])
    for _ in range(30):  # Newton, with differences for second derivatives
        H = np.array([(slope(y + h) - slope(y - h)) / 2e-5 for h in 1e-5 * np.eye(len(y))])
        y -= np.linalg.solve((H + H.T) / 2, slope(y))
    assert np.abs(slope(y)).max() < 1e-12
    run = tmp_path / "run.npz"
    assert attsvm("train", task, "--optimizer", "gd", "--step", 1, "--steps", 20000, "-o", run).code == 0
    result = attsvm("check", task, "--run", run, "--json")
    fields = result.json()
    assert result.code == 0 and fields["finite_dimension"] == len(y)
    assert fields["finite_norm"] == pytest.approx(np.linalg.norm(y), abs=1e-9)
    W_fin = (B @ y).reshape(E.shape[1], -1)
    assert fields["finite_loss"] == pytest.approx(loss_and_gradient(arrays, W_fin, cut)[0], rel=1e-9)
    at = load(run)["W"].ravel()
    assert fields["finite_distance"][-1] == pytest.approx(np.linalg.norm(B.T @ at - y), rel=1e-6, abs=1e-12)
    assert fields["finite_distance"][-1] < 1e-2 * np.linalg.norm(y)
    assert fields["correlation_fro"][-1] > 0.97 > fields["correlation_fro"][1]
    assert "finite part" in attsvm("check", task, "--run", run).out


def test_corpus(attsvm, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat, the dog sat on the cat. the mat sat on the dog!\n" * 5)
    out = tmp_path / "corpus.npz"
    fields = attsvm("generate", "corpus", text, "--T", 6, "--stride", 1, "--d", 4, "-o", out, "--json").json()
    arrays = load(out)
    words = arrays["vocabulary"][arrays["ids"]]
    tokens = text.read_text().replace(",", " ,").replace(".", " .").replace("!", " !").split()
    windows = [tokens[k:k + 6] for k in range(len(tokens) - 6) if tokens[k + 6] in tokens[k:k + 6]]
    assert words.reshape(-1, 6).tolist() == windows and fields["sequences"] == len(windows)
    assert arrays["vocabulary"][arrays["next"]].tolist() == [
        tokens[k + 6] for k in range(len(tokens) - 6) if tokens[k + 6] in tokens[k:k + 6]]
    assert np.allclose(np.linalg.norm(arrays["embeddings"], axis=1), 1)
    attsvm("generate", "corpus", text, "--tokens", "byte", "--T", 16, "-o", out, "--force")
    arrays = load(out)
    assert arrays["vocabulary"][arrays["ids"][:16]].tolist() == list(text.read_text()[:16])
    assert attsvm("check", out, "--json").code == 0
    assert attsvm("generate", "corpus", "-o", out, "--force").code == 2
    assert attsvm("generate", "corpus", text, "--head", "relu", "-o", out, "--force").code == 2
    assert attsvm("generate", "corpus", text, "--T", 100000, "-o", out, "--force").code == 2


MEASURE = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""


def test_memory_of_a_corpus(attsvm, tmp_path):
    """Ids stay in the mapped file: memory beyond the program's own is below twice the file."""
    program = os.environ["ATTSVM_PROGRAM"]

    def peak(n):
        rng = np.random.default_rng(0)
        ids = rng.integers(0, 50, n)
        np.savez(tmp_path / "big.npz", ids=ids, offsets=np.arange(0, n + 1, 10), embeddings=rng.normal(size=(50, 8)),
                 next=ids[::10])
        done = subprocess.run([sys.executable, "-c", MEASURE, program, "train", tmp_path / "big.npz", "--steps", "1",
                               "--record", "1", "--threads", "1", "-o", tmp_path / "big_run.npz", "--force"],
                              capture_output=True, text=True, check=True)
        return 1024 * int(done.stdout), (tmp_path / "big.npz").stat().st_size

    (small, _), (large, size) = peak(10_000), peak(2_000_000)
    assert large - small < 2 * size, (large - small) / size


def test_memory_of_generating_a_corpus(tmp_path):
    """Every window is kept: memory beyond the program's own is below twice the text and the file together."""
    program = os.environ["ATTSVM_PROGRAM"]

    def peak(n):
        text, out = tmp_path / "text.txt", tmp_path / "corpus.npz"
        text.write_bytes(b"ab" * (n // 2))
        done = subprocess.run([sys.executable, "-c", MEASURE, program, "generate", "corpus", text, "--tokens", "byte",
                               "--T", "16", "--d", "4", "-o", out, "--force"],
                              capture_output=True, text=True, check=True)
        return 1024 * int(done.stdout), text.stat().st_size + out.stat().st_size

    (small, _), (large, size) = peak(10_000), peak(2_000_000)
    assert large - small < 2 * size, (large - small) / size
