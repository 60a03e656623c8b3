import numpy as np

from suite.peers import Answer, Peer

SAYS = {"primal infeasible": "infeasible"}
DUAL_SAYS = {"dual infeasible": "infeasible"}  # the dual has no bound where the rows conflict


def module(tight, tolerances=1e-10):
    import cvxopt
    import cvxopt.solvers
    cvxopt.solvers.options.update(show_progress=False)
    if tight:
        cvxopt.solvers.options.update(abstol=tolerances, reltol=tolerances, feastol=tolerances)
    return cvxopt


def primal(rows, norm, tight):
    cvxopt = module(tight)
    A, equal = rows.matrix, rows.equal
    D = A.shape[1]
    data = [cvxopt.spmatrix(1.0, range(D), range(D)), cvxopt.matrix(0.0, (D, 1)), cvxopt.matrix(-A[~equal]),
            cvxopt.matrix(-1.0, (int((~equal).sum()), 1))]
    if equal.any():
        data += [cvxopt.matrix(A[equal]), cvxopt.matrix(0.0, (int(equal.sum()), 1))]

    def solve():
        found = cvxopt.solvers.qp(*data)
        return Answer(np.array(found["x"]).reshape(rows.shape), SAYS.get(found["status"], found["status"]))
    return solve


def signs(rows, cvxopt):
    """-x <= 0 for the multipliers of inequalities."""
    free = np.flatnonzero(~rows.equal)
    return (cvxopt.spmatrix(-1.0, range(len(free)), free.tolist(), (len(free), len(rows.equal))), cvxopt.matrix(0.0, (len(free), 1)))


def dual(rows, norm, tight):
    cvxopt = module(tight)
    gram, b = cvxopt.matrix(rows.gram), cvxopt.matrix(-rows.rhs)
    G, h = signs(rows, cvxopt)

    def solve():
        found = cvxopt.solvers.qp(gram, b, G, h)
        return Answer(rows.weigh(np.array(found["x"]).ravel()), DUAL_SAYS.get(found["status"], found["status"]))
    return solve


def nuclear(rows, norm, tight):
    cvxopt = module(tight, 1e-9)  # at 1e-10 it was seen to end far from the optimum
    d, dz = rows.shape
    size, m = d + dz, len(rows.equal)
    G = np.zeros((m, size, size))
    block = np.einsum("kb,ka->kba", rows.zeta, rows.delta)
    G[:, d:, :d], G[:, :d, d:] = block, block.transpose(0, 2, 1)
    Gl, hl = signs(rows, cvxopt)
    data = dict(c=cvxopt.matrix(-rows.rhs), Gl=Gl, hl=hl, Gs=[cvxopt.matrix(G.reshape(m, -1).T.copy())], hs=[cvxopt.matrix(np.eye(size))])

    def solve():
        found = cvxopt.solvers.sdp(**data)
        if found["zs"] is None:
            return Answer(None, DUAL_SAYS.get(found["status"], found["status"]))
        W = 2 * np.array(found["zs"][0])[d:, :d].T  # of the lower triangle, which is what it fills
        return Answer(W, DUAL_SAYS.get(found["status"], found["status"]))
    return solve


def spectral(rows, norm, tight):
    """Variables W and t. The matrix [t I, W; W' t I] is positive semidefinite where t is at least the spectral norm."""
    cvxopt = module(tight, 1e-9)
    d, dz = rows.shape
    size, unknowns, equal = d + dz, d * dz, rows.equal
    G = np.zeros((unknowns + 1, size, size))
    for a in range(d):
        for b in range(dz):
            G[a * dz + b, d + b, a] = G[a * dz + b, a, d + b] = -1
    G[-1] = -np.eye(size)
    inequalities = np.hstack([-rows.matrix[~equal], np.zeros((int((~equal).sum()), 1))])
    data = dict(c=cvxopt.matrix(np.eye(unknowns + 1)[-1]), Gl=cvxopt.matrix(inequalities), hl=cvxopt.matrix(-1.0, (len(inequalities), 1)),
                Gs=[cvxopt.matrix(G.reshape(unknowns + 1, -1).T.copy())], hs=[cvxopt.matrix(0.0, (size, size))])
    if equal.any():
        data |= dict(A=cvxopt.matrix(np.hstack([rows.matrix[equal], np.zeros((int(equal.sum()), 1))])), b=cvxopt.matrix(0.0, (int(equal.sum()), 1)))

    def solve():
        found = cvxopt.solvers.sdp(**data)
        if found["x"] is None:
            return Answer(None, SAYS.get(found["status"], found["status"]))
        return Answer(np.array(found["x"]).ravel()[:-1].reshape(rows.shape), SAYS.get(found["status"], found["status"]))
    return solve


TIGHT = "abstol = reltol = feastol = 1e-10"
PEERS = [
    Peer("CVXOPT, primal", "cvxopt", "`qp` on W: min ½‖W‖², rows ≥ 1, the matrix of rows dense", ("fro",), primal, tight=TIGHT),
    Peer("CVXOPT, dual", "cvxopt", "`qp` on the multipliers: min ½λᵀKλ − bᵀλ, λ ≥ 0, K the Gram matrix of the rows, ready-made", ("fro",), dual, tight=TIGHT),
    Peer("CVXOPT, dual SDP", "cvxopt", "`sdp` on the multipliers: max bᵀλ, [I A(λ); A(λ)ᵀ I] ⪰ 0, λ ≥ 0; W is read off its multiplier", ("nuc",), nuclear, tight="abstol = reltol = feastol = 1e-9"),
    Peer("CVXOPT, SDP", "cvxopt", "`sdp` on W and t: min t, [tI W; Wᵀ tI] ⪰ 0, rows ≥ 1", ("spec",), spectral, tight="abstol = reltol = feastol = 1e-9"),
]
