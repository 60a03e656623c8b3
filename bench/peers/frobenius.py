"""The Frobenius attention SVM by the solvers people use today, beside ours, on the same files in the same run.

    frobenius.py BUILD_DIR

Peers get their data ready-made: building the matrices is not timed, except for cvxpy, whose users pay for it. CVXOPT is
shown in primal and dual form, at its default tolerances and at 1e-10; the better form counts. Every peer lives in a
process of its own and is warm when timed, as ours is; one that needs longer than its time-out is stopped and shown
as such. Rounds are interleaved; medians over all solves are shown. The gap is what the answer really has: its W
scaled until every row is met, against our certified optimum.
"""

import functools
import json
import multiprocessing
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
# n, T, d, rounds, solves a round (the first of several is not counted), seconds a peer may take for one round
SIZES = [(6, 8, 10, 9, 11, 10), (15, 5, 20, 9, 11, 10), (5, 15, 20, 9, 11, 10), (100, 32, 64, 1, 1, 70)]


def rows(task):
    """The matrix whose rows are vec(delta zeta')."""
    tokens, queries = task["tokens"], task["queries"]
    scores = task["labels"][:, None] * (tokens @ task["head"]) if "head" in task else None
    keep = task["select"] if "select" in task else scores.argmax(axis=1)
    delta = [(i, tokens[i, k] - tokens[i, t]) for i, k in enumerate(keep) for t in range(tokens.shape[1]) if t != k]
    return np.array([np.outer(d, queries[i]).ravel() for i, d in delta])


def set_cvxopt(tolerance):
    cvxopt.solvers.options.update(show_progress=False)
    if tolerance is not None:
        cvxopt.solvers.options.update(abstol=tolerance, reltol=tolerance, feastol=tolerance)


def cvxopt_primal(A, tolerance=None):
    """min 1/2 w'w, A w >= 1"""
    set_cvxopt(tolerance)
    m, n = A.shape
    P, q = cvxopt.spmatrix(1.0, range(n), range(n)), cvxopt.matrix(0.0, (n, 1))
    G, h = cvxopt.matrix(-A), cvxopt.matrix(-1.0, (m, 1))
    return lambda: np.array(cvxopt.solvers.qp(P, q, G, h)["x"]).ravel()


def cvxopt_dual(A, tolerance=None):
    """min 1/2 x'Kx - 1'x, x >= 0 with K = AA'"""
    set_cvxopt(tolerance)
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


PEERS = {
    "CVXOPT qp, primal": cvxopt_primal,
    "CVXOPT qp, dual": cvxopt_dual,
    "CVXOPT, primal, 1e-10": functools.partial(cvxopt_primal, tolerance=1e-10),
    "CVXOPT, dual, 1e-10": functools.partial(cvxopt_dual, tolerance=1e-10),
    "cvxpy default": cvxpy_default,
    "LIBLINEAR": liblinear,
}


class Peer:
    """One solver in its own process, so that a solve can be given up."""

    def __init__(self, build, A):
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=self.serve, args=(other, build, A), daemon=True)
        self.process.start()
        self.seconds, self.answer = [], None
        self.pipe.recv()  # its data are ready

    @staticmethod
    def serve(pipe, build, A):
        solve = build(A)
        pipe.send(None)
        while True:
            seconds = []
            for _ in range(pipe.recv()):
                start = time.perf_counter()
                answer = solve()
                seconds.append(time.perf_counter() - start)
            pipe.send((seconds[1:] or seconds, answer))

    def round(self, solves, limit):
        if self.process is None:
            return
        self.pipe.send(solves)
        if self.pipe.poll(limit):
            seconds, self.answer = self.pipe.recv()
            self.seconds += seconds
        else:
            self.stop()

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def ours(program, path):
    """Seconds of one solve, measured inside the program, so that starting it does not count."""
    line = subprocess.run([program, path], capture_output=True, text=True, check=True).stdout
    return json.loads(line)


def main(build):
    build = pathlib.Path(build)
    print(f"{'(n,T,d)':<14}{'solver':<24}{'seconds':>12}{'times ours':>12}{'gap':>12}")
    for n, T, d, rounds, solves, limit in SIZES:
        path = build / f"peer_{n}_{T}_{d}.npz"
        subprocess.run([build / "attsvm", "generate", "random", "--n", str(n), "--T", str(T), "--d", str(d), "--seed", "1", "-o", path, "--force",
                        "--quiet"], check=True, stdout=subprocess.DEVNULL)
        A = rows(dict(np.load(path)))
        peers = {name: Peer(start, A) for name, start in PEERS.items()}
        mine = []
        for _ in range(rounds):
            mine.append(ours(build / "bench_small", path))
            for peer in peers.values():
                peer.round(solves, limit)
        best = np.median([m["seconds"] for m in mine])
        print(f"{f'({n},{T},{d})':<14}{'attsvm':<24}{best:>12.3g}{1:>12}{mine[0]['gap']:>12.1e}")
        for name, peer in peers.items():
            if peer.process is None or peer.answer is None:
                print(f"{'':<14}{name:<24}{f'> {limit}':>12}{f'> {limit / solves / best:.0f}':>12}{'gave up':>12}", flush=True)
                continue
            margin = (A @ peer.answer).min()
            gap = 1 - mine[0]["objective"] * margin / np.linalg.norm(peer.answer) if margin > 0 else float("nan")
            seconds = np.median(peer.seconds)
            print(f"{'':<14}{name:<24}{seconds:>12.3g}{seconds / best:>12.0f}{gap:>12.1e}", flush=True)
            peer.stop()


if __name__ == "__main__":
    main(sys.argv[1])
