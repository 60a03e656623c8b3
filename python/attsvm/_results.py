"""What answers have in common."""

from __future__ import annotations

import html
from typing import Any

import numpy as np


def number_text(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.9g}"
    return str(value)


class Result:
    """An answer that shows itself: repr for terminals, a table for notebooks, to_dict for the rest."""

    __slots__ = ()

    def _shown(self) -> list[tuple[str, Any]]:
        """(name, value) of what a reader wants to see first."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Everything there is, by name: arrays, numbers, text."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={_short(value)}' for name, value in self._shown())})"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
                       f"<td style='text-align:left'>{html.escape(_short(value))}</td></tr>"
                       for name, value in self._shown())
        return f"<table><caption><b>attsvm.{type(self).__name__}</b></caption>{rows}</table>"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        if value.size <= 12 and value.ndim == 1:
            return "[" + " ".join(number_text(one) for one in value.tolist()) + "]"
        return f"array{value.shape}".replace(" ", "")
    if isinstance(value, str):
        return repr(value)
    return number_text(value)
