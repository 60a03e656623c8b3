"""Soft margins through the command line, against exact arithmetic."""

import itertools
from fractions import Fraction

import numpy as np
import pytest


def gauss(matrix, right):
    """The solution of a square system in fractions; None if it has none or many."""
    rows = [row + [value] for row, value in zip(matrix, right)]
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k] != 0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(len(rows)):
            if i != k and rows[i][k] != 0:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k])]
    return [row[-1] for row in rows]


def exact_optimum(rows, query, penalty):
    """|w|²/2 + Σ C ξ at the optimum, in fractions: tries every set of active rows and of queries that pay."""
    G = [[sum(a * b for a, b in zip(x, y)) for y in rows] for x in rows]
    for active in itertools.product([False, True], repeat=len(rows)):
        free = [k for k in range(len(rows)) if active[k]]
        for pays in itertools.product([False, True], repeat=len(penalty)):
            full = [i for i in range(len(penalty)) if pays[i]]
            size = len(free) + len(full)
            matrix = [[Fraction(0)] * size for _ in range(size)]
            for a, k in enumerate(free):
                for b, l in enumerate(free):
                    matrix[a][b] = G[k][l]
                for b, i in enumerate(full):
                    if query[k] == i:
                        matrix[a][len(free) + b] = matrix[len(free) + b][a] = Fraction(1)
            solved = gauss(matrix, [Fraction(1)] * len(free) + [penalty[i] for i in full])
            if solved is None:
                continue
            dual = [Fraction(0)] * len(rows)
            for a, k in enumerate(free):
                dual[k] = solved[a]
            xi = [Fraction(0)] * len(penalty)
            for b, i in enumerate(full):
                xi[i] = solved[len(free) + b]
            sums = [sum(dual[k] for k in range(len(rows)) if query[k] == i) for i in range(len(penalty))]
            values = [sum(G[k][l] * dual[l] for l in range(len(rows))) for k in range(len(rows))]
            if min(dual) < 0 or min(xi) < 0 or any(s > c for s, c in zip(sums, penalty)):
                continue
            if all(values[k] >= 1 - xi[query[k]] for k in range(len(rows))):
                square = sum(dual[k] * values[k] for k in range(len(rows)))
                return square / 2 + sum(c * x for c, x in zip(penalty, xi))
    return None


@pytest.fixture
def solve(attsvm, tmp_path):
    def call(*options, arrays):
        np.savez(tmp_path / "t.npz", **arrays)
        done = attsvm("solve", tmp_path / "t.npz", "-o", tmp_path / "s.npz", "--force", "--json", *options)
        if done.code in (0, 4):
            proof = attsvm("verify", tmp_path / "t.npz", tmp_path / "s.npz", "--json")
            assert proof.code == 0 and proof.json()["valid"], proof.out
        return done
    return call


@pytest.mark.parametrize("seed", range(12))
def test_small_problems_against_fractions(solve, tmp_path, seed):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(-4, 5, size=(3, 3, 2)).astype(float)
    select = rng.integers(3, size=3)
    penalty = [Fraction(int(c), 8) for c in rng.integers(1, 12, size=3)]
    rows, query = [], []
    for i in range(3):
        for t in range(3):
            if t != select[i]:
                rows.append([Fraction(int(x)) for x in tokens[i, select[i]] - tokens[i, t]])
                query.append(i)
    truth = exact_optimum(rows, query, penalty)
    done = solve("--soft", ",".join(str(float(c)) for c in penalty), arrays=dict(tokens=tokens, select=select))
    assert done.code == 0 and done.json()["status"] == "optimal"
    assert truth is not None, "choose another seed: no set of active rows has an invertible system"
    assert done.json()["objective"] == pytest.approx(float(truth), rel=1e-13)
    assert done.json()["dual_objective"] == pytest.approx(float(truth), rel=1e-12)
    assert done.json()["gap"] <= 1e-12
    assert done.json()["penalty"] == [float(c) for c in penalty] or len(set(penalty)) == 1


def test_fields_and_file(solve, tmp_path):
    rng = np.random.default_rng(0)
    arrays = dict(tokens=rng.normal(size=(20, 4, 3)), select=rng.integers(4, size=20))
    hard = solve(arrays=arrays)
    assert hard.code == 3
    done = solve("--soft", "0.5", arrays=arrays)
    assert done.code == 0
    data = np.load(tmp_path / "s.npz")
    W, xi = data["W"], data["xi"]
    assert data["penalty"].tolist() == [0.5] * 20 and done.json()["penalty"] == 0.5
    assert done.json()["objective"] == pytest.approx((W**2).sum() / 2 + 0.5 * xi.sum(), rel=1e-14)
    assert done.json()["size"] == pytest.approx(np.linalg.norm(W), rel=1e-14)
    assert done.json()["margin"] == pytest.approx(1 / np.linalg.norm(W), rel=1e-14)
    assert done.json()["missed"] == (xi > 1e-6).sum() > 0 and done.json()["xi_sum"] == pytest.approx(xi.sum())
    worst = np.zeros(20)
    np.maximum.at(worst, data["row_query"], -data["slack"])
    np.testing.assert_allclose(xi, worst.clip(0), atol=1e-14)
    keep, drop = (arrays["tokens"][data["row_query"], data[f"row_{name}"]] for name in ("keep", "drop"))
    delta = keep - drop
    np.testing.assert_allclose(delta.T @ data["dual"], W[:, 0], atol=1e-12)


