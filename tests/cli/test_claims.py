"""attsvm claims and attsvm demo."""

import json
import os
import random
import signal
import sqlite3
import subprocess

import numpy as np
import pytest
from kills import kill_while_it_writes

FIELDS = ("name", "statement", "tasks", "held", "worst", "seconds", "counterexample")


@pytest.fixture
def tested(attsvm, tmp_path):
    """tested("rank", "--tasks", 3): the JSON fields; counter-examples go to tmp_path/out."""

    def run(*args):
        result = attsvm("claims", *args, "--json", "--no-resume", "--out", tmp_path / "out")
        assert result.code == 0 and result.out.count("\n") == 1 and result.err == "", result
        return result.json()

    return run


def test_json_fields(tested, tmp_path):
    fields = tested("rank", "separability", "--tasks", 6, "--seed", 2)
    assert fields["command"] == "claims" and fields["seed"] == 2 and fields["tasks"] == 6
    assert [claim["name"] for claim in fields["claims"]] == ["rank", "separability"]
    for claim in fields["claims"]:
        assert all(field in claim for field in FIELDS)
        assert claim["tasks"] == claim["held"] == 6 and claim["counterexample"] is None
        assert claim["worst"] <= 0 and claim["seconds"] > 0 and claim["figures"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["runs.sqlite3"], "no counter-example"


def test_a_failed_claim_leaves_a_task(attsvm, tested, tmp_path):
    (claim,) = tested("global", "--tasks", 4, "--seed", 2)["claims"]
    assert claim["held"] < claim["tasks"]
    assert claim["counterexample"] == str(tmp_path / "out" / "global.npz") and claim["words"]
    info = attsvm("info", claim["counterexample"], "--json")
    assert info.code == 0 and info.json()["attention"] == "cross"
    with np.load(claim["counterexample"]) as arrays:
        assert arrays["x_W0"].shape == (10, 10)
    table = attsvm("claims", "global", "--tasks", 4, "--seed", 2, "--out", tmp_path / "out")
    assert table.code == 0 and "global" in table.out, "updated in place"
    assert "".join(claim["words"].split()) in "".join(table.out.split()), "lines are broken between words"


def test_list(attsvm, tested):
    listed = tested("list")["claims"]
    assert {"separability", "divergence", "direction", "global", "first-gradient", "local", "necessity",
            "over-parametrization", "kq-bias", "rank", "path-W", "path-KQ", "path-p", "joint-tight", "joint-loose",
            "p-W-lemma", "equivalence-relu", "equivalence-quadratic", "sequence", "next-token", "steepest", "steepest-kq",
            "adam-pace", "adam-turn", "decay", "dropout", "smoothing", "batches", "batches-normalized", "positions",
            "fixed-slope", "entropy-direction", "entropy-locks", "noise", "heads", "heads-level", "heads-divide",
            "layers-live", "layers-all", "layers-values", "layers-mlp", "capacity-always", "capacity-count",
            "capacity-law"} == {c["name"] for c in listed}
    text = attsvm("claims", "list").out
    assert all(claim["name"] in text for claim in listed)
    assert all("bstract of arXiv" in claim["source"] or "ours" in claim["source"] for claim in listed)
    (kq,) = (claim for claim in listed if claim["name"] == "path-KQ")
    assert "vanishing regularization" in kq["source"]


def test_groups_and_repetitions(tested):
    names = [claim["name"] for claim in tested("path", "path-W", "--tasks", 1)["claims"]]
    assert names == ["path-W", "path-KQ", "path-p"]


def test_unknown_names_and_bad_numbers_are_refused(attsvm):
    for args in (["xyz"], ["rank", "list"], ["rank", "--tasks", 0], ["rank", "--time-limit", 0]):
        result = attsvm("claims", *args, "--json")
        assert result.code == 2 and result.out == "" and len(result.err.splitlines()) == 1, result
    assert "separability" in attsvm("claims", "xyz").err


def answer(result):
    """The JSON without what may differ: times, threads and the folder."""
    assert result.code == 0, result
    fields = result.json()
    for part in (fields, *fields["claims"]):
        part.pop("seconds")
    for one in fields["claims"]:
        one["counterexample"] = one["counterexample"] and os.path.basename(one["counterexample"])
    return {name: value for name, value in fields.items() if name not in ("threads", "out", "store")}


def examples_in(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.npz")}


def stored_batches(folder):
    """(set, batch) of every batch in the store, which must be sound."""
    with sqlite3.connect(folder / "runs.sqlite3") as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        if not store.execute("SELECT name FROM sqlite_master WHERE name = 'runs'").fetchall():
            return set()  # killed before it was set up
        return set(store.execute("SELECT set_id, instance FROM runs").fetchall())


def test_json_is_the_same_for_any_number_of_threads(attsvm, tmp_path):
    one, two = (answer(attsvm("claims", "p-W-lemma", "first-gradient", "--tasks", 2, "--json", "--threads", threads,
                              "--out", tmp_path / str(threads))) for threads in (1, 2))
    assert one == two


# Claims with counter-examples, medians of long lists, and draws that do not count; of 3 to 30 batches each.
LONG = ["claims", "global", "rank", "first-gradient", "direction", "--tasks", 200, "--seed", 1, "--json"]


@pytest.fixture(scope="module")
def calm(attsvm, tmp_path_factory):
    """What LONG says and writes where nothing stops it."""
    folder = tmp_path_factory.mktemp("calm")
    said = answer(attsvm(*LONG, "--threads", 1, "--out", folder))
    assert examples_in(folder)
    return said, examples_in(folder), folder


def test_kills_at_random_moments_leave_no_trace(attsvm, calm, tmp_path):
    store, moments, before, kills = tmp_path / "runs.sqlite3", random.Random(5), set(), 0
    for attempt in range(30):
        words = [os.environ["ATTSVM_PROGRAM"], *LONG, "--quiet", "--threads", 1 + attempt % 2, "--out", tmp_path]
        process = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL)
        if kill_while_it_writes(process, store, moments) == 0:
            break
        kills += 1
        if store.exists():
            rows = stored_batches(tmp_path)
            assert before <= rows, "what is done is kept"
            before = rows
    assert kills >= 3 and before
    assert answer(attsvm(*LONG, "--threads", 2, "--out", tmp_path)) == calm[0]
    assert examples_in(tmp_path) == calm[1]
    assert before <= stored_batches(tmp_path) == stored_batches(calm[2])


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_signals_and_time_limits_leave_no_trace(attsvm, stopped, calm, tmp_path, how):
    result = stopped(*LONG, "--out", tmp_path, sign=r"global: [1-9]\d* of 200 tasks", how=how)
    assert result.code == 130 and result.err == "attsvm: the same command continues from here\n"
    tasks = result.json()["claims"][0]["tasks"]
    assert 0 < tasks < 200
    limited = attsvm(*LONG, "--time-limit", 1e-3, "--out", tmp_path)
    assert limited.code == 4 and limited.json()["claims"][0]["tasks"] >= tasks
    done = attsvm(*LONG, "--out", tmp_path)
    assert (answer(done), examples_in(tmp_path)) == calm[:2]
    again = attsvm(*LONG, "--out", tmp_path)
    assert answer(again) == calm[0] and again.json()["seconds"] < again.json()["claims"][0]["seconds"]
    shown = [attsvm(*LONG[:-1], "--out", tmp_path).out for _ in range(2)]
    assert [line for line in shown[0].splitlines() if " s" not in line] == [
        line for line in shown[1].splitlines() if " s" not in line]


def test_another_setting_is_tested_afresh(attsvm, tmp_path):
    for settings in (["--tasks", 40], ["--tasks", 41], ["--tasks", 40, "--seed", 1], ["--tasks", 40, "--no-resume"]):
        first, shared = (answer(attsvm("claims", "rank", *settings, "--json", "--out", tmp_path / folder))
                         for folder in ("-".join(map(str, settings)), "shared"))
        assert first == shared
    with sqlite3.connect(tmp_path / "shared/runs.sqlite3") as store:
        assert len(store.execute("SELECT id FROM sets").fetchall()) == 3
        numbers = "UPDATE runs SET result = replace(result, '\"numbers\":\"32 ', '\"numbers\":\"31 ')"
        assert store.execute(numbers).rowcount
    spoilt = answer(attsvm("claims", "rank", "--tasks", 40, "--json", "--out", tmp_path / "shared"))
    assert spoilt["claims"][0]["tasks"] == 40, "what is stored is believed, batch by batch"
    fresh = answer(attsvm("claims", "rank", "--tasks", 40, "--no-resume", "--json", "--out", tmp_path / "shared"))
    assert fresh["claims"][0]["tasks"] == 40 and fresh["resume"] is False


def test_a_store_that_cannot_be_used_is_one_line(attsvm, tmp_path):
    command = ["claims", "rank", "--tasks", 3, "--json", "--out", tmp_path]
    store = tmp_path / "runs.sqlite3"
    assert attsvm(*command).code == 0
    whole = store.read_bytes()

    def refused(*words):
        result = attsvm(*command)
        assert result.code == 2 and result.out == "" and len(result.err.splitlines()) == 1, result
        assert all(word in result.err for word in (str(store), *words)), result.err

    with sqlite3.connect(store) as tables:
        tables.execute("""UPDATE runs SET result = '{"numbers": "1", "seconds": 1}'""")
    refused("damaged", "'rank'", "--no-resume")
    with sqlite3.connect(store) as tables:
        tables.execute("UPDATE runs SET result = '{'")
    refused("damaged")
    store.write_bytes(whole[:1000] + b"?" * 3000)
    refused("run store")
    store.write_bytes(b"no store")
    refused("run store")
    store.write_bytes(whole)
    in_use = sqlite3.connect(store, isolation_level=None)
    in_use.execute("BEGIN EXCLUSIVE")
    refused("another process")
    in_use.close()
    assert attsvm(*command).code == 0


def test_time_limit_and_interrupt_give_what_is_done(attsvm, stopped, tmp_path):
    result = attsvm("claims", "rank", "over-parametrization", "--tasks", 10**6, "--time-limit", 1, "--json",
                    "--out", tmp_path)
    assert result.code == 4 and result.json()["claims"][-1]["tasks"] < 10**6
    result = stopped("claims", "p-W-lemma", "over-parametrization", "--tasks", 10**6, "--json", "--out", tmp_path,
                     sign=r": [1-9]\d* of 1000000 tasks")
    assert result.code == 130 and 0 < result.json()["claims"][0]["tasks"] < 10**6


def test_demo(attsvm, tmp_path):
    result = attsvm("demo", "--out", tmp_path / "demo", "--json")
    assert result.code == 0 and result.err == ""
    claims = result.json()["claims"]
    assert {"separability", "direction", "kq-bias", "rank", "path-W"} <= {claim["name"] for claim in claims}
    assert all(claim["held"] and claim["evidence"] for claim in claims)
    for norm in ("frobenius", "nuclear"):
        assert attsvm("verify", tmp_path / "demo" / "task.npz", tmp_path / "demo" / f"{norm}.npz").code == 0
    again = attsvm("demo", "--out", tmp_path / "demo")
    assert again.code == 0 and "[holds] direction" in again.out and "no W keeps" in again.out
    assert "[FAILS]" not in again.out


def test_demo_refuses_a_folder_that_cannot_be(attsvm, tmp_path):
    (tmp_path / "file").write_text("")
    result = attsvm("demo", "--out", tmp_path / "file")
    assert result.code == 2 and str(tmp_path / "file") in result.err and result.out == ""


def test_spectral_descent_of_factors(tested):
    (claim,) = tested("steepest-kq", "--tasks", 2)["claims"]
    assert claim["held"] == 2 and claim["worst"] < 0
    text = json.dumps(claim)
    assert "steps in fro: mean share of the margin in nuc" in text and "steps in spec: mean share of the margin in spec" in text
