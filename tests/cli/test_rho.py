"""attsvm check: the share of the largest margin along a run, in each norm."""

import numpy as np
import pytest

NORMS = {"fro": np.linalg.norm, "nuc": lambda W: np.linalg.norm(W, "nuc"), "spec": lambda W: np.linalg.norm(W, 2),
         "max": lambda W: np.abs(W).max(), "l1": lambda W: np.abs(W).sum()}


@pytest.fixture
def trained(attsvm, tmp_path):
    """Trains on a task of published size: (task, run)."""
    def train(*options, name="run.npz", seed=1):
        task, run = tmp_path / "task.npz", tmp_path / name
        assert attsvm("generate", "random", "--seed", seed, "-o", task, "--force").code == 0
        assert attsvm("train", task, *options, "-o", run, "--force").code == 0
        return task, run
    return train


def margin(task, W, selected):
    """The smallest x_a W z - x_t W z."""
    with np.load(task) as arrays:
        logits = np.einsum("ntd,de,ne->nt", arrays["tokens"], W, arrays["queries"])
    gaps = np.take_along_axis(logits, np.array(selected)[:, None], 1) - logits
    np.put_along_axis(gaps, np.array(selected)[:, None], np.inf, 1)
    return gaps.min()


def test_rho_is_what_it_says(attsvm, trained, tmp_path):
    task, run = trained("--optimizer", "adam", "--record", "every:200")
    fields = attsvm("check", task, "--run", run, "--json").json()
    assert set(fields["rho"]) == set(NORMS)
    with np.load(run) as arrays:
        points = arrays["record_W"]
    for norm, size in NORMS.items():
        solution = tmp_path / f"{norm}.npz"
        assert attsvm("solve", task, "--norm", norm, "--select", run, "-o", solution).code == 0
        assert attsvm("verify", task, solution).code == 0
        with np.load(solution) as arrays:
            objective, W = float(arrays["objective"]), arrays["W"]
        rho = fields["rho"][norm]
        assert len(rho) == len(points) == 11 and rho[0] is None, "W = 0 has no margin"
        expected = [margin(task, W, fields["selected"]) / size(W) * objective for W in points[1:]]
        np.testing.assert_allclose(rho[1:], expected, rtol=1e-7)
        assert max(rho[1:]) <= 1 + 1e-9
        assert fields["rho_status"][norm] == "optimal"
        assert fields["rho_rises"][norm] == (rho[-1] > rho[1])
        slope = np.polyfit(np.log(fields["record_step"][1:]), np.log(1 - np.array(rho[1:])), 1)[0]
        assert fields["rho_exponent"][norm] == pytest.approx(slope, rel=1e-6)
        # A run that is the optimum, and nothing else: one point.
        np.savez(tmp_path / "end.npz", W=3 * W)
        end = attsvm("check", task, "--run", tmp_path / "end.npz", "--json").json()
        assert end["rho"][norm] == pytest.approx([1], abs=1e-9) and end["record_step"] == []
        assert end["rho_rises"][norm] is None and end["rho_exponent"][norm] is None
        assert end["implied_norm"] is None and end["implied_norm_proven"] is False
        assert "does not say how" in attsvm("check", task, "--run", tmp_path / "end.npz").out


@pytest.mark.parametrize("options, norm, proven, words", [
    ([], "fro", True, "ngd: theory for attention names fro; rho_fro = "),
    (["--momentum", "0.5"], "fro", False, "fro is expected, not proven; rho_fro = "),
    (["--param", "KQ"], "nuc", False, "ngd on K and Q: nuc is expected, not proven; rho_nuc = "),
    (["--optimizer", "adam"], "max", False, "adam: max is expected, not proven; rho_max = "),
    (["--optimizer", "muon"], "spec", False, "muon: spec is expected, not proven; rho_spec = "),
    (["--optimizer", "mirror:3"], "lp:3", True, "mirror:3: theory for attention names lp:3; rho_lp:3 = "),
    (["--optimizer", "steepest:schatten:3"], "schatten:3", False, "steepest:schatten:3: schatten:3 is expected, not proven"),
    (["--optimizer", "adamw"], None, False, "adamw: theory names no norm"),
    (["--optimizer", "adam", "--param", "KQ"], None, False, "adam on K and Q: theory names no norm"),
])
def test_the_implied_norm_is_that_of_the_optimizer(attsvm, trained, options, norm, proven, words):
    task, run = trained(*options)
    fields = attsvm("check", task, "--run", run, "--json").json()
    assert fields["implied_norm"] == norm and fields["implied_norm_proven"] is proven
    assert set(fields["rho"]) == {*NORMS, *([norm] if norm else [])}
    table = attsvm("check", task, "--run", run).out
    assert words in table, table
    if norm:
        assert f"{norm}* {fields['rho'][norm][-1]:.6g}" in table and table.count("* ") == 1
        assert fields["rho_rises"][norm] is True and fields["rho_exponent"][norm] < 0



