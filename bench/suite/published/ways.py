"""What the experiments share: normalized descent with autograd, and SVMs in cvxpy."""

import cvxpy
import numpy as np
import torch

STEP, EPSILON = 0.1, 2.0**-52


def unit(*shape):
    x = torch.randn(*shape)
    return x / x.norm(dim=-1, keepdim=True)


def random_task(n, T, d):
    """Tokens, queries, head, labels."""
    return unit(n, T, d), unit(n, d), unit(d), torch.sign(torch.randn(n))


def uniform_start(*shape):
    return (2 * torch.rand(*shape) - 1) / shape[-1] ** 0.5


def attention(keys, queries):
    """softmax(X u): queries are the vectors W z."""
    return torch.softmax((keys @ queries.unsqueeze(-1)).squeeze(-1), dim=-1)


def logistic(u):
    return torch.log(1 + torch.exp(-u)).mean()


def descend(parameters, loss, steps, step=STEP, epsilons=None, normalized=True):
    """Gradient steps on all parameters at once, each divided by its own norm."""
    optimizer = torch.optim.SGD(parameters, lr=step)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        if normalized:
            for parameter, epsilon in zip(parameters, epsilons or [EPSILON] * len(parameters)):
                parameter.grad /= parameter.grad.norm() + epsilon
        optimizer.step()


def train(task, factored=False, steps=2000, head=None, start=None, **more):
    """W, or (K,Q), on one instance; returns W and the attention at the end."""
    X, Z, v, y = task
    head = head or (lambda x: x @ v)
    d = X.shape[-1]
    start = start or uniform_start
    parameters = [start(d, d).requires_grad_(True) for _ in range(2 if factored else 1)]

    def weights():
        return attention(X, Z @ (parameters[1] @ parameters[0].T if factored else parameters[0].T))

    def loss():
        value = logistic(y * head((X.transpose(1, 2) @ weights().unsqueeze(-1)).squeeze(-1)))
        return value + EPSILON * sum((p * p).sum() for p in parameters) if factored else value
    descend(parameters, loss, steps, **more)
    with torch.no_grad():
        return (parameters[0] @ parameters[1].T if factored else parameters[0]).detach().numpy(), weights().numpy()


def svm(keys, queries, keep, norm="fro", relax=()):
    """min ‖W‖ so that kept tokens win by 1 (kept ones tie); None where the solver finds none. ECOS for Frobenius, SCS for nuclear, at
    their defaults. `keep` is a mask."""
    W = cvxpy.Variable((keys.shape[2], queries.shape[1]))
    constraints = []
    for i, (X, z, mask) in enumerate(zip(keys, queries, keep)):
        logits = X @ W @ z
        first, *others = np.flatnonzero(mask)
        constraints += [logits[first] - logits[t] == 0 for t in others]
        constraints += [logits[first] - logits[t] >= (0 if i in relax else 1) for t in np.flatnonzero(~mask)]
    objective = cvxpy.normNuc(W) if norm == "nuc" else cvxpy.norm(W, "fro")
    try:
        cvxpy.Problem(cvxpy.Minimize(objective), constraints).solve(solver="SCS" if norm == "nuc" else "ECOS")
    except cvxpy.SolverError:
        return None
    return W.value


def one_kept(chosen, T):
    return np.arange(T)[None, :] == np.asarray(chosen)[:, None]


def correlation(A, B):
    return float((A * B).sum() / np.linalg.norm(A) / np.linalg.norm(B)) if A is not None and B is not None else None
