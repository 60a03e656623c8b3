"""The published experiments: files, resumption after kills, refusals, and aggregates near the published ones."""

import csv
import json
import math
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess

import pytest
from kills import kill_while_it_writes

NAMES = ["single-input", "multi-input", "joint-training", "losses", "gd-paths", "local-convergence",
         "convergence-types", "multi-token", "quadratic-head", "svm-rank"]
OURS = ["atlas", "rates", "positions", "decay", "capacity", "next-token", "router", "heads", "layers"]


def files_of(folder):
    """Everything that must not depend on how the runs came about: all but the store."""
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.startswith("runs.sqlite3")}


def data_of(folder, name):
    return json.loads((folder / name / "data.json").read_text())


def table_of(folder, name):
    with open(folder / name / "data.csv", newline="") as file:
        return list(csv.DictReader(file))


def one_line(result, *words):
    assert result.code == 2, result
    assert result.out == ""
    assert len(result.err.splitlines()) == 1, result.err
    for word in words:
        assert word in result.err, result.err


def stored_rows(folder):
    """(set, instance) of every run in the store, which must be sound."""
    with sqlite3.connect(folder / "runs.sqlite3") as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        if not store.execute("SELECT name FROM sqlite_master WHERE name = 'runs'").fetchall():
            return []  # killed before it was set up
        return store.execute("SELECT set_id, instance FROM runs ORDER BY set_id, instance").fetchall()


def test_list(attsvm):
    listed = attsvm("reproduce", "list", "--json").json()["experiments"]
    assert [one["name"] for one in listed] == NAMES + OURS
    assert all(one["setting"] and one["paper"] and one["title"] for one in listed)
    text = attsvm("reproduce", "list").out
    assert all(name in text for name in NAMES + OURS)


def test_small_experiments_write_what_the_contract_says(attsvm, tmp_path):
    names = ["single-input", "multi-input", "joint-training", "losses", "gd-paths"]
    result = attsvm("reproduce", *names, "--out", tmp_path / "r", "--json", "--runs", 2)
    assert result.code == 0, result.err
    report = result.json()
    assert report["attsvm"] and report["command"] == "reproduce" and report["seed"] == 0 and report["runs"] == 2
    assert [one["name"] for one in report["experiments"]] == names
    page = (tmp_path / "r" / "index.html").read_text()
    for name in names:
        folder = tmp_path / "r" / name
        svg = (folder / "figure.svg").read_text()
        assert svg.startswith("<?xml") and "</svg>" in svg
        data = data_of(tmp_path / "r", name)
        assert data["experiment"] == name and data["complete"] and data["seed"] == 0
        assert data["findings"] and all(finding["paper"] and finding["ours"] for finding in data["findings"])
        table = table_of(tmp_path / "r", name)
        assert len(table) == len(data["rows"]) > 0
        assert list(table[0]) == [column["name"] for column in data["columns"]]
        for file in ("data.csv", "data.json", "figure.svg"):
            assert f'href="{name}/{file}"' in page


def test_prompts_reach_their_svm(attsvm, tmp_path):
    assert attsvm("reproduce", "single-input", "multi-input", "joint-training", "losses", "--out", tmp_path).code == 0
    ends = [row for row in table_of(tmp_path, "single-input") if row["step"] == "999"]
    assert len(ends) == 24
    for row in ends:
        assert float(row["correlation"]) > (0.999 if row["arithmetic"] == "exact" else 0.99)
        if row["case"] == "global":
            assert row["selected"] == "1"
    assert {row["selected"] for row in ends if row["case"] == "local"} == {"1", "2"}
    for row in table_of(tmp_path, "joint-training"):
        if row["step"] == "999":
            assert float(row["correlation_v"]) > 0.99
            assert float(row["correlation_relaxed"]) > 0.99
    assert {row["loss"] for row in table_of(tmp_path, "losses")} == {"linear", "logistic", "exponential"}
    for row in table_of(tmp_path, "multi-input"):
        if row["step"] == "999" and row["optimizer"] == "ngd":
            assert float(row["correlation"]) > 0.99


