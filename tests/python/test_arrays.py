"""Array arguments: viewed where possible, else converted; errors name the argument."""

import attsvm
import numpy as np
import pytest

RNG = np.random.default_rng(0)
TOKENS, QUERIES, HEAD = RNG.normal(size=(4, 5, 8)), RNG.normal(size=(4, 6)), RNG.normal(size=8)


def make(**changes):
    return attsvm.Task(**{**dict(tokens=TOKENS, queries=QUERIES, head=HEAD), **changes})


def test_float64_in_c_order_is_not_copied():
    task = make()
    assert np.shares_memory(task.tokens, TOKENS)
    read_only = TOKENS.copy()
    read_only.flags.writeable = False
    assert np.shares_memory(make(tokens=read_only).tokens, read_only)
    assert not task.tokens.flags.writeable


def test_ids_are_copied():
    """They are checked once: a later change must not lead out of the embeddings."""
    ids, labels = np.array([0, 1, 2, 1, 0]), np.array([1, 1])
    task = attsvm.Task(ids=ids, offsets=[0, 3, 5], embeddings=np.eye(3), next=labels)
    before = attsvm.solve(task)
    ids[0] = labels[0] = 10**9
    assert task.to_dict()["ids"].tolist() == [0, 1, 2, 1, 0] and task.to_dict()["next"].tolist() == [1, 1]
    assert (attsvm.solve(task).W == before.W).all()


def test_what_a_next_token_task_has():
    task = attsvm.Task(ids=[0, 1, 2, 1, 0], offsets=[0, 3, 5], embeddings=np.eye(3), next=[1, 1])
    assert task.seen(0).tolist() == [0, 1, 2] and task.seen(1).tolist() == [0, 1]
    for query, ids in (0, [0, 1, 2]), (1, [1, 0]), (-1, [1, 0]), (-2, [0, 1, 2]):
        assert (task.keys(query) == np.eye(3)[ids]).all() and (task.query(query) == np.eye(3)[ids[-1]]).all()
    for refused in (lambda: attsvm.path(task), lambda: attsvm.path(task, joint=True), lambda: task.scores(0),
                    lambda: task.optimal):
        with pytest.raises(attsvm.InputError, match="a next-token task has no head"):
            refused()
    assert isinstance(attsvm.check(task), attsvm.NextTokenCheck)


def test_load_knows_next_token_tasks(tmp_path):
    task = attsvm.Task(ids=[0, 1, 2, 1, 0], offsets=[0, 3, 5], embeddings=np.eye(3), next=[1, 1])
    task.save(tmp_path / "task.npz")
    again = attsvm.load(tmp_path / "task.npz")
    assert isinstance(again, attsvm.Task) and again.keys(0).shape == (3, 3)


def test_the_task_keeps_its_arrays_alive():
    task = attsvm.Task(TOKENS.copy(), queries=QUERIES.copy(), head=HEAD.copy())
    np.empty((4, 5, 8))[:] = 0  # what was freed would be taken again
    assert (attsvm.solve(task).W == attsvm.solve(make()).W).all()


@pytest.mark.parametrize("change", [
    lambda a: np.asfortranarray(a), lambda a: a.astype(">f8"), lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    lambda a: a.tolist(), lambda a: a[::-1][::-1], lambda a: np.frombuffer(b"x" + a.tobytes(), "<f8", offset=1
                                                                            ).reshape(a.shape),
], ids=["fortran", "big endian", "strided", "list", "reversed twice", "unaligned"])
def test_other_layouts_are_converted(change):
    task = make(tokens=change(TOKENS), queries=change(QUERIES))
    np.testing.assert_array_equal(task.tokens, TOKENS)
    assert (attsvm.solve(task).W == attsvm.solve(make()).W).all()


