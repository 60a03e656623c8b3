# mypy: disable-error-code=no-any-return
# Arrays come from C++ by name, and only the properties here say of which type they are.
from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Generator, Literal, Mapping, NamedTuple, Sequence, cast

import numpy as np
from numpy.typing import NDArray

from . import _arguments as arguments
from . import _core
from ._results import Result
from ._types import Flags, Floats, HeadKind, Integers, PathLike


class Selecting(NamedTuple):
    """What `Task.selecting` finds."""
    entropy: float  #: mean over queries of the entropy of their attention, in nats
    accuracy: float  #: share of queries whose heaviest token alone has the label's sign; next tokens: is the label


_INTEGERS = ("offsets", "query_token", "sequence", "ids", "next")


def _stacked(value: Any, name: str) -> tuple[Any, Integers | None]:
    """Sequences of different lengths, given as a list of matrices, as one matrix and its offsets."""
    if not isinstance(value, (list, tuple)) or not value:
        return value, None
    shapes = [tuple(one.shape) if hasattr(one, "shape") else arguments.array(one, f"{name}[{k}]").shape
              for k, one in enumerate(value)]
    if any(len(shape) != 2 for shape in shapes) or len({shape[0] for shape in shapes}) == 1:
        return value, None
    rows = [arguments.array(one, f"{name}[{k}]") for k, one in enumerate(value)]
    widths = sorted({row.shape[1] for row in rows})
    if len(widths) > 1:
        raise ValueError(f"{name}: matrices have {widths} columns; must all be the same")
    return np.concatenate(rows), np.cumsum([0] + [len(row) for row in rows])


def _visible(value: Any) -> NDArray[Any]:
    """Counts (q,) as integers; a mask (q,T) as bool, also where tokenizers write 1 and 0."""
    given = arguments.array(value, "visible")
    if given.dtype.kind == "f":
        raise TypeError(f"visible has dtype {given.dtype}; must be integers (how many leading tokens) or bool (a mask)")
    if given.ndim == 2 and given.dtype.kind in "iu":
        if ((given != 0) & (given != 1)).any():
            raise ValueError("visible has two axes and numbers other than 0 and 1; a mask must be bool, or 0 and 1")
        given = given != 0
    return given


def _longest(arrays: Mapping[str, NDArray[Any]]) -> int:
    """Tokens of the longest sequence; 0 where the shapes are wrong, since the C++ side reports that better."""
    offsets, tokens = arrays.get("offsets"), arrays.get("tokens")
    if offsets is not None:
        return int(np.max(np.diff(offsets))) if offsets.ndim == 1 and len(offsets) > 1 else 0
    return tokens.shape[1] if tokens is not None and tokens.ndim > 1 else 0


