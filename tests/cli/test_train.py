"""attsvm train: what JSON and files hold, exit codes, runs that are stopped, killed and resumed, bad input."""

import os
import random
import signal
import subprocess

import numpy as np
import pytest

FIXTURES = os.environ["ATTSVM_FIXTURES"]
PROGRAM = os.environ["ATTSVM_PROGRAM"]


@pytest.fixture
def train(attsvm, tmp_path):
    """train(task, "--param", "KQ"): JSON fields and the arrays of the run."""

    def run(task, *options, code=0, out="run.npz"):
        result = attsvm("train", task, "-o", tmp_path / out, "--force", "--json", *options)
        assert result.code == code, result
        with np.load(tmp_path / out) as file:
            return result.json(), {name: file[name] for name in file.files}

    return run


def softmax(task, W):
    with np.load(task) as file:
        X = file["keys"] if "keys" in file.files else file["tokens"]
        Z = file["queries"] if "queries" in file.files else np.ones((len(X), 1))
    a = np.einsum("ntd,de,ne->nt", X, W, Z)
    a -= a.max(1, keepdims=True)
    return np.exp(a) / np.exp(a).sum(1, keepdims=True)


def test_fields_and_arrays(train, draw):
    task = draw()
    fields, run = train(task, "--steps", 50, "--record", "0,1,10,50", "--seed", 7)
    assert fields["command"] == "train" and fields["steps"] == 50 and fields["stopped"] is None and fields["seed"] == 7
    assert run["W"].shape == (10, 10) and run["record_W"].shape == (4, 10, 10)
    assert run["record_step"].tolist() == [0, 1, 10, 50] and run["record_step"].dtype == np.int64
    assert np.array_equal(run["record_W"][-1], run["W"]) and not run["record_W"][0].any()
    assert fields["norm"] == pytest.approx(np.linalg.norm(run["W"]), rel=1e-14) == run["record_norm"][-1]
    assert fields["loss"] == run["record_loss"][-1] and fields["log_loss"] == pytest.approx(np.log(fields["loss"]))
    attention = softmax(task, run["W"])
    assert np.allclose(run["attention"], attention, rtol=1e-12)
    assert np.allclose(run["log_attention"], np.log(attention), rtol=1e-12)
    assert run["selected"].tolist() == attention.argmax(1).tolist() == fields["selected"]
    chosen = run["attention"][np.arange(6), run["selected"]]
    assert fields["attention_min"] == chosen.min() and fields["attention_mean"] == pytest.approx(chosen.mean(), rel=1e-15)
    early = softmax(task, run["record_W"][1])[np.arange(6), run["selected"]].mean()
    assert run["record_attention"][1] == pytest.approx(early, rel=1e-12)
    assert "K" not in run and "v" not in run and "record_v" not in run


def test_parametrizations(train, draw):
    task = draw("random", "--dz", 7)
    fields, run = train(task, "--param", "KQ", "--steps", 20)
    assert run["K"].shape == (10, 7) and run["Q"].shape == (7, 7) and fields["width"] == 7
    assert np.allclose(run["K"] @ run["Q"].T, run["W"], rtol=1e-13, atol=1e-13)
    assert run["record_step"].tolist() == list(range(21))
    _, narrow = train(task, "--param", "KQ", "--width", 3, "--steps", 2)
    assert narrow["K"].shape == (10, 3)
    _, joint = train(task, "--joint", "--steps", 20, "--record", "every:10")
    assert joint["v"].shape == (10,) and joint["record_v"].shape == (3, 10)
    assert np.array_equal(joint["record_v"][-1], joint["v"])
    prompt = draw("random", "--attention", "prompt", name="prompt.npz")
    _, p = train(prompt, "--param", "p", "--steps", 5)
    assert p["W"].shape == (10, 1) and p["record_W"].shape == (6, 10, 1)
    for head in ("relu", "quadratic"):
        fields, run = train(draw("random", "--head", head, name=f"{head}.npz"), "--joint", "--steps", 30)
        assert fields["steps"] == 30 and np.isfinite(run["v"]).all()


