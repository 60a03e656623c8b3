"""Base classes of all results."""

from __future__ import annotations

import html
from typing import Any, Generic, Iterator, List, Sequence, TypeVar, overload

import numpy as np


def number_text(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.9g}"
    return str(value)


class Result:
    """A result: repr for terminals, a table for notebooks, to_dict for programs."""

    __slots__ = ()

    def _shown(self) -> list[tuple[str, Any]]:
        """(name, value) of the most important fields."""
        raise NotImplementedError

    def _fields(self) -> dict[str, Any]:
        """All fields by name, in a dict of its own."""
        raise NotImplementedError

    def to_dict(self, *, copy: bool = False) -> dict[str, Any]:
        """All fields by name: arrays, numbers, text. With `copy`, arrays are copies that may be changed."""
        return copied(self._fields()) if copy else self._fields()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={_short(value)}' for name, value in self._shown())})"

    def _repr_html_(self) -> str:
        return table(self, self._shown())


class FieldsResult(Result):
    """A result whose fields are attributes, in a dict."""

    __slots__ = ("_values",)

    def __init__(self, values: dict[str, Any]):
        self._values = values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"this {type(self).__name__.lower()} has no {name}")
        return self._values[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def _fields(self) -> dict[str, Any]:
        return dict(self._values)

    def __reduce__(self) -> Any:
        return type(self), (self._values,)


def copied(value: Any) -> Any:
    """The same with writable copies of its arrays."""
    if isinstance(value, dict):
        return {name: copied(one) for name, one in value.items()}
    if isinstance(value, list):
        return [copied(one) for one in value]
    return value.copy() if isinstance(value, np.ndarray) else value


def table(thing: Any, rows: Sequence[tuple[str, Any]]) -> str:
    """HTML of names and values, under the name of the thing's type."""
    cells = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
                    f"<td style='text-align:left'>{_cell(value)}</td></tr>" for name, value in rows)
    return f"<table><caption><b>attsvm.{type(thing).__name__}</b></caption>{cells}</table>"


def _cell(value: Any) -> str:
    """A value as HTML: text without quotes, with its line breaks."""
    text = value if isinstance(value, str) else _short(value)
    return "<br>".join(map(html.escape, text.splitlines()))


Item = TypeVar("Item", bound=Result)


class _Kept(List[Any]):
    """Unpickled results, which have no C++ object, and the arrays that they share."""


class Many(Sequence[Item], Generic[Item]):
    """Results of many tasks: a sequence whose items are created on access, and their common fields as arrays."""

    __slots__ = ("_core",)
    _common: tuple[str, ...] = ()  #: names of the arrays

    def __init__(self, core: Any):
        self._core = core

    def _made(self, answer: Any) -> Item:
        """One result, from its C++ object."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._core)

    @overload
    def __getitem__(self, k: int) -> Item: ...
    @overload
    def __getitem__(self, k: slice) -> list[Item]: ...

    def __getitem__(self, k: int | slice) -> Item | list[Item]:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        answer: Any = self._core[range(len(self))[int(k)]]
        kept: Item = answer if isinstance(self._core, _Kept) else self._made(answer)
        return kept

    def __iter__(self) -> Iterator[Item]:
        return (self[k] for k in range(len(self)))

    def to_dict(self, *, copy: bool = False) -> dict[str, Any]:
        """The arrays, and under "items" the results as dicts. With `copy`, arrays are copies that may be changed."""
        values = {**{name: getattr(self, name) for name in self._common}, "items": [one.to_dict() for one in self]}
        return copied(values) if copy else values

    def __reduce__(self) -> Any:
        return _many, (type(self), list(self), {name: getattr(self, name) for name in self._common})

    def _repr_html_(self) -> str:
        return table(self, [("count", len(self)), *((name, getattr(self, name)) for name in self._common)])


def _many(kind: Any, answers: list[Any], common: dict[str, Any]) -> Any:
    kept = _Kept(answers)
    vars(kept).update(common)
    return kind(kept)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        if value.size <= 12 and value.ndim == 1:
            return "[" + " ".join(number_text(one) for one in value.tolist()) + "]"
        return f"array{value.shape}".replace(" ", "")
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, list) and len(value) > 12:
        return f"list of {len(value)}"
    return number_text(value)
