"""Prompt attention: "Max-Margin Token Selection in Attention Mechanism"."""

import numpy as np
import torch

from suite.published.ways import attention, correlation, descend, logistic, one_kept, svm

STARTS = (1.0, 0.5, 0.0, -0.5, -1.0, -1.5)
FLAT = torch.diag(torch.tensor([1.0, 1.0, 0.0]))  # the key matrix drops the third coordinate


def train_prompt(X, keys, y, v, start, loss=logistic, joint=False, epsilons=(1e-9, 1e-9), steps=999, **more):
    """p, and the head v too where it is joint; returns them."""
    p = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    v = v.clone().requires_grad_(joint)
    parameters = [p, v] if joint else [p]

    def total():
        s = attention(keys, p.expand(len(X), -1))
        return loss(y * ((X.transpose(1, 2) @ s.unsqueeze(-1)).squeeze(-1) @ v))
    descend(parameters, total, steps, epsilons=list(epsilons[:len(parameters)]), **more)
    return p.detach().numpy(), v.detach().numpy(), attention(keys, p.detach().expand(len(X), -1)).numpy()


def compare_with_svm(keys, p, weights, **more):
    W = svm(keys.numpy(), np.ones((len(keys), 1)), one_kept(weights.argmax(1), keys.shape[1]), **more)
    return correlation(p, None if W is None else W.ravel())


def single_input(runs):
    for c in (0.9, 0.0):
        X = torch.tensor([[[-0.1, 1.0, 1.0], [1.0, 0.0, 0.9], [0.0, 0.0, c]]])
        for q in STARTS:
            p, _, weights = train_prompt(X, X @ FLAT, torch.ones(1), torch.tensor([0.0, 0.0, 1.0]), [0.0, q, 0.0])
            compare_with_svm(X @ FLAT, p, weights)


def multi_input(runs):
    centres = torch.tensor([[1.0, 0.0], [-1.0, 1.0], [-0.5, -0.5]])
    scores = torch.tensor([1.0] + [0.5] * 6)
    for _ in range(runs):
        plane = centres[:, None, :] + 0.2 * torch.randn(3, 7, 2)
        X = torch.cat([plane, scores.expand(3, 7).unsqueeze(-1)], dim=-1)
        for normalized, step in ((True, 0.1), (False, 1.0)):
            for q in STARTS:
                p, _, weights = train_prompt(X, X @ FLAT, torch.ones(3), torch.tensor([0.0, 0.0, 1.0]), [q, 0.0, 0.0], epsilons=(1e-12,), normalized=normalized,
                                             step=step)
                compare_with_svm(X @ FLAT, p, weights)


def joint_training(runs):
    for last in (1.0, 1.5):
        X = torch.tensor([[[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, -1.0]], [[0.0, 0.0], [0.5, last]]])
        p, v, weights = train_prompt(X, X, torch.tensor([1.0, -1.0, 1.0]), torch.tensor([-1.0, 0.0]), [0.0, -1.0], joint=True, epsilons=(1e-19, 1e-9))
        compare_with_svm(X, p, weights)
        compare_with_svm(X, p, weights, relax=(2,))


def losses(runs):
    functions = (lambda u: (-u).mean(), logistic, lambda u: torch.exp(-u).mean())
    for C in (*range(1, 11), 100):
        X = torch.tensor([[[0.0, 0.0, 0.0], [1.0, 1.0, float(C)]], [[0.0, 0.0, 0.0], [1.0, -1.0, 1.0]]])
        for loss in functions:
            p, _, weights = train_prompt(X, X @ FLAT, torch.ones(2), torch.tensor([0.0, 0.0, 1.0]), [0.0, 0.0, 0.0], loss=loss)
            compare_with_svm(X @ FLAT, p, weights)
