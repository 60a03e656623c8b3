"""attsvm solve and verify: what JSON and files hold, exit codes, and refusals that leave nothing behind."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest

FIXTURES = os.environ["ATTSVM_FIXTURES"]
ARRAYS = {"W": "<f8", "row_query": "<i8", "row_keep": "<i8", "row_drop": "<i8", "row_equal": "|b1", "rhs": "<f8",
          "slack": "<f8", "dual": "<f8", "tolerance": "<f8", "objective": "<f8", "dual_objective": "<f8",
          "select": "|b1", "relax": "|b1"}


def matrices(task, arrays):
    """δ_k and ζ_k of every row, from the task's own arrays."""
    with np.load(task) as file:
        X = file["keys"] if "keys" in file.files else file["tokens"]
        Z = file["queries"] if "queries" in file.files else np.ones((len(X), 1))
    q, keep, drop = arrays["row_query"], arrays["row_keep"], arrays["row_drop"]
    return X[q, keep] - X[q, drop], Z[q]


def test_json_fields(solve, draw, tmp_path):
    fields, arrays, result = solve(draw("random", "--n", 5, "--T", 4))
    assert result.out.count("\n") == 1 and result.err == ""
    for name in ("objective", "dual_objective", "gap", "violation", "margin", "seconds", "tolerance"):
        assert isinstance(fields[name], float) or fields[name] == 0, name
    for name in ("rank", "support", "constraints", "iterations", "threads"):
        assert type(fields[name]) is int, name
    assert (fields["command"], fields["status"], fields["norm"], fields["problem"]) == ("solve", "optimal", "fro", "att")
    assert fields["attsvm"] and fields["ties"] == [] and fields["relax"] == [] and "seed" in fields
    assert fields["file"] == str(tmp_path / "solution.npz")
    assert fields["constraints"] == 15 and fields["tolerance"] == 1e-8 and fields["warm_started"] is False
    assert fields["objective"] == arrays["objective"] and fields["dual_objective"] == arrays["dual_objective"]
    assert fields["margin"] == pytest.approx(1 / fields["objective"], rel=1e-15)
    assert fields["gap"] == max(0, fields["objective"] - fields["dual_objective"]) / fields["objective"] <= 1e-12
    assert fields["rank"] == np.linalg.matrix_rank(arrays["W"], 1e-10 * np.linalg.norm(arrays["W"], 2))
    assert fields["support"] == (arrays["slack"] <= 1e-6).sum() >= 1


def test_json_holds_the_settings_in_force(solve, draw):
    fields, _, _ = solve(draw("random"), "--select", "opt")
    assert fields["select"] == "opt" and "warm_start" in fields


def test_arrays(solve, draw):
    task = draw("random", "--n", 4, "--T", 5, "--d", 7, "--dz", 3)
    fields, arrays, _ = solve(task)
    assert set(arrays) == set(ARRAYS) | {"status", "norm", "problem"}
    assert {name: arrays[name].dtype.str for name in ARRAYS} == ARRAYS
    shapes = {"W": (7, 3), "select": (4, 5), "relax": (4,), "tolerance": (), "objective": (), "dual_objective": (),
              "status": (), "norm": (), "problem": ()}
    assert all(array.shape == shapes.get(name, (16,)) for name, array in arrays.items())
    assert (str(arrays["status"]), str(arrays["norm"]), str(arrays["problem"])) == ("optimal", "fro", "att")
    kept = arrays["select"].argmax(1)
    assert (arrays["select"].sum(1) == 1).all() and not arrays["relax"].any()
    rows = [(i, kept[i], t) for i in range(4) for t in range(5) if t != kept[i]]
    assert rows == list(zip(arrays["row_query"], arrays["row_keep"], arrays["row_drop"]))
    assert (arrays["rhs"] == 1).all() and not arrays["row_equal"].any() and (arrays["dual"] >= 0).all()
    delta, zeta = matrices(task, arrays)
    A = np.einsum("k,ka,kb->ab", arrays["dual"], delta, zeta)
    assert np.linalg.norm(A) == pytest.approx(1, abs=1e-13)
    assert np.abs(arrays["W"] - fields["objective"] * A).max() <= 1e-12 * fields["objective"]
    values = np.einsum("ka,ab,kb->k", delta, arrays["W"], zeta)
    assert np.abs(values - arrays["rhs"] - arrays["slack"]).max() <= 1e-12
    assert arrays["slack"].min() >= -1e-9 and arrays["rhs"] @ arrays["dual"] == pytest.approx(fields["dual_objective"])
    assert np.abs(arrays["slack"] * arrays["dual"]).max() <= 1e-10, "complementary slackness"


