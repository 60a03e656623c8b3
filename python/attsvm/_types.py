"""The words that arguments take and the arrays that results have, for editors and type checkers."""

from __future__ import annotations

import os
from typing import Literal, NewType, Tuple, Union

import numpy as np
from numpy.typing import NDArray

PathLike = Union[str, "os.PathLike[str]"]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

NormName = Literal["fro", "nuc", "spec", "max", "l1"]
PowerNorm = NewType("PowerNorm", str)  #: "lp:3" or "schatten:3", as results and files name them
Norm = Union[NormName, PowerNorm, Tuple[Literal["lp", "schatten"], float]]

OptimizerName = Literal["gd", "ngd", "polyak", "adam", "adamw", "signum", "lion", "muon"]
Optimizer = Union[OptimizerName, Tuple[Literal["mirror"], float], Tuple[Literal["steepest"], Norm]]

Parametrization = Literal["W", "KQ", "p"]
Loss = Literal["logistic", "exponential", "linear"]
Schedule = Literal["constant", "sqrt", "cosine"]
Arithmetic = Literal["exact", "plain"]
Device = Literal["auto", "cpu", "cuda"]
Selector = Literal["soft", "gumbel", "dirichlet"]
Problem = Literal["att", "v"]
Status = Literal["optimal", "infeasible", "limit", "stalled"]
Attention = Literal["cross", "self", "prompt", "causal"]
HeadKind = Literal["linear", "relu", "quadratic", "none"]