def test_gd_paths_follow_the_published_run(attsvm, tmp_path):
    """The data and starts are the published ones; so is the way, as far as arithmetic allows (step 10 for T = 5)."""
    import numpy as np
    assert attsvm("reproduce", "gd-paths", "--out", tmp_path).code == 0
    rows = table_of(tmp_path, "gd-paths")
    for name, T, last in (("vis1", "3", 100), ("vis2", "5", 10)):
        for param in ("W", "KQ"):
            fixtures = os.environ["ATTSVM_FIXTURES"]
            task, expect = (np.load(f"{fixtures}/{name}_{param}.{part}.npz") for part in ("task", "expect"))
            for step, W in zip(expect["record_step"], expect["record_W"]):
                if step > last:
                    continue
                row, = [row for row in rows if (row["T"], row["param"], row["arithmetic"], row["step"]) ==
                        (T, param, "plain", str(step))]
                got = np.array([[float(row[f"z{i}_x"]), float(row[f"z{i}_y"])] for i in (1, 2)])
                np.testing.assert_allclose(got, task["queries"] @ W.T, atol=1e-7)


def test_threads_and_portions_leave_no_trace(attsvm, tmp_path):
    names = ["svm-rank", "local-convergence", "multi-token"]
    assert attsvm("reproduce", *names, "--runs", 3, "--threads", 1, "--export", "csv", "--out", tmp_path / "one").code == 0
    for runs in (1, 5, 3):  # less, more, and what is compared
        result = attsvm("reproduce", *names, "--runs", runs, "--threads", 2, "--export", "csv", "--out", tmp_path / "two")
        assert result.code == 0, result.err
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_kill_at_random_moments(attsvm, tmp_path):
    program = os.environ["ATTSVM_PROGRAM"]
    command = ["reproduce", "svm-rank", "local-convergence", "--runs", "30", "--export", "json"]
    assert attsvm(*command, "--out", tmp_path / "calm").code == 0
    folder, before, kills = tmp_path / "killed", set(), 0
    store, moments = folder / "runs.sqlite3", random.Random(7)
    for _ in range(50):
        if kills == 6:
            break
        process = subprocess.Popen([program, *command, "--quiet", "--out", folder], stdout=subprocess.DEVNULL)
        if kill_while_it_writes(process, store, moments) == 0:  # it was done already
            if kills >= 2:
                break
            shutil.rmtree(folder)
            before = set()
            continue
        kills += 1
        if (folder / "runs.sqlite3").exists():
            rows = stored_rows(folder)
            assert len(rows) == len(set(rows)) and before <= set(rows)  # nothing doubled, nothing lost
            before = set(rows)
    assert kills >= 2
    assert attsvm(*command, "--out", folder).code == 0
    assert files_of(folder) == files_of(tmp_path / "calm")
    assert stored_rows(folder) and before <= set(stored_rows(folder))


def test_interrupt_and_time_limit_keep_what_is_done(attsvm, stopped, tmp_path):
    result = stopped("reproduce", "convergence-types", "--json", "--out", tmp_path, sign=r": [1-9]\d* of \d+ runs")
    assert result.code == 130 and result.json()["stopped"] == "interrupted"
    rows = stored_rows(tmp_path)
    assert rows
    limited = attsvm("reproduce", "convergence-types", "--time-limit", 0.01, "--out", tmp_path, "--json")
    assert limited.code == 4 and limited.json()["stopped"] == "time limit"
    for done in (result, limited):
        assert not done.json()["experiments"][0]["complete"]
    assert not data_of(tmp_path, "convergence-types")["complete"]
    assert (tmp_path / "convergence-types" / "figure.svg").exists()
    assert set(rows) <= set(stored_rows(tmp_path))


def test_no_resume_runs_again_and_agrees(attsvm, tmp_path):
    command = ["reproduce", "svm-rank", "--runs", 2, "--out", tmp_path]
    assert attsvm(*command).code == 0
    first = files_of(tmp_path)
    with sqlite3.connect(tmp_path / "runs.sqlite3") as store:
        store.execute("UPDATE runs SET result = '{\"rank_fro\": 99, \"rank_nuc\": 99}' WHERE rejection = ''")
    assert attsvm(*command).code == 0
    assert files_of(tmp_path) != first  # stored rows are believed
    assert attsvm(*command, "--no-resume").code == 0
    assert files_of(tmp_path) == first


