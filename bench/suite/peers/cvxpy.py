import warnings

from suite.peers import Answer, Peer

TIGHT = {
    "CLARABEL": dict(tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10),
    "SCS": dict(eps_abs=1e-9, eps_rel=1e-9, max_iters=10**7),
    "ECOS": dict(abstol=1e-10, reltol=1e-10, feastol=1e-10),
    "OSQP": dict(eps_abs=1e-9, eps_rel=1e-9, max_iter=10**6),
}


def build(solver, quadratic, rows, norm, tight):
    import cvxpy
    warnings.simplefilter("ignore")  # inaccurate answers are told by their status
    if solver not in cvxpy.installed_solvers():
        raise ImportError(f"cvxpy finds no {solver}")
    options = TIGHT[solver] if tight else {}

    def objective(W):
        if norm == "fro":
            return cvxpy.sum_squares(W) if quadratic else cvxpy.norm(W, "fro")
        return {"nuc": cvxpy.normNuc, "spec": cvxpy.sigma_max, "max": lambda W: cvxpy.max(cvxpy.abs(W)), "l1": lambda W: cvxpy.sum(cvxpy.abs(W))}[norm](W)

    def solve():
        W = cvxpy.Variable(rows.shape)
        if norm in ("nuc", "spec"):
            values = cvxpy.sum(cvxpy.multiply(rows.delta @ W, rows.zeta), axis=1)
        else:
            values = rows.matrix @ cvxpy.vec(W, order="C")
        constraints = [values[~rows.equal] >= 1]
        if rows.equal.any():
            constraints.append(values[rows.equal] == 0)
        problem = cvxpy.Problem(cvxpy.Minimize(objective(W)), constraints)
        problem.solve(solver=solver, **options)
        return Answer(W.value, "infeasible" if problem.status.startswith("infeasible") else problem.status)
    return solve


def peer(solver, title, package, quadratic, norms):
    tight = ", ".join(f"{name} = {value:g}" for name, value in TIGHT[solver].items())
    what = "min ‖W‖² (sum_squares)" if quadratic else "min ‖W‖ (norm)"
    form = f"cvxpy: {what}, rows @ vec(W) ≥ 1; the problem is built at every solve, as people do"
    form += "; nuclear: normNuc(W), spectral: sigma_max(W), with rows as sums of δᵀW ∘ ζ; max and l1: of abs(W)" if "nuc" in norms else ""
    return Peer(f"cvxpy + {title}", package, form, norms, Build(solver, quadratic), tight=tight)


class Build:
    def __init__(self, solver, quadratic):
        self.solver, self.quadratic = solver, quadratic

    def __call__(self, rows, norm, tight):
        return build(self.solver, self.quadratic, rows, norm, tight)


PEERS = [
    peer("CLARABEL", "Clarabel", "clarabel", True, ("fro", "nuc", "spec", "max", "l1")),
    peer("SCS", "SCS", "scs", True, ("fro", "nuc", "spec")),
    peer("ECOS", "ECOS", "ecos", False, ("fro",)),
    peer("OSQP", "OSQP", "osqp", True, ("fro",)),
]
