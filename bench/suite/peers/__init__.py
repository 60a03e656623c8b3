"""Other solvers, one per file; each says what it can express, in which form, and how.

`build(rows, norm, tight)` prepares the data and returns solve() -> Answer; it runs in a process of its own, so that its import may fail there.
Data are ready-made, except for cvxpy, whose users pay for building the problem at every solve.
"""

import dataclasses
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass(frozen=True)
class Answer:
    """W, or None; and what the solver says about it: "optimal", "infeasible", or its own words."""

    W: np.ndarray | None
    says: str


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str
    package: str  # of PyPI
    form: str  # the formulation, in a sentence
    norms: tuple[str, ...]
    build: Callable
    settings: tuple[str, ...] = ("default", "tight")
    equalities: bool = True  # can express them
    tight: str = ""  # what "tight" sets


def all_peers():
    from suite.peers import cvxopt, cvxpy, direct, highs, liblinear, proxsuite, scs
    return [*cvxopt.PEERS, *cvxpy.PEERS, *direct.PEERS, *highs.PEERS, *proxsuite.PEERS, *scs.PEERS, *liblinear.PEERS]


def serve(path, peer_name, norm, tight):
    """What a worker runs: the solve of one peer on one task file."""
    from suite.rows import load_rows
    peer = next(peer for peer in all_peers() if peer.name == peer_name)
    return peer.build(load_rows(path), norm, tight)
