"""check of next-token tasks: the command line's numbers, under the same names, and the graphs as the ids have them."""

import json
import math
import os
import pickle
import subprocess

import attsvm
import numpy as np
import pytest


@pytest.fixture(scope="module")
def task():
    return attsvm.generate("nexttoken", n=8, instance=3)


@pytest.fixture(scope="module")
def run(task):
    return attsvm.train(task, optimizer="gd", step=1.0, steps=200, record="every:100")


def same(found, printed, name):
    """Python has NaN and empty arrays where JSON has null."""
    if printed is None:
        return found is None or np.size(found) == 0 or math.isnan(found)
    if isinstance(printed, dict):
        return found.keys() == printed.keys() and all(same(found[one], printed[one], one) for one in printed)
    if name == "graph":
        return [one._asdict() for one in found] == [
            {**one, "edges": [tuple(edge) for edge in one["edges"]]} for one in printed]
    if isinstance(printed, list) and name != "words":
        return np.array_equal(found, np.array(printed, dtype=float), equal_nan=True)
    return found == printed


@pytest.mark.parametrize("instance", [3, 4])
def test_it_is_the_command_lines(program, tmp_path, instance):
    task = attsvm.generate("nexttoken", n=8, instance=instance)
    run = attsvm.train(task, optimizer="gd", step=1.0, steps=200, record="every:100")
    assert attsvm.verify(task, attsvm.solve(task)).valid
    task.save(tmp_path / "task.npz")
    run.save(tmp_path / "run.npz")
    settings = {"attsvm", "command", "seconds", "threads", "time_limit", "run", "seed"}
    for check, words in ((attsvm.check(task), ()), (attsvm.check(task, run), ("--run", tmp_path / "run.npz"))):
        printed = json.loads(program("check", tmp_path / "task.npz", *words, "--json").stdout)
        assert isinstance(check, attsvm.NextTokenCheck)
        for name, value in printed.items():
            assert name in settings or same(getattr(check, name), value, name), name
        left = set(check.to_dict()) - set(printed)
        assert left <= {"correlation_fro", "correlation_nuc", "finite_distance"}, "arrays without a run are empty"


def test_the_graphs_are_those_of_the_ids(task):
    arrays = task.to_dict()
    edges, tokens = {}, {}
    for s, label in enumerate(arrays["next"]):
        seen = arrays["ids"][arrays["offsets"][s]:arrays["offsets"][s + 1]].tolist()
        edges.setdefault(seen[-1], set()).update((label, other) for other in seen if other != label)
        tokens.setdefault(seen[-1], set()).update(seen)
    check = attsvm.check(task)
    assert [one.last for one in check.graph] == sorted(edges) and check.graphs == len(edges)
    for graph in check.graph:
        assert graph.edges == sorted(edges[graph.last]) and graph.tokens == sorted(tokens[graph.last])
        assert graph.word == f"#{graph.last}"
    assert [one.components for one in check.graph if one.components] == [[[3, 5]]] and check.components == 1
    assert check.words == ["after «#3»: «#3» before «#5», and back"]
    inside = sum(len(set(edge) - {3, 5}) == 0 for edge in edges[3])
    assert check.edges - check.orders == inside == 2
    assert check.objective_fro == attsvm.solve(task).objective and check.finite_dimension == 1


def test_a_run_comes_closer(task, run):
    check = attsvm.check(task, run, norms=["lp:3"])
    assert check.record_step.tolist() == [0, 100, 200] and math.isnan(check.correlation_fro[0])
    assert check.correlation_fro[2] > check.correlation_fro[1] > 0.8
    assert check.finite_distance[2] < check.finite_distance[1] < check.finite_distance[0]
    assert check.implied_norm == "fro" and {"fro", "lp:3"} <= set(check.rho)
    again = pickle.loads(pickle.dumps(check))
    assert repr(again) == repr(check) and repr(check).startswith("NextTokenCheck(graphs=5, components=1, orders=15, ")
    assert check._repr_html_().endswith("</table>")


def test_weights_of_ones_own(task, run):
    own = attsvm.Run.from_snapshots(task, run.record_W, steps=run.record_step, optimizer="gd")
    np.testing.assert_allclose(own.record_attention, run.record_attention, rtol=1e-12)
    np.testing.assert_allclose(own.label_attention, run.label_attention, rtol=1e-12)
    check = attsvm.check(task, run.record_W, steps=run.record_step, optimizer="gd")
    np.testing.assert_array_equal(check.finite_distance, attsvm.check(task, run).finite_distance)
    assert check.implied_norm == "fro"


@pytest.mark.parametrize("words, call", [
    ("has labels instead of a selection", lambda task, run: attsvm.check(task, select=[0] * 8)),
    ("norms need a run", lambda task, run: attsvm.check(task, norms=["max"])),
    ("another task", lambda task, run: attsvm.check(attsvm.generate("nexttoken", n=8, instance=4), run)),
    ("the run determines", lambda task, run: attsvm.check(task, run, select="file")),
])
def test_what_does_not_fit_is_refused(task, run, words, call):
    with pytest.raises(ValueError, match=words):
        call(task, run)


def test_a_corpus_has_the_bytes_of_the_command_line(tmp_path):
    text = "the cat saw the dog and the dog saw the cat, and so on: the cat and the dog"
    (tmp_path / "text").write_text(text)
    command = [os.environ["ATTSVM_PROGRAM"], "generate", "corpus", "text", "--T", "6", "--stride", "2", "--d", "5",
               "--tokens", "byte", "--seed", "3", "-o", "program.npz"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    attsvm.corpus(text, T=6, stride=2, d=5, tokens="byte", seed=3).save(tmp_path / "python.npz")
    assert (tmp_path / "python.npz").read_bytes() == (tmp_path / "program.npz").read_bytes()
    with pytest.raises(attsvm.InputError, match="tokens = letter; must be word or byte"):
        attsvm.corpus(text, tokens="letter")
    with pytest.raises(TypeError, match="text is a list"):
        attsvm.corpus(["the"])