def test_sets_have_equality_rows(solve):
    task = os.path.join(FIXTURES, "multi_d6_run0_seed6.task.npz")
    _, arrays, _ = solve(task)
    with np.load(task) as file:
        select = file["select"]
    assert (arrays["select"] == select).all()
    rows = [(i, select[i].argmax(), t, select[i, t]) for i in range(len(select)) for t in range(select.shape[1])
            if t != select[i].argmax()]
    assert rows == list(zip(*(arrays[name] for name in ("row_query", "row_keep", "row_drop", "row_equal"))))
    assert (arrays["rhs"] == ~arrays["row_equal"]).all() and arrays["row_equal"].any()
    assert np.abs(arrays["slack"][arrays["row_equal"]]).max() <= 1e-9


def test_ties_are_listed_and_warned_about(solve, task_file, attsvm, tmp_path):
    task = task_file(tokens=np.array([[[1, 0], [1, 5], [0, 1]], [[0, 1], [2, 3], [1, 1.0]]]), head=np.array([1.0, 0]))
    fields, arrays, result = solve(task)
    assert fields["ties"] == [{"query": 0, "tokens": [0, 1]}]
    assert arrays["select"].argmax(1).tolist() == [0, 1]
    assert len(result.lines()) == 1 and "query 0" in result.err and "tie" in result.err and str(task) in result.err
    assert solve(task, "--quiet")[2].err == ""


def test_relax(solve):
    task = os.path.join(FIXTURES, "joint_loose.task.npz")
    strict, _, _ = solve(task)
    fields, arrays, _ = solve(task, "--relax", "2")
    assert arrays["W"] == pytest.approx(np.array([[1], [0]]), abs=1e-12) and fields["relax"] == [2]
    assert arrays["relax"].tolist() == [False, False, True] and arrays["rhs"].tolist() == [1, 1, 0]
    assert fields["objective"] < strict["objective"]
    fields, arrays, _ = solve(task, "--relax", "0,1,2")
    assert fields["objective"] == 0 and fields["gap"] == 0 and fields["margin"] is None and fields["rank"] == 0
    assert not arrays["W"].any()


def test_value_problem(solve):
    fields, arrays, _ = solve(os.path.join(FIXTURES, "joint_tight.task.npz"), "--problem", "v")
    assert fields["problem"] == str(arrays["problem"]) == "v"
    assert (arrays["row_drop"] == -1).all() and arrays["row_query"].tolist() == [0, 1, 2]
    assert arrays["W"] == pytest.approx(np.array([[0], [1]]), abs=1e-12)


def test_select_forms(solve, task_file, tmp_path):
    tokens = np.array([[[2, 0], [0, 1], [-1, -1.0]]])
    task = task_file(tokens=tokens, head=np.array([1.0, 0]), select=np.array([1]))
    chosen = lambda *options: solve(task, *options)[1]["select"].tolist()
    assert chosen() == chosen("--select", "file") == [[False, True, False]]
    assert chosen("--select", "opt") == [[True, False, False]]
    np.save(tmp_path / "index.npy", np.array([2]))
    assert chosen("--select", tmp_path / "index.npy") == [[False, False, True]]
    np.save(tmp_path / "mask.npy", np.array([[True, True, False]]))
    assert chosen("--select", tmp_path / "mask.npy") == [[True, True, False]]
    assert chosen("--select", "2") == [[False, False, True]]
    np.savez(tmp_path / "run.npz", selected=np.array([2]))
    assert chosen("--select", tmp_path / "run.npz") == [[False, False, True]]
    plain = task_file("plain.npz", tokens=tokens, head=np.array([1.0, 0]))
    assert solve(plain)[1]["select"].tolist() == [[True, False, False]]


def test_one_visible_token_needs_nothing(solve, task_file):
    fields, arrays, _ = solve(task_file(tokens=np.ones((2, 1, 3)), select=np.array([0, 0])))
    assert fields["constraints"] == 0 and fields["objective"] == fields["gap"] == 0 and fields["margin"] is None
    assert arrays["W"].shape == (3, 1) and arrays["dual"].shape == arrays["row_equal"].shape == (0,)


