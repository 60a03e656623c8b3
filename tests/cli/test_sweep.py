"""attsvm sweep."""

import csv
import json
import re
import sqlite3

import pytest

GOOD = {"name": "width", "task": {"kind": "random"}, "sizes": {"n": 3, "T": 4, "d": [3, 6]},
        "train": {"param": ["W", "KQ"], "steps": 200}, "measure": ["feasible", "rank_fro", "rank_nuc", "correlation_fro", "global"],
        "runs": 4, "seed": 5}


@pytest.fixture
def sweep(attsvm, tmp_path):
    def run(description, *options):
        text = description if isinstance(description, str) else json.dumps(description)
        (tmp_path / "sweep.json").write_text(text)
        return attsvm("sweep", tmp_path / "sweep.json", "--out", tmp_path / "out", *options)

    return run


def test_a_sweep(sweep, tmp_path):
    result = sweep(GOOD, "--json", "--export", "csv")
    assert result.code == 0, result.err
    report = result.json()
    assert report["seed"] == 5 and report["experiments"][0]["runs"] == 16
    with open(tmp_path / "out" / "width" / "data.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["d"], row["param"]) for row in rows] == [("3", "W"), ("3", "KQ"), ("6", "W"), ("6", "KQ")]
    for row in rows:
        assert float(row["feasible"]) == 1  # what training selects can be separated
        assert 1 <= float(row["rank_nuc"]) <= float(row["rank_fro"]) <= 3
        assert float(row["correlation_fro"]) > 0.8
    with open(tmp_path / "out" / "width" / "runs.csv", newline="") as file:
        runs = list(csv.DictReader(file))
    assert len(runs) == 16 and {run["seed"] for run in runs} == {"5"}
    assert (tmp_path / "out" / "width" / "figure.svg").exists()


def test_the_table_is_printed_and_tidy(sweep, tmp_path):
    result = sweep(GOOD, "--export", "csv")
    assert result.code == 0, result.err
    lines = [line.split() for line in result.out.splitlines()]
    assert lines[1] == ["d", "param", "runs", "feasible", "rank_fro", "rank_nuc", "correlation_fro", "global"]
    assert [line[:3] for line in lines[2:6]] == [["3", "W", "4"], ["3", "KQ", "4"], ["6", "W", "4"], ["6", "KQ", "4"]]
    for name in ("data.csv", "runs.csv"):
        with open(tmp_path / "out" / "width" / name, newline="") as file:
            for row in csv.DictReader(file):
                assert (row["n"], row["T"], row["steps"]) == ("3", "4", "200") and row["d"] in "36"


def test_lists_of_training_settings(sweep, tmp_path):
    description = {**GOOD, "sizes": {"n": 3, "T": 4, "d": 3}, "seed": [1, 2], "runs": 2,
                   "train": {"step": [0.1, 0.5], "steps": [10, 1e2], "init": ["zero", "random"]}}
    result = sweep(description, "--json", "--export", "csv")
    assert result.code == 0, result.err
    assert result.json()["experiments"][0]["runs"] == 32
    with open(tmp_path / "out" / "width" / "runs.csv", newline="") as file:
        runs = list(csv.DictReader(file))
    assert {(run["init"], run["step"], run["steps"], run["seed"]) for run in runs} == {
        (init, step, steps, seed) for init in ("zero", "random") for step in ("0.1", "0.5") for steps in ("10", "100")
        for seed in "12"}
    of = {(run["steps"], run["seed"]): run["correlation_fro"] for run in runs
          if (run["init"], run["step"], run["instance"]) == ("zero", "0.1", "0")}
    assert len(set(of.values())) == 4  # seeds draw other tasks, steps go on
    assert sweep({**description, "seed": 1, "train": {"step": 0.1, "steps": 10, "init": "zero"}}, "--force", "--export",
                 "csv").code == 0
    with open(tmp_path / "out" / "width" / "runs.csv", newline="") as file:
        assert next(csv.DictReader(file))["correlation_fro"] == of["10", "1"]  # a list changes no numbers


def test_files_of_ones_own(sweep, attsvm, draw, tmp_path):
    for seed in (1, 2):
        draw("random", "--n", 3, "--T", 4, "--d", 3, "--instance", seed, name=f"mine-{seed}.npz")
    description = {"name": "mine", "files": str(tmp_path / "mine-*.npz"), "train": {"init": "zero", "steps": 300},
                   "measure": ["correlation_fro", "global"]}
    report = sweep(description, "--json").json()["experiments"][0]
    assert report["complete"] and report["runs"] == 2  # the same start again would be the same run
    with open(tmp_path / "out" / "mine" / "data.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, seed in zip(rows, (1, 2)):
        task, run = tmp_path / f"mine-{seed}.npz", tmp_path / f"run-{seed}.npz"
        assert row["file"] == str(task)
        assert attsvm("train", task, "--steps", 300, "-o", run).code == 0
        check = attsvm("check", task, "--run", run, "--json").json()
        assert float(row["correlation_fro"]) == pytest.approx(check["correlation_fro"][-1], abs=1e-9)
    draw("random", "--n", 3, "--T", 4, "--d", 3, "--instance", 3, name="mine-1.npz")
    refused = sweep(description)
    assert refused.code == 2 and "settings differ" in refused.err  # another task under the same name
    description["train"]["init"] = "random"
    assert sweep({**description, "name": "starts", "runs": 3}, "--json").json()["experiments"][0]["runs"] == 6


@pytest.mark.parametrize("change, words", [
    ({"files": "nothing-*.npz"}, ["files", "nothing-*.npz", "no file"]),
    ({"files": "sweep.json"}, ["sweep.json"]),
    ({"files": []}, ["files is an empty list"]),
    ({"files": "x.npz", "task": {"kind": "random"}}, ["files and task"]),
])
def test_files_that_are_wrong(sweep, tmp_path, monkeypatch, change, words):
    monkeypatch.chdir(tmp_path)
    result = sweep({"name": "mine", "measure": ["feasible"], **change})
    assert result.code == 2 and result.out == "" and len(result.lines()) == 1, result
    assert all(word in result.err for word in words), result.err
    assert not (tmp_path / "out").exists()


def test_options_override_the_file(sweep):
    report = sweep(GOOD, "--json", "--runs", 2, "--seed", 0).json()
    assert report["seed"] == 0 and report["experiments"][0]["runs"] == 8


def test_changed_settings_never_mix(sweep, tmp_path):
    assert sweep(GOOD).code == 0
    first = (tmp_path / "out" / "width" / "data.csv").read_bytes()
    changed = json.loads(json.dumps(GOOD))
    changed["train"]["steps"] = 100
    assert sweep(changed, "--force").code == 0
    second = (tmp_path / "out" / "width" / "data.csv").read_bytes()
    assert first != second
    assert sweep(GOOD, "--force").code == 0
    assert (tmp_path / "out" / "width" / "data.csv").read_bytes() == first
    with sqlite3.connect(tmp_path / "out" / "runs.sqlite3") as store:
        assert store.execute("SELECT count(*) FROM sets").fetchone() == (8,)
        assert store.execute("SELECT count(*) FROM runs").fetchone() == (32,)
        version, = {row for row, in store.execute("SELECT version FROM sets")}
    assert re.fullmatch(re.escape(sweep(GOOD, "--json").json()["attsvm"]) + r", numbers \d+", version)


def test_another_sweep_of_the_same_name_is_not_written_over(sweep, tmp_path):
    assert sweep(GOOD).code == 0
    data = tmp_path / "out" / "width" / "data.json"
    mine = data.read_bytes()
    for change, options, word in (({"sizes": {"n": 3, "T": 4, "d": [3, 7]}}, [], "settings differ"),
                                  ({}, ["--seed", 6], "seed 5")):
        refused = sweep({**GOOD, **change}, *options)
        assert refused.code == 2 and refused.out == "" and len(refused.err.splitlines()) == 1
        assert all(part in refused.err for part in (str(data), word, "--force")), refused.err
        assert data.read_bytes() == mine
    assert sweep(GOOD, "--runs", 5).code == 0, "more of the same"
    assert sweep(GOOD, "--seed", 6, "--force").code == 0 and data.read_bytes() != mine
    for text in ("{}", '{"experiment": 1', json.dumps({**json.loads(mine), "cells": [1]})):
        data.write_text(text)
        assert "not the result of a sweep" in sweep(GOOD).err
    assert sweep(GOOD, "--force").code == 0


def test_the_page_has_the_name_of_the_sweep(sweep, tmp_path):
    assert sweep({**GOOD, "title": "How wide <must> it be?"}).code == 0
    page = (tmp_path / "out" / "index.html").read_text()
    assert "published experiments" not in page and "<h1>How wide &lt;must&gt; it be?</h1>" in page
    assert sweep({**GOOD, "name": "again"}).code == 0
    assert "<h1>again, How wide &lt;must&gt; it be?</h1>" in (tmp_path / "out" / "index.html").read_text()


def test_solving_alone_and_rejections(sweep, tmp_path):
    description = {"name": "tight", "task": {"kind": "random"}, "sizes": {"n": 5, "T": 5, "d": [1, 3]},
                   "measure": ["objective_nuc", "support_share"], "runs": 3, "require_feasible": True}
    report = sweep(description, "--json").json()["experiments"][0]
    assert report["complete"] and report["runs"] == 3  # d = 1 gives up
    cells = json.loads((tmp_path / "out" / "tight" / "data.json").read_text())["cells"]
    assert cells[0]["runs"] == 0 and cells[0]["draws"] == 60 and cells[0]["rejections"] == {"infeasible": 60}


@pytest.mark.parametrize("change, words", [
    ({"name": "a/b"}, ["name", "a/b", "folder"]),
    ({"name": "svm-rank"}, ["name", "experiment of attsvm"]),
    ({"name": None}, ["name", "text"]),
    ({"extra": 1}, ["unknown field extra"]),
    ({"train": {"zzzzzzzz": 3}}, ["unknown field train.zzzzzzzz", " init", " steps", " loss"]),
    ({"task": {"kind": "rondom"}}, ["task.kind", "rondom", "random"]),
    ({"task": {"kind": "losses"}}, ["task.kind", "losses"]),
    ({"task": {"kind": "random", "head": "cubic"}}, ["task.head", "cubic"]),
    ({"task": {}}, ["task.kind is missing"]),
    ({"task": []}, ["task must be an object"]),
    ({"sizes": {"n": [3, 0]}}, ["sizes.n = 0", "at least 1"]),
    ({"sizes": {"n": [3, 3]}}, ["sizes.n has 3 twice"]),
    ({"sizes": {"n": []}}, ["sizes.n is an empty list"]),
    ({"sizes": {"d": 2.5}}, ["sizes.d = 2.5", "whole"]),
    ({"sizes": {"d": 1e30}}, ["sizes.d", "whole"]),
    ({"sizes": {"d": 18446744073709551615}}, ["sizes.d", "whole"]),
    ({"sizes": {"q": 1}}, ["unknown field sizes.q"]),
    ({"sizes": {"n": list(range(1, 200)), "T": list(range(1, 200))}}, ["combinations"]),
    ({"task": {"kind": "orthonormal"}, "sizes": {"T": 8, "d": [4]}}, ["task and sizes", "T = 8"]),
    ({"train": {"param": "X"}}, ["train.param", "X"]),
    ({"train": {"optimizer": "mirror:1"}}, ["train.optimizer", "above 1"]),
    ({"train": {"steps": 0}}, ["train.steps = 0"]),
    ({"train": {"step": "big"}}, ["train.step"]),
    ({"train": {"init": "ones"}}, ["train.init"]),
    ({"train": {"stpes": 3}}, ["unknown field train.stpes", "did you mean steps?"]),
    ({"task": {"kind": "random", "hed": 1}}, ["unknown field task.hed", "did you mean head?"]),
    ({"train": {"param": ["W", "p"]}}, ["train", "param = p"]),
    ({"train": {"optimizer": "polyak"}, "task": {"kind": "relu"}}, ["train", "polyak"]),
    ({"task": {"kind": "planted"}}, ["train", "task.kind", "planted", "no head"]),
    ({"measure": ["speed"]}, ["measure", "speed"]),
    ({"measure": []}, ["measure is an empty list"]),
    ({"measure": None}, ["measure"]),
    ({"runs": 0}, ["runs = 0"]),
    ({"runs": "many"}, ["runs"]),
    ({"seed": -1}, ["seed = -1"]),
    ({"x": "T"}, ["x", "T"]),
])
def test_what_is_wrong_is_named(sweep, tmp_path, change, words):
    result = sweep({**GOOD, **change})
    assert result.code == 2 and result.out == "", result
    assert len(result.err.splitlines()) == 1 and "sweep.json" in result.err, result.err
    for word in words:
        assert word in result.err, result.err
    assert not (tmp_path / "out").exists()


def test_files_that_are_no_sweep(sweep, attsvm, tmp_path):
    for text in ("", "[]", "{", '{"name": 1, "name": 2}', "\0"):
        result = sweep(text)
        assert result.code == 2 and len(result.err.splitlines()) == 1 and "sweep.json" in result.err, result
    missing = attsvm("sweep", tmp_path / "nothing.json")
    assert missing.code == 2 and "nothing.json" in missing.err
    no_train = {key: value for key, value in GOOD.items() if key != "train"}
    assert "needs train" in sweep(no_train).err
