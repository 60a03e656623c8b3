"""attsvm.stack."""

import os
import pickle
import subprocess

import attsvm
import numpy as np
import pytest

from test_long_calls import interrupted


@pytest.fixture
def task():
    return attsvm.generate("random", attention="prompt", n=4, T=5, d=6, seed=3)


def test_files_have_the_bytes_of_the_command_line(task, tmp_path):
    result = attsvm.stack(task, layers=2, heads=2, mlp=3, steps=40, train_values=True, seed=2)
    task.save(tmp_path / "task.npz")
    result.save(tmp_path / "python.npz")
    command = [os.environ["ATTSVM_PROGRAM"], "stack", "task.npz", "--heads", "2", "--mlp", "3", "--steps", "40",
               "--train-values", "--seed", "2", "-o", "program.npz"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "python.npz").read_bytes() == (tmp_path / "program.npz").read_bytes()
    loaded = attsvm.load(tmp_path / "program.npz")
    assert isinstance(loaded, attsvm.Stack) and np.array_equal(loaded.W, result.W) and loaded.heads == []


def test_heads_are_judged(task):
    result = attsvm.stack(task, steps=2000, null=3)
    assert [(head["layer"], head["head"]) for head in result.heads] == [(0, 0), (1, 0)]
    for head in result.heads:
        assert head["status"] == "optimal" and len(head["rho"]) == len(result.record_step)
        assert head["last_rho"]["value"] > max(head["last_rho"]["null"])
    again = pickle.loads(pickle.dumps(result))
    assert np.array_equal(again.W, result.W) and again.heads == result.heads
    assert repr(result).startswith("Stack(layers=2, heads=1, steps=2000")


@pytest.mark.parametrize("options, words", [(dict(layers=0), "layers"), (dict(mlp=-1), "mlp"),
                                            (dict(values="zero"), "values = zero"),
                                            (dict(askers="some"), "askers = some"),
                                            (dict(optimizer="polyak"), "polyak")])
def test_bad_settings_are_refused(task, options, words):
    with pytest.raises(ValueError, match=words):
        attsvm.stack(task, **options)


def test_judging_stops_on_ctrl_c(task):
    seen = []

    def sign(step):
        seen.append(step)
        return step == 5 and seen.count(5) > 2  # training is over: the bar shows its last step again and again

    stop = interrupted(lambda: attsvm.stack(task, steps=5, null=10**9, progress=True), lambda step, *_: sign(step))
    assert stop.result.record_step[-1] == 5 and len(stop.result.heads) == 2


def test_a_time_limit_holds_for_judging(task):
    with pytest.warns(attsvm.ConvergenceWarning, match="layer 0, head 0"):
        result = attsvm.stack(task, steps=5, null=10**9, time_limit=1e-9)
    assert {head["status"] for head in result.heads} == {"limit"}


def test_a_run_with_an_array_V_is_no_stack(task, tmp_path):
    attsvm.train(task, steps=5).save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as stored:
        np.savez(tmp_path / "other.npz", V=np.eye(6), **stored)
    assert isinstance(attsvm.load(tmp_path / "other.npz"), attsvm.Run)


def test_a_loaded_stack_is_judged_again(task, tmp_path):
    result = attsvm.stack(task, steps=300, null=3)
    result.save(tmp_path / "stack.npz")
    loaded = attsvm.load(tmp_path / "stack.npz")
    assert loaded.heads == [] and loaded.judge(task, null=3).heads == result.heads
    others = loaded.judge(task, null=3, seed=5).heads
    assert others[0]["correlation"] == result.heads[0]["correlation"]
    assert others[0]["last_rho"]["null"] != result.heads[0]["last_rho"]["null"]
    with pytest.raises(attsvm.InputError, match="^stack: is a run of another task"):
        loaded.judge(attsvm.generate("random", attention="prompt", n=4, T=5, d=6, seed=4))


def test_what_heads_read_is_what_the_command_line_writes(task, tmp_path):
    task.save(tmp_path / "task.npz")
    command = [os.environ["ATTSVM_PROGRAM"], "stack", "task.npz", "--steps", "300", "--head-tasks", "heads", "-o",
               "stack.npz"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    tasks = attsvm.load(tmp_path / "stack.npz").head_tasks(task)
    assert sorted(tasks) == [(0, 0), (1, 0)]
    for (layer, head), one in tasks.items():
        written = attsvm.load_task(tmp_path / "heads" / f"layer{layer}_head{head}.npz")
        assert np.array_equal(one.tokens, written.tokens) and np.array_equal(one.select, written.select)
        solution = attsvm.solve(one)
        assert solution.status == "optimal" and attsvm.verify(one, solution)


def test_a_page_of_a_stack(task, tmp_path):
    result = attsvm.stack(task, steps=100)
    page = attsvm.report(task, result, out=tmp_path / "page.html")
    assert page.data["kind"] == "stack" and page.verdict is None
    assert [head["rho"] for head in page.data["judged"]] == [head["rho"] for head in result.heads]
    result.save(tmp_path / "stack.npz")
    again = attsvm.report(task, [tmp_path / "stack.npz"], out=tmp_path / "again.html")
    assert again.data["judged"] == page.data["judged"] and again.data["file"] == str(tmp_path / "stack.npz")
    with pytest.raises(ValueError, match="a stack is shown alone"):
        attsvm.report(task, [result, attsvm.train(task, steps=5)], out=tmp_path / "no.html")
    with pytest.raises(ValueError, match="beside a stack"):
        attsvm.report(task, result, coordinates=[0], out=tmp_path / "no.html")
    assert not (tmp_path / "no.html").exists()
    for shown in (dict(coordinates=np.array([0, 1])), dict(token_names=np.array(["a"] * 20)), dict(solutions={"mine": 1})):
        with pytest.raises(ValueError, match="beside a stack"):
            attsvm.report(task, result, out=tmp_path / "no.html", **shown)
    attsvm.report(task, result, out=tmp_path / "none.html", coordinates=np.array([], dtype=int))
