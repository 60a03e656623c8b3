"""The support vector machines that softmax attention solves.

A task is sequences of tokens and queries that read them. `solve` finds the smallest W that keeps each query's selected
token above the others, with a proof; `train` trains softmax attention on the same task; `check` compares the two.

>>> import attsvm
>>> task = attsvm.generate("random", n=6, T=8, d=10, seed=1)
>>> solution = attsvm.solve(task)
>>> round(solution.objective, 6), solution.status
(3.757148, 'optimal')
>>> attsvm.verify(task, solution).valid
True
>>> run = attsvm.train(task)
>>> attsvm.check(task, run).verdict
'local'
"""

from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING, Any

from ._audit import Audit, audit
from ._capacity import Capacity, Share, SmallestSize, Spread, capacity
from ._core import version as __version__
from ._corpus import corpus
from ._errors import (ConvergenceWarning, ExistingFileError, InfeasibleError, InputError, Interrupted,
                      MissingFileError)
from ._files import load, load_run, load_solution, load_task, save
from ._generate import generate, kinds
from ._heads import Heads
from ._margin import Margin, margin
from ._path import Path, path
from ._positions import with_positions
from ._report import Report, report
from ._run import Run, Runs, TrainProgress
from ._solution import Row, Solution, Solutions, SolveProgress
from ._solve import solve, solve_many
from ._stack import Stack, stack
from ._studies import Finding, StudyFacts, StudyProgress, StudyReport, StudyResult, list_studies, reproduce, sweep
from ._task import Selecting, Task
from ._theory import (Check, Claim, ClaimResult, LocalOptima, NextTokenCheck, PriorityGraph, SupportToken, Tie, check,
                      claims, correlation, list_claims, local_optima)
from ._train import train, train_many
from ._verification import Verification, verify

if TYPE_CHECKING:
    from . import estimator as estimator, plot as plot, torch as torch
    from .estimator import AttentionSVM

__all__ = [
    "Audit", "Capacity", "Check", "Claim", "ClaimResult", "ConvergenceWarning", "ExistingFileError", "Finding",
    "Heads", "InfeasibleError", "InputError", "Interrupted", "LocalOptima", "Margin", "MissingFileError",
    "NextTokenCheck", "Path", "PriorityGraph", "Report", "Row", "Run", "Runs", "Selecting", "Share", "SmallestSize",
    "Solution", "Solutions", "SolveProgress", "Spread", "Stack", "StudyFacts", "StudyProgress", "StudyReport",
    "StudyResult", "SupportToken", "Task", "Tie", "TrainProgress", "Verification", "audit", "capacity", "check",
    "claims", "corpus", "correlation", "generate", "kinds", "list_claims", "list_studies", "load", "load_run",
    "load_solution", "load_task", "local_optima", "margin", "path", "report", "reproduce", "save", "solve",
    "solve_many", "stack", "sweep", "train", "train_many", "verify", "with_positions", "__version__",
]
if TYPE_CHECKING or _find_spec("sklearn"):
    __all__ += ["AttentionSVM"]

#: Parts that need more than NumPy, with what they need. They are imported on first use.
_PARTS = {"estimator": "sklearn", "plot": "matplotlib", "torch": "torch"}


def __getattr__(name: str) -> Any:
    if name == "AttentionSVM":
        from .estimator import AttentionSVM
        return AttentionSVM
    if name in _PARTS:
        import importlib
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'attsvm' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, *(part for part, package in _PARTS.items() if _find_spec(package))])