def test_what_cannot_be_separated_has_no_rho(attsvm, task_file, tmp_path):
    task = task_file(tokens=np.array([[[1.0], [1.0], [0.0]]]), head=np.array([1.0]))
    np.savez(tmp_path / "run.npz", W=np.ones((1, 1)))
    fields = attsvm("check", task, "--run", tmp_path / "run.npz", "--json").json()
    assert fields["verdict"] == "infeasible"
    assert fields["rho"] == {norm: [None] for norm in NORMS}
    assert set(fields["rho_status"].values()) == {"infeasible"}
    assert "fro - (infeasible)" in attsvm("check", task, "--run", tmp_path / "run.npz").out


def test_sets_count_dropped_tokens_alone(attsvm, tmp_path):
    task, run = tmp_path / "task.npz", tmp_path / "run.npz"
    attsvm("generate", "relu", "--n", 3, "--T", 4, "--d", 6, "--seed", 2, "-o", task)
    attsvm("train", task, "--init", "random", "--steps", 20, "-o", run)
    fields = attsvm("check", task, "--run", run, "--threshold", 0.1, "--json").json()
    assert max(map(len, fields["kept"])) > 1
    with np.load(task) as arrays, np.load(run) as points:
        logits = np.einsum("ntd,de,ne->nt", arrays["tokens"], points["W"], arrays["queries"])
        size = np.linalg.norm(points["W"])
    margin = min(row[kept[0]] - row[t] for row, kept in zip(logits, fields["kept"]) for t in range(4) if t not in kept)
    assert fields["rho"]["fro"][-1] == pytest.approx(margin / size * fields["objective_fro"], rel=1e-9)


def test_stops_leave_norms_out(attsvm, stopped, tmp_path):
    task, run = tmp_path / "task.npz", tmp_path / "run.npz"
    attsvm("generate", "random", "--n", 90, "--T", 32, "--d", 62, "-o", task)
    attsvm("train", task, "--steps", 200, "-o", run)
    # Frobenius is the first norm and the only one that takes so few iterations.
    early = stopped("check", task, "--run", run, "--json", sign=r"iteration \d\d")
    assert early.code == 130 and early.json()["rho"]["fro"][-1] > 0 and early.json()["rho_status"]["fro"] == "optimal"
    late = attsvm("check", task, "--run", run, "--time-limit", 0.01, "--json")
    assert late.code == 4
    for fields in (early.json(), late.json()):
        assert fields["complete"] is False
        assert fields["rho_status"]["l1"] == "limit" and set(fields["rho"]["l1"]) == {None}
    assert "l1 - (limit)" in attsvm("check", task, "--run", run, "--time-limit", 0.01).out


def test_further_norms_are_judged_too(attsvm, trained, tmp_path):
    task, run = trained("--steps", 500)
    fields = attsvm("check", task, "--run", run, "--norm", "lp:3,schatten:4", "--norm", "max", "--json").json()
    assert set(fields["rho"]) == {*NORMS, "lp:3", "schatten:4"}
    solution = tmp_path / "lp.npz"
    solved = attsvm("solve", task, "--norm", "lp:3", "--select", run, "-o", solution, "--json").json()
    assert attsvm("verify", task, solution).code == 0
    assert fields["largest_margin"]["lp:3"] == pytest.approx(1 / solved["objective"], rel=1e-9)
    with np.load(run) as arrays:
        W = arrays["W"]
    size = np.sum(np.abs(W) ** 3) ** (1 / 3)
    assert fields["rho"]["lp:3"][-1] == pytest.approx(margin(task, W, fields["selected"]) / size * solved["objective"])
    for wrong, words in ((["--run", run, "--norm", "lp:0"], ["--norm", "lp:0"]), (["--norm", "lp:3"], ["--norm", "--run"])):
        result = attsvm("check", task, *wrong)
        assert result.code == 2 and len(result.err.splitlines()) == 1 and all(word in result.err for word in words), result


@pytest.mark.parametrize("options, words", [
    (["--optimizer", "signum"], "take steps of about 0.0"), (["--optimizer", "lion"], "take steps of about 0.00"),
    (["--optimizer", "muon", "--step", 0.3], "take steps of about 0.0"),
    (["--optimizer", "adam", "--epsilon", 0, "--step", 0.01, "--steps", 6000], "second moments still hold"),
    (["--optimizer", "muon", "--newton-schulz", 5, "--step", 0.05, "--steps", 3000], "Newton-Schulz"),
])
def test_advice_is_followed_with_profit(attsvm, trained, options, words):
    """Where settings keep a run from its SVM, check says so, and what it says helps."""
    task, run = trained(*options)
    fields = attsvm("check", task, "--run", run, "--json").json()
    table = " ".join(attsvm("check", task, "--run", run).out.split())
    assert words in fields["advice"] and fields["advice"] in table
    better = list(options)
    if "steps of about" in words:
        better += ["--step", fields["advice"].split()[-1]]
        better = [one for k, one in enumerate(better) if one != "--step" or k + 2 == len(better)]
        better = [one for one in better if one != 0.3]
    elif "second moments" in words:
        better += ["--betas", "0.9," + fields["advice"].split("at most ")[1].split(",")[0]]
    else:
        better = [one for one in options if one not in ("--newton-schulz", 5)]
    _, mended = trained(*better, name="mended.npz")
    norm = fields["implied_norm"]
    rho = attsvm("check", task, "--run", mended, "--json").json()["rho"][norm][-1]
    assert rho > fields["rho"][norm][-1] + 0.1, (fields["advice"], rho)