class Task(Result):
    """Sequences of tokens, and queries that each read one of them: logits X W z, attention softmax(X W z).

    Parameters
    ----------
    tokens : array (n, T, d), or a list of matrices (T_i, d), or (N, d) with `offsets`
        What the head reads, and what the logits read unless `keys` is given.
    queries : array (q, dz), optional
        Cross attention. Without it and `query_token`: prompt attention, dz = 1 and z = 1.
    keys : as `tokens`, last size may differ, optional
        What the logits read.
    labels : array (q,) of +1 and -1, optional
    head : array (dv,), or (h,) with `head_hidden`, optional
        v of the head. Needed for scores, optimal tokens and training. (H, dv): one v per head of attention, for `train`
        with that many heads.
    query_token : array (q,) of integers, optional
        Self attention: z is the key of that token. Not together with `queries`.
    sequence : array (q,) of integers, optional
        The sequence each query reads. Default: its own.
    visible : array (q,) of integers, or (q, T) bool, optional
        How many leading tokens each query sees, or which: True for tokens it sees, as in the masks of tokenizers, and
        the opposite of PyTorch's `key_padding_mask`. T is the longest sequence; what lies beyond a shorter one does not
        count. Default: all.
    bias : array (q, T), optional
        What is added to the logits X W z of each query, fixed and finite; entries of tokens that it does not see are
        not read. The SVM is that of the task without it: W outgrows any bias. Where a run is on its way, attention and
        regularization paths do depend on it.
    offsets : array (n+1,) of integers, optional
        Sequence s is rows offsets[s] to offsets[s+1]-1 of `tokens` (N, d).
    head_hidden : array (dv, h), optional
        B of a ReLU head vᵀ relu(Bᵀx).
    head_quadratic : float, optional
        λ of a quadratic head vᵀx - λ|x|².
    select : array (q,) of integers, or (q, T) bool, optional
        The kept token of each query, or a mask of kept tokens.
    ids, embeddings, next, vocabulary : optional
        A next-token task has these and `offsets` instead of all others: tokens (N,) as rows of embeddings (K, d), the
        label token (n,) of each sequence, and, if you like, a list of K texts that name the tokens.
    extras : dict of arrays, or lists of str, whose names start with x_, optional
        Stored with the task and otherwise ignored; `report` shows "x_token_names", one text per token.

    float64 arrays in C order are not copied: changing such an array changes the task. Others are converted once.
    PyTorch tensors on the CPU are read through DLPack, without a copy if they are float64 and contiguous. A task has no
    other state, and may be used from several threads.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> task = Task(rng.normal(size=(6, 8, 10)), queries=rng.normal(size=(6, 10)), head=rng.normal(size=10))
    >>> task
    Task(attention='cross', queries=6, sequences=6, longest=8, d=10, dz=10, head='linear')
    >>> task.optimal
    array([4, 3, 0, 0, 2, 2])
    >>> Task(ids=[0, 1, 2, 1, 0], offsets=[0, 3, 5], embeddings=np.eye(3), next=[1, 1])
    Task(attention='next-token', queries=2, sequences=2, longest=3, d=3, dz=3, head='none')
    """

    __slots__ = ("_core", "extras", "_arrays")

    def __init__(self, tokens: Any = None, queries: Any = None, keys: Any = None, labels: Any = None,
                 head: Any = None, *, query_token: Any = None, sequence: Any = None, visible: Any = None,
                 bias: Any = None, offsets: Any = None, head_hidden: Any = None, head_quadratic: Any = None,
                 select: Any = None, ids: Any = None, embeddings: Any = None, next: Any = None,
                 vocabulary: Sequence[str] | None = None, extras: Mapping[str, Any] | None = None):
        if offsets is None:
            tokens, offsets = _stacked(tokens, "tokens")
        if offsets is not None and tokens is not None:
            keys = _stacked(keys, "keys")[0]
        given = dict(tokens=tokens, offsets=offsets, keys=keys, queries=queries, query_token=query_token,
                     sequence=sequence, bias=bias, labels=labels, head=head, head_hidden=head_hidden,
                     head_quadratic=head_quadratic, ids=ids, embeddings=embeddings, next=next)
        arrays: dict[str, Any] = {name: arguments.array(value, name, integers=name in _INTEGERS)
                                  for name, value in given.items() if value is not None}
        if visible is not None:
            arrays["visible"] = _visible(visible)
        if "tokens" not in arrays and "ids" not in arrays:
            raise TypeError("tokens is None; a task needs them, or ids")
        if vocabulary is not None:
            arrays["vocabulary"] = [str(word) for word in vocabulary]
        if select is not None and (longest := _longest(arrays)) > 0:
            chosen = arguments.selection(select, longest)
            if isinstance(chosen, str):
                raise TypeError(f"select = {chosen!r}; must be tokens (q) or a mask (q,T)")
            arrays["select"] = chosen
        self._core = _core.make_task(arrays)
        self.extras: dict[str, Any] = {}
        self._arrays: dict[str, Any] | None = None
        for name, value in (extras or {}).items():
            if not name.startswith("x_"):
                raise ValueError(f"extras: the name {name} must start with x_")
            texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
            self.extras[name] = value if texts else arguments.array(value, name)

    @classmethod
    def _of(cls, core: _core.Task, extras: Mapping[str, Any]) -> Task:
        task = cls.__new__(cls)
        task._core, task.extras, task._arrays = core, dict(extras), None
        return task

    def _get(self, name: str) -> Any:
        if self._arrays is None:
            self._arrays = self._core.arrays()
        return self._arrays.get(name)

    @property
    def kind(self) -> Literal["prompt", "cross", "self", "next-token"]:
        """prompt, cross or self attention, or next-token."""
        return cast(Literal["prompt", "cross", "self", "next-token"], self._core.kind)

    @property
    def causal(self) -> bool:
        """Whether some query does not see all of its sequence."""
        return self._core.causal

    @property
    def masked(self) -> bool:
        """Whether some query sees other tokens than the leading ones: left padding, windows, any mask."""
        return self._core.masked

    @property
    def n_queries(self) -> int:
        """q"""
        return self._core.queries

    @property
    def n_sequences(self) -> int:
        """n"""
        return self._core.sequences

    @property
    def longest(self) -> int:
        """T, tokens of the longest sequence."""
        return self._core.longest

    @property
    def d(self) -> int:
        """Size of a key."""
        return self._core.key_size

    @property
    def dz(self) -> int:
        """Size of a query; 1 for prompt attention."""
        return self._core.query_size

    @property
    def dv(self) -> int:
        """Size of a value."""
        return self._core.value_size

    @property
    def head_kind(self) -> HeadKind:
        """none (also with one v per head of attention), linear, relu or quadratic."""
        return cast(HeadKind, self._core.head)

    @property
    def tokens(self) -> Floats:
        """(n, T, d), or (N, d) with offsets; float64, read-only, as all arrays are (`to_dict(copy=True)` has copies)."""
        return self._get("tokens")

    @property
    def queries(self) -> Floats | None:
        """(q, dz) as it was given; None in self and prompt attention (`query` gives z in all of them)."""
        return self._get("queries")

    @property
    def labels(self) -> Floats | None:
        """(q,) +1 and -1; None: all are +1."""
        return self._get("labels")

    @property
    def head(self) -> Floats | None:
        """v of the head, or (H, dv) of H heads of attention; None if there is no head."""
        return self._get("head")

    @property
    def head_hidden(self) -> Floats | None:
        """(dv, h), B of a ReLU head; else None."""
        return self._get("head_hidden")

    @property
    def head_quadratic(self) -> float | None:
        """λ of a quadratic head; else None."""
        given = self._get("head_quadratic")
        return None if given is None else float(given)

    @property
    def bias(self) -> Floats | None:
        """(q, T) what is added to the logits; None if nothing is."""
        return self._get("bias")

    @property
    def offsets(self) -> Integers | None:
        """(n+1,) where sequences of different lengths begin in `tokens`; None if all are of one length."""
        return self._get("offsets")

    @property
    def query_token(self) -> Integers | None:
        """(q,) the query token, in self attention; else None."""
        return self._get("query_token")

    @property
    def sequence(self) -> Integers:
        """(q,) the sequence that each query reads."""
        return self._core.layout()[0]

    @property
    def lengths(self) -> Integers:
        """(q,) how many tokens each query sees."""
        return self._core.layout()[1]

    @property
    def optimal(self) -> Integers:
        """(q,) the visible token of highest score y h(v) of each query, the lowest where several tie.

        >>> import attsvm
        >>> attsvm.generate("random", seed=1).optimal
        array([7, 2, 0, 5, 5, 2])
        """
        return self._core.optimal()[0]

    @property
    def ties(self) -> list[tuple[int, list[int]]]:
        """(query, tokens) where the best score is shared."""
        return self._core.optimal()[1]

    @property
    def select(self) -> Flags:
        """(q, T) bool: the task's own selection, else its optimal tokens."""
        return np.asarray(self._core.mask(None))

    def keys(self, query: int) -> Floats:
        """(T_i, d) the keys that a query sees."""
        if self._get("ids") is not None:
            return self._get("embeddings")[self._ids(query)]
        return self._all_keys()[self._rows(query)]

    def seen(self, query: int) -> Integers:
        """(T_i,) the tokens that a query sees: indices within its sequence, ascending.

        >>> Task(np.ones((1, 4, 2)), visible=[[False, True, True, False]]).seen(0)
        array([1, 2])
        """
        return self._core.seen(range(self.n_queries)[query])

    def _rows(self, query: int) -> Any:
        """Where the tokens that a query sees are among all: a slice, so that no copy is made, unless they have gaps."""
        sequence, _, offsets = self._core.layout()
        rows = offsets[sequence[query]] + self.seen(query)
        return slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] + 1 == len(rows) else rows

    def _ids(self, query: int) -> Integers:
        """(T_i,) the rows of the embeddings that a query of a next-token task sees."""
        first, end = self._get("offsets")[(sequence := range(self.n_queries)[query]):sequence + 2]
        ids: Integers = self._get("ids")
        return ids[first:end]

    def _all_keys(self) -> Floats:
        """(N, d)"""
        keys: Floats = self._get("keys") if self._get("keys") is not None else self._get("tokens")
        return keys.reshape(-1, keys.shape[-1])

    def query(self, query: int) -> Floats:
        """(dz,) the vector z of a query."""
        if self._get("ids") is not None:
            return self._get("embeddings")[self._ids(query)[-1]]
        if self._get("queries") is not None:
            return self._get("queries")[query]
        if self._get("query_token") is not None:
            sequence, _, offsets = self._core.layout()
            return self._all_keys()[offsets[sequence[query]] + self._get("query_token")[query]]
        return np.ones(1)

    def scores(self, query: int) -> Floats:
        """(T_i,) y h(v) of the tokens that a query sees."""
        labels = self._get("labels")
        label = 1.0 if labels is None else labels[query]
        return label * np.asarray(self._core.scores())[self._rows(query)]

    def attention(self, W: Any) -> Floats:
        """(q, T) softmax weights at W (d, dz), or that of a solution or run, of the logits with their bias; 0 for tokens
        that a query does not see.

        >>> import attsvm
        >>> task = attsvm.generate("random", seed=1)
        >>> bool(np.allclose(task.attention(np.zeros((10, 10))), 1 / 8))
        True
        """
        return np.exp(self.log_attention(W))

    def log_attention(self, W: Any) -> Floats:
        """Logarithms of `attention`, without underflow; -inf for tokens that a query does not see."""
        return self._core.attention(arguments.weights(W, "W"))[0]

    def selecting(self, W: Any) -> Selecting:
        """How hard the attention at W (d, dz) is, and whether its heaviest token alone would do, as a router takes it.

        >>> import attsvm
        >>> task = attsvm.generate("random", seed=1)
        >>> bool(np.isclose(task.selecting(np.zeros((10, 10))).entropy, np.log(8)))
        True
        """
        return Selecting(*_core.selecting(self._core, arguments.array(W, "W")))

    @property
    def separability(self) -> tuple[bool, str]:
        """Whether a sufficient condition for separability of every selection holds, and why, in words."""
        return self._core.separability()

    def save(self, path: PathLike, force: bool = False) -> None:
        """Writes a task file, as `attsvm.save` does."""
        from ._files import save
        save(path, self, force=force)

    def _file_arrays(self) -> dict[str, Any]:
        return {**self._core.arrays(), **self.extras}

    def _fields(self) -> dict[str, Any]:
        """Under the names that files use; Task(**task.to_dict()) is an equal task."""
        arrays = dict(self._core.arrays())
        if self.extras:
            arrays["extras"] = dict(self.extras)
        return arrays

    def __reduce__(self) -> Any:
        return _rebuild, (self.to_dict(),)

    def _shown(self) -> list[tuple[str, Any]]:
        return [("attention", self.kind + (", masked" if self.masked else ", causal" if self.causal else "")),
                ("queries", self.n_queries), ("sequences", self.n_sequences), ("longest", self.longest), ("d", self.d),
                ("dz", self.dz), ("head", self.head_kind)]


def _rebuild(arrays: dict[str, Any]) -> Task:
    return Task(**arrays)


def unwrap(task: Any) -> _core.Task:
    """The C++ object of a task argument."""
    if isinstance(task, Task):
        return task._core
    raise TypeError(f"task is a {type(task).__name__}; must be an attsvm.Task")


def unwrap_all(tasks: Sequence[Task]) -> list[_core.Task]:
    if isinstance(tasks, Task):
        raise TypeError("tasks is one Task; must be a list of them")
    for k, task in enumerate(tasks):
        if not isinstance(task, Task):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"tasks[{k}] is a {type(task).__name__}; must be an attsvm.Task")
    return [task._core for task in tasks]


@contextmanager
def task_at_fault(k: int) -> Generator[None, None, None]:
    """Puts the place of a task of many before what is wrong with its arguments."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"tasks[{k}]: {error}") from None