@pytest.mark.parametrize("seed", range(2))
def test_published_weights(train, tmp_path, seed):
    for param in ("W", "KQ"):
        stem = f"{FIXTURES}/local_{param}_seed0{seed}"
        expect = np.load(f"{stem}.expect.npz")
        ridge = ["--ridge", 2.0**-52] if param == "KQ" else []
        steps = expect["record_step"]
        fields, run = train(f"{stem}.task.npz", "--param", param, "--init", f"{stem}.expect.npz", "--arithmetic", "plain",
                            "--epsilon", 2.0**-52, *ridge, "--record", ",".join(map(str, steps)))
        for k, step in enumerate(steps):
            error = np.abs(run["record_W"][k] - expect["record_W"][k]).max()
            if step <= 100:
                assert error <= (1e-12 if param == "W" else 1e-6)
            elif step <= 500 and param == "W":
                assert error <= 1e-8
        assert fields["selected"] == expect["selected"].tolist()


def test_published_joint_training(train, tmp_path):
    for name in ("joint_tight", "joint_loose"):
        expect = np.load(f"{FIXTURES}/{name}.expect.npz")
        np.savez(tmp_path / "start.npz", W0=expect["p0"], v0=expect["v0"])
        _, run = train(f"{FIXTURES}/{name}.task.npz", "--param", "p", "--joint", "--init", tmp_path / "start.npz",
                       "--arithmetic", "plain", "--epsilon", "1e-19,1e-9", "--steps", 999,
                       "--record", ",".join(map(str, expect["record_step"])))
        assert np.abs(run["record_W"][:, :, 0] - expect["record_p"]).max() <= 1e-5
        assert np.abs(run["record_v"] - expect["record_v"]).max() <= 1e-5


def test_exact_directions_keep_converging(train, draw):
    """Plain arithmetic stalls in rounding noise where exact arithmetic still converges to the SVM."""
    task = f"{FIXTURES}/local_W_seed00.task.npz"
    svm = np.load(f"{FIXTURES}/local_W_seed00.expect.npz")["fro_W"]

    def error(*options):
        W = train(task, "--steps", 20000, *options)[1]["W"]
        return 1 - (W * svm).sum() / np.linalg.norm(W) / np.linalg.norm(svm)

    assert error() < 1e-4 < 1e-3 < error("--arithmetic", "plain", "--epsilon", 2.0**-52)


def test_optimizers_run_and_differ(train, draw):
    task = draw()
    found = {}
    for optimizer in ("gd", "ngd", "polyak", "mirror:1.75", "mirror:3", "adam", "adamw", "signum", "lion", "muon",
                      "steepest:nuc", "steepest:spec", "steepest:max", "steepest:l1", "steepest:lp:3",
                      "steepest:schatten:3"):
        fields, run = train(task, "--optimizer", optimizer, "--steps", 20)
        assert fields["optimizer"] == optimizer and fields["loss"] < run["record_loss"][0]
        found[optimizer] = run["W"].tobytes()
    _, run = train(task, "--optimizer", "mirror:3", "--normalize", "--steps", 20)
    found["normalized"] = run["W"].tobytes()
    for extra in (["--momentum", "0.9"], ["--optimizer", "muon", "--newton-schulz", "5"],
                  ["--optimizer", "adam", "--betas", "0.5,0.9"], ["--optimizer", "adam", "--epsilon", "0.1"],
                  ["--schedule", "sqrt"], ["--schedule", "cosine"], ["--weight-decay", "0.1"], ["--dropout", "0.3"],
                  ["--batch", "2"], ["--loss", "exponential"], ["--loss", "linear"], ["--init", "random"]):
        found[" ".join(extra)] = train(task, "--steps", 20, *extra)[1]["W"].tobytes()
    assert len(set(found.values())) == len(found)


