"""What Python's users expect of arguments, messages, copies, pickles, imports and pipes."""

import os
import pickle
import subprocess
import sys

import attsvm
import numpy as np
import pytest

RNG = np.random.default_rng(0)
TASK = attsvm.generate("random", seed=1)


@pytest.mark.parametrize("call", [
    lambda masked: attsvm.Task(masked), lambda masked: attsvm.Task([masked[0], masked[1]]),
    lambda masked: attsvm.Task([masked[0], masked[1][:2]]), lambda masked: attsvm.Task(np.ones((2, 3, 4)), queries=masked[:, 0]),
    lambda masked: attsvm.correlation(masked[0], masked[0]), lambda masked: attsvm.solve(TASK, select=masked[0, :, 0]),
    lambda masked: attsvm.solve(TASK, relax=masked[0, 0] > 0), lambda masked: attsvm.train(TASK, init=masked[0]),
    lambda masked: attsvm.check(TASK, masked[0]), lambda masked: attsvm.Heads(masked, masked),
    lambda masked: attsvm.Task(np.ones((2, 3, 4)), visible=masked[:, :, 0] > 0)])
def test_masked_arrays_are_refused(call):
    with pytest.raises(TypeError, match="masked array"):
        call(np.ma.masked_array(np.ones((2, 3, 4)), mask=np.arange(24).reshape(2, 3, 4) == 5))


def test_tensors_in_lists_and_of_half_width():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (Debian: python3-torch)")
    numbers = RNG.normal(size=(3, 4, 5))
    learned = [torch.tensor(one, requires_grad=True) for one in numbers]
    np.testing.assert_array_equal(attsvm.Task(learned).tokens, numbers)
    ragged = attsvm.Task([learned[0], learned[1][:2], learned[2]])
    assert ragged.lengths.tolist() == [4, 2, 4] and (ragged.keys(1) == numbers[1, :2]).all()
    np.testing.assert_array_equal(attsvm.Task([[row for row in one] for one in learned]).tokens, numbers)
    short = torch.tensor(numbers).to(torch.bfloat16)
    np.testing.assert_array_equal(attsvm.Task(short.requires_grad_()).tokens, short.detach().double().numpy())
    np.testing.assert_array_equal(attsvm.Task(list(short)).tokens, short.detach().double().numpy())
    mixed = [numbers[0], learned[1], numbers[2].tolist()]
    np.testing.assert_array_equal(attsvm.Task(mixed).tokens, numbers)


def test_numpys_bfloat16():
    dtypes = pytest.importorskip("ml_dtypes")
    short = RNG.normal(size=(2, 3, 4)).astype(dtypes.bfloat16)
    np.testing.assert_array_equal(attsvm.Task(short).tokens, short.astype(float))


def test_queries_to_relax_are_numbers_or_a_mask():
    relaxed = attsvm.solve(TASK, relax=[1, 3])
    assert attsvm.verify(TASK, relaxed)
    for relax in (relaxed.relax, relaxed.relax.tolist(), np.array([1, 3]), (3, 1), {1, 3}):
        assert (attsvm.solve(TASK, relax=relax).W == relaxed.W).all()
    assert attsvm.solve(TASK, relax=None).objective == attsvm.solve(TASK, relax=np.zeros(6, bool)).objective
    for wrong in ([True, False], 3):
        with pytest.raises(ValueError, match="relax has shape"):
            attsvm.solve(TASK, relax=wrong)


@pytest.mark.parametrize("words, call", [
    (r"tasks\[1\] is a str", lambda tasks: attsvm.solve_many([tasks[0], "task"])),
    (r"tasks\[2\]: select", lambda tasks: attsvm.solve_many(tasks, select=["opt", None, [99] * 6])),
    (r"tasks\[1\]: select\[0\] = 99", lambda tasks: attsvm.solve_many(tasks[:2], select=[None, [{99}] + [{0}] * 5])),
    (r"tasks\[1\]: .*head", lambda tasks: attsvm.solve_many([tasks[0], attsvm.Task(np.ones((1, 2, 3)))])),
    (r"tasks\[1\]: .*head", lambda tasks: attsvm.train_many([tasks[0], attsvm.Task(np.ones((1, 2, 3)))])),
    (r"tasks\[1\]: .*head", lambda tasks: attsvm.train_many([tasks[0], attsvm.Task(np.ones((1, 2, 3)))], stop_direction=1e-9)),
    (r"tasks\[2\]: W0 has shape", lambda tasks: attsvm.train_many(tasks, init=[None, None, np.ones((2, 2))])),
    (r"tasks\[2\]: W0", lambda tasks: attsvm.train_many(tasks, init=[None, None, np.full((10, 10), np.nan)])),
    (r"tasks\[0\]: init: unknown", lambda tasks: attsvm.train_many(tasks[:1], init=[{"V0": 1}])),
])
def test_the_task_at_fault_is_named(words, call):
    with pytest.raises((TypeError, ValueError), match=words):
        call([attsvm.generate("random", seed=1, instance=k) for k in range(3)])


