"""The attention SVM as a scikit-learn estimator: pip install attsvm[sklearn]."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _arguments as arguments
from ._solve import solve
from ._task import Task

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise ImportError("attsvm.AttentionSVM needs scikit-learn: pip install attsvm[sklearn]") from error


class AttentionSVM(ClassifierMixin, BaseEstimator):
    """Learns which token of a sequence to attend to: the W of smallest norm whose logits X W z put the right token of
    every training sequence ahead of the others by a margin of one.

    Parameters
    ----------
    norm : "fro", "nuc", "spec", "max", "l1", ("lp", P) or ("schatten", P)
    tolerance : float
        Relative gap of the solution.
    threads : int, optional
        Default: all cores.

    Attributes
    ----------
    W_ : array (d, dz)
    solution_ : attsvm.Solution, with its certificate
    n_features_in_ : int, d
    classes_ : array (T,), the tokens 0 to T-1

    X is an array of sequences (n, T, d); `queries` (n, dz) is given to fit, decision_function, predict and score alike
    (scikit-learn's metadata routing hands it through pipelines and searches); left out, W is a prompt (d, 1). Data
    that no W separates raises `attsvm.InfeasibleError`, with the reason in words.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(10, 5, 20)), rng.integers(5, size=10)
    >>> model = AttentionSVM().fit(X, y)
    >>> bool((model.predict(X) == y).all()), model.score(X, y)
    (True, 1.0)
    >>> model.decision_function(X).shape
    (10, 5)
    """

    def __init__(self, norm: Any = "fro", tolerance: float = 1e-8, threads: int | None = None):
        self.norm = norm
        self.tolerance = tolerance
        self.threads = threads

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        tags.classifier_tags.multi_class = True
        return tags

    @staticmethod
    def _sequences(X: Any, queries: Any) -> tuple[np.ndarray, np.ndarray]:
        tokens = arguments.array(X, "X")
        if tokens.ndim != 3:
            raise ValueError(f"X has shape {tokens.shape}; must be (n, T, d), sequences of T tokens with d features")
        if not np.isfinite(tokens).all():
            raise ValueError("X holds NaN or infinity")
        z = np.ones((len(tokens), 1)) if queries is None else arguments.array(queries, "queries")
        if z.ndim != 2 or len(z) != len(tokens):
            raise ValueError(f"queries has shape {z.shape}; must be ({len(tokens)}, dz)")
        return tokens, z

    def fit(self, X: Any, y: Any, queries: Any = None) -> "AttentionSVM":
        """X (n, T, d), y (n,) the token to attend to in each sequence, queries (n, dz) or None."""
        if y is None:
            raise ValueError("y is None; requires y to be passed, but the target y is None")
        tokens, z = self._sequences(X, queries)
        chosen = arguments.array(y, "y", integers=True)
        if chosen.shape != (len(tokens),):
            raise ValueError(f"y has shape {chosen.shape}; must be ({len(tokens)},), a token for each sequence")
        task = Task(tokens, queries=None if queries is None else z)
        self.solution_ = solve(task, select=chosen, norm=self.norm, tolerance=self.tolerance, threads=self.threads)
        self.W_ = self.solution_.W
        self.n_features_in_ = tokens.shape[2]
        self.classes_ = np.arange(tokens.shape[1])
        return self

    def decision_function(self, X: Any, queries: Any = None) -> np.ndarray:
        """(n, T) logits X W z."""
        check_is_fitted(self)
        tokens, z = self._sequences(X, queries)
        if tokens.shape[2] != self.n_features_in_:
            raise ValueError(f"X has {tokens.shape[2]} features, but {type(self).__name__} is expecting "
                             f"{self.n_features_in_} features as input")
        if z.shape[1] != self.W_.shape[1]:
            raise ValueError(f"queries has {z.shape[1]} columns; must have {self.W_.shape[1]}, as in fit")
        return np.einsum("ntd,nd->nt", tokens, z @ self.W_.T)

    def predict(self, X: Any, queries: Any = None) -> np.ndarray:
        """(n,) the token of largest logit in each sequence."""
        return self.decision_function(X, queries).argmax(axis=1)

    def score(self, X: Any, y: Any, queries: Any = None, sample_weight: Any = None) -> float:
        """Share of the sequences whose token is predicted right."""
        right = self.predict(X, queries) == np.asarray(y)
        return float(np.average(right, weights=sample_weight))
