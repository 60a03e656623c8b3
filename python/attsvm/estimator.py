"""The attention SVM as a scikit-learn estimator: pip install attsvm[sklearn]."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _arguments as arguments
from ._solve import solve
from ._task import Task
from ._types import Floats, Integers

try:
    from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped, unused-ignore]
    from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped, unused-ignore]
except ImportError as error:
    raise ImportError("attsvm.AttentionSVM needs scikit-learn: pip install attsvm[sklearn]") from error


class AttentionSVM(ClassifierMixin, BaseEstimator):  # type: ignore[misc, unused-ignore]  # sklearn has no types
    """Learns which token of a sequence to attend to: the W of smallest norm whose logits X W z put the right token of
    every training sequence ahead of the others by a margin of one.

    Parameters
    ----------
    norm : "fro", "nuc", "spec", "max", "l1", ("lp", P) or ("schatten", P)
    tolerance : float
        Relative gap of the solution. With C and tens of thousands of rows (a row is a token that is not the right one),
        the solver may end above 1e-8 and warn: 25,200 rows of d = 8 with one label in ten wrong were solved to 6e-8.
        1e-6 is reached there.
    threads : int, optional
        Default: all cores.
    C : float, optional
        Penalty of a soft margin, for labels that are not all right: |W|²/2 + C Σ ξ is minimised, and sequence i may
        miss the margin by ξ_i. Frobenius norm only. Default: none may. `sample_weight` in fit makes it C times the
        weight of each sequence.

    Attributes
    ----------
    W_ : array (d, dz)
    solution_ : attsvm.Solution, with its certificate
    n_features_in_ : int, d
    classes_ : array (T,), the tokens 0 to T-1

    X is an array of sequences (n, T, d), or a list of matrices (T_i, d). `queries` (n, dz) and `mask` (n, T) bool, True
    for tokens that count, are given to fit, decision_function, predict, predict_proba and score alike (scikit-learn's
    metadata routing hands them through searches). Without queries, W is a prompt (d, 1). Data that no W separates
    raises `attsvm.InfeasibleError` unless C is given. `attsvm.ConvergenceWarning` tells that the solver did not reach
    its tolerance.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(10, 5, 20)), rng.integers(5, size=10)
    >>> model = AttentionSVM().fit(X, y)
    >>> bool((model.predict(X) == y).all()), model.score(X, y)
    (True, 1.0)
    >>> model.decision_function(X).shape, model.predict_proba(X[:2]).sum(axis=1).round(12).tolist()
    ((10, 5), [1.0, 1.0])
    """

    def __init__(self, norm: Any = "fro", tolerance: float = 1e-8, threads: int | None = None, C: float | None = None):
        self.norm = norm
        self.tolerance = tolerance
        self.threads = threads
        self.C = C

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        tags.classifier_tags.multi_class = True
        return tags

    @staticmethod
    def _task(X: Any, queries: Any, mask: Any, asked: Integers | None = None) -> Task:
        """The sequences, and a query for each of them, or for each of `asked`."""
        ragged = isinstance(X, (list, tuple)) and len({len(one) for one in X if np.ndim(one) == 2}) > 1
        tokens: Any = X if ragged else arguments.array(X, "X")
        if not ragged and tokens.ndim != 3:
            raise ValueError(f"X has shape {tokens.shape}; must be (n, T, d), sequences of T tokens with d features, "
                             "or a list of matrices (T_i, d)")
        if not all(np.isfinite(one).all() for one in tokens):
            raise ValueError("X holds NaN or infinity")
        if queries is not None:
            queries = arguments.array(queries, "queries")
            if queries.ndim != 2 or len(queries) != len(tokens):
                raise ValueError(f"queries has shape {queries.shape}; must be ({len(tokens)}, dz)")
        if mask is not None:
            mask = arguments.array(mask, "mask")
            if mask.ndim != 2 or len(mask) != len(tokens):
                raise ValueError(f"mask has shape {mask.shape}; must be ({len(tokens)}, T)")
        if asked is not None:
            queries, mask = (None if one is None else one[asked] for one in (queries, mask))
        return Task(tokens, queries=queries, visible=mask, sequence=asked)

    @staticmethod
    def _weights(sample_weight: Any, count: int) -> Floats:
        weights: Floats = np.asarray(arguments.array(sample_weight, "sample_weight"), np.float64)
        if weights.shape != (count,):
            raise ValueError(f"sample_weight has shape {weights.shape}; must be ({count},), a weight for each sequence")
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError("sample_weight must hold finite numbers >= 0")
        if not weights.any():
            raise ValueError("sample_weight is zero for every sequence; one at least must weigh something")
        return weights

    def fit(self, X: Any, y: Any, queries: Any = None, mask: Any = None, sample_weight: Any = None) -> AttentionSVM:
        """X (n, T, d) or a list, y (n,) the token to attend to in each sequence, queries (n, dz), mask (n, T).

        sample_weight (n,) multiplies C. A sequence of weight 0 is left out; without C other weights make no difference.
        """
        if y is None:
            raise ValueError("y is None; requires y to be passed, but the target y is None")
        task = self._task(X, queries, mask)
        chosen = arguments.array(y, "y", integers=True)
        if chosen.shape != (task.n_queries,):
            raise ValueError(f"y has shape {chosen.shape}; must be ({task.n_queries},), a token for each sequence")
        if self.C is not None and np.ndim(self.C) != 0:
            raise ValueError("C must be a single number; sample_weight weighs sequences")
        penalty: Any = self.C
        if sample_weight is not None:
            weights = self._weights(sample_weight, task.n_queries)
            counted = np.flatnonzero(weights)
            task, chosen = self._task(X, queries, mask, counted), chosen[counted]
            penalty = None if self.C is None else self.C * weights[counted]
        self.solution_ = solve(task, select=chosen, norm=self.norm, soft=penalty, tolerance=self.tolerance,
                               threads=self.threads)
        self.W_ = self.solution_.W
        self.n_features_in_ = task.d
        self.classes_ = np.arange(task.longest)
        return self

    def _log_proba(self, X: Any, queries: Any, mask: Any) -> tuple[Task, Floats]:
        check_is_fitted(self)
        task = self._task(X, queries, mask)
        if task.d != self.n_features_in_:
            raise ValueError(f"X has {task.d} features, but {type(self).__name__} is expecting "
                             f"{self.n_features_in_} features as input")
        if task.dz != self.W_.shape[1]:
            raise ValueError(f"queries has {task.dz} columns; must have {self.W_.shape[1]}, as in fit")
        return task, task.log_attention(self.W_)

    def decision_function(self, X: Any, queries: Any = None, mask: Any = None) -> Floats:
        """(n, T) logits X W z; -inf for tokens that are masked or beyond the end of their sequence."""
        task, log = self._log_proba(X, queries, mask)
        logits = np.full(log.shape, -np.inf)
        for i in range(task.n_queries):
            logits[i, task.seen(i)] = task.keys(i) @ (self.W_ @ task.query(i))
        return logits

    def predict(self, X: Any, queries: Any = None, mask: Any = None) -> Integers:
        """(n,) the token of largest logit in each sequence."""
        chosen: Integers = self._log_proba(X, queries, mask)[1].argmax(axis=1)
        return chosen

    def predict_proba(self, X: Any, queries: Any = None, mask: Any = None) -> Floats:
        """(n, T) softmax of the logits: the attention that each token would get."""
        return np.exp(self._log_proba(X, queries, mask)[1])

    def score(self, X: Any, y: Any, queries: Any = None,  # pyright: ignore[reportIncompatibleMethodOverride]
              sample_weight: Any = None, mask: Any = None) -> float:
        """Share of the sequences whose token is predicted right; with sample_weight (n,), of their weight."""
        right = self.predict(X, queries, mask) == np.asarray(y)
        return float(np.average(right, weights=sample_weight))
