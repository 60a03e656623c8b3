from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from . import _arguments as arguments
from . import _core
from ._results import Result
from ._task import Task
from ._types import Floats

_INTEGERS = ("key_head", "layer", "head", "offsets", "sequence", "position", "ids")
_TEXTS = ("text", "query_text")


class Heads(Result):
    """Keys and queries of the attention heads of a model on some text, in head space: the logits are keys · queries.

    `attsvm.torch.heads_from` makes them from a PyTorch model; any other framework can fill in the arrays.

    Parameters
    ----------
    keys : array (g, N, d)
        What the logits read of each of the N tokens: after projection, bias, rotation and normalisation. One matrix per
        head, or per group of heads that share their keys.
    queries : array (h, q, d)
        One matrix per head, times the scale of the logits.
    key_head : array (h,) of integers, optional
        The keys that each head reads. Default: its own.
    layer, head : arrays (h,) of integers, optional
        The name of each head, layer.head. Default: 0.0, 0.1, …
    offsets : array (n+1,) of integers, optional
        Sequence s is tokens offsets[s] to offsets[s+1]-1. Default: one sequence.
    sequence : array (q,) of integers, optional
        The sequence that each query reads. Needed with several sequences.
    position : array (q,) of integers, optional
        Self attention: the query's own token, within its sequence.
    visible : array (q,) of integers, or (q, T) or (h, q, T) bool, optional
        How many leading tokens each query sees, or which; T is the longest sequence. Default: all.
    text, query_text : lists of N and q str, optional
        The words of tokens; those of queries, in cross attention.
    ids : array (N,) of integers, optional
        Equal for tokens that are the same word. Default: by text.
    sink : array (N,) bool, optional
        Tokens that the second view of an audit hides. Default: the first of each sequence.
    difference : array (h,), optional
        The largest difference between recomputed attention and the model's own.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> heads = Heads(rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 4)), position=range(5), text="a b c a b".split())
    >>> heads
    Heads(heads=2, tokens=5, queries=5, d=4, difference=nan)
    >>> heads.attention(0).shape
    (5, 5)
    """

    __slots__ = ("_core",)

    def __init__(self, keys: Any, queries: Any, *, key_head: Any = None, layer: Any = None, head: Any = None,
                 offsets: Any = None, sequence: Any = None, position: Any = None, visible: Any = None,
                 text: Sequence[str] | None = None, query_text: Sequence[str] | None = None, ids: Any = None,
                 sink: Any = None, difference: Any = None):
        given = dict(keys=keys, queries=queries, key_head=key_head, layer=layer, head=head, offsets=offsets,
                     sequence=sequence, position=position, visible=visible, text=text, query_text=query_text, ids=ids,
                     sink=sink, difference=difference)
        self._core = _core.make_heads({
            name: [arguments.word(one, f"{name}[{k}]") for k, one in enumerate(value)] if name in _TEXTS
            else arguments.array(value, name, integers=name in _INTEGERS)
            for name, value in given.items() if value is not None})

    @classmethod
    def _of(cls, core: Any) -> "Heads":
        heads = cls.__new__(cls)
        heads._core = core
        return heads

    def __len__(self) -> int:
        return self._core.heads

    @property
    def names(self) -> list[str]:
        """layer.head of each."""
        return self._core.names()

    @property
    def difference(self) -> Floats:
        """(h,) the largest difference between recomputed attention and the model's own; NaN if it is not known."""
        return np.asarray(self._core.arrays().get("difference", np.full(len(self), np.nan)))

    def attention(self, head: int) -> Floats:
        """(q, T) softmax of the logits of one head; 0 for tokens that a query does not see."""
        return np.asarray(self._core.attention(arguments.integer(head, "head", 0, len(self) - 1)))

    def task(self, head: int, *, hide_sinks: bool = False, queries: int = 1000, drop: float = 0.1) -> Task:
        """The task whose SVM `attsvm.audit` solves for one head: its queries, and the token that each chooses.

        In head space, so that the head itself is the identity. `queries` and `drop` as in `audit`.
        """
        return Task._of(_core.head_task(self._core, arguments.integer(head, "head", 0, len(self) - 1), bool(hide_sinks),
                                        arguments.integer(queries, "queries", 1), arguments.number(drop, "drop")), {})

    def kinds(self, head: int, *, hide_sinks: bool = False) -> list[dict[str, Any]]:
        """What the choices of one head have in common, the largest share first: the `kinds` of `attsvm.audit`."""
        found = _core.head_kinds(self._core, arguments.integer(head, "head", 0, len(self) - 1), bool(hide_sinks))
        return [dict(zip(("kind", "share", "words"), one)) for one in found]

    def rho(self, head: int, norm: Any = "fro", *, hide_sinks: bool = False, queries: int = 1000, drop: float = 0.1,
            nulls: int = 10, seed: int = 0, threads: int | None = None) -> dict[str, Any]:
        """The smallest gap of one head over its norm, as a share of the largest that any W with its choices has.

        `value` is between 0 and 1, within a thousandth; `null_mean`, `null_deviation`, `z` and `draws` set it beside
        random heads, as `attsvm.audit` does in the Frobenius norm. Queries, drop and seed are those of `audit`.

        >>> rng = np.random.default_rng(0)
        >>> keys = rng.normal(size=(1, 20, 6))
        >>> found = Heads(keys, np.roll(keys, 1, axis=1)).rho(0, "spec", nulls=5)
        >>> 0 < found["value"] <= 1, found["draws"]
        (True, 5)
        """
        found = _core.head_rho(self._core, arguments.integer(head, "head", 0, len(self) - 1), bool(hide_sinks),
                               arguments.norm(norm), arguments.integer(queries, "queries", 1),
                               arguments.number(drop, "drop"), arguments.integer(nulls, "nulls"), arguments.seed(seed),
                               arguments.threads(threads))
        return dict(zip(("value", "null_mean", "null_deviation", "z", "draws"), found))

    def save(self, path: Any, force: bool = False) -> None:
        """Writes a file of heads, as `attsvm.save` does."""
        from ._files import save
        save(path, self, force=force)

    def _file_arrays(self) -> dict[str, Any]:
        return self._core.arrays()

    def _fields(self) -> dict[str, Any]:
        """The arrays under the names that files use; Heads(**heads.to_dict()) has the same heads."""
        return dict(self._core.arrays())

    def __reduce__(self) -> Any:
        return _rebuild, (self.to_dict(),)

    def _shown(self) -> list[tuple[str, Any]]:
        core = self._core
        return [("heads", core.heads), ("tokens", core.tokens), ("queries", core.queries), ("d", core.size),
                ("difference", float(np.max(self.difference)))]


def _rebuild(arrays: dict[str, Any]) -> Heads:
    return Heads(**arrays)