def test_infeasible(attsvm, solve, draw, tmp_path):
    task = draw("infeasible", "--n", 5, "--T", 4, "--d", 3)
    fields, arrays, result = solve(task, code=3)
    assert fields["status"] == str(arrays["status"]) == "infeasible"
    assert all(fields[name] is None for name in ("objective", "dual_objective", "gap", "margin", "rank"))
    weights = [row["weight"] for row in fields["conflict"]]
    assert weights == sorted(weights, reverse=True) and weights[-1] > 0
    assert len(weights) == (arrays["dual"] != 0).sum()
    for row in fields["conflict"]:
        k = row["row"]
        assert row["weight"] == arrays["dual"][k] and row["equal"] is False
        assert [row["query"], row["keep"], row["drop"]] == [arrays[f"row_{x}"][k] for x in ("query", "keep", "drop")]
    delta, zeta = matrices(task, arrays)
    A = np.linalg.norm(np.einsum("k,ka,kb->ab", arrays["dual"], delta, zeta))
    assert A <= 1e-12 * (arrays["dual"] * np.linalg.norm(delta, axis=1) * np.linalg.norm(zeta, axis=1)).sum()
    assert arrays["dual"] @ arrays["rhs"] == pytest.approx(1, abs=1e-14)
    assert fields["norm_bound"] is None or fields["norm_bound"] == 1 / fields["residual"] >= 1e11
    verdict = attsvm("verify", task, tmp_path / "solution.npz", "--json").json()
    assert all(verdict[name] is None for name in ("objective", "dual_objective", "gap", "violation"))
    assert verdict["status"] == "infeasible" and verdict["residual"] <= 1e-11
    told = attsvm("solve", task, "-o", tmp_path / "other.npz")
    assert told.code == 3 and "cannot hold together" in told.out


def test_equal_tokens_conflict_exactly(solve, task_file):
    fields, _, _ = solve(task_file(tokens=np.array([[[1, 2], [1, 2.0]]]), select=np.array([0])), code=3)
    assert fields["residual"] == 0 and fields["norm_bound"] is None
    assert fields["conflict"] == [{"row": 0, "query": 0, "keep": 0, "drop": 1, "equal": False, "weight": 1.0}]
    assert "the two tokens are equal" in fields["words"][0]


def test_warm_start(attsvm, solve, draw, tmp_path):
    task = draw("separable", "--n", 20)
    cold, before, _ = solve(task, out="cold.npz")
    warm, after, _ = solve(task, "--warm-start", tmp_path / "cold.npz")
    assert warm["warm_started"] is True and warm["iterations"] <= cold["iterations"]
    assert np.abs(before["W"] - after["W"]).max() <= 1e-10 * cold["objective"]
    other, _, _ = solve(draw("separable", "--n", 19, name="other.npz"), "--warm-start", tmp_path / "cold.npz")
    assert other["warm_started"] is False
    many = draw("separable", "--n", 100, "--T", 20, "--d", 4, name="many.npz")  # for the interior point method
    solve(many, out="first.npz")
    assert solve(many, "--warm-start", tmp_path / "first.npz")[0]["warm_started"] is False
    told = [attsvm("solve", one, "--warm-start", tmp_path / start, "-o", tmp_path / "x.npz", "--force").out
            for one, start in ((task, "cold.npz"), (many, "first.npz"))]
    assert told[0].endswith(", warm started\n") and told[1].endswith(", not from the warm start\n")


@pytest.mark.parametrize("kind", ["separable", "causal", "infeasible", "ragged"])
def test_any_thread_count_gives_the_same_bytes(attsvm, draw, tmp_path, kind):
    task = draw(kind)
    told = []
    for threads in (1, 2, 3):
        result = attsvm("solve", task, "-o", tmp_path / "s.npz", "--force", "--json", "--threads", threads)
        fields = result.json()
        assert fields.pop("threads") == threads
        fields.pop("seconds")
        told.append((result.code, fields, (tmp_path / "s.npz").read_bytes()))
    assert told[0] == told[1] == told[2]