def test_the_summary_names_what_the_optimizer_remembers(attsvm, draw, tmp_path):
    task = draw("random")
    for options, words in (([], "ngd, step 0.1"), (["--optimizer", "muon", "--newton-schulz", 5],
                                                   "muon, momentum 0.95, 5 Newton-Schulz iterations, step"),
                           (["--optimizer", "adam"], "adam, betas 0.9,0.999, epsilon 1e-08, step"),
                           (["--optimizer", "adamw"], "weight decay 0.01")):
        table = attsvm("train", task, *options, "--steps", 2, "-o", tmp_path / "run.npz", "--force").out
        assert words in table, table


def test_names_that_others_use_lead_to_ours(attsvm, draw, tmp_path):
    task = draw("random")
    for name, words in (("sgd", "gd here"), ("sign", "steepest:max"), ("momentum", "such as gd"), ("adan", "must be gd, ngd")):
        result = attsvm("train", task, "--optimizer", name, "-o", tmp_path / "run.npz")
        assert result.code == 2 and words in result.err and len(result.err.splitlines()) == 1, result
    # An option that fits no task is not the task's fault.
    result = attsvm("train", task, "--optimizer", "adam", "--momentum", 0.9, "-o", tmp_path / "run.npz")
    assert result.code == 2 and "momentum has no meaning with adam" in result.err and str(task) not in result.err


def test_usual_values_of_optimizers(train, draw):
    task = draw()
    usual = {"ngd": (0, None, 0, 0), "adam": (None, [0.9, 0.999], 1e-8, 0), "adamw": (None, [0.9, 0.999], 1e-8, 0.01),
             "signum": (0.9, None, 0, 0), "lion": (None, [0.9, 0.99], 0, 0), "muon": (0.95, None, 0, 0)}
    for optimizer, expected in usual.items():
        fields, run = train(task, "--optimizer", optimizer, "--steps", 3)
        assert (fields["momentum"], fields["betas"], fields["epsilon"], fields["weight_decay"]) == expected
        assert str(run["settings"]).endswith("seed 0")
    fields, run = train(task, "--optimizer", "steepest:schatten:inf", "--momentum", 0.95, "--steps", 3)
    assert fields["optimizer"] == "steepest:spec" and str(run["settings"]).endswith("momentum 0.95")
    assert np.array_equal(run["W"], train(task, "--optimizer", "muon", "--steps", 3)[1]["W"])


def test_usual_records(train, draw):
    task = draw()
    for steps, count in ((0, 1), (1, 2), (50, 51), (2000, 100), ("1e5", 100)):
        recorded = train(task, "--steps", steps)[1]["record_step"]
        assert len(recorded) == count and recorded[0] == 0 and recorded[-1] == int(float(steps))
        assert (np.diff(recorded) > 0).all()


def test_zero_gradient(train, task_file):
    task = task_file(tokens=np.ones((2, 3, 2)), head=np.ones(2))
    fields, run = train(task, "--record", "0,5,2000")
    assert fields["stopped"] == "zero gradient" and fields["steps"] == 0
    assert fields["log_gradient_norm"] is None
    assert run["record_step"].tolist() == [0, 5, 2000] and not run["record_W"].any()


def test_scores_an_ulp_apart_are_a_tie(train, task_file):
    """docs/algorithms.md: gaps that rounding of the data could have made give a zero gradient, larger ones do not."""
    for ulps, moves in ((1, False), (8, True)):
        task = task_file(tokens=np.array([[[1.0], [1.0 + ulps * 2.0**-52]]]), keys=np.eye(2)[None],
                         queries=np.array([[1.0, 0.0]]), head=np.ones(1))
        fields, run = train(task, "--steps", 100)
        assert (fields["stopped"] == "zero gradient") == (not moves) and run["W"].any() == moves
        assert not moves or run["selected"].tolist() == [1]


def test_one_visible_token_and_ragged_sequences(train, task_file):
    rng = np.random.default_rng(1)
    task = task_file(tokens=rng.normal(size=(6, 3)), offsets=np.array([0, 1, 6]), head=rng.normal(size=3),
                     query_token=np.array([0, 0, 4, 2]), sequence=np.array([0, 1, 1, 1]), visible=np.array([1, 1, 5, 3]))
    fields, run = train(task, "--steps", 400)
    assert run["attention"].shape == (4, 5) and run["attention"][0].tolist() == [1, 0, 0, 0, 0]
    assert run["log_attention"][3, 3:].tolist() == [-np.inf, -np.inf] and fields["selected"][:2] == [0, 0]
    assert np.allclose(run["attention"].sum(1), 1)


