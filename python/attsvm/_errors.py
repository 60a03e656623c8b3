from __future__ import annotations

from typing import Any

from ._core import InputError


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


for _error in (ConvergenceWarning, ExistingFileError, InfeasibleError, InputError, Interrupted, MissingFileError):
    _error.__module__ = "attsvm"  # the public name, shown in tracebacks
