"""attsvm claims and attsvm demo."""

import json

import numpy as np
import pytest

FIELDS = ("name", "statement", "tasks", "held", "worst", "seconds", "counterexample")


@pytest.fixture
def tested(attsvm, tmp_path):
    """tested("rank", "--tasks", 3): the JSON fields; counter-examples go to tmp_path/out."""

    def run(*args):
        result = attsvm("claims", *args, "--json", "--out", tmp_path / "out")
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
    assert not (tmp_path / "out").exists()


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


def test_json_is_the_same_for_any_number_of_threads(attsvm, tmp_path):
    seen = []
    for threads in (1, 2):
        fields = attsvm("claims", "p-W-lemma", "first-gradient", "--tasks", 2, "--json", "--threads", threads,
                        "--out", tmp_path).json()
        for part in (fields, *fields["claims"]):
            part.pop("seconds")
        fields.pop("threads")
        seen.append(fields)
    assert seen[0] == seen[1]


def test_time_limit_and_interrupt_give_what_is_done(attsvm, stopped, tmp_path):
    result = attsvm("claims", "rank", "over-parametrization", "--tasks", 10**6, "--time-limit", 1, "--json",
                    "--out", tmp_path)
    assert result.code == 4 and result.json()["claims"][-1]["tasks"] < 10**6
    result = stopped("claims", "p-W-lemma", "over-parametrization", "--tasks", 10**6, "--json", "--out", tmp_path,
                     sign=r": [1-9]\d* of 1000000 tasks")
    assert result.code == 130 and result.err == "" and 0 < result.json()["claims"][0]["tasks"] < 10**6


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
