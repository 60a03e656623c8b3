"""Next-token tasks and many heads against prototypes: rows in NumPy, SVMs by CVXOPT, whose certificates are its own."""

import cvxopt
import cvxopt.solvers
import numpy as np
import pytest

import attsvm

OPTIONS = {"show_progress": False, "abstol": 1e-9, "reltol": 1e-9, "feastol": 1e-9}


def frobenius(deltas, zetas, equal):
    """W of least Frobenius norm with delta' W zeta = 0 on equal rows and >= 1 on the others."""
    A = np.einsum("ka,kb->kab", deltas, zetas).reshape(len(deltas), -1)
    size = A.shape[1]
    more = [cvxopt.matrix(A[equal]), cvxopt.matrix(0.0, (int(equal.sum()), 1))] if equal.any() else []
    found = cvxopt.solvers.qp(cvxopt.spmatrix(1.0, range(size), range(size)), cvxopt.matrix(0.0, (size, 1)),
                              cvxopt.matrix(-A[~equal]), cvxopt.matrix(-1.0, (int((~equal).sum()), 1)), *more,
                              options=OPTIONS)
    assert found["status"] == "optimal"
    return np.array(found["x"]).reshape(deltas.shape[1], zetas.shape[1])


def least_nuclear_norm(deltas, zetas, equal):
    """max sum of the multipliers of rows >= 1 so that sum_k lambda_k delta_k zeta_k' has operator norm at most 1."""
    (m, d), dz = deltas.shape, zetas.shape[1]
    G = np.zeros((m, d + dz, d + dz))
    G[:, :d, d:] = np.einsum("ka,kb->kab", deltas, zetas)
    G[:, d:, :d] = G[:, :d, d:].transpose(0, 2, 1)
    free = np.flatnonzero(~equal)
    signs = cvxopt.spmatrix(-1.0, range(len(free)), free.tolist(), (len(free), m))
    found = cvxopt.solvers.sdp(cvxopt.matrix(np.where(equal, 0.0, -1.0)), Gl=signs,
                               hl=cvxopt.matrix(0.0, (len(free), 1)), Gs=[cvxopt.matrix(G.reshape(m, -1).T.copy())],
                               hs=[cvxopt.matrix(np.eye(d + dz))], options=OPTIONS)
    assert found["status"] == "optimal"
    return -found["primal objective"]


def graph_rows(ids, offsets, labels, E):
    """Differences, queries and kinds of the rows of a graph SVM: mutual reachability by powers of the adjacency."""
    K = len(E)
    edges = {}
    for s, label in enumerate(labels):
        sequence = ids[offsets[s]:offsets[s + 1]]
        graph = edges.setdefault(sequence[-1], np.eye(K, dtype=bool))
        graph[label, sequence] = True
    deltas, zetas, equal = [], [], []
    for last, graph in edges.items():
        reach = np.linalg.matrix_power(graph.astype(float), K) > 0
        for i, j in np.argwhere((graph | reach & reach.T) & ~np.eye(K, dtype=bool)):
            deltas.append(E[i] - E[j])
            zetas.append(E[last])
            equal.append(bool(reach[i, j] and reach[j, i]))
    # Equal rows of a component span as much as those of the smallest token; a basis of them is what CVXOPT takes.
    deltas, zetas, equal = np.array(deltas), np.array(zetas), np.array(equal)
    keep = list(np.flatnonzero(~equal))
    basis = np.zeros((0, E.shape[1]**2))
    for k in np.flatnonzero(equal):
        wider = np.vstack([basis, np.outer(deltas[k], zetas[k]).ravel()])
        if np.linalg.matrix_rank(wider, tol=1e-9) > len(basis):
            basis = wider
            keep.append(k)
    return deltas[keep], zetas[keep], equal[keep]


def test_graph_svms(tmp_path):
    tied = set()
    for instance in range(6):
        task = attsvm.generate("nexttoken", n=8, T=4, d=8, vocabulary=6, seed=4, instance=instance)
        attsvm.save(tmp_path / "task.npz", task, force=True)
        with np.load(tmp_path / "task.npz") as arrays:
            rows = graph_rows(*(arrays[name] for name in ("ids", "offsets", "next", "embeddings")))
        solved = attsvm.solve(task)
        assert attsvm.verify(task, solved).valid
        W = frobenius(*rows)
        assert solved.objective == pytest.approx(np.linalg.norm(W), rel=1e-6)
        assert np.abs(solved.W - W).max() < 1e-5 * np.linalg.norm(W)
        nuclear = attsvm.solve(task, norm="nuc")
        assert attsvm.verify(task, nuclear).valid
        assert nuclear.objective == pytest.approx(least_nuclear_norm(*rows), rel=1e-6)
        tied.add(bool(rows[2].any()))
    assert tied == {True, False}, "tasks with equal rows, and without"


def test_heads_turn_to_the_svms_of_cvxopt():
    task = attsvm.generate("random", n=4, T=5, d=6, seed=3)
    run = attsvm.train(task, heads=3, shared_norm=True, steps=20_000)
    X, Z = np.asarray(task.tokens), np.asarray(task.queries)
    all_W = np.array(run.W)
    expected = []
    for h, selected in enumerate(np.asarray(run.selected)):
        pairs = [(i, t) for i in range(4) for t in range(5) if t != selected[i]]
        deltas = np.array([X[i, selected[i]] - X[i, t] for i, t in pairs])
        zetas, equal = np.array([Z[i] for i, _ in pairs]), np.zeros(len(pairs), bool)
        W = frobenius(deltas, zetas, equal)
        solved = attsvm.solve(task, select=selected)
        assert attsvm.verify(task, solved).valid
        assert solved.objective == pytest.approx(np.linalg.norm(W), rel=1e-6)
        nuclear = attsvm.solve(task, select=selected, norm="nuc")
        assert attsvm.verify(task, nuclear).valid
        assert nuclear.objective == pytest.approx(least_nuclear_norm(deltas, zetas, equal), rel=1e-6)
        correlation = (W * all_W[h]).sum() / np.linalg.norm(W) / np.linalg.norm(all_W[h])
        assert 1 - correlation < 1e-3
        assert attsvm.check(task, run.head(h)).correlation_fro[-1] == pytest.approx(correlation, abs=1e-6)
        expected.append(W)
    # One norm over all heads: all W as one vector turn to all SVMs as one vector.
    expected = np.array(expected)
    assert 1 - (expected * all_W).sum() / np.linalg.norm(expected) / np.linalg.norm(all_W) < 1e-3
