"""The true quality of another solver's answer. It goes to a file, `attsvm verify` reads it and recomputes norm and violation from the raw
task; the gap is that of the answer made feasible (equalities by projection, then scaled until every row is met) against the lower bound that
attsvm has proven: a peer that beats our own W shows a smaller gap than ours."""

import numpy as np

RANK_THRESHOLD = 1e-6  # of the largest singular value


def norm_of(W, norm):
    if norm in ("max", "l1"):
        return np.abs(W).max() if norm == "max" else np.abs(W).sum()
    return np.linalg.norm(W, {"nuc": "nuc", "spec": 2}.get(norm, "fro"))


def made_feasible(rows, W):
    """W that meets every row, or None."""
    if rows.equal.any():
        E = rows.matrix[rows.equal]
        W = W - (np.linalg.lstsq(E, E @ W.ravel(), rcond=None)[0]).reshape(W.shape)
    margin = rows.values(W)[~rows.equal].min()
    return W / margin if margin > 0 else None


def honest_gap(rows, W, norm, bound):
    """(objective - bound) / objective of the feasible W, as attsvm defines a gap; None where scaling does not make it feasible."""
    feasible = made_feasible(rows, W)
    if feasible is None:
        return None
    objective = norm_of(feasible, norm)
    return (objective - bound) / objective


def rank_of(W):
    values = np.linalg.svd(W, compute_uv=False)
    return int((values > RANK_THRESHOLD * values[0]).sum())


def judge(programs, task, rows, W, norm, bound):
    """gap, violation, rank, and whether `attsvm verify` accepts W as feasible. `bound`: no feasible W is smaller; None: there is no feasible W."""
    if not np.isfinite(W).all():
        return {"gap": None, "violation": None, "rank": None, "verified": False}
    path = programs.folder / "answer.npz"
    np.savez(path, W=np.ascontiguousarray(W, dtype=float))
    verdict = programs.attsvm("verify", task, path, "--norm", norm, accept=(0, 5))
    gap = honest_gap(rows, W, norm, bound) if bound is not None else None
    return {"gap": gap, "violation": verdict["violation"], "rank": rank_of(W), "verified": verdict["valid"]}