def test_messages_name_arguments_and_not_options(tmp_path):
    """Wherever the C++ library would tell users of the command line which option to give."""
    TASK.save(tmp_path / "task.npz")
    description = {"name": "width", "task": {"kind": "random"}, "sizes": {"n": 3, "T": 3, "d": 4}, "measure": ["feasible"],
                   "runs": 1}
    attsvm.sweep(description, out=tmp_path)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/runs.sqlite3").write_text("not a store" * 100)
    run = tmp_path / "run.npz"
    attsvm.train(TASK, steps=10**9, out=run, time_limit=0.01)
    run.unlink()
    messages = []
    for call, argument in ((lambda: attsvm.sweep(description | {"sizes": {"n": 4, "T": 3, "d": 4}}, out=tmp_path), "force=True"),
                           (lambda: attsvm.reproduce("svm-rank", out=tmp_path / "broken"), "out="),
                           (lambda: attsvm.train(TASK, out=run), "resume=True"),
                           (lambda: attsvm._core.write_npz(str(tmp_path / "task.npz"), {"W": np.ones(2)}, False), "force=True")):
        with pytest.raises(attsvm.InputError) as caught:
            call()
        messages.append(str(caught.value))
        assert argument in messages[-1]
    with pytest.raises(attsvm.InputError) as caught:
        attsvm.train(TASK, steps=1).save(run)
        attsvm.load_solution(run)
    messages += [str(caught.value), *attsvm.kinds().values()]
    assert not [one for one in messages if "--" in one]


def test_interruptions_pickle():
    error = pickle.loads(pickle.dumps(attsvm.Interrupted("stopped", attsvm.solve(TASK))))
    assert isinstance(error, attsvm.Interrupted) and str(error) == "stopped"
    assert error.result.objective == attsvm.solve(TASK).objective
    conflict = attsvm.solve(attsvm.generate("infeasible", seed=1))
    again = pickle.loads(pickle.dumps(attsvm.InfeasibleError("none", conflict)))
    assert str(again) == "none" and again.solution.status == "infeasible"
    for kind in (attsvm.InputError, attsvm.MissingFileError, attsvm.ExistingFileError):
        assert str(pickle.loads(pickle.dumps(kind("words")))) == "words"


def test_a_task_shows_what_it_was_made_from():
    tokens, queries, labels, head = RNG.normal(size=(7, 3)), RNG.normal(size=(2, 3)), [1, -1], RNG.normal(size=3)
    task = attsvm.Task(tokens, queries=queries, labels=labels, head=head, offsets=[0, 3, 7])
    for name, given in dict(tokens=tokens, queries=queries, labels=labels, head=head, offsets=[0, 3, 7]).items():
        np.testing.assert_array_equal(getattr(task, name), given)
    assert task.query_token is None and task.head_hidden is None and task.head_quadratic is None
    assert task.sequence.tolist() == [0, 1]
    own = attsvm.generate("causal", seed=1)
    assert own.queries is None and own.query_token.shape == own.sequence.shape == (own.n_queries,)
    assert attsvm.generate("relu", seed=1).head_hidden.ndim == 2
    assert isinstance(attsvm.generate("quadratic", seed=1).head_quadratic, float)
    plain = attsvm.Task(np.ones((2, 3, 4)))
    assert plain.queries is plain.labels is plain.head is plain.offsets is None


def test_a_bias_is_part_of_the_logits():
    X, W, bias = RNG.normal(size=(2, 4, 3)), RNG.normal(size=(3, 3)), RNG.normal(size=(2, 4))
    task = attsvm.Task(X, query_token=[3, 1], bias=bias, head=RNG.normal(size=3))
    logits = np.array([X[i] @ W @ X[i, t] for i, t in enumerate([3, 1])]) + bias
    weights = np.exp(logits)
    np.testing.assert_allclose(task.attention(W), weights / weights.sum(axis=1, keepdims=True), rtol=1e-12)
    assert task.bias.tolist() == bias.tolist() == pickle.loads(pickle.dumps(task)).bias.tolist()
    assert attsvm.Task(X).bias is None
    sloped = attsvm.with_positions(task, fixed_slope=2)
    np.testing.assert_allclose(sloped.bias, bias - 2 * (np.array([[3], [1]]) - np.arange(4)), atol=1e-15)
    for options in ({}, {"kind": "slope", "fixed_slope": 1}, {"table": np.ones((4, 3)), "fixed_slope": 1}):
        with pytest.raises(attsvm.InputError, match="one of them alone"):
            attsvm.with_positions(task, **options)
    with pytest.raises(attsvm.InputError, match="slope = nan"):
        attsvm.with_positions(task, fixed_slope=float("nan"))
    with pytest.raises(attsvm.InputError, match=r"bias\[0,2\] = inf"):
        attsvm.Task(X, bias=np.where(np.arange(8).reshape(2, 4) == 2, np.inf, bias))


