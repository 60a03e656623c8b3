from __future__ import annotations

from typing import Literal

from . import _arguments as arguments
from . import _core
from ._task import Task


def corpus(text: str | bytes, *, tokens: Literal["word", "byte"] = "word", T: int = 32, stride: int | None = None,
           d: int = 16, seed: int = 0) -> Task:
    """A next-token task from a text, as `attsvm generate corpus` makes it from a file, to the same bits.

    Parameters
    ----------
    text : str, or bytes in UTF-8
        Cut into windows of T tokens, each with the token that follows as its label; windows without it are left out.
    tokens : "word" or "byte"
        What the text is cut into. Words are runs of letters and digits; other characters count one by one.
    stride : int, optional
        A window begins at every multiple of it; default T.
    d : int
        Size of the embeddings, unit Gaussian vectors drawn from `seed`.

    >>> import attsvm
    >>> task = attsvm.corpus("the cat saw the dog and the cat saw the bird", T=4, stride=1, d=6)
    >>> task.kind, len(task.to_dict()["vocabulary"])
    ('next-token', 6)
    """
    given = text.encode() if isinstance(text, str) else text
    if not isinstance(given, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"text is a {type(text).__name__}; must be a str or bytes")
    return Task._of(_core.corpus(given, arguments.word(tokens, "tokens"), arguments.integer(T, "T", 1),
                                 0 if stride is None else arguments.integer(stride, "stride", 1),
                                 arguments.integer(d, "d", 1), arguments.seed(seed)), {})
