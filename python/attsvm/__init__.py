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

from ._audit import Audit, audit
from ._core import version as __version__
from ._errors import (ConvergenceWarning, ExistingFileError, InfeasibleError, InputError, Interrupted,
                      MissingFileError)
from ._files import load, save
from ._heads import Heads
from ._margin import Margin, margin
from ._path import Path, path
from ._run import Run, Runs, TrainProgress
from ._solution import Row, Solution, Solutions, SolveProgress
from ._solve import solve, solve_many
from ._studies import Finding, StudyFacts, StudyProgress, StudyReport, StudyResult, list_studies, reproduce, sweep
from ._task import Task, generate, kinds
from ._theory import (Check, Claim, ClaimResult, LocalOptima, SupportToken, Tie, check, claims, correlation,
                      list_claims, local_optima)
from ._train import train, train_many
from ._verification import Verification, verify

__all__ = [
    "AttentionSVM", "Audit", "Check", "Claim", "ClaimResult", "ConvergenceWarning", "ExistingFileError", "Finding",
    "Heads", "InfeasibleError", "InputError", "Interrupted", "LocalOptima", "Margin", "MissingFileError", "Path",
    "Row", "Run", "Runs", "Solution", "Solutions", "SolveProgress", "StudyFacts", "StudyProgress", "StudyReport",
    "StudyResult", "SupportToken", "Task", "Tie", "TrainProgress", "Verification", "audit", "check", "claims",
    "correlation", "generate", "kinds", "list_claims", "list_studies", "load", "local_optima", "margin", "path",
    "reproduce", "save", "solve", "solve_many", "sweep", "train", "train_many", "verify", "__version__",
]


def __getattr__(name):
    """Imports the parts that need more than NumPy on first use."""
    if name == "AttentionSVM":
        from .estimator import AttentionSVM
        return AttentionSVM
    if name in ("plot", "estimator", "torch"):
        import importlib
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'attsvm' has no attribute '{name}'")
