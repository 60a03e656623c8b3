"""attsvm train with selectors, entropy and temperature, and what the claims and the study on them say."""

import csv
import json

import numpy as np
import pytest


@pytest.mark.parametrize("options", [["--selector", "gumbel", "--temperature", "1:0.1"],
                                     ["--selector", "dirichlet", "--concentration", 5], ["--entropy", 0.1]])
def test_selectors(attsvm, draw, tmp_path, options):
    task = draw("random")
    answers = []
    for threads in (1, 2):
        out = tmp_path / f"{threads}.npz"
        result = attsvm("train", task, *options, "--steps", 300, "--threads", threads, "-o", out, "--json")
        assert result.code == 0, result
        answers.append(out.read_bytes())
    assert answers[0] == answers[1]
    fields = result.json()
    settings = dict(zip(options[::2], options[1::2]))
    assert fields["selector"] == settings.get("--selector", "soft")
    assert fields["entropy"] == settings.get("--entropy", 0)
    assert fields["temperature"] == ([1, 0.1] if "--temperature" in settings else [1, 1])
    assert fields["concentration"] == settings.get("--concentration")
    assert 0 <= fields["attention_entropy"] < np.log(8) and 0 <= fields["hard_accuracy"] <= 1
    with np.load(out) as run, np.load(task) as data:
        chosen = data["tokens"][np.arange(6), run["selected"]] @ data["head"] * data["labels"]
        logs = run["log_attention"]
    assert fields["hard_accuracy"] == np.mean(chosen > 0)
    assert abs(fields["hard_loss"] - np.mean(np.log1p(np.exp(-chosen)))) < 1e-12
    assert abs(fields["attention_entropy"] + np.mean(np.sum(np.exp(logs) * logs, axis=1))) < 1e-12


def test_a_page_follows_entropy_accuracy_and_temperature(attsvm, draw, tmp_path):
    task, run, page = draw(), tmp_path / "run.npz", tmp_path / "page.html"
    told = attsvm("train", task, "--selector", "gumbel", "--temperature", "4:0.25", "--steps", 300, "--record",
                  "every:50", "-o", run, "--json").json()
    assert attsvm("report", task, "--run", run, "-o", page).code == 0
    [shown] = json.loads(page.read_text().split('id="data">')[1].split("</script>")[0])["runs"]
    assert shown["entropy"][-1] == told["attention_entropy"] and shown["accuracy"][-1] == told["hard_accuracy"]
    assert shown["entropy"][0] == pytest.approx(np.log(8), rel=1e-12) and len(shown["accuracy"]) == 7
    assert shown["temperature"] == pytest.approx(4 * 16 ** -(np.array(shown["step"]) / 300), rel=1e-14)
    attsvm("train", task, "--steps", 5, "-o", run, "--force")
    assert attsvm("report", task, "--run", run, "-o", page, "--force").code == 0
    [soft] = json.loads(page.read_text().split('id="data">')[1].split("</script>")[0])["runs"]
    assert soft["temperature"] is None


@pytest.mark.parametrize("options, words", [
    (["--temperature", "1:2:3"], "--temperature 1:2:3: must be one number, or two"),
    (["--temperature", "0"], "temperature = 0"), (["--temperature", "hot"], "--temperature hot"),
    (["--entropy", -1], "entropy = -1"), (["--concentration", 3], "selector = dirichlet"),
    (["--selector", "hard"], "soft|gumbel|dirichlet"),
    (["--selector", "gumbel", "--arithmetic", "plain"], "exact arithmetic")])
def test_selectors_refuse(attsvm, draw, tmp_path, options, words):
    result = attsvm("train", draw("random"), *options, "-o", tmp_path / "r.npz")
    assert result.code == 2 and len(result.lines()) == 1 and words in result.err, result


def test_claims_hold_and_fail_as_documented(attsvm, tmp_path):
    result = attsvm("claims", "entropy", "--tasks", 2, "--json", cwd=tmp_path)
    assert result.code == 0, result
    assert [(claim["name"], claim["held"]) for claim in result.json()["claims"]] == [("entropy-direction", 2),
                                                                                    ("entropy-locks", 2)]


def test_study(attsvm, tmp_path):
    """One run per cell; softmax at temperature 1 is the ordinary attention that the others are compared with."""
    result = attsvm("reproduce", "router", "--runs", 1, "--out", tmp_path / "out", "--json")
    assert result.code == 0, result
    with open(tmp_path / "out" / "router" / "data.csv") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    assert len(rows) == 33
    ordinary = [row for row in rows if row["selector"] == "soft" and float(row["entropy"]) == 0
                and row["first_temperature"] == row["last_temperature"] == "1"]
    assert len(ordinary) == 1 and float(ordinary[0]["same"]) == 1
