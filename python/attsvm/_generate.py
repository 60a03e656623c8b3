"""Random tasks."""

from __future__ import annotations

from typing import Any, Literal

from . import _arguments as arguments
from . import _core
from ._task import Task
from ._types import Attention, HeadKind


def generate(kind: str = "random", *, n: int | None = None, T: int | None = None, d: int | None = None,
             dz: int | None = None, shortest: int | None = None, attention: Attention | None = None,
             head: HeadKind | None = None, hidden: int | None = None, lam: float | None = None, rank: int | None = None,
             norm: Literal["fro", "nuc"] | None = None, vocabulary: int | None = None,
             C: float | None = None, seed: int = 0, instance: int = 0) -> Task:
    """Draws a task, as `attsvm generate` does, to the same bits.

    Parameters
    ----------
    kind : str
        What to draw; see `kinds()`.
    n, T, d, dz : int, optional
        Sequences, tokens per sequence, dimensions of keys and queries. Default: 6, 8, 10, d unless the kind fixes them.
    shortest : int, optional
        Draw sequence lengths between this and T.
    attention : {"cross", "self", "prompt", "causal"}, optional
    head : {"linear", "relu", "quadratic", "none"}, optional
    hidden, lam : optional
        Units of a ReLU head, λ of a quadratic one.
    rank, norm, vocabulary, C : optional
        Rank of a planted W, the norm whose optimum is planted ("fro", "nuc"), tokens of the vocabulary of "nexttoken",
        the score C of "losses".
    seed, instance : int
        Draw number `instance` of the seed.

    What else is known (a planted optimum) is in `Task.extras`.

    >>> generate("planted", n=5, d=4, seed=3).extras.keys()
    dict_keys(['x_planted_W', 'x_planted_dual', 'x_planted_objective'])
    """
    sizes = dict(n=n, T=T, d=d, dz=dz, shortest=shortest, hidden=hidden, rank=rank, vocabulary=vocabulary)
    given: dict[str, Any] = {name: arguments.integer(value, name, 1)
                             for name, value in sizes.items() if value is not None}
    given |= {name: arguments.word(value, name)
              for name, value in dict(attention=attention, head=head, norm=norm).items() if value is not None}
    if lam is not None:
        given["lambda"] = arguments.number(lam, "lam")
    if C is not None:
        given["C"] = arguments.number(C, "C")
    core, extras = _core.generate(arguments.word(kind, "kind"), given, arguments.seed(seed),
                                  arguments.integer(instance, "instance", 0, 2**32 - 1))
    return Task._of(core, extras)


def kinds() -> dict[str, str]:
    """The kinds of tasks that `generate` draws, with descriptions.

    >>> "planted" in kinds()
    True
    """
    return _core.kinds()
