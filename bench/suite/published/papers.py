"""Cross attention: "Transformers as Support Vector Machines"."""

import numpy as np
import torch

from suite.published.ways import correlation, one_kept, random_task, svm, train


def compare_with_svms(task, W, attention):
    """Correlations with the two SVMs of the selected tokens."""
    X, Z = task[0].numpy(), task[1].numpy()
    keep = one_kept(attention.argmax(1), X.shape[1])
    return [correlation(W, svm(X, Z, keep, norm)) for norm in ("fro", "nuc")]


def gd_paths(runs):
    for T in (3, 5):
        task = random_task(2, T, 2)
        for factored in (False, True):
            compare_with_svms(task, *train(task, factored, start=lambda *shape: 0.1 * torch.randn(*shape)))


def local_convergence(runs):
    for _ in range(runs):
        for factored in (False, True):
            task = random_task(6, 8, 10)
            compare_with_svms(task, *train(task, factored))


def convergence_types(runs):
    """Global, local or neither: the SVM of the selection tells which tokens support it."""
    for n, T in ((3, 5), (5, 5), (10, 5), (5, 3), (5, 10)):
        for d in (2, 3, 4, 5, 8, 12, 20):
            for _ in range(runs):
                task = random_task(n, T, d)
                X, Z, v, y = task
                _, attention = train(task, start=torch.zeros)
                scores, chosen = (y[:, None] * (X @ v)).numpy(), attention.argmax(1)
                if (chosen == scores.argmax(1)).all():
                    continue
                W = svm(X.numpy(), Z.numpy(), one_kept(chosen, T))
                if W is not None:
                    logits = np.einsum("ita,ab,ib->it", X.numpy(), W, Z.numpy())
                    support = logits[np.arange(n), chosen][:, None] - logits < 1 + 1e-6
                    (~support | (scores <= scores[np.arange(n), chosen][:, None])).all()


def multi_token(runs):
    """Accepted runs are what counts; most trained ones are rejected."""
    for d in (4, 6, 8, 10):
        accepted = 0
        while accepted < runs:
            task = random_task(3, 4, d)
            X, Z, _, y = task
            if (y > 0).all():
                continue
            B = torch.randn(d, d)
            B /= B.norm()
            W, attention = train(task, steps=2001, head=lambda x: torch.relu(x @ B).sum(-1))
            if ((attention > 1e-6) & (attention <= 1e-3)).any() or not (attention <= 1e-6).any():
                continue
            X, Z, keep = X.numpy(), Z.numpy(), attention >= 1e-3
            gen, single = svm(X, Z, keep), svm(X, Z, one_kept(attention.argmax(1), 4))
            if gen is not None and single is not None:
                accepted += 1
                correlation(finite_part(X, Z, keep, attention), W), correlation(gen, W), correlation(single, W)


def finite_part(X, Z, keep, attention):
    """The smallest W whose logits differ among kept tokens as the attention says."""
    rows, logs = [], []
    for x, z, mask, s in zip(X, Z, keep, attention):
        first, *others = np.flatnonzero(mask)
        rows += [np.outer(x[first] - x[t], z).ravel() for t in others]
        logs += [np.log(s[first] / s[t]) for t in others]
    return np.linalg.lstsq(np.array(rows), np.array(logs), rcond=None)[0].reshape(X.shape[2], -1) if rows else None


def quadratic_head(runs):
    for weight in (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0):
        for _ in range(runs):
            X = torch.stack([torch.linalg.qr(torch.randn(10, 6))[0].T for _ in range(4)])
            _, Z, v, _ = random_task(4, 6, 10)
            train((X, Z, v, torch.ones(4)), steps=20_000, step=5.0, normalized=False, start=torch.zeros, head=lambda x: x @ v - weight * (x * x).sum(-1))


def svm_rank(runs):
    for n, T in ((5, 5), (10, 5), (15, 5), (5, 10), (5, 15)):
        for d in (1, 2, 3, 4, 5, 10, 15, 20):
            for _ in range(runs):
                X, Z, v, y = (part.numpy() for part in random_task(n, T, d))
                keep = one_kept((y[:, None] * (X @ v)).argmax(1), T)
                for norm in ("fro", "nuc"):
                    W = svm(X, Z, keep, norm)
                    if W is not None:
                        np.linalg.matrix_rank(W, tol=1e-7)