def test_overflow_loses_nothing(attsvm, train, draw, tmp_path):
    task = draw()
    for step in ("1e308", "1e300"):
        fields, run = train(task, "--step", step, "--param", "KQ", "--record", "every:1", code=4)
        assert fields["stopped"] == "overflow" and np.isfinite(run["record_W"]).all() and np.isfinite(run["W"]).all()
        assert np.array_equal(run["record_W"][-1], run["W"]) and run["record_step"][-1] == fields["steps"]
    told = attsvm("train", task, "-o", tmp_path / "r.npz", "--step", "1e308", "--param", "KQ")
    assert told.code == 4 and "overflow" in told.err
    assert not list(tmp_path.glob("*.journal"))


def test_what_has_no_effect_is_said(attsvm, draw, tmp_path):
    for options, words in ((["--ridge", 0.1], "it acts on K and Q"), (["--resume"], "starts at step 0")):
        result = attsvm("train", draw(), "-o", tmp_path / f"{words[:3]}.npz", "--steps", 3, *options)
        assert result.code == 0 and words in result.err, result
    assert attsvm("train", draw(), "-o", tmp_path / "kq.npz", "--steps", 3, "--ridge", 0.1, "--param", "KQ").err == ""


def test_stop_direction(train, draw):
    fields, run = train(draw(), "--stop-direction", "0.02", "--steps", 100000, "--record", "0,100000")
    assert fields["stopped"] == "direction" and 4 < fields["steps"] < 100000
    assert np.array_equal(run["record_W"][-1], run["W"])


@pytest.mark.parametrize("options", [[], ["--param", "KQ", "--joint"], ["--batch", 7, "--dropout", 0.1],
                                     ["--optimizer", "polyak"], ["--arithmetic", "plain"]])
def test_any_thread_count_gives_the_same_bytes(attsvm, draw, tmp_path, options):
    task = draw("random", "--n", 60, "--T", 30, "--d", 40, "--shortest", 10)
    told = []
    for threads in (1, 2, 3):
        result = attsvm("train", task, "-o", tmp_path / "r.npz", "--force", "--json", "--threads", threads, "--steps", 15,
                        "--record", "every:5", *options)
        fields = result.json()
        assert fields.pop("threads") == threads and result.code == 0
        fields.pop("seconds")
        told.append((fields, (tmp_path / "r.npz").read_bytes()))
    assert told[0] == told[1] == told[2]


def test_a_batch_of_all_queries_is_none(attsvm, draw, tmp_path):
    task, told = draw("random", "--n", 6), []
    for batch in ([], ["--batch", 6], ["--batch", 1000]):
        result = attsvm("train", task, "-o", tmp_path / "r.npz", "--force", "--json", "--steps", 20, *batch)
        assert result.code == 0, result
        told.append((result.json()["batch"], (tmp_path / "r.npz").read_bytes()))
    assert told[0][0] is None and told[0] == told[1] == told[2]
    assert attsvm("train", task, "-o", tmp_path / "r.npz", "--force", "--json", "--batch", 5).json()["batch"] == 5


# --- runs that are stopped ---

LONG = ["--steps", 60000, "--record", "every:1000", "--param", "KQ", "--batch", 4, "--dropout", 0.1, "--optimizer", "adam"]


@pytest.mark.parametrize("options", [["--momentum", 0.9], ["--optimizer", "adam", "--epsilon", 0],
                                     ["--optimizer", "lion", "--joint"], ["--optimizer", "muon", "--param", "KQ"]])
