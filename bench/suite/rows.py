"""The rows of a margin problem, written out from the raw arrays of a task file."""

import dataclasses
import functools

import numpy as np


@dataclasses.dataclass(frozen=True)
class Rows:
    """delta_k' W zeta_k >= 1, or = 0 where equal_k (two tokens that are both kept)."""

    delta: np.ndarray  # (m,d)
    zeta: np.ndarray  # (m,dz)
    equal: np.ndarray  # (m) bool

    @property
    def shape(self):
        return self.delta.shape[1], self.zeta.shape[1]

    @functools.cached_property
    def rhs(self):
        return np.where(self.equal, 0.0, 1.0)

    @functools.cached_property
    def matrix(self):
        """Row k is vec(delta_k zeta_k')."""
        return np.einsum("ka,kb->kab", self.delta, self.zeta).reshape(len(self.delta), -1)

    @functools.cached_property
    def gram(self):
        """Inner products of the rows."""
        return (self.delta @ self.delta.T) * (self.zeta @ self.zeta.T)

    def values(self, W):
        return np.einsum("ka,kb,ab->k", self.delta, self.zeta, W, optimize=True)

    def weigh(self, multipliers):
        return (self.delta * multipliers[:, None]).T @ self.zeta


def load_rows(path):
    task = dict(np.load(path))
    tokens = task["tokens"]
    n, T, _ = tokens.shape
    queries = task.get("queries", np.ones((n, 1)))
    if "select" not in task:
        keep = (task["labels"][:, None] * (tokens @ task["head"])).argmax(axis=1)
    elif task["select"].ndim == 1:
        keep = task["select"]
    else:
        keep = task["select"].argmax(axis=1)
    mask = task["select"] if "select" in task and task["select"].ndim == 2 else np.zeros((n, T), bool)
    pairs = [(i, keep[i], t) for i in range(n) for t in range(T) if t != keep[i]]
    query, kept, dropped = np.array(pairs).T
    return Rows(tokens[query, kept] - tokens[query, dropped], queries[query], mask[query, dropped])