def test_time_limit(attsvm, draw, tmp_path):
    task = draw("separable", "--n", 60, "--T", 12, "--d", 12)
    result = attsvm("solve", task, "-o", tmp_path / "s.npz", "--time-limit", "1e-9", "--json")
    fields = result.json()
    assert result.code == 4 and fields["status"] == "limit" and fields["time_limit"] == 1e-9
    best = attsvm("solve", task, "-o", tmp_path / "best.npz", "--json").json()["objective"]
    assert fields["dual_objective"] <= best * (1 + 1e-12)
    verdict = attsvm("verify", task, tmp_path / "s.npz", "--json")
    assert verdict.code == (0 if fields["violation"] <= 1e-9 else 5)
    assert verdict.json()["violation"] == pytest.approx(fields["violation"], abs=1e-9)
    if fields["violation"] <= 1e-9:
        assert fields["gap"] > 1e-8 and fields["objective"] >= best
    assert attsvm("solve", task, "-o", tmp_path / "t.npz", "--time-limit", "60").code == 0


def catches_interrupts(process):
    with open(f"/proc/{process.pid}/status") as status:
        caught = next(line for line in status if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1


def test_an_interrupt_leaves_the_best_answer_so_far(attsvm, draw, tmp_path):
    task = draw("separable", "--n", 600, "--T", 60, "--d", 64)
    process = subprocess.Popen([os.environ["ATTSVM_PROGRAM"], "solve", task, "-o", tmp_path / "s.npz", "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while process.poll() is None and not catches_interrupts(process):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    fields = json.loads(out)
    assert process.returncode == 130 and fields["status"] == "limit" and err == ""
    with np.load(tmp_path / "s.npz") as file:
        assert str(file["status"]) == "limit" and file["objective"] == fields["objective"]


def test_an_existing_file_needs_force(attsvm, draw, tmp_path):
    task = draw("random")
    out = tmp_path / "s.npz"
    out.write_text("mine")
    refused = attsvm("solve", task, "-o", out, "--json")
    assert refused.code == 2 and refused.out == "" and "--force" in refused.err and str(out) in refused.err
    assert out.read_text() == "mine"
    assert attsvm("solve", task, "-o", out, "--force").code == 0
    assert attsvm("verify", task, out).code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.npz", "task.npz"]


BAD = {
    "no_task": (["none.npz"], ["none.npz"]),
    "no_output": (["task.npz", "--out"], ["--out"]),
    "norm": (["task.npz", "--norm", "most"], ["--norm", "most"]),
    "problem": (["task.npz", "--problem", "w"], ["--problem"]),
    "relax_high": (["task.npz", "--relax", "6"], ["task.npz", "relax", "6"]),
    "relax_text": (["task.npz", "--relax", "one"], ["--relax", "one"]),
    "relax_v": (["task.npz", "--relax", "0", "--problem", "v"], ["--relax", "--problem v"]),
    "tolerance_zero": (["task.npz", "--tolerance", "0"], ["--tolerance"]),
    "tolerance_nan": (["task.npz", "--tolerance", "nan"], ["tolerance"]),
    "time_limit": (["task.npz", "--time-limit", "-1"], ["--time-limit"]),
    "threads": (["task.npz", "--threads", "0"], ["--threads"]),
    "select_file": (["task.npz", "--select", "file"], ["task.npz", "select"]),
    "select_none": (["task.npz", "--select", "none.npy"], ["none.npy"]),
    "select_shape": (["task.npz", "--select", "three.npy"], ["three.npy", "select"]),
    "select_high": (["task.npz", "--select", "high.npy"], ["high.npy", "select[5] = 8"]),
    "select_list_short": (["task.npz", "--select", "7,2,0"], ["--select 7,2,0: has 3 tokens", "6"]),
    "select_list_one": (["task.npz", "--select", "7"], ["--select 7: has 1 token", "6"]),
    "select_list_high": (["task.npz", "--select", "7,2,0,5,5,8"], ["--select 7,2,0,5,5,8: token[5] = 8"]),
    "select_list_low": (["task.npz", "--select", "7,2,0,5,5,-1"], ["token[5] = -1"]),
    "select_list_text": (["task.npz", "--select", "7,2,a"], ["--select 7,2,a: must be token numbers", "7,2,0"]),
    "select_list_hole": (["task.npz", "--select", "7,,2"], ["--select 7,,2: must be token numbers"]),
    "select_list_real": (["task.npz", "--select", "7,2,0,5,5,1.5"], ["--select", "must be token numbers"]),
    "select_word": (["task.npz", "--select", "best"], ["--select best: no such file", "opt", "7,2,0"]),
    "select_task": (["task.npz", "--select", "task.npz"], ["task.npz: selected is missing", "run"]),
    "select_run_short": (["task.npz", "--select", "short.npz"], ["short.npz", "selected", "(6)"]),
    "headless": (["headless.npz"], ["headless.npz", "head"]),
    "headless_opt": (["headless.npz", "--select", "opt"], ["headless.npz", "head"]),
    "warm_none": (["task.npz", "--warm-start", "none.npz"], ["none.npz"]),
    "warm_task": (["task.npz", "--warm-start", "task.npz"], ["task.npz", "W"]),
    "v_sets": (["task.npz", "--problem", "v", "--select", "sets.npy"], ["select[0]", "several"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_usage_is_one_clear_line(attsvm, draw, tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    draw("random")
    np.savez("headless.npz", tokens=np.ones((1, 2, 2)))
    np.save("three.npy", np.zeros(3, int))
    np.savez("short.npz", selected=np.zeros(3, int))
    np.save("high.npy", np.array([0, 0, 0, 0, 0, 8]))
    np.save("sets.npy", np.ones((6, 8), bool))
    before = sorted(p.name for p in tmp_path.iterdir())
    arguments, words = BAD[case]
    for options in ([], ["--json"]):
        output = [] if "--out" in arguments else ["-o", "s.npz"]
        result = attsvm("solve", *[a for a in arguments if a != "--out"], *output, *options)
        assert result.code == 2 and result.out == "" and len(result.lines()) == 1, result
        assert all(word in result.err for word in words), result.err
    assert sorted(p.name for p in tmp_path.iterdir()) == before


@pytest.mark.parametrize("out", ["/dev/full", "no/such/folder/s.npz", "."])
def test_unwritable_output_is_one_clear_line(attsvm, draw, tmp_path, monkeypatch, out):
    monkeypatch.chdir(tmp_path)
    result = attsvm("solve", draw("random"), "-o", out, "--force", "--json")
    assert result.code == 2 and result.out == "" and len(result.lines()) == 1 and out in result.err, result


# --- verify ---

def test_verify_says_no(attsvm, solve, draw, tmp_path):
    task = draw("random")
    _, arrays, _ = solve(task)
    for name, change, word in (("W", lambda x: x * (1 - 1e-6), "slack"), ("objective", lambda x: x + 1e-6, "objective"),
                               ("dual", lambda x: -x, "negative"), ("rhs", lambda x: x * 0, "row"),
                               ("select", lambda x: x[:, ::-1], "row"), ("row_drop", lambda x: x[::-1], "row"),
                               ("status", lambda x: np.str_("infeasible"), "infeasible"),
                               ("dual", lambda x: x[:-1], "dual"), ("W", lambda x: x.T[:4], "W")):
        np.savez(tmp_path / "bad.npz", **{**arrays, name: change(arrays[name])})
        result = attsvm("verify", task, tmp_path / "bad.npz", "--json")
        fields = result.json()
        assert result.code == 5 and fields["valid"] is False and word in fields["reason"], (name, result)
        told = attsvm("verify", task, tmp_path / "bad.npz")
        assert told.code == 5 and "not valid" in told.out
    np.savez_compressed(tmp_path / "same.npz", **{n: np.array(a, order="F") for n, a in arrays.items()})
    good = attsvm("verify", task, tmp_path / "same.npz", "--json").json()
    assert good["valid"] is True and "reason" not in good and good["command"] == "verify" and good["status"] == "optimal"
    assert good["objective"] == pytest.approx(float(arrays["objective"]), rel=1e-14) and good["gap"] <= 1e-12


def test_verify_refuses_what_it_cannot_read(attsvm, solve, draw, tmp_path):
    task = draw("random")
    _, arrays, _ = solve(task)
    for name in ("W", "dual", "row_query", "row_equal", "rhs", "slack", "objective", "tolerance", "status"):
        np.savez(tmp_path / "bad.npz", **{n: a for n, a in arrays.items() if n != name})
        result = attsvm("verify", task, tmp_path / "bad.npz", "--json")
        assert result.code == 2 and result.out == "" and len(result.lines()) == 1, (name, result)
        assert name in result.err and "bad.npz" in result.err, result.err
    for name, value in (("row_query", np.ones(42)), ("row_equal", np.ones(42)), ("status", np.array(1.0)),
                        ("W", np.array("text")), ("objective", np.ones(2)), ("relax", np.zeros(6))):
        np.savez(tmp_path / "bad.npz", **{**arrays, name: value})
        result = attsvm("verify", task, tmp_path / "bad.npz")
        assert result.code == 2 and len(result.lines()) == 1 and name in result.err, (name, result)
    (tmp_path / "bad.npz").write_bytes(b"PK")
    assert attsvm("verify", task, tmp_path / "bad.npz").code == 2
    assert attsvm("verify", tmp_path / "none.npz", tmp_path / "solution.npz").code == 2


def test_the_tolerance_is_the_callers(attsvm, solve, draw, tmp_path):
    task = draw("random")
    _, arrays, _ = solve(task)
    wide = {**arrays, "W": 1.001 * arrays["W"], "objective": 1.001 * arrays["objective"], "tolerance": np.array(0.5),
            "slack": 1.001 * (arrays["slack"] + arrays["rhs"]) - arrays["rhs"]}
    np.savez(tmp_path / "wide.npz", **wide)
    for options, code in ((), 5), (("--tolerance", "1e-4"), 5), (("--tolerance", "0.01"), 0):
        result = attsvm("verify", task, tmp_path / "wide.npz", *options, "--json")
        assert result.code == code and ("gap" in result.json().get("reason", "")) == (code == 5), result
        assert result.json()["tolerance"] == float(options[1] if options else 1e-8)
    for bad in (0, -1, np.inf, np.nan, 1):
        np.savez(tmp_path / "bad.npz", **{**arrays, "tolerance": np.array(float(bad))})
        assert "tolerance" in attsvm("verify", task, tmp_path / "bad.npz", "--json").json()["reason"]
    assert attsvm("verify", task, tmp_path / "wide.npz", "--tolerance", "0").code == 2


def test_verify_says_what_is_proven(attsvm, solve, draw, tmp_path):
    task = draw("random")
    solve(task)
    told = attsvm("verify", task, tmp_path / "solution.npz").out
    for words in ("meets every row >= 1", "Every W that meets these rows has norm at least", "Arithmetic: ball, 128 bits"):
        assert words in told, told
    assert "These rows:" not in told
    fields = attsvm("verify", task, tmp_path / "solution.npz", "--json").json()
    assert fields["own_selection"] is True and fields["relaxed"] == [] and fields["question"] is None
    assert fields["dual_objective"] <= fields["objective"] and fields["rank"] is None and fields["scaling"] <= 1e-12
    solve(task, "--relax", "1,3", "--norm", "nuc")
    fields = attsvm("verify", task, tmp_path / "solution.npz", "--json").json()
    assert fields["relaxed"] == [1, 3] and "2 queries (1, 3)" in fields["question"] and fields["rank"] >= 1
    assert "These rows: the task's optimal tokens, with >= 1 relaxed" in attsvm("verify", task, tmp_path / "solution.npz").out


def test_w_alone_is_judged_on_w(attsvm, solve, draw, tmp_path):
    task = draw("random")
    _, arrays, _ = solve(task)
    for factor, code in ((1, 0), (5, 0), (0.999, 5)):
        np.savez(tmp_path / "w.npz", W=factor * arrays["W"])
        result = attsvm("verify", task, tmp_path / "w.npz", "--norm", "fro", "--json")
        fields = result.json()
        assert result.code == code and fields["valid"] is (code == 0), result
        assert fields["dual_objective"] is None and fields["gap"] is None
        assert fields["objective"] == pytest.approx(factor * float(arrays["objective"]), rel=1e-12)
        assert (fields["violation"] <= 1e-9) == (code == 0)


def test_an_answer_never_replaces_its_question(attsvm, tmp_path):
    task = tmp_path / "task.npz"
    attsvm("generate", "random", "-o", task)
    before = task.read_bytes()
    refused = attsvm("solve", task, "-o", tmp_path / "." / "task.npz", "--force")
    assert refused.code == 2 and "input of this command" in refused.err
    assert task.read_bytes() == before


def test_a_run_is_no_solution(attsvm, tmp_path):
    task, run = tmp_path / "task.npz", tmp_path / "run.npz"
    attsvm("generate", "random", "-o", task)
    assert attsvm("train", task, "--steps", 5, "-o", run).code == 0
    for verb in (["verify", task, run], ["solve", task, "--warm-start", run, "-o", tmp_path / "s.npz"]):
        result = attsvm(*verb, "--json")
        assert result.code == 2 and result.out == "" and "run.npz" in result.err and "is a run" in result.err, result
