import numpy as np

from suite.peers import Answer, Peer


def nuclear(rows, norm, tight):
    """min ½ tr X, X = [W1 W; Wᵀ W2] ⪰ 0, rows of W ≥ 1; X as the scaled lower triangle, column by column."""
    import scipy.sparse
    import scs
    d, dz = rows.shape
    size, m = d + dz, len(rows.equal)
    column, row = np.triu_indices(size)  # of the lower triangle in column order
    place = np.full((size, size), -1)
    place[row, column] = np.arange(len(row))
    at = place[d:, :d].T.ravel()  # where W[a,b] stands
    diagonal = row == column
    order = np.argsort(~rows.equal, kind="stable")  # equalities first, as SCS wants them
    A = np.zeros((m, len(row)))
    A[:, at] = -rows.matrix[order]
    cone = scipy.sparse.diags(np.where(diagonal, -1.0, -np.sqrt(2)))
    data = dict(A=scipy.sparse.vstack([scipy.sparse.csc_matrix(A), cone]).tocsc(), b=np.r_[-rows.rhs[order], np.zeros(len(row))],
                c=np.where(diagonal, 0.5, 0.0))
    equalities = int(rows.equal.sum())
    cones = dict(z=equalities, l=m - equalities, s=[size])
    options = dict(eps_abs=1e-9, eps_rel=1e-9, max_iters=10**7) if tight else {}

    def solve():
        found = scs.SCS(data, cones, verbose=False, **options).solve()
        status = found["info"]["status"]
        says = {"solved": "optimal"}.get(status, "infeasible" if status.startswith("infeasible") else status)
        return Answer(found["x"][at].reshape(d, dz), says)
    return solve


PEERS = [Peer("SCS, primal SDP", "scs", "SCS itself on min ½ tr X, X = [W₁ W; Wᵀ W₂] ⪰ 0, rows of W ≥ 1, data ready-made", ("nuc",), nuclear,
              tight="eps_abs = eps_rel = 1e-9, max_iters = 1e7")]
