import warnings

import numpy as np

from suite.peers import Answer, Peer


def hinge(rows, norm, tight):
    """A hard margin is a very large C; every second row is negated, so that there are two classes."""
    import sklearn.svm
    warnings.simplefilter("ignore")  # it says that it has not converged; the gap shows it
    y = np.where(np.arange(len(rows.equal)) % 2 == 0, 1, -1)
    X = rows.matrix * y[:, None]
    more = dict(tol=1e-10, max_iter=10**6) if tight else {}
    model = sklearn.svm.LinearSVC(C=1e6, loss="hinge", fit_intercept=False, random_state=0, **more)

    def solve():
        model.fit(X, y)
        return Answer(model.coef_.reshape(rows.shape), "optimal" if model.n_iter_ < model.max_iter else "iteration limit")
    return solve


PEERS = [Peer("LinearSVC", "scikit-learn", "LIBLINEAR's dual coordinate descent, hinge loss with C = 1e6 for the hard margin, no intercept; knows no certificate", ("fro",), hinge,
              equalities=False, tight="tol = 1e-10, max_iter = 1e6")]