@pytest.mark.parametrize("options", [[], ["--optimizer", "muon", "--step", 0.05, "--steps", 3000],
                                     ["--optimizer", "signum", "--step", 0.04], ["--momentum", 0.9],
                                     ["--optimizer", "adam", "--betas", "0.9,0.95", "--epsilon", 0, "--step", 0.01, "--steps", 6000]])
def test_runs_that_are_well_get_no_advice(attsvm, trained, options):
    task, run = trained(*options)
    assert attsvm("check", task, "--run", run, "--json").json()["advice"] is None


def test_without_a_norm_from_theory_nothing_is_predicted(attsvm, trained):
    task, run = trained("--optimizer", "adamw")
    fields = attsvm("check", task, "--run", run, "--json").json()
    assert fields["converges"] is None and fields["predicted_svm"] is None and fields["exponent"] is None
    assert fields["answer"].startswith("theory names no SVM for this training; of the SVMs below, it is closest to")


def test_a_selection_alone_has_no_rho(attsvm, trained):
    task, _ = trained("--steps", 1)
    fields = attsvm("check", task, "--json").json()
    assert "rho" not in fields and "implied_norm" not in fields


def test_selections_are_lists_and_runs_too(attsvm, trained, tmp_path):
    task, run = trained()
    chosen = attsvm("check", task, "--run", run, "--json").json()["selected"]
    as_list = ",".join(map(str, chosen))
    for select in (as_list, run):
        assert attsvm("check", task, "--select", select, "--json").json()["selected"] == chosen
    other = tmp_path / "other.npz"
    attsvm("generate", "random", "--seed", 2, "-o", other)
    for verb in (["check", other, "--select", run], ["solve", other, "--select", run, "-o", tmp_path / "s.npz"]):
        result = attsvm(*verb)
        assert result.code == 2 and "another task" in result.err and len(result.err.splitlines()) == 1, result


def test_the_answer_is_one_sentence(attsvm, trained, tmp_path):
    for options, norm, words in ((("--steps", 4000), "fro", "SVM of least Frobenius norm"),
                                 (("--param", "KQ", "--steps", 4000), "nuc", "SVM of least nuclear norm")):
        task, run = trained(*options)
        fields = attsvm("check", task, "--run", run, "--json").json()
        assert fields["converges"] is True and fields["predicted_svm"] == norm == fields["implied_norm"]
        assert fields["exponent"] == fields["rho_exponent"][norm] < -0.5
        assert words in fields["answer"] and f"t^{fields['exponent']:.2f}" in fields["answer"]
        assert fields["answer"].startswith("it converges to the ") and "4000 steps" in fields["answer"]
        text = " ".join(attsvm("check", task, "--run", run).out.split())
        assert f"answer {fields['answer']}" in text
    task, run = trained("--optimizer", "adam")  # with its usual numbers, which forget too slowly
    fields = attsvm("check", task, "--run", run, "--json").json()
    assert fields["converges"] is None and -0.1 < fields["exponent"] < 0 and "all but stopped" in fields["answer"]
    task, run = trained("--record", "0,2000", name="short.npz")
    fields = attsvm("check", task, "--run", run, "--json").json()
    assert fields["converges"] is None and "too few recorded steps" in fields["answer"]


def test_runs_that_cannot_converge_say_so(attsvm, task_file, tmp_path):
    task = task_file(tokens=np.array([[[0.0], [1.0], [-1.0]]]), queries=np.array([[1.0]]), head=np.array([1.0]))
    np.savez(tmp_path / "run.npz", W=np.zeros((1, 1)))  # selects the first token, which lies between the others
    fields = attsvm("check", task, "--run", tmp_path / "run.npz", "--json").json()
    assert fields["separable"] is False and fields["converges"] is False
    assert fields["answer"] == "it does not converge to an SVM: no W keeps the tokens that it selects ahead"


def test_runs_that_turn_away_say_so(attsvm, trained):
    """Plain arithmetic follows rounding noise once gradients underflow."""
    task, run = trained("--arithmetic", "plain", "--steps", 20000)
    fields = attsvm("check", task, "--run", run, "--json").json()
    rho = [share or 0 for share in fields["rho"]["fro"]]
    assert max(rho) > 0.9 > rho[-1] + 0.05, "the run is of the kind that this test is about"
    peak = fields["record_step"][rho.index(max(rho))]
    assert fields["converges"] is False and f"until step {peak} it approached" in fields["answer"]
