"""The estimator keeps scikit-learn's rules, as far as they apply to sequences of tokens.

Checks of sklearn.utils.estimator_checks that draw no data are run on AttentionSVM as they are. All others fit on
matrices (n, features), which it refuses: every X here has three axes. `OneTokenPerClass` below writes the classes of points as
tokens, and on it all checks of scikit-learn run. What these cannot see is stated below on token arrays: fitting again
gives the same answer, parameters and inputs stay as they are, pickles and clones behave alike, features are counted,
lists and read-only arrays are taken, NaN is refused, predictions do not depend on the order or number of the samples.
What does not apply to tokens, and why: sparse data and data frames (tokens are arrays of numbers), string labels (y are
indices of tokens), class weights (a token's index is a place, not a class with more or fewer samples), one feature or
one sample (a prompt of one coordinate keeps few selections; it says so by InfeasibleError).
"""

import pickle
import warnings

import attsvm
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils import estimator_checks
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

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


def noisy(n=60, wrong=6):
    """Tokens scored by a hidden direction, with some labels wrong."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, 5, 4))
    y = (x @ rng.normal(size=4)).argmax(axis=1)
    given = y.copy()
    given[:wrong] = (given[:wrong] + 1) % 5
    return x, y, given


def test_a_soft_margin_learns_from_wrong_labels():
    x, y, given = noisy()
    with pytest.raises(attsvm.InfeasibleError):
        attsvm.AttentionSVM().fit(x, given)
    model = attsvm.AttentionSVM(C=1.0).fit(x, given)
    assert model.score(x, y) > 0.9 and model.score(x, given) < 1
    task = attsvm.Task(x, select=given)
    assert attsvm.verify(task, model.solution_)
    assert model.solution_.xi[:6].min() > np.median(model.solution_.xi[6:])
    search = GridSearchCV(attsvm.AttentionSVM(), {"C": [0.01, 1.0, 100.0]}, cv=3).fit(x, given)
    assert search.best_params_["C"] in (0.01, 1.0, 100.0)
    large = attsvm.AttentionSVM(C=1e5).fit(X, Y)
    np.testing.assert_array_equal(large.W_, attsvm.AttentionSVM().fit(X, Y).W_)
    assert clone(model).C == 1.0


def test_weights_of_sequences():
    """C times the weight is the penalty of a sequence; weight 2 is to be there twice, weight 0 not to be there."""
    x, y, given = noisy()
    weights = np.where(np.arange(60) < 6, 0.01, 1.0)  # the wrong labels
    model = attsvm.AttentionSVM(C=2.0).fit(x, given, sample_weight=weights)
    assert (model.solution_.penalty == 2 * weights).all()
    assert model.score(x, y) > attsvm.AttentionSVM(C=2.0).fit(x, given).score(x, y)
    assert attsvm.verify(attsvm.Task(x, select=given), model.solution_)
    order = np.repeat(np.arange(60), counts := np.arange(60) % 3)
    for C, labels in ((1.0, given), (None, y)):
        weighted = attsvm.AttentionSVM(C=C).fit(x, labels, sample_weight=counts)
        again = attsvm.AttentionSVM(C=C).fit(x[order], labels[order])
        np.testing.assert_allclose(weighted.W_, again.W_, atol=1e-7 * abs(again.W_).max())
        assert attsvm.verify(attsvm.Task(x, sequence=np.flatnonzero(counts), select=labels[counts > 0]), weighted.solution_)
    ragged, lengths = [one[:4] for one in X], np.full(12, 4)
    ragged[0], lengths[0] = X[0], 5  # the longest has no weight
    mask = np.arange(5) < lengths[:, None]
    some = attsvm.AttentionSVM().fit(ragged, Y % 4, QUERIES, mask, sample_weight=np.arange(12) > 0)
    np.testing.assert_array_equal(some.W_, attsvm.AttentionSVM().fit(ragged[1:], Y[1:] % 4, QUERIES[1:]).W_)
    assert len(some.classes_) == 5
    right = model.predict(x) == given
    assert model.score(x, given, sample_weight=weights) == pytest.approx((right * weights).sum() / weights.sum())
    for wrong, words in (([1.0] * 59, "sample_weight has shape"), (-weights, "sample_weight must"),
                         (0 * weights, "sample_weight is zero"), (weights + np.inf, "sample_weight must")):
        with pytest.raises(ValueError, match=words):
            attsvm.AttentionSVM(C=1.0).fit(x, given, sample_weight=wrong)


def test_searches_hand_queries_and_masks_through():
    import sklearn
    rng = np.random.default_rng(8)
    x, queries = rng.normal(size=(40, 5, 6)), rng.normal(size=(40, 3))
    mask = rng.random((40, 5)) < 0.7
    mask[:, 0] = True
    logits = np.where(mask, np.einsum("ntd,de,ne->nt", x, rng.normal(size=(6, 3)), queries), -np.inf)
    y = logits.argmax(axis=1)
    with sklearn.config_context(enable_metadata_routing=True):
        names = dict(queries=True, mask=True)
        model = attsvm.AttentionSVM().set_fit_request(**names).set_score_request(**names)
        search = GridSearchCV(model, {"C": [1.0, 100.0]}, cv=KFold(4)).fit(x, y, queries=queries, mask=mask)
        scores = cross_val_score(model, x, y, cv=KFold(4), params=dict(queries=queries, mask=mask))
    best = attsvm.AttentionSVM(C=search.best_params_["C"]).fit(x, y, queries, mask)
    np.testing.assert_array_equal(search.best_estimator_.W_, best.W_)
    for score, (seen, held) in zip(scores, KFold(4).split(x), strict=True):
        one = attsvm.AttentionSVM().fit(x[seen], y[seen], queries[seen], mask[seen])
        assert score == one.score(x[held], y[held], queries[held], mask=mask[held])


def test_a_soft_v_problem_is_the_svm_of_scikit_learn():
    from sklearn.svm import LinearSVC
    rng = np.random.default_rng(5)
    points, labels = rng.normal(size=(50, 1, 3)), np.where(rng.random(50) < 0.5, -1.0, 1.0)
    task = attsvm.Task(points, labels=labels, select=np.zeros(50, int))
    ours = attsvm.solve(task, problem="v", soft=0.4)
    theirs = LinearSVC(loss="hinge", C=0.4, fit_intercept=False, tol=1e-9, max_iter=1_000_000, random_state=0)
    theirs.fit(points[:, 0], labels)
    np.testing.assert_allclose(ours.W[:, 0], theirs.coef_[0], atol=1e-5)
    assert attsvm.verify(task, ours) and ours.gap <= 1e-12
    assert ours.objective == pytest.approx((ours.W**2).sum() / 2 + 0.4 * ours.xi.sum())
    assert ours.margin == pytest.approx(1 / np.linalg.norm(ours.W))
    assert "missed" in repr(ours) and attsvm.solve(attsvm.generate("random", seed=1)).xi is None
    again = pickle.loads(pickle.dumps(ours))
    assert (again.xi == ours.xi).all() and again.violation == ours.violation and again.support == ours.support


def test_soft_arguments(tmp_path):
    task = attsvm.Task(*noisy()[:1], select=noisy()[2])
    each = np.full(60, 0.5)
    np.testing.assert_array_equal(attsvm.solve(task, soft=0.5).W, attsvm.solve(task, soft=each).W)
    solution = attsvm.solve(task, soft=0.5)
    solution.save(tmp_path / "s.npz")
    read = attsvm.load(tmp_path / "s.npz")
    assert (read.penalty == 0.5).all() and read.support == solution.support and attsvm.verify(task, read)
    assert read.violation == pytest.approx(0, abs=1e-12)
    for wrong, words in ((0, "soft = 0"), (-1.0, "soft = -1"), (np.inf, "soft = inf"), (each[:3], "3 penalties"),
                         (np.ones((2, 2)), "soft has shape")):
        with pytest.raises(ValueError, match=words):
            attsvm.solve(task, soft=wrong)
    with pytest.raises(TypeError, match="soft"):
        attsvm.solve(task, soft="much")
    with pytest.raises(ValueError, match="Frobenius norm only"):
        attsvm.solve(task, norm="nuc", soft=1.0)


def test_sequences_of_different_lengths_and_masks():
    lengths = [3, 5, 2, 4, 5, 3, 4, 2, 5, 4, 3, 5]
    ragged = [x[:length] for x, length in zip(X, lengths)]
    y = Y % lengths
    model = attsvm.AttentionSVM().fit(ragged, y, queries=QUERIES)
    assert model.score(ragged, y, QUERIES) == 1 and model.classes_.tolist() == [0, 1, 2, 3, 4]
    mask = np.arange(5) < np.array(lengths)[:, None]
    np.testing.assert_array_equal(attsvm.AttentionSVM().fit(X, y, queries=QUERIES, mask=mask).W_, model.W_)
    logits, weights = model.decision_function(X, QUERIES, mask), model.predict_proba(X, QUERIES, mask)
    assert np.isneginf(logits[~mask]).all() and (weights[~mask] == 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_allclose(weights, np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(model.decision_function(ragged, QUERIES), logits)
    np.testing.assert_array_equal(model.predict(X, QUERIES, mask), weights.argmax(axis=1))
    left = np.array([np.roll(x, 5 - length, axis=0) for x, length in zip(X, lengths)])
    moved = attsvm.AttentionSVM().fit(left, y + 5 - np.array(lengths), queries=QUERIES, mask=mask[:, ::-1])
    np.testing.assert_array_equal(moved.W_, model.W_)
    for wrong, words in ((mask[0], "mask"), (mask & False, "visible"), (mask[:, 1:], "visible")):
        with pytest.raises(ValueError, match=words):
            attsvm.AttentionSVM().fit(X, y, mask=wrong)


def test_a_large_soft_margin_reaches_what_its_documentation_says():
    rng = np.random.default_rng(0)
    x, z, W = rng.normal(size=(400, 64, 8)), rng.normal(size=(400, 8)), rng.normal(size=(8, 8))
    y = np.einsum("ntd,de,ne->nt", x, W, z).argmax(axis=1)
    wrong = rng.random(400) < 0.1
    given = np.where(wrong, rng.integers(64, size=400), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = attsvm.AttentionSVM(C=1.0, tolerance=1e-6).fit(x, given, queries=z)
    assert attsvm.verify(attsvm.Task(x, queries=z, select=given), model.solution_, tolerance=1e-6).valid
    assert model.score(x, y, z) > 0.9


def test_it_warns_where_the_solver_stalled():
    x, _, given = noisy()
    with pytest.warns(attsvm.ConvergenceWarning, match="could not reach its tolerance"):
        attsvm.AttentionSVM(C=1.0, tolerance=1e-30).fit(x, given)


class OneTokenPerClass(attsvm.AttentionSVM):
    """Classes of points as tokens: token k of a point x holds (x, 1) in block k and zeros elsewhere, so that W is one
    vector per class and the soft margin is that of Crammer and Singer. With it, scikit-learn's checks that draw
    matrices (n, features) drive fit, predict, predict_proba and decision_function as they are."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = True, False
        return tags

    def _blocks(self, points):
        rows = np.hstack([points, np.ones((len(points), 1))])
        return np.stack([np.kron(one, rows) for one in np.eye(len(self.classes_))], axis=1)

    def fit(self, X, y, sample_weight=None):
        points, y = validate_data(self, X, y, dtype=float)
        check_classification_targets(y)
        classes, chosen = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        self.classes_ = classes
        super().fit(self._blocks(points), chosen, sample_weight=sample_weight)
        self.classes_, self.n_features_in_ = classes, points.shape[1]
        return self

    def _log_proba(self, X, queries, mask):
        check_is_fitted(self)
        points = validate_data(self, X, dtype=float, reset=False)
        task = attsvm.Task(self._blocks(points))
        return task, task.log_attention(self.W_)

    def decision_function(self, X, queries=None, mask=None):
        logits = super().decision_function(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict(self, X, queries=None, mask=None):
        chosen = super().predict(X)
        return self.classes_[chosen]


def test_scikit_learns_checks_of_classifiers():
    """All that scikit-learn has, on classes written as tokens; none fails."""
    model = OneTokenPerClass(C=1.0, threads=1)
    failed = [(one["check_name"], str(one["exception"])[:200])
              for one in estimator_checks.check_estimator(model, on_fail=None, on_skip=None)
              if one["status"] == "failed"]
    assert not failed
