"""The nuclear-norm attention SVM by the solvers people use today, beside ours, on the same files in the same run.

    nuclear.py BUILD_DIR [SECONDS]

Peers: CVXOPT on the dual form, max 1'x with [I A(x); A(x)' I] >= 0, x >= 0 (the better of its forms at these sizes), SCS on the
primal semidefinite form at 1e-9, and what people write: cvxpy with SCS as it is. Data are ready-made for the first two; cvxpy's
users pay for building it. Times are the best of some rounds, ours and theirs: other work on the machine only adds to them. A peer
that needs longer than SECONDS (default 60) for one solve is shown as out of time. The gap is what the answer really has: its W scaled until every row is met, against our certified optimum.
"""

import json
import multiprocessing
import pathlib
import queue
import subprocess
import sys
import time

import cvxopt
import cvxpy
import numpy as np
import scipy.sparse
import scs

cvxopt.solvers.options.update(show_progress=False, abstol=1e-10, reltol=1e-9, feastol=1e-9)
SIZES = [(6, 8, 10, 7), (15, 5, 20, 5), (5, 15, 20, 5), (30, 16, 32, 2), (100, 32, 64, 1)]


def rows(task):
    """delta (m,d), zeta (m,dz) of every row."""
    tokens, queries = task["tokens"], task["queries"]
    scores = task["labels"][:, None] * (tokens @ task["head"]) if "head" in task else None
    keep = task["select"] if "select" in task else scores.argmax(axis=1)
    pairs = [(tokens[i, k] - tokens[i, t], queries[i]) for i, k in enumerate(keep) for t in range(tokens.shape[1]) if t != k]
    return np.array([d for d, _ in pairs]), np.array([z for _, z in pairs])


def cvxopt_dual(delta, zeta):
    (m, d), dz = delta.shape, zeta.shape[1]
    size = d + dz
    G = np.zeros((size * size, m))
    for k in range(m):
        block = np.zeros((size, size))
        block[d:, :d] = np.outer(zeta[k], delta[k])
        G[:, k] = (block + block.T).ravel()
    problem = dict(c=cvxopt.matrix(-1.0, (m, 1)), Gl=cvxopt.spmatrix(-1.0, range(m), range(m)), hl=cvxopt.matrix(0.0, (m, 1)),
                   Gs=[cvxopt.matrix(G)], hs=[cvxopt.matrix(np.eye(size))])

    def solve():
        return 2 * np.array(cvxopt.solvers.sdp(**problem)["zs"][0])[d:, :d].T  # of the lower triangle, which is what it fills
    return solve


def scs_primal(delta, zeta, eps):
    """min 1/2 tr X, X = [W1 W; W' W2] >= 0, rows of W >= 1; X as the scaled lower triangle."""
    (m, d), dz = delta.shape, zeta.shape[1]
    size = d + dz
    places = [(i, j) for j in range(size) for i in range(j, size)]
    index = {place: k for k, place in enumerate(places)}
    count = len(places)
    c = np.array([0.5 if i == j else 0.0 for i, j in places])
    A = np.zeros((m, count))
    for a in range(d):
        for b in range(dz):
            A[:, index[(d + b, a)]] = -delta[:, a] * zeta[:, b]
    cone = scipy.sparse.diags([-1.0 if i == j else -np.sqrt(2) for i, j in places])
    data = dict(A=scipy.sparse.vstack([scipy.sparse.csc_matrix(A), cone]).tocsc(), b=np.r_[-np.ones(m), np.zeros(count)], c=c)

    def solve():
        x = scs.SCS(data, dict(l=m, s=[size]), eps_abs=eps, eps_rel=eps, max_iters=10**7, verbose=False).solve()["x"]
        return np.array([[x[index[(d + b, a)]] for b in range(dz)] for a in range(d)])
    return solve


def cvxpy_scs(delta, zeta):
    def solve():
        W = cvxpy.Variable((delta.shape[1], zeta.shape[1]))
        rows_met = cvxpy.sum(cvxpy.multiply(delta @ W, zeta), axis=1) >= 1
        cvxpy.Problem(cvxpy.Minimize(cvxpy.normNuc(W)), [rows_met]).solve(solver="SCS")
        return W.value
    return solve


PEERS = {"CVXOPT (dual)": cvxopt_dual, "SCS at 1e-9": lambda D, Z: scs_primal(D, Z, 1e-9), "SCS at 1e-6": lambda D, Z: scs_primal(D, Z, 1e-6),
         "cvxpy + SCS": cvxpy_scs}


def timed(name, delta, zeta, rounds, out):
    solve = PEERS[name](delta, zeta)
    for _ in range(rounds):
        start = time.perf_counter()
        W = solve()
        out.put((time.perf_counter() - start, W))


def with_limit(name, delta, zeta, rounds, limit):
    """(best seconds, W) of some rounds in a process of its own, or None if one takes too long."""
    out = multiprocessing.Queue()
    child = multiprocessing.Process(target=timed, args=(name, delta, zeta, rounds, out))
    child.start()
    best, W = None, None
    try:
        for _ in range(rounds):
            seconds, W = out.get(timeout=limit)
            best = seconds if best is None else min(best, seconds)
        return best, W
    except queue.Empty:
        return None
    finally:
        child.terminate()
        child.join()


def ours(program, path):
    """Seconds of one solve, measured inside the program, so that starting it does not count."""
    return json.loads(subprocess.run([program, path], capture_output=True, text=True, check=True).stdout)


def main(build, limit=60.0):
    build = pathlib.Path(build)
    print(f"{'(n,T,d)':<14}{'solver':<18}{'seconds':>12}{'times ours':>12}{'gap':>12}")
    for n, T, d, rounds in SIZES:
        path = build / f"peer_{n}_{T}_{d}.npz"
        subprocess.run([build / "attsvm", "generate", "random", "--n", str(n), "--T", str(T), "--d", str(d), "--seed", "1", "-o", path, "--force",
                        "--quiet"], check=True, stdout=subprocess.DEVNULL)
        delta, zeta = rows(dict(np.load(path)))
        mine = min((ours(build / "bench_nuclear", path) for _ in range(3)), key=lambda one: one["seconds"])
        best = mine["seconds"]
        print(f"{f'({n},{T},{d})':<14}{'attsvm':<18}{best:>12.3g}{1:>12}{mine['gap']:>12.1e}  rank {mine['rank']}", flush=True)
        for name in PEERS:
            result = with_limit(name, delta, zeta, rounds, limit)
            if result is None:
                print(f"{'':<14}{name:<18}{f'> {limit:.0f}':>12}{f'> {limit / best:.0f}':>12}{'out of time':>14}", flush=True)
                continue
            seconds, W = result
            margin = np.einsum("ka,ab,kb->k", delta, W, zeta).min()
            gap = 1 - mine["objective"] * margin / np.linalg.norm(W, "nuc") if margin > 0 else float("nan")
            print(f"{'':<14}{name:<18}{seconds:>12.3g}{seconds / best:>12.0f}{gap:>12.1e}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *(float(word) for word in sys.argv[2:]))