def test_store_in_use(attsvm, tmp_path):
    assert attsvm("reproduce", "single-input", "--out", tmp_path).code == 0
    before = files_of(tmp_path)
    store = sqlite3.connect(tmp_path / "runs.sqlite3", isolation_level=None)
    store.execute("BEGIN EXCLUSIVE")
    one_line(attsvm("reproduce", "single-input", "--out", tmp_path, "--json"), "runs.sqlite3", "another process")
    store.execute("ROLLBACK")
    store.close()
    assert files_of(tmp_path) == before
    assert attsvm("reproduce", "single-input", "--out", tmp_path).code == 0


def test_stores_that_are_not_ours(attsvm, tmp_path):
    (tmp_path / "runs.sqlite3").write_bytes(b"something else entirely, and long enough to be looked at" * 20)
    one_line(attsvm("reproduce", "single-input", "--out", tmp_path), "runs.sqlite3", "not a run store")
    (tmp_path / "runs.sqlite3").unlink()
    with sqlite3.connect(tmp_path / "runs.sqlite3") as store:
        store.execute("CREATE TABLE mine (x)")
    one_line(attsvm("reproduce", "single-input", "--out", tmp_path), "not a run store of attsvm")


def test_folders_that_cannot_be_written(attsvm, tmp_path):
    (tmp_path / "file").write_text("")
    one_line(attsvm("reproduce", "single-input", "--out", tmp_path / "file"), "cannot create the folder")
    one_line(attsvm("reproduce", "single-input", "--out", "/sys/attsvm"), "/sys/attsvm")
    if os.getuid() != 0:
        (tmp_path / "sealed").mkdir(mode=0o500)
        one_line(attsvm("reproduce", "single-input", "--out", tmp_path / "sealed"), "sealed", "writ")