@pytest.mark.parametrize("thing", [TASK, attsvm.solve(TASK), attsvm.train(TASK, steps=3), attsvm.solve_many([TASK]),
                                   attsvm.check(TASK), attsvm.margin(TASK, np.eye(10), norms="fro"),
                                   attsvm.local_optima(attsvm.generate("random", n=2, T=3, d=4, seed=1))],
                         ids=lambda thing: type(thing).__name__)
def test_copies_are_writable_and_apart(thing):
    def arrays(value):
        if isinstance(value, dict):
            return [one for each in value.values() for one in arrays(each)]
        if isinstance(value, list):
            return [one for each in value for one in arrays(each)]
        return [value] if isinstance(value, np.ndarray) else []

    shared, own = arrays(thing.to_dict()), arrays(thing.to_dict(copy=True))
    assert len(shared) == len(own) > 0
    for one, copy in zip(shared, own):
        assert copy.flags.writeable and not np.shares_memory(one, copy)
        np.testing.assert_array_equal(one, copy)


def test_names_of_tokens_survive(tmp_path):
    arrays = TASK.to_dict()
    np.savez(tmp_path / "task.npz", **arrays, x_token_names=np.array([f"t{k}" for k in range(48)]))
    task = attsvm.load_task(tmp_path / "task.npz")
    assert pickle.loads(pickle.dumps(task)).extras["x_token_names"][47] == "t47"
    task.save(tmp_path / "again.npz")
    assert attsvm.load_task(tmp_path / "again.npz").extras["x_token_names"] == task.extras["x_token_names"]


IMPORTS = """
import sys
for name in {missing!r}:
    sys.modules[name] = None  # as if it were not installed
from attsvm import *
import attsvm
assert solve is attsvm.solve and report is attsvm.report
assert ("AttentionSVM" in globals()) == ("AttentionSVM" in dir(attsvm)) == ("sklearn" not in {missing!r})
assert ("plot" in dir(attsvm)) == ("matplotlib" not in {missing!r})
assert set(attsvm.__all__) <= set(dir(attsvm)) and all(hasattr(attsvm, name) for name in dir(attsvm))
assert not [name for name in dir(attsvm) if name.startswith("_") and name != "__version__"]
"""


@pytest.mark.parametrize("missing", [["sklearn", "matplotlib", "torch"], []], ids=["NumPy alone", "all packages"])
def test_everything_public_can_be_imported(missing):
    if not missing:
        pytest.importorskip("torch", reason="PyTorch is not installed (Debian: python3-torch)")
    script = IMPORTS.format(missing=missing)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [["--help"], ["reproduce", "list"], ["solve", "task.npz", "--json", "-o", "svm.npz"], ["info", "missing.npz"]])
@pytest.mark.parametrize("module", [True, False], ids=["python -m attsvm", "attsvm"])
@pytest.mark.parametrize("ignored", [True, False], ids=["SIGPIPE ignored", "SIGPIPE as usual"])
def test_nobody_reads(words, module, ignored, tmp_path):
    """attsvm ... | head: the pipe is closed before anything is written to it."""
    attsvm.generate("random", n=3, T=4, d=5, seed=1).save(tmp_path / "task.npz")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "attsvm"] if module else [os.environ["ATTSVM_PROGRAM"]]
    errors = subprocess.PIPE if words[0] != "info" else writer  # messages to a closed pipe are none either
    done = subprocess.run([*command, *words], stdout=writer, stderr=errors, cwd=tmp_path, restore_signals=not ignored)
    os.close(writer)
    assert done.returncode in (0, 141, -13), done
    assert not done.stderr


def test_a_full_disk_is_no_bug():
    with open("/dev/full", "w") as full:
        done = subprocess.run([os.environ["ATTSVM_PROGRAM"], "reproduce", "list"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "No space left" in done.stderr and "internal" not in done.stderr