def test_separable_tasks_have_the_fields_of_hard_solves(attsvm, tmp_path):
    attsvm("generate", "random", "--seed", 1, "-o", tmp_path / "t.npz")
    hard = attsvm("solve", tmp_path / "t.npz", "-o", tmp_path / "h.npz", "--json").json()
    assert hard["penalty"] is None and "size" not in hard and "xi" not in np.load(tmp_path / "h.npz")
    soft = attsvm("solve", tmp_path / "t.npz", "--soft", "1e4", "-o", tmp_path / "s.npz", "--json").json()
    assert soft["objective"] == pytest.approx(hard["objective"]**2 / 2) and soft["missed"] == 0
    assert (np.load(tmp_path / "s.npz")["W"] == np.load(tmp_path / "h.npz")["W"]).all()
    again = attsvm("solve", tmp_path / "t.npz", "--soft", "0.1", "--threads", 1, "-o", tmp_path / "a.npz")
    attsvm("solve", tmp_path / "t.npz", "--soft", "0.1", "--threads", 2, "-o", tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert "queries stay behind the margin" in again.out
    assert "No W costs less than" in attsvm("verify", tmp_path / "t.npz", tmp_path / "a.npz").out


@pytest.mark.parametrize("options, words", [
    (["--soft", "0"], "soft = 0"), (["--soft=-1"], "soft = -1"), (["--soft", "1,2"], "soft has 2 penalties"),
    (["--soft", "inf"], "soft"), (["--soft", "much"], "--soft much"),
    (["--soft", "1", "--norm", "nuc"], "Frobenius norm only"), (["--soft", ""], "no penalty is given"),
])
def test_refusals(solve, tmp_path, options, words):
    done = solve(*options, arrays=dict(tokens=np.ones((3, 2, 2)), select=[0, 0, 0]))
    assert done.code == 2 and words in done.err and len(done.err.splitlines()) == 1
    assert not (tmp_path / "s.npz").exists()


def test_pages_refuse_soft_margins(attsvm, draw, tmp_path):
    task, soft, page = draw(), tmp_path / "soft.npz", tmp_path / "page.html"
    assert attsvm("solve", task, "--soft", 1, "-o", soft).code == 0
    done = attsvm("report", task, "--solution", soft, "-o", page)
    assert done.code == 2 and f"{soft}: pages show hard margins" in done.err and len(done.lines()) == 1
    assert not page.exists()


@pytest.mark.parametrize("soft", [True, False])
def test_large_problems_pay_for_relaxed_rows_that_they_miss(attsvm, task_file, tmp_path, soft):
    """Query 0 asks for -w1 >= 0, and its copies of a token make the search for a W nearby too long; query 1 asks for
    1.2e9 w1 >= 1. So it has to be missed; W misses the first by little instead, and claims to be optimal."""
    copies = 260_000
    tokens = np.array([[0, 0], [1, 0], *[[0, 0]] * copies, [0, 0], [-1.2e9, 0], [0, 0], [0, -1]], float)
    select = np.zeros((3, copies + 2), bool)
    select[:, 0] = True
    task = task_file(tokens=tokens, offsets=[0, copies + 2, copies + 4, copies + 6], select=select)
    W = np.array([[0.95e-9], [1.0]])
    rows = copies + 3
    query = np.repeat([0, 1, 2], [copies + 1, 1, 1])
    drop = np.concatenate([np.arange(1, copies + 2), [1, 1]])
    rhs = np.where(query == 0, 0.0, 1.0)
    slack = np.concatenate([[-W[0, 0]], np.zeros(copies), [1.2e9 * W[0, 0], 1.0]]) - rhs
    size = np.sum(W * W)
    price = dict(objective=size / 2, dual_objective=0.5, penalty=np.full(3, 1e6), xi=np.zeros(3))
    forged = price if soft else dict(objective=np.sqrt(size), dual_objective=1.0)
    np.savez(tmp_path / "forged.npz", W=W, row_query=query, row_keep=np.zeros(rows, int), row_drop=drop,
             row_equal=np.zeros(rows, bool), rhs=rhs, slack=slack, dual=np.append(np.zeros(rows - 1), 1.0),
             status="optimal", norm="fro", problem="att", tolerance=1e-8,
             select=select, relax=[True, False, False], **forged)
    done = attsvm("verify", task, tmp_path / "forged.npz")
    assert done.code == 5, done.out
