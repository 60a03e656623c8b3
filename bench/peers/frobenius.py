"""The Frobenius attention SVM by the solvers people use today, beside ours, on the same files in the same run.

    frobenius.py BUILD_DIR

Every peer gets the better of the primal and the dual form where both were tried, and its data ready-made: building the
matrices is not timed, except for cvxpy, whose users pay for it. Rounds are interleaved; medians are shown. The gap is what the
answer really has: its W scaled until every row is met, against our certified optimum.
"""

import json
import pathlib
import subprocess
import sys
import time
import warnings

import cvxopt
import cvxpy
import numpy as np
import sklearn.svm

warnings.simplefilter("ignore")  # LIBLINEAR says that it has not converged; the gap column shows it
cvxopt.solvers.options.update(show_progress=False)
SIZES = [(6, 8, 10, 9), (15, 5, 20, 9), (5, 15, 20, 9), (100, 32, 64, 3)]


def rows(task):
    """The matrix whose rows are vec(delta zeta')."""
    tokens, queries = task["tokens"], task["queries"]
    scores = task["labels"][:, None] * (tokens @ task["head"]) if "head" in task else None
    keep = task["select"] if "select" in task else scores.argmax(axis=1)
    delta = [(i, tokens[i, k] - tokens[i, t]) for i, k in enumerate(keep) for t in range(tokens.shape[1]) if t != k]
    return np.array([np.outer(d, queries[i]).ravel() for i, d in delta])


def cvxopt_dual(A):
    """min 1/2 x'Gx - 1'x, x >= 0: far fewer unknowns than the primal at these sizes."""
    m = len(A)
    G, h = cvxopt.spmatrix(-1.0, range(m), range(m)), cvxopt.matrix(0.0, (m, 1))
    gram, ones = cvxopt.matrix(A @ A.T), cvxopt.matrix(-1.0, (m, 1))
    return lambda: A.T @ np.array(cvxopt.solvers.qp(gram, ones, G, h)["x"]).ravel()


def cvxpy_default(A):
    def solve():
        w = cvxpy.Variable(A.shape[1])
        cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(w)), [A @ w >= 1]).solve()
        return w.value
    return solve


def liblinear(A):
    """A hard margin is a very large C; every second row negated, so that there are two classes; default accuracy and iterations."""
    y = np.where(np.arange(len(A)) % 2 == 0, 1, -1)
    X = A * y[:, None]
    model = sklearn.svm.LinearSVC(C=1e6, loss="hinge", fit_intercept=False)
    return lambda: model.fit(X, y).coef_.ravel()


def ours(program, path):
    """Seconds of one solve, measured inside the program, so that starting it does not count."""
    line = subprocess.run([program, path], capture_output=True, text=True, check=True).stdout
    return json.loads(line)


def main(build):
    build = pathlib.Path(build)
    print(f"{'(n,T,d)':<14}{'solver':<18}{'seconds':>12}{'times ours':>12}{'gap':>12}")
    for n, T, d, rounds in SIZES:
        path = build / f"peer_{n}_{T}_{d}.npz"
        subprocess.run([build / "attsvm", "generate", "random", "--n", str(n), "--T", str(T), "--d", str(d), "--seed", "1", "-o", path, "--force",
                        "--quiet"], check=True, stdout=subprocess.DEVNULL)
        A = rows(dict(np.load(path)))
        peers = {"CVXOPT qp (dual)": cvxopt_dual(A), "cvxpy default": cvxpy_default(A), "LIBLINEAR": liblinear(A)}
        seconds, answers, mine = {name: [] for name in peers}, {}, []
        for _ in range(rounds):
            mine.append(ours(build / "bench_small", path))
            for name, solve in peers.items():
                start = time.perf_counter()
                answers[name] = solve()
                seconds[name].append(time.perf_counter() - start)
        best = np.median([m["seconds"] for m in mine])
        print(f"{f'({n},{T},{d})':<14}{'attsvm':<18}{best:>12.3g}{1:>12}{mine[0]['gap']:>12.1e}")
        for name in peers:
            margin = (A @ answers[name]).min()
            gap = 1 - mine[0]["objective"] * margin / np.linalg.norm(answers[name]) if margin > 0 else float("nan")
            print(f"{'':<14}{name:<18}{np.median(seconds[name]):>12.3g}{np.median(seconds[name]) / best:>12.0f}{gap:>12.1e}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
