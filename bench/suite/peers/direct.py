"""Solvers of quadratic programs called directly, without a modelling language. On the multipliers: min ½λᵀKλ − bᵀλ, λ ≥ 0, K ready-made."""

import numpy as np

from suite.peers import Answer, Peer

FAR = 1e30  # no bound, for those that want a number


def told(words, optimal, infeasible):
    return lambda status: "optimal" if status == optimal else "infeasible" if status == infeasible else words(status)


def daqp_dual(rows, norm, tight):
    import daqp
    m, K, f = len(rows.equal), rows.gram, -rows.rhs
    low, high, sense, none = np.where(rows.equal, -FAR, 0.0), np.full(m, FAR), np.zeros(m, dtype=np.int32), np.zeros((0, m))
    says = told("exit flag {}".format, 1, -3)

    def solve():
        x, _, flag, _ = daqp.solve(K, f, none, high, low, sense)
        return Answer(rows.weigh(np.array(x)), says(flag))
    return solve


def daqp_primal(rows, norm, tight):
    import daqp
    A, m = np.ascontiguousarray(rows.matrix), len(rows.equal)
    H, f = np.eye(A.shape[1]), np.zeros(A.shape[1])
    high, sense = np.where(rows.equal, rows.rhs, FAR), np.where(rows.equal, 5, 0).astype(np.int32)
    says = told("exit flag {}".format, 1, -1)

    def solve():
        x, _, flag, _ = daqp.solve(H, f, A, high, rows.rhs, sense)
        return Answer(np.array(x).reshape(rows.shape), says(flag))
    return solve


def quadprog_dual(rows, norm, tight):
    import quadprog
    C = np.eye(len(rows.equal))[:, ~rows.equal]
    K, low = rows.gram, np.zeros(C.shape[1])
    return lambda: Answer(rows.weigh(quadprog.solve_qp(K, rows.rhs, C, low)[0]), "optimal")


def quadprog_primal(rows, norm, tight):
    import quadprog
    order = np.argsort(~rows.equal, kind="stable")  # equations first
    C, b, D = np.asfortranarray(rows.matrix[order].T), rows.rhs[order], rows.matrix.shape[1]
    G, a, equations = np.eye(D), np.zeros(D), int(rows.equal.sum())

    def solve():
        try:
            return Answer(quadprog.solve_qp(G, a, C, b, equations)[0].reshape(rows.shape), "optimal")
        except ValueError as error:
            if "inconsistent" not in str(error):
                raise
            return Answer(None, "infeasible")
    return solve


def piqp_dual(rows, norm, tight):
    import piqp
    K, c, low = rows.gram, -rows.rhs, np.where(rows.equal, -np.inf, 0.0)
    says = told(lambda status: status.name.removeprefix("PIQP_").lower().replace("_", " "), piqp.Status.PIQP_SOLVED, piqp.Status.PIQP_DUAL_INFEASIBLE)

    def solve():
        solver = piqp.DenseSolver()
        if tight:
            solver.settings.eps_abs, solver.settings.eps_rel = 1e-11, 1e-11
        solver.setup(K, c, x_l=low)
        status = solver.solve()
        return Answer(rows.weigh(np.array(solver.result.x)), says(status))
    return solve


def sparse_gram(rows):
    import scipy.sparse
    return scipy.sparse.triu(scipy.sparse.csc_matrix(rows.gram), format="csc")


def osqp_dual(rows, norm, tight):
    import osqp
    import scipy.sparse
    m, P = len(rows.equal), sparse_gram(rows)
    signs, low, high = scipy.sparse.identity(m, format="csc"), np.where(rows.equal, -np.inf, 0.0), np.full(m, np.inf)
    options = dict(eps_abs=1e-9, eps_rel=1e-9, max_iter=10**6) if tight else {}
    says = told(str, "solved", "dual infeasible")

    def solve():
        solver = osqp.OSQP()
        solver.setup(P, -rows.rhs, signs, low, high, verbose=False, **options)
        found = solver.solve()
        return Answer(rows.weigh(found.x), says(found.info.status))
    return solve


def clarabel_dual(rows, norm, tight):
    import clarabel
    import scipy.sparse
    P, free = sparse_gram(rows), np.flatnonzero(~rows.equal)
    signs = -scipy.sparse.identity(len(rows.equal), format="csr")[free].tocsc()
    low, cones = np.zeros(len(free)), [clarabel.NonnegativeConeT(len(free))]
    says = told(lambda status: status.lower(), "Solved", "DualInfeasible")

    def solve():
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        if tight:
            settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
        found = clarabel.DefaultSolver(P, -rows.rhs, signs, low, cones, settings).solve()
        return Answer(rows.weigh(np.array(found.x)), says(str(found.status)))
    return solve


ONCE = ("default",)
PEERS = [
    Peer("DAQP, dual", "daqp", "active sets, on the multipliers", ("fro",), daqp_dual, ONCE),
    Peer("DAQP, primal", "daqp", "active sets, on W: min ½‖W‖², rows ≥ 1", ("fro",), daqp_primal, ONCE),
    Peer("quadprog, dual", "quadprog", "Goldfarb and Idnani's method, on the multipliers; it has no status, so what it returns counts as called optimal", ("fro",), quadprog_dual, ONCE),
    Peer("quadprog, primal", "quadprog", "Goldfarb and Idnani's method, on W", ("fro",), quadprog_primal, ONCE),
    Peer("PIQP, dual", "piqp", "dense, on the multipliers", ("fro",), piqp_dual, tight="eps_abs = eps_rel = 1e-11"),
    Peer("OSQP, dual", "osqp", "on the multipliers", ("fro",), osqp_dual, tight="eps_abs = eps_rel = 1e-9, max_iter = 1e6"),
    Peer("Clarabel, dual", "clarabel", "on the multipliers", ("fro",), clarabel_dual, tight="tol_gap_abs = tol_gap_rel = tol_feas = 1e-11"),
]