def test_full_disk(tmp_path):
    """A limit on the size of files is what a test can do; the store must name itself and keep what it has."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = subprocess.run([os.environ["ATTSVM_PROGRAM"], "reproduce", "local-convergence", "--out", tmp_path, "--json"],
                          capture_output=True, text=True, preexec_fn=limit, timeout=120)
    assert done.returncode == 2, done
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1, done.stderr
    assert "runs.sqlite3" in done.stderr
    stored_rows(tmp_path)


def test_without_gnuplot(attsvm, tmp_path):
    result = attsvm("reproduce", "joint-training", "--out", tmp_path, "--json", env={"PATH": "/nowhere"})
    assert result.code == 0
    assert "gnuplot" in result.err and not result.json()["figures"]
    assert not (tmp_path / "joint-training" / "figure.svg").exists()
    assert (tmp_path / "joint-training" / "data.csv").exists()


def test_unknown_names(attsvm, tmp_path):
    one_line(attsvm("reproduce", "svm-rang", "--out", tmp_path / "x"), "svm-rang", "svm-rank")
    assert not (tmp_path / "x").exists()
    one_line(attsvm("reproduce", "list", "svm-rank"), "list")
    one_line(attsvm("reproduce", "svm-rank", "--runs", 0))
    one_line(attsvm("reproduce"))


def test_svm_ranks_are_the_certified_ones(attsvm, tmp_path):
    """Means over feasible draws within four standard errors of the reference, whose cells have 20 to 100 draws."""
    assert attsvm("reproduce", "svm-rank", "--runs", 25, "--out", tmp_path).code == 0
    cells = {(int(row["n"]), int(row["T"]), int(row["d"])): row for row in table_of(tmp_path, "svm-rank")}
    assert len(cells) == 40
    reference = {(5, "fro"): {4: 3.98, 5: 4.90, 10: 5, 15: 5, 20: 5}, (5, "nuc"): {4: 2.57, 5: 2.57, 10: 2.50, 15: 2.64, 20: 2.55},
                 (10, "fro"): {4: 4, 5: 5, 10: 9.99, 15: 10, 20: 10}, (10, "nuc"): {4: 3.48, 5: 3.65, 10: 3.80, 15: 3.76, 20: 3.70}}
    for (n, norm), means in reference.items():
        for d, mean in means.items():
            row = cells[n, 5, d]
            sd = max(float(row[f"rank_{norm}_sd"]), 0.3)
            assert abs(float(row[f"rank_{norm}"]) - mean) < 4 * sd * math.sqrt(1 / 25 + 1 / 20), row
            assert float(row[f"rank_{norm}"]) <= min(n, d)
    for n, shares in {5: (1, .66, .09, 0), 10: (1, .98, .88, .12)}.items():
        for d, share in zip((1, 2, 3, 4), shares):
            row = cells[n, 5, d]
            draws = int(row["draws"])
            error = math.sqrt(max(share * (1 - share), 0.01) * (1 / draws + 1 / 100))
            assert abs(float(row["infeasible_share"]) - share) < 4 * error, row


def test_local_convergence_lands_near_the_published_means(attsvm, tmp_path):
    runs = 20
    assert attsvm("reproduce", "local-convergence", "--runs", runs, "--out", tmp_path).code == 0
    rows = {(row["param"], row["arithmetic"], int(row["step"])): row for row in table_of(tmp_path, "local-convergence")
            if not (row["param"] == "KQ" and row["arithmetic"] == "plain" and float(row["ridge"]) == 0)}
    published = [("W", 2000, "fro", .9962, .0023), ("W", 2000, "nuc", .863, .044), ("KQ", 2000, "fro", .854, .045),
                 ("KQ", 2000, "nuc", .9964, .0025), ("W", 100, "fro", .741, .075), ("KQ", 100, "nuc", .855, .093)]
    for param, step, norm, mean, sd in published:
        got = float(rows[param, "plain", step][f"correlation_{norm}"])
        assert abs(got - mean) < 4 * sd * math.sqrt(1 / runs + 1 / 100), (param, step, norm, got, mean)
    assert float(rows["W", "exact", 2000]["correlation_fro"]) > float(rows["W", "plain", 2000]["correlation_fro"])


def test_multi_token_acceptance_and_means(attsvm, tmp_path):
    runs = 12
    assert attsvm("reproduce", "multi-token", "--runs", runs, "--out", tmp_path, timeout=120).code == 0
    rates = {4: .21, 6: .10, 8: .05, 10: .02}
    for cell in data_of(tmp_path, "multi-token")["cells"]:
        d, draws = cell["settings"]["d"], cell["draws"]
        rate = rates[d]
        assert cell["runs"] == runs and cell["rejected"] == draws - runs == sum(cell["rejections"].values())
        # The number of draws to the 12th acceptance: mean runs/rate, standard deviation sqrt(runs (1 − rate))/rate.
        assert abs(draws - runs / rate) < 4 * math.sqrt(runs * (1 - rate)) / rate + 0.2 * runs / rate
    last = {int(row["d"]): row for row in table_of(tmp_path, "multi-token") if row["step"] == "2001" and row["arithmetic"] == "plain"}
    published = {4: (.035, .069, .152), 6: (.015, .045, .148), 8: (.012, .015, .149), 10: (.005, .006, .135)}
    for d, means in published.items():
        for measure, mean in zip(("equivalence", "gen", "single"), means):
            error = float(last[d][f"{measure}_error"])
            assert abs(float(last[d][measure]) - mean) < 5 * max(error, 0.3 * mean), (d, measure, last[d])


def test_quadratic_heads_keep_more_tokens_as_lambda_grows(attsvm, tmp_path):
    assert attsvm("reproduce", "quadratic-head", "--runs", 3, "--out", tmp_path).code == 0
    rows = table_of(tmp_path, "quadratic-head")
    kept = [float(row["kept"]) for row in rows]
    assert kept[0] < 1.5 and kept == sorted(kept) and kept[-1] > 3


def test_pages_show_foreign_text_as_text(attsvm, tmp_path):
    (tmp_path / "sweep.json").write_text(json.dumps({
        "name": "odd", "title": "<script>alert('x')</script> & ^_{}", "task": {"kind": "random"},
        "sizes": {"n": 2, "T": 3, "d": [4, 5]}, "measure": ["rank_fro"], "runs": 2}))
    result = attsvm("sweep", tmp_path / "sweep.json", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    page = (tmp_path / "out" / "index.html").read_text()
    assert "<script>" not in page and "&lt;script&gt;" in page
    assert "<script>" not in (tmp_path / "out" / "odd" / "figure.svg").read_text()
    shutil.rmtree(tmp_path / "out" / "odd")
