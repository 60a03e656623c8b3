"""The estimator keeps scikit-learn's rules, as far as they apply to sequences of tokens.

Checks of sklearn.utils.estimator_checks that draw no data are run as they are. Those that fit on matrices (n, features)
cannot be: every X here has three axes. Their statements are made below on token arrays: fitting again gives the same
answer, parameters and inputs stay as they are, pickles and clones behave alike, features are counted, lists and
read-only arrays are taken, NaN is refused, predictions do not depend on the order or number of the samples.
What is left out, and why: checks of sparse data, of data frames and of string labels (tokens are arrays of numbers, and
labels are their indices), of sample weights and class weights in fit (rows are constraints, not terms of a sum), of
one feature or one sample (a prompt of one coordinate keeps few selections; it says so by InfeasibleError), of
training accuracy on blobs (y is a token of each sequence, not a class of points).
"""

import pickle

import attsvm
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils import estimator_checks

RNG = np.random.default_rng(0)
X, QUERIES, Y = RNG.normal(size=(12, 5, 20)), RNG.normal(size=(12, 7)), RNG.integers(5, size=12)

DATA_FREE = ["check_estimator_cloneable", "check_estimator_repr", "check_no_attributes_set_in_init",
             "check_parameters_default_constructible", "check_get_params_invariance", "check_set_params",
             "check_do_not_raise_errors_in_init_or_set_params", "check_valid_tag_types", "check_mixin_order",
             "check_estimator_tags_renamed"]


@pytest.mark.parametrize("name", DATA_FREE)
def test_scikit_learns_own_checks(name):
    getattr(estimator_checks, name)("AttentionSVM", attsvm.AttentionSVM())


@pytest.mark.parametrize("norm", ["fro", "nuc", ("lp", 3)])
@pytest.mark.parametrize("queries", [None, QUERIES])
def test_it_learns_the_tokens_with_a_margin_of_one(norm, queries):
    model = attsvm.AttentionSVM(norm=norm).fit(X, Y, queries=queries)
    logits = model.decision_function(X, queries)
    own = np.take_along_axis(logits, Y[:, None], axis=1)
    others = np.where(np.arange(5) == Y[:, None], -np.inf, logits)
    assert (own[:, 0] - others.max(axis=1)).min() == pytest.approx(1, abs=1e-6)
    assert (model.predict(X, queries) == Y).all() and model.score(X, Y, queries) == 1
    task = attsvm.Task(X, queries=queries, select=Y)
    assert attsvm.verify(task, model.solution_)
    assert model.n_features_in_ == 20 and model.classes_.tolist() == [0, 1, 2, 3, 4]


def test_fit_returns_self_and_can_be_repeated():
    model = attsvm.AttentionSVM()
    assert model.fit(X, Y) is model
    first = model.predict(X)
    np.testing.assert_array_equal(model.fit(X, Y).W_, clone(model).fit(X, Y).W_)
    np.testing.assert_array_equal(model.predict(X), first)


def test_parameters_and_inputs_stay_as_they_are():
    model, x, y = attsvm.AttentionSVM(norm="nuc", tolerance=1e-6), X.copy(), Y.copy()
    before = model.get_params()
    model.fit(x, y)
    state = pickle.dumps(model.__dict__)
    model.predict(x), model.decision_function(x), model.score(x, y)
    assert model.get_params() == before and pickle.dumps(model.__dict__) == state
    assert (x == X).all() and (y == Y).all()
    assert model.set_params(norm="fro").norm == "fro"


def test_pickle_and_clone():
    model = attsvm.AttentionSVM().fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert not hasattr(clone(model), "W_")


def test_other_inputs():
    model = attsvm.AttentionSVM().fit(X, Y)
    frozen = X.copy()
    frozen.flags.writeable = False
    for x, y in ((X.tolist(), Y.tolist()), (frozen, Y), (np.asfortranarray(X), Y.astype(np.int32))):
        np.testing.assert_array_equal(attsvm.AttentionSVM().fit(x, y).W_, model.W_)
    order = RNG.permutation(12)
    np.testing.assert_array_equal(model.predict(X[order]), model.predict(X)[order])
    np.testing.assert_array_equal(model.predict(X[:1]), model.predict(X)[:1])
    assert attsvm.AttentionSVM().fit(X.astype(np.float32), Y).score(X, Y) == 1


@pytest.mark.parametrize("error, words, call", [
    (ValueError, "X has shape", lambda model: model.fit(X[0], Y)),
    (ValueError, "NaN", lambda model: model.fit(np.where(X == X[0, 0, 0], np.nan, X), Y)),
    (ValueError, "y is None", lambda model: model.fit(X, None)),
    (ValueError, "y has shape", lambda model: model.fit(X, Y[:3])),
    (TypeError, "y has dtype", lambda model: model.fit(X, Y + 0.5)),
    (ValueError, "select", lambda model: model.fit(X, Y + 5)),
    (ValueError, "queries", lambda model: model.fit(X, Y, queries=QUERIES[:2])),
    (ValueError, "features", lambda model: model.fit(X, Y).predict(X[:, :, :4])),
    (ValueError, "queries", lambda model: model.fit(X, Y).predict(X, QUERIES)),
    (ValueError, "norm", lambda model: model.set_params(norm="l0").fit(X, Y)),
    (ValueError, "keep token", lambda model: model.fit(X[:, :, :1], Y)),
])
def test_refusals(error, words, call):
    with pytest.raises(error, match=words):
        call(attsvm.AttentionSVM())


def test_not_fitted():
    from sklearn.exceptions import NotFittedError
    with pytest.raises(NotFittedError):
        attsvm.AttentionSVM().predict(X)


def test_model_selection():
    """Tokens near a hidden direction are the right ones; the SVM finds it from few sequences."""
    direction = RNG.normal(size=20)
    x = RNG.normal(size=(60, 5, 20))
    y = (x @ direction).argmax(axis=1)
    scores = cross_val_score(attsvm.AttentionSVM(), x, y, cv=3)
    assert scores.mean() > 0.5
    search = GridSearchCV(attsvm.AttentionSVM(), {"norm": ["fro", ("lp", 3)]}, cv=2).fit(x, y)
    assert search.best_estimator_.score(x, y) == 1