@pytest.mark.parametrize("dtype", ["f2", "f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
def test_other_types_are_converted(dtype):
    numbers = (np.abs(TOKENS) * 3).astype(dtype)
    np.testing.assert_array_equal(make(tokens=numbers).tokens, numbers.astype(float))


def test_sequences_of_different_lengths():
    rows = [RNG.normal(size=(length, 8)) for length in (3, 5, 2, 4)]
    task = make(tokens=rows)
    assert task.longest == 5 and task.lengths.tolist() == [3, 5, 2, 4]
    same = make(tokens=np.concatenate(rows), offsets=[0, 3, 8, 10, 14])
    assert (attsvm.solve(task).W == attsvm.solve(same).W).all()
    np.testing.assert_array_equal(task.keys(2), rows[2])


def test_all_kinds_of_attention_show_their_parts():
    for kind in ("random", "self", "prompt", "causal", "ragged", "relu", "quadratic"):
        task = attsvm.generate(kind, seed=2)
        W = RNG.normal(size=(task.d, task.dz))
        for i in range(task.n_queries):
            logits = task.keys(i) @ W @ task.query(i)
            expected = np.exp(logits - logits.max())
            np.testing.assert_allclose(task.attention(W)[i, :task.lengths[i]], expected / expected.sum(), rtol=1e-12)
            assert task.scores(i).argmax() == task.optimal[i]
        again = attsvm.Task(**task.to_dict())
        assert repr(again) == repr(task) and (again.attention(W) == task.attention(W)).all()


@pytest.mark.parametrize("error, name, changes", [
    (TypeError, "tokens", dict(tokens=TOKENS.astype(complex))),
    (TypeError, "tokens", dict(tokens=TOKENS.astype("longdouble"))),
    (TypeError, "tokens", dict(tokens=TOKENS.astype(object))),
    (TypeError, "tokens", dict(tokens=TOKENS.astype("U8"))),
    (TypeError, "tokens", dict(tokens="tokens")),
    (TypeError, "tokens", dict(tokens=None)),
    (TypeError, "sequence", dict(sequence=[0.0, 1.0, 2.0, 3.0])),
    (TypeError, "query_token", dict(queries=None, query_token=[0.5, 1, 1, 1])),
    (TypeError, "select", dict(select=[0.0, 1.0, 2.0, 3.0])),
    (TypeError, "select", dict(select="opt")),
    (ValueError, "tokens", dict(tokens=np.empty((0, 5, 8)))),
    (ValueError, "tokens", dict(tokens=[])),
    (ValueError, "tokens", dict(tokens=[[1.0, 2.0], [1.0]])),
    (ValueError, "tokens", dict(tokens=TOKENS[0])),
    (ValueError, r"tokens\[1,2,3\]", dict(tokens=np.where(np.arange(160).reshape(4, 5, 8) == 59, np.nan, TOKENS))),
    (ValueError, "queries", dict(queries=QUERIES[:2])),
    (ValueError, r"queries\[3,5\]", dict(queries=np.where(np.arange(24).reshape(4, 6) == 23, np.inf, QUERIES))),
    (ValueError, "queries", dict(queries=QUERIES[0])),
    (ValueError, "head", dict(head=HEAD[:3])),
    (ValueError, "labels", dict(labels=[1, 1, 2, 1])),
    (ValueError, "keys", dict(keys=TOKENS[:2])),
    (ValueError, "visible", dict(visible=[5, 5, 5, 6])),
    (ValueError, "select", dict(select=[0, 1, 2, 5])),
    (ValueError, "select", dict(select=[{0}, {1}, {2}, {9}])),
    (ValueError, "select", dict(select=np.zeros((4, 5), bool))),
    (ValueError, "offsets", dict(tokens=TOKENS[0], offsets=[0, 9])),
    (ValueError, "x_", dict(extras={"mine": TOKENS})),
])
def test_refusals_name_the_argument(error, name, changes):
    with pytest.raises(error, match=name):
        make(**changes)


@pytest.mark.parametrize("error, name, call", [
    (TypeError, "task", lambda task: attsvm.solve(TOKENS)),
    (TypeError, "tasks", lambda task: attsvm.solve_many(task)),
    (TypeError, "tasks", lambda task: attsvm.solve_many([TOKENS])),
    (ValueError, "select", lambda task: attsvm.solve_many([task], select=[[0, 0, 0, 0]] * 2)),
    (ValueError, "norm", lambda task: attsvm.solve(task, norm="l0")),
    (TypeError, "norm", lambda task: attsvm.solve(task, norm=3)),
    (ValueError, "select", lambda task: attsvm.solve(task, select="best")),
    (ValueError, "select", lambda task: attsvm.solve(task, select="file")),
    (ValueError, "select", lambda task: attsvm.solve(task, select=[0, 0, 0, 7])),
    (ValueError, "relax", lambda task: attsvm.solve(task, relax=[4])),
    (TypeError, "relax", lambda task: attsvm.solve(task, relax=[0.5])),
    (ValueError, "problem", lambda task: attsvm.solve(task, problem="w")),
    (ValueError, "tolerance", lambda task: attsvm.solve(task, tolerance=-1)),
    (TypeError, "tolerance", lambda task: attsvm.solve(task, tolerance="small")),
    (ValueError, "time_limit", lambda task: attsvm.solve(task, time_limit=0)),
    (ValueError, "threads", lambda task: attsvm.solve(task, threads=0)),
    (TypeError, "warm_start", lambda task: attsvm.solve(task, warm_start=TOKENS)),
    (ValueError, "solution", lambda task: attsvm.verify(task, np.full((8, 6), np.nan))),
    (ValueError, "param", lambda task: attsvm.train(task, param="V")),
    (ValueError, "optimizer", lambda task: attsvm.train(task, optimizer="sgd")),
    (ValueError, "optimizer", lambda task: attsvm.train(task, optimizer="mirror")),
    (ValueError, "power", lambda task: attsvm.train(task, optimizer=("mirror", 0.5))),
    (ValueError, "norm", lambda task: attsvm.train(task, optimizer="steepest:l0")),
    (TypeError, "optimizer", lambda task: attsvm.train(task, optimizer=3)),
    (ValueError, "momentum", lambda task: attsvm.train(task, optimizer="adam", momentum=0.5)),
    (ValueError, "momentum = 1", lambda task: attsvm.train(task, momentum=1)),
    (ValueError, "betas", lambda task: attsvm.train(task, optimizer="adam", betas=[0.9])),
    (TypeError, "betas", lambda task: attsvm.train(task, optimizer="adam", betas="0.9,0.99")),
    (ValueError, "newton", lambda task: attsvm.train(task, newton_schulz=5)),
    (ValueError, "step", lambda task: attsvm.train(task, step=-1)),
    (ValueError, "steps", lambda task: attsvm.train(task, steps=-1)),
    (TypeError, "steps", lambda task: attsvm.train(task, steps=1.5)),
    (TypeError, "every:K", lambda task: attsvm.train(task, record=500)),
    (ValueError, "record", lambda task: attsvm.train(task, record="all")),
    (ValueError, "epsilon", lambda task: attsvm.train(task, epsilon=(1, 2))),
    (ValueError, "W0", lambda task: attsvm.train(task, init=np.ones((3, 3)))),
    (ValueError, "V0", lambda task: attsvm.train(task, init={"V0": TOKENS})),
    (ValueError, "seed", lambda task: attsvm.train(task, seed=-1)),
    (ValueError, "init", lambda task: attsvm.train_many([task], init=[None, None])),
    (ValueError, "radi", lambda task: attsvm.path(task, [2, 1])),
    (ValueError, "steps", lambda task: attsvm.check(task, TOKENS)),
    (ValueError, "claim", lambda task: attsvm.claims("nothing")),
    (TypeError, "names", lambda task: attsvm.reproduce()),
    (ValueError, "kind", lambda task: attsvm.generate("nothing")),
    (TypeError, "n", lambda task: attsvm.generate(n=2.5)),
    (ValueError, "W", lambda task: task.attention(np.ones((2, 2)))),
])
def test_bad_settings_name_the_argument(error, name, call):
    with pytest.raises(error, match=name):
        call(make())


@pytest.mark.parametrize("make, kind, words", [
    (lambda: attsvm.solve(attsvm.generate(seed=1), select="1,2,3"), ValueError, "select = '1,2,3'.*select=\\[1, 0, 2\\]"),
    (lambda: attsvm.Task(np.array([np.ones((2, 3)), np.ones((4, 3))], dtype=object)), TypeError,
     "tokens has dtype object.*list of matrices.*offsets"),
    (lambda: attsvm.Task(np.ones((7, 2)), offsets=[3, 4]), ValueError, "offsets\\[0\\] = 3.*look like lengths.*0, 3, ..., 7"),
    (lambda: attsvm.Task(np.ones(3), select=[0]), ValueError, "tokens has shape \\(3\\)"),
    (lambda: attsvm.Task(np.ones((7, 2)), offsets=[7], select=[0]), ValueError, "offsets has shape"),
])
def test_mistakes_of_newcomers_get_a_hint(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


MASK = np.array([[0, 0, 1, 1, 1], [1, 0, 1, 0, 1], [0, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)


def test_masks_of_every_kind():
    task = make(visible=MASK)
    assert task.masked and "masked" in repr(task) and task.lengths.tolist() == [3, 3, 2, 5]
    for i in range(4):
        assert task.seen(i).tolist() == np.flatnonzero(MASK[i]).tolist()
        np.testing.assert_array_equal(task.keys(i), TOKENS[i][MASK[i]])
        assert task.seen(i)[task.scores(i).argmax()] == task.optimal[i]
    np.testing.assert_array_equal(task.seen(-1), task.seen(3))
    with pytest.raises(IndexError):
        task.seen(4)
    assert np.shares_memory(task.keys(0), TOKENS) and not np.shares_memory(task.keys(1), TOKENS)
    W = np.ones((8, 6))
    assert (task.attention(W)[~MASK] == 0).all()
    np.testing.assert_allclose(task.attention(W).sum(axis=1), 1)
    again = attsvm.Task(**task.to_dict())
    assert (again.attention(W) == task.attention(W)).all() and again.to_dict()["visible"].dtype == bool
    torch = pytest.importorskip("torch")
    padding = torch.from_numpy(~MASK)  # PyTorch hides where its mask is True
    for visible in (MASK.tolist(), MASK.astype(int), MASK.astype("u1"), np.asfortranarray(MASK), ~padding):
        assert (make(visible=visible).attention(W) == task.attention(W)).all()
    solution = attsvm.solve(task)
    assert attsvm.verify(task, solution).valid and MASK[solution.row_query, solution.row_drop].all()
    assert not attsvm.verify(make(), solution).valid


@pytest.mark.parametrize("error, words, visible", [
    (ValueError, r"visible\[2\] has no True", MASK & [[1], [1], [0], [1]]),
    (ValueError, r"visible has type bool and shape \(4,4\)", MASK[:, 1:]),
    (ValueError, r"visible has type bool and shape \(4\)", MASK[:, 1]),
    (ValueError, "other than 0 and 1", 2 * MASK),
    (TypeError, "visible has dtype float64", MASK.astype(float)),
])
def test_refused_masks(error, words, visible):
    with pytest.raises(error, match=words):
        make(visible=visible)
