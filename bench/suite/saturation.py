"""The gradient of the loss with respect to W: in PyTorch's double arithmetic, and in numbers of a thousand digits."""

import numpy as np


def exact_direction(task, W, digits):
    """G/‖G‖ by mpmath, from the definition; softmax weights of e^-1000 need a thousand digits."""
    import mpmath
    mpmath.mp.dps = digits
    mpf = mpmath.mpf
    tokens, queries, head, labels = (task[name] for name in ("tokens", "queries", "head", "labels"))
    n, T, d = tokens.shape
    G = [[mpf(0)] * queries.shape[1] for _ in range(d)]
    big = [[mpf(float(x)) for x in row] for row in W]
    for X, z, y in zip(tokens.tolist(), queries.tolist(), labels.tolist()):
        u = [mpmath.fdot(row, z) for row in big]
        weights = [mpmath.exp(mpmath.fdot(u, x)) for x in X]
        total = mpmath.fsum(weights)
        s = [w / total for w in weights]
        gamma = [y * mpmath.fdot(head.tolist(), x) for x in X]
        f = mpmath.fdot(s, gamma)
        slope = -1 / (1 + mpmath.exp(f)) / n
        h = [slope * s[t] * (gamma[t] - f) for t in range(T)]
        for a in range(d):
            g = mpmath.fdot(h, [x[a] for x in X])
            for b, value in enumerate(z):
                G[a][b] += g * mpf(value)
    norm = mpmath.sqrt(mpmath.fsum(x * x for row in G for x in row))
    return np.array([[float(x / norm) for x in row] for row in G]), float(mpmath.log10(norm))


def torch_gradient(task, W, autograd):
    import torch
    X, Z, v, y = (torch.from_numpy(task[name].astype(float)) for name in ("tokens", "queries", "head", "labels"))
    W = torch.from_numpy(np.array(W)).requires_grad_(autograd)
    logits = torch.bmm(X, (Z @ W.T).unsqueeze(-1)).squeeze(-1)
    s = torch.softmax(logits, dim=-1)
    if autograd:
        f = y * (torch.bmm(s.unsqueeze(1), X).squeeze(1) @ v)
        torch.log(1 + torch.exp(-f)).mean().backward()
        return W.grad.numpy()
    gamma = y.unsqueeze(-1) * (X @ v)
    f = (s * gamma).sum(-1, keepdim=True)
    h = -(gamma - f) * s * torch.sigmoid(-f) / len(X)
    return (torch.bmm(h.unsqueeze(1), X).squeeze(1).T @ Z).numpy()


def direction_error(G, exact):
    """‖G/‖G‖ − exact‖, None where G is zero: there is no direction."""
    with np.errstate(under="ignore"):
        size = np.abs(G).max()
        if size == 0 or not np.isfinite(size):
            return None
        G = G / size
        return float(np.linalg.norm(G / np.linalg.norm(G) - exact))
