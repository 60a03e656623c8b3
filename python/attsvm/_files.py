from __future__ import annotations

import os

from . import _core
from ._errors import ExistingFileError, MissingFileError
from ._heads import Heads
from ._path import Path
from ._run import Run
from ._solution import Solution
from ._stack import Stack
from ._task import Task
from ._types import PathLike


def existing(path: PathLike) -> str:
    """The path, if there is something at it."""
    path = os.fsdecode(path)
    if not os.path.exists(path):
        raise MissingFileError(f"{path}: there is no such file")
    return path


def writable(path: PathLike, force: bool) -> str:
    """The path, if there is nothing at it or it may be replaced, and a folder to hold it."""
    path = os.fsdecode(path)
    if not force and os.path.lexists(path):
        raise ExistingFileError(f"{path}: already exists; give force=True to replace it")
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise MissingFileError(f"{path}: there is no folder {folder}")
    return path


def save(path: PathLike, thing: Task | Solution | Run | Path | Heads | Stack, *, force: bool = False) -> None:
    """Writes a task, solution, run, path, heads or stack to an .npz file, with the bytes of the command line.

    The file appears complete or not at all; an existing one is replaced only with `force`, else FileExistsError.

    >>> import attsvm, os, tempfile
    >>> task = attsvm.generate("random", seed=1)
    >>> file = os.path.join(tempfile.mkdtemp(), "task.npz")
    >>> attsvm.save(file, task)
    >>> attsvm.load_task(file)
    Task(attention='cross', queries=6, sequences=6, longest=8, d=10, dz=10, head='linear')
    """
    if not isinstance(thing, (Task, Solution, Run, Path, Heads, Stack)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"thing is a {type(thing).__name__}; must be a Task, Solution, Run, Path, Heads or Stack")
    _core.write_npz(writable(path, force), thing._file_arrays(), bool(force))


def load(path: PathLike) -> Task | Solution | Run | Path | Heads | Stack:
    """Reads a file of a task, solution, run, path, heads or stack; the arrays in it determine which.

    A file that holds only W is read as another solver's solution. A stack comes without what is said about its heads.
    InputError names the file, the array and the error, FileNotFoundError a file that is missing. `load_task`,
    `load_solution` and `load_run` read what they say alone.

    >>> import attsvm, os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "svm.npz")
    >>> attsvm.solve(attsvm.generate("random", seed=1)).save(file)
    >>> attsvm.load(file)
    Solution(status='optimal', norm='fro', objective=3.75714759, rank=6, support=17, rows=42)
    """
    path = existing(path)
    names = set(_core.names_in(path))
    if "tokens" in names:
        return load_task(path)
    if {"keys", "queries"} <= names:
        return Heads._of(_core.load_heads(path))
    if "ids" in names:  # heads may have ids as well
        return load_task(path)
    if _core.holds_stack(path):
        return Stack(_core.read_npz(path), [])
    if {"record_step", "record_W"} & names:
        return load_run(path)
    if "radius" in names:
        return Path(_core.read_npz(path), complete=True)
    if "W" in names:
        return load_solution(path)
    raise _core.InputError(f"{path}: has no array tokens, ids, W, record_step, radius or queries; "
                           "it is neither a task nor a solution, run, path or heads")


def load_task(path: PathLike) -> Task:
    """Reads a task file.

    >>> import attsvm, os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "task.npz")
    >>> attsvm.generate("random", seed=1).save(file)
    >>> attsvm.load_task(file).n_queries
    6
    """
    path = existing(path)
    return Task._of(_core.load_task(path), _core.read_npz(path, "x_"))


def load_solution(path: PathLike) -> Solution:
    """Reads a solution file, or one that holds only W: another solver's answer.

    >>> import attsvm, os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "svm.npz")
    >>> attsvm.solve(attsvm.generate("random", seed=1)).save(file)
    >>> attsvm.load_solution(file).status
    'optimal'
    """
    return Solution(_core.load_solution(existing(path)))


def load_run(path: PathLike) -> Run:
    """Reads the file of a run, of attsvm or of another program: it needs W (d, dz), and may have any of the arrays of a
    `Run`, such as record_W (r, d, dz) and record_step (r,).

    >>> import attsvm, os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "run.npz")
    >>> attsvm.train(attsvm.generate("random", seed=1), steps=10).save(file)
    >>> attsvm.load_run(file).steps
    10
    """
    path = existing(path)
    _core.check_run_file(path)
    return Run._of_file(_core.read_npz(path))
