import numpy as np

from suite.peers import Answer, Peer

SAYS = {"PROXQP_SOLVED": "optimal", "PROXQP_PRIMAL_INFEASIBLE": "infeasible"}
DUAL_SAYS = {"PROXQP_SOLVED": "optimal", "PROXQP_DUAL_INFEASIBLE": "infeasible"}
FAR = 1e20  # no bound


def tolerances(tight):
    return dict(eps_abs=1e-10, eps_rel=0.0, max_iter=10**6) if tight else {}


def says(found, words):
    name = found.info.status.name
    return words.get(name, name.removeprefix("PROXQP_").lower().replace("_", " "))


def primal(rows, norm, tight):
    from proxsuite import proxqp
    A, equal = rows.matrix, rows.equal
    D = A.shape[1]
    H, g, C = np.eye(D), np.zeros(D), A[~equal]
    E, b = (A[equal], np.zeros(equal.sum())) if equal.any() else (None, None)
    low, high = np.ones(len(C)), np.full(len(C), FAR)

    def solve():
        found = proxqp.dense.solve(H, g, E, b, C, low, high, verbose=False, **tolerances(tight))
        return Answer(np.array(found.x).reshape(rows.shape), says(found, SAYS))
    return solve


def dual(rows, norm, tight):
    from proxsuite import proxqp
    m = len(rows.equal)
    gram, low, high = rows.gram, np.where(rows.equal, -FAR, 0.0), np.full(m, FAR)

    def solve():
        problem = proxqp.dense.QP(m, 0, 0, True)  # bounds as bounds: a fifth faster than as rows
        for name, value in tolerances(tight).items():
            setattr(problem.settings, name, value)
        problem.init(gram, -rows.rhs, None, None, None, None, None, low, high)
        problem.solve()
        return Answer(rows.weigh(np.array(problem.results.x)), says(problem.results, DUAL_SAYS))
    return solve


TIGHT = "eps_abs = 1e-10, eps_rel = 0, max_iter = 1e6"
PEERS = [
    Peer("ProxQP, primal", "proxsuite", "dense ProxQP on W: min ½‖W‖², rows ≥ 1", ("fro",), primal, tight=TIGHT),
    Peer("ProxQP, dual", "proxsuite", "dense ProxQP on the multipliers: min ½λᵀKλ − bᵀλ, λ ≥ 0", ("fro",), dual, tight=TIGHT),
]
