import numpy as np

from suite.peers import Answer, Peer

FREE = float("inf")


def program(costs, matrix, columns, rows, tight):
    """HiGHS with min costs'x, rows between their bounds, x between its bounds; bounds are (low, high) arrays."""
    import highspy
    from scipy.sparse import csc_matrix
    sparse = csc_matrix(matrix)
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.col_cost_ = costs
    model.col_lower_, model.col_upper_ = columns
    model.row_lower_, model.row_upper_ = rows
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = sparse.indptr, sparse.indices, sparse.data
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    if tight:
        solver.setOptionValue("primal_feasibility_tolerance", 1e-10)
        solver.setOptionValue("dual_feasibility_tolerance", 1e-10)
    solver.passModel(model)

    def solve():
        solver.clearSolver()
        solver.run()
        return solver.getSolution(), solver.modelStatusToString(solver.getModelStatus()).lower()
    return solve


def said(status, conflict):
    return "infeasible" if status == conflict else status


def between(rows, below=FREE):
    """Bounds of the rows: = 0 where both tokens are kept, else >= 1."""
    return rows.rhs, np.where(rows.equal, 0.0, below)


def l1_primal(rows, norm, tight):
    unknowns = rows.matrix.shape[1]
    run = program(np.ones(2 * unknowns), np.hstack([rows.matrix, -rows.matrix]), (np.zeros(2 * unknowns), np.full(2 * unknowns, FREE)), between(rows), tight)

    def solve():
        found, status = run()
        both = np.array(found.col_value)
        return Answer((both[:unknowns] - both[unknowns:]).reshape(rows.shape), said(status, "infeasible"))
    return solve


def max_primal(rows, norm, tight):
    """W = U - t with 0 <= U <= 2t, so that no variable is free."""
    m, unknowns = rows.matrix.shape
    matrix = np.zeros((m + unknowns, unknowns + 1))
    matrix[:m, :-1], matrix[:m, -1] = rows.matrix, -rows.matrix.sum(axis=1)
    matrix[m:, :-1], matrix[m:, -1] = -np.eye(unknowns), 2
    low, high = between(rows)
    bounds = np.concatenate([low, np.zeros(unknowns)]), np.concatenate([high, np.full(unknowns, FREE)])
    costs = np.zeros(unknowns + 1)
    costs[-1] = 1
    run = program(costs, matrix, (np.zeros(unknowns + 1), np.full(unknowns + 1, FREE)), bounds, tight)

    def solve():
        found, status = run()
        x = np.array(found.col_value)
        return Answer((x[:-1] - x[-1]).reshape(rows.shape), said(status, "infeasible"))
    return solve


def multiplier_bounds(rows):
    return np.where(rows.equal, -FREE, 0.0), np.full(len(rows.equal), FREE)


def l1_dual(rows, norm, tight):
    unknowns = rows.matrix.shape[1]
    run = program(-rows.rhs, rows.matrix.T, multiplier_bounds(rows), (-np.ones(unknowns), np.ones(unknowns)), tight)

    def solve():
        found, status = run()
        return Answer(-np.array(found.row_dual).reshape(rows.shape), said(status, "unbounded"))
    return solve


def max_dual(rows, norm, tight):
    """Rows' sum A(multipliers) = P - N with P, N >= 0 whose entries sum to at most 1."""
    m, unknowns = rows.matrix.shape
    matrix = np.zeros((unknowns + 1, m + 2 * unknowns))
    matrix[:-1, :m], matrix[:-1, m:m + unknowns], matrix[:-1, m + unknowns:] = rows.matrix.T, -np.eye(unknowns), np.eye(unknowns)
    matrix[-1, m:] = 1
    low, high = multiplier_bounds(rows)
    columns = np.concatenate([low, np.zeros(2 * unknowns)]), np.concatenate([high, np.full(2 * unknowns, FREE)])
    bounds = np.concatenate([np.zeros(unknowns), [-FREE]]), np.concatenate([np.zeros(unknowns), [1.0]])
    run = program(np.concatenate([-rows.rhs, np.zeros(2 * unknowns)]), matrix, columns, bounds, tight)

    def solve():
        found, status = run()
        return Answer(-np.array(found.row_dual)[:-1].reshape(rows.shape), said(status, "unbounded"))
    return solve


TIGHT = "primal and dual feasibility to 1e-10"
PEERS = [
    Peer("HiGHS, primal l1", "highspy", "min Σ (P + N), W = P − N, rows ≥ 1; model ready-made", ("l1",), l1_primal, tight=TIGHT),
    Peer("HiGHS, dual l1", "highspy", "max bᵀλ, −1 ≤ A(λ) ≤ 1, λ ≥ 0; model ready-made, W is read off the rows", ("l1",), l1_dual, tight=TIGHT),
    Peer("HiGHS, primal max", "highspy", "min t, W = U − t, 0 ≤ U ≤ 2t, rows ≥ 1; model ready-made", ("max",), max_primal, tight=TIGHT),
    Peer("HiGHS, dual max", "highspy", "max bᵀλ, A(λ) = P − N, Σ (P + N) ≤ 1, λ ≥ 0; model ready-made, W is read off the rows", ("max",), max_dual, tight=TIGHT),
]