def test_a_resumed_run_remembers_what_the_optimizer_does(attsvm, halfway, draw, tmp_path, options):
    task = draw("random", "--n", 3, "--T", 4, "--d", 5)
    options = ["--steps", 40000, "--record", "every:4000", *options]
    assert attsvm("train", task, "-o", tmp_path / "whole.npz", *options).code == 0
    halfway("train", task, "-o", tmp_path / "r.npz", *options)
    assert attsvm("train", task, "-o", tmp_path / "r.npz", "--resume", *options).code == 0
    assert (tmp_path / "r.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


@pytest.fixture
def whole(attsvm, draw, tmp_path):
    """A long run, undisturbed: its task and the bytes of its file."""
    task = draw()
    assert attsvm("train", task, "-o", tmp_path / "whole.npz", *LONG).code == 0
    return task, (tmp_path / "whole.npz").read_bytes()


def test_a_time_limit_leaves_a_run_that_goes_on(attsvm, halfway, whole, tmp_path):
    task, expected = whole
    out = tmp_path / "r.npz"
    fields = halfway("train", task, "-o", out, *LONG).json()
    assert fields["stopped"] == "time limit" and 0 < fields["steps"] < 60000
    with np.load(out) as part:
        assert part["record_step"].tolist() == list(range(0, fields["steps"] + 1, 1000))
    refused = attsvm("train", task, "-o", out, "--json", *LONG)
    assert refused.code == 2 and "--resume" in refused.err
    other = attsvm("train", task, "-o", out, "--resume", *LONG, "--seed", 1)
    assert other.code == 2 and "another run: seed is 0 there and 1 here" in other.err
    fewer = attsvm("train", task, "-o", out, "--resume", "--steps", 50000, *LONG[2:])
    assert LONG[0] == "--steps" and "another run: steps is 60000 there and 50000 here" in fewer.err
    np.savez(tmp_path / "start.npz", K0=np.ones((10, 10)), Q0=np.ones((10, 10)))
    begun = attsvm("train", task, "-o", out, "--resume", "--init", tmp_path / "start.npz", *LONG)
    assert begun.code == 2 and "the start differs" in begun.err
    assert attsvm("generate", "random", "--seed", 77, "-o", tmp_path / "other.npz").code == 0
    elsewhere = attsvm("train", tmp_path / "other.npz", "-o", out, "--resume", *LONG)
    assert elsewhere.code == 2 and "the task differs" in elsewhere.err
    again = attsvm("train", task, "-o", out, "--resume", "--json", *LONG)
    assert again.code == 0 and again.json()["resumed_from"] == fields["steps"]
    assert out.read_bytes() == expected and not list(tmp_path.glob("*.journal"))


def test_killed_runs_go_on_to_the_same_bytes(attsvm, whole, tmp_path):
    task, expected = whole
    out, journal = tmp_path / "r.npz", tmp_path / "r.npz.journal"
    command = [PROGRAM, "train", task, "-o", out, "--resume", "--checkpoint", "1e-9", *map(str, LONG)]
    chance = random.Random(3)
    kills = 0
    for _ in range(200):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        changes = chance.randrange(1, 30)  # of the journal, which is written at every step, until the kill
        last = None
        while changes > 0 and process.poll() is None:
            try:
                now = journal.stat().st_mtime_ns
            except FileNotFoundError:  # not there yet, or the run has just ended
                now = None
            changes -= now != last
            last = now
        process.kill()
        kills += process.wait() == -signal.SIGKILL
        if kills == 15:
            break
        if out.exists() and not journal.exists():  # it was done
            if kills >= 3:
                break
            out.unlink()
    assert kills >= 3
    if journal.exists() or not out.exists():
        assert attsvm("train", task, "-o", out, "--resume", "--json", *LONG).code == 0
    assert out.read_bytes() == expected and sorted(p.name for p in tmp_path.iterdir()) == ["r.npz", "task.npz", "whole.npz"]


def test_a_damaged_journal_is_refused(attsvm, stopped, draw, tmp_path):
    task = draw()
    out, journal = tmp_path / "r.npz", tmp_path / "r.npz.journal"
    options = ["--steps", 10**9, "--record", "every:100"]
    assert stopped("train", task, "-o", out, *options, sign=r"step \d{4}").code == 130
    good = journal.read_bytes()
    for bad, word in ((b"", "journal"), (good[:20], "journal"), (b"x" * 100, "journal"),
                      (good[:80] + b"\xff" + good[81:], "its settings are damaged"),
                      (good[:-2000] + b"\0" * 2000, "damaged")):
        journal.write_bytes(bad)
        result = attsvm("train", task, "-o", out, "--resume", "--json", *options)
        assert result.code == 2 and result.out == "" and len(result.lines()) == 1 and word in result.err, result
    journal.write_bytes(good)
    assert attsvm("train", task, "-o", out, "--resume", "--time-limit", 0.05, *options).code == 4


def test_an_interrupt_leaves_the_run_so_far(stopped, draw, tmp_path):
    result = stopped("train", draw(), "-o", tmp_path / "r.npz", "--steps", 10**9, "--json", sign=r"step [1-9]")
    fields = result.json()
    assert result.code == 130 and fields["stopped"] == "interrupted" and "--resume" in result.err
    with np.load(tmp_path / "r.npz") as file:
        recorded = file["record_step"]
        assert recorded[0] == 0 and recorded[-1] == fields["steps"] and (np.diff(recorded) > 0).all()
        assert np.linalg.norm(file["W"]) == pytest.approx(fields["norm"])


def test_an_existing_file_needs_force(attsvm, draw, tmp_path):
    task, out = draw(), tmp_path / "r.npz"
    out.write_text("mine")
    for options in ([], ["--resume"]):
        refused = attsvm("train", task, "-o", out, "--json", *options)
        assert refused.code == 2 and refused.out == "" and "--force" in refused.err and out.read_text() == "mine"
    assert attsvm("train", task, "-o", out, "--force", "--steps", 1).code == 0
    before = task.read_bytes()
    assert attsvm("train", task, "-o", task, "--force").code == 2 and task.read_bytes() == before


BAD = {
    "no_task": (["none.npz"], ["none.npz"]),
    "param": (["task.npz", "--param", "V"], ["--param"]),
    "p": (["task.npz", "--param", "p"], ["task.npz", "param = p"]),
    "width": (["task.npz", "--width", "3"], ["width"]),
    "width_zero": (["task.npz", "--param", "KQ", "--width", "0"], ["--width"]),
    "optimizer": (["task.npz", "--optimizer", "sgd"], ["--optimizer", "sgd"]),
    "mirror": (["task.npz", "--optimizer", "mirror:1"], ["power"]),
    "mirror_text": (["task.npz", "--optimizer", "mirror:x"], ["mirror"]),
    "mirror_alone": (["task.npz", "--optimizer", "mirror"], ["mirror:3"]),
    "steepest": (["task.npz", "--optimizer", "steepest"], ["steepest:max"]),
    "steepest_norm": (["task.npz", "--optimizer", "steepest:l0"], ["--optimizer", "l0", "spec"]),
    "momentum": (["task.npz", "--momentum", "1"], ["momentum = 1"]),
    "momentum_adam": (["task.npz", "--optimizer", "adam", "--momentum", "0.9"], ["momentum", "adam", "betas"]),
    "momentum_polyak": (["task.npz", "--optimizer", "polyak", "--momentum", "0.9"], ["momentum", "polyak"]),
    "betas": (["task.npz", "--optimizer", "adam", "--betas", "0.9,1"], ["second beta = 1"]),
    "betas_ngd": (["task.npz", "--betas", "0.9,0.99"], ["betas", "ngd", "lion"]),
    "betas_one": (["task.npz", "--optimizer", "lion", "--betas", "0.9"], ["--betas", "two"]),
    "newton_schulz": (["task.npz", "--newton-schulz", "5"], ["newton-schulz", "muon"]),
    "newton_schulz_zero": (["task.npz", "--optimizer", "muon", "--newton-schulz", "0"], ["--newton-schulz"]),
    "seed": (["task.npz", "--seed", "-1"], ["--seed", "-1"]),
    "steps_part": (["task.npz", "--steps", "1e-1"], ["--steps"]),
    "normalize": (["task.npz", "--normalize"], ["normalize"]),
    "polyak_relu": (["relu.npz", "--optimizer", "polyak"], ["relu.npz", "polyak"]),
    "step": (["task.npz", "--step", "0"], ["--step"]),
    "step_nan": (["task.npz", "--step", "nan"], ["step"]),
    "steps": (["task.npz", "--steps", "-1"], ["--steps"]),
    "epsilon": (["task.npz", "--epsilon", "-1"], ["epsilon"]),
    "epsilon_text": (["task.npz", "--epsilon", "1,"], ["--epsilon"]),
    "epsilon_head": (["task.npz", "--epsilon", "1,1"], ["--epsilon", "--joint"]),
    "epsilon_three": (["task.npz", "--joint", "--epsilon", "1,1,1"], ["--epsilon"]),
    "ridge": (["task.npz", "--ridge", "-1"], ["ridge"]),
    "loss": (["task.npz", "--loss", "hinge"], ["--loss"]),
    "arithmetic": (["task.npz", "--arithmetic", "float"], ["--arithmetic"]),
    "dropout": (["task.npz", "--dropout", "1"], ["dropout"]),
    "label smoothing": (["task.npz", "--label-smoothing", "1"], ["label smoothing", "below 1"]),
    "label smoothing of another loss": (["task.npz", "--label-smoothing", "0.1", "--loss", "linear"],
                                        ["label smoothing", "logistic", "linear"]),
    "batch": (["task.npz", "--batch", "0"], ["--batch"]),
    "record": (["task.npz", "--record", "0,x"], ["--record"]),
    "record_high": (["task.npz", "--record", "2001"], ["record", "2001"]),
    "record_every": (["task.npz", "--record", "every:0"], ["--record"]),
    "init_none": (["task.npz", "--init", "none.npz"], ["none.npz"]),
    "init_empty": (["task.npz", "--init", "task.npz"], ["task.npz", "W0"]),
    "init_shape": (["task.npz", "--init", "start.npz"], ["W0", "(2,2)"]),
    "init_half": (["task.npz", "--param", "KQ", "--init", "half.npz"], ["K0", "Q0"]),
    "init_nan": (["task.npz", "--init", "nan.npz"], ["nan.npz", "W0"]),
    "init_text": (["task.npz", "--init", "text.npz"], ["text.npz", "W0"]),
    "headless": (["headless.npz"], ["headless.npz", "head"]),
    "headless_joint": (["headless.npz", "--joint"], ["headless.npz", "head"]),
    "stop": (["task.npz", "--stop-direction", "-1"], ["--stop-direction"]),
    "folder": (["task.npz", "-o", "no/such/r.npz"], ["no/such"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_usage_is_one_clear_line(attsvm, draw, tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    draw()
    draw("random", "--head", "relu", name="relu.npz")
    np.savez("headless.npz", tokens=np.ones((1, 2, 2)))
    np.savez("start.npz", W0=np.zeros((2, 2)))
    np.savez("half.npz", K0=np.zeros((10, 2)))
    np.savez("nan.npz", W0=np.full((10, 10), np.nan))
    np.savez("text.npz", W0=np.array("hello"))
    before = sorted(p.name for p in tmp_path.iterdir())
    arguments, words = BAD[case]
    for options in ([], ["--json"]):
        output = [] if "-o" in arguments else ["-o", "r.npz"]
        result = attsvm("train", *arguments, *output, *options)
        assert result.code == 2 and result.out == "" and len(result.lines()) == 1, result
        assert all(word in result.err for word in words), result.err
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_the_file_says_what_it_was_trained_with(attsvm, tmp_path):
    attsvm("generate", "random", "-o", tmp_path / "t.npz")
    attsvm("train", tmp_path / "t.npz", "--steps", 3, "--joint", "--ridge", 0.5, "-o", tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz") as run:
        assert str(run["settings"]) == ("W, ngd, step 0.1, 3 steps, logistic loss, exact arithmetic, seed 0, "
                                        "head trained too, ridge 0.5")
