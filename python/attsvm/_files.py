from __future__ import annotations

import os
from typing import Any

from . import _core
from ._errors import ExistingFileError, MissingFileError
from ._heads import Heads
from ._path import Path
from ._run import Run
from ._solution import Solution
from ._task import Task


def existing(path: Any) -> str:
    """The path, if there is something at it."""
    path = os.fspath(path)
    if not os.path.exists(path):
        raise MissingFileError(f"{path}: there is no such file")
    return path


def save(path: Any, thing: Task | Solution | Run | Path | Heads, *, force: bool = False) -> None:
    """Writes a task, solution, run, path or heads to an .npz file: the bytes that the command line writes for it.

    The file appears complete or not at all; an existing one is replaced only with `force`.

    >>> import attsvm, os, tempfile
    >>> task = attsvm.generate("random", seed=1)
    >>> file = os.path.join(tempfile.mkdtemp(), "task.npz")
    >>> attsvm.save(file, task)
    >>> attsvm.load(file)
    Task(attention='cross', queries=6, sequences=6, longest=8, d=10, dz=10, head='linear')
    """
    if not isinstance(thing, (Task, Solution, Run, Path, Heads)):
        raise TypeError(f"thing is a {type(thing).__name__}; must be a Task, Solution, Run, Path or Heads")
    path = os.fspath(path)
    if not force and os.path.lexists(path):
        raise ExistingFileError(f"{path}: already exists; give force=True to replace it")
    _core.write_npz(path, thing._file_arrays(), bool(force))


def load(path: Any) -> Task | Solution | Run | Path | Heads:
    """Reads a file of a task, solution, run, path or heads; the arrays in it determine which.

    A file that holds only W is read as another solver's solution. ValueError names the file, the array and the error.
    """
    path = existing(path)
    names = set(_core.names_in(path))
    if "tokens" in names:
        return Task._of(_core.load_task(path), _core.read_npz(path, "x_"))
    if {"keys", "queries"} <= names:
        return Heads._of(_core.load_heads(path))
    if "record_step" in names:
        _core.check_run_file(path)
        return Run._of_file(_core.read_npz(path))
    if "radius" in names:
        return Path(_core.read_npz(path), complete=True)
    if "W" in names:
        return Solution(_core.load_solution(path))
    raise _core.InputError(f"{path}: has no array tokens, W, record_step, radius or queries; "
                           "it is neither a task nor a solution, run, path or heads")
