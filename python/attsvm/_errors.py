from __future__ import annotations

import sys
import warnings
from typing import Any

from ._core import InputError as InputError


class InfeasibleError(ValueError):
    """The requested value does not exist: no W keeps the selection. The message is the certificate in words.

    `solution` is the answer that holds the certificate.
    """

    def __init__(self, message: str, solution: Any = None):
        super().__init__(message)
        self.solution = solution


class ConvergenceWarning(UserWarning):
    """A solver ended before it reached its tolerance. The answer holds, with the gap that it states."""


class MissingFileError(InputError, FileNotFoundError):
    """There is no such file."""


class ExistingFileError(InputError, FileExistsError):
    """The file exists, and nothing says to replace it."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped a call. `result` is the best answer so far, of the type that the call would have returned.

    In an interactive session, `sys.last_value.result` has it if the exception was not caught.
    """

    def __init__(self, message: str, result: Any):
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[type[Interrupted], tuple[str, Any]]:
        return Interrupted, (str(self), self.result)


for _error in (ConvergenceWarning, ExistingFileError, InfeasibleError, InputError, Interrupted, MissingFileError):
    _error.__module__ = "attsvm"  # the public name, shown in tracebacks

UNFINISHED = {"stalled": "the solver could not reach its tolerance", "limit": "the limit ended the solve"}


def warn(message: str) -> None:
    """A ConvergenceWarning at the line that called the package, however deep in it this is."""
    level, frame = 2, sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "attsvm":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, ConvergenceWarning, stacklevel=level)


def warn_of_unsolved(call: str, status: dict[str, str]) -> None:
    """Says in which norms a call has no answer because the SVM was not solved."""
    for norm in [norm for norm, ended in status.items() if ended in UNFINISHED]:
        warn(f"{call}: norm {norm}: {UNFINISHED[status[norm]]}; what depends on this SVM is not known")
