"""attsvm solve and verify in the nuclear and the entrywise norms."""

import os

import numpy as np
import pytest

FIXTURES = os.environ["ATTSVM_FIXTURES"]


@pytest.fixture
def task(draw):
    return draw()


def combination(task, arrays):
    with np.load(task) as file:
        X, Z = file["tokens"], file["queries"]
    q = arrays["row_query"]
    return np.einsum("k,ka,kb->ab", arrays["dual"], X[q, arrays["row_keep"]] - X[q, arrays["row_drop"]], Z[q])


def test_nuclear_answer(solve, task):
    fields, arrays, _ = solve(task, "--norm", "nuc")
    K, Q, W = arrays["K"], arrays["Q"], arrays["W"]
    r = fields["rank"]
    assert fields["norm"] == str(arrays["norm"]) == "nuc" and fields["status"] == "optimal"
    assert K.shape == (10, r) and Q.shape == (10, r) and fields["rank_certified"] is True
    assert 0 <= fields["next_singular_value"] < 1 and 0 <= fields["outside_mass"] < 1e-9 and fields["rank_words"] == ""
    assert np.abs(K @ Q.T - W).max() <= 1e-14 and np.abs(K.T @ K - Q.T @ Q).max() <= 1e-13
    assert fields["objective"] == pytest.approx(np.linalg.norm(W, "nuc"), rel=1e-13)
    assert fields["gap"] <= 1e-12 and fields["margin"] == pytest.approx(1 / fields["objective"], rel=1e-15)
    sigma = np.linalg.svd(combination(task, arrays), compute_uv=False)
    assert sigma[0] == pytest.approx(1, abs=1e-13) and sigma[r - 1] == pytest.approx(1, abs=1e-9)
    assert sigma[r] == pytest.approx(fields["next_singular_value"], abs=1e-9)


@pytest.mark.parametrize("power", [1.2, 1.75, 2, 3, 8])
def test_entrywise_answer(solve, task, power):
    fields, arrays, _ = solve(task, "--norm", f"lp:{power}")
    q = power / (power - 1)
    assert fields["norm"] == str(arrays["norm"]) == f"lp:{power}" and "K" not in arrays
    assert fields["gap"] <= 1e-10
    assert fields["objective"] == pytest.approx((np.abs(arrays["W"]) ** power).sum() ** (1 / power), rel=1e-12)
    assert (np.abs(combination(task, arrays)) ** q).sum() ** (1 / q) == pytest.approx(1, abs=1e-10)
    if power == 2:
        assert fields["objective"] == pytest.approx(solve(task)[0]["objective"], rel=1e-9)


def test_prompt_is_the_frobenius_answer(solve, attsvm, tmp_path):
    assert attsvm("generate", "prompt", "--seed", 1, "--d", 60, "-o", tmp_path / "prompt.npz").code == 0
    nuclear, arrays, _ = solve(tmp_path / "prompt.npz", "--norm", "nuc")
    frobenius, _, _ = solve(tmp_path / "prompt.npz")
    assert nuclear["objective"] == pytest.approx(frobenius["objective"], rel=1e-12) and nuclear["rank"] == 1
    assert arrays["Q"].shape == (1, 1)


@pytest.mark.parametrize("norm, words", [
    ("fro", "Frobenius norm"), ("spec", "spectral norm"), ("max", "maximum norm"), ("l1", "l1 norm"),
    ("lp:3", "entrywise norm of power 3"), ("schatten:3", "Schatten norm of power 3")])
def test_the_theorem_names_the_norm(attsvm, task, tmp_path, norm, words):
    assert attsvm("solve", task, "--norm", norm, "-o", tmp_path / "svm.npz").code == 0
    assert f"of {words} at most" in attsvm("verify", task, tmp_path / "svm.npz").out


@pytest.mark.parametrize("norm", ["nuc", "schatten:1"])
def test_infeasible_has_empty_factors(solve, attsvm, tmp_path, norm):
    assert attsvm("generate", "infeasible", "--seed", 1, "-o", tmp_path / "no.npz").code == 0
    fields, arrays, _ = solve(tmp_path / "no.npz", "--norm", norm, code=3)
    assert fields["rank"] is None and arrays["K"].shape == (10, 0) and arrays["Q"].shape == (10, 0)
    assert fields["conflict"] and (arrays["rhs"] @ arrays["dual"]) == pytest.approx(1)
    solve(tmp_path / "no.npz", "--norm", "lp:3", code=3)


def test_nothing_asked(solve, task_file):
    task = task_file(tokens=np.ones((2, 1, 3)), queries=np.eye(2), head=np.ones(3))
    fields, arrays, _ = solve(task, "--norm", "nuc")
    assert fields["objective"] == 0 and fields["rank"] == 0 and arrays["K"].shape == (3, 0) and arrays["Q"].shape == (2, 0)


def test_relaxed_sets_and_values(solve, task):
    for options in (["--relax", "0,2"], ["--problem", "v"]):
        for norm in ("nuc", "lp:1.5"):
            solve(task, "--norm", norm, *options)
    for norm in ("nuc", "lp:1.5"):
        fields, arrays, _ = solve(os.path.join(FIXTURES, "multi_d6_run0_seed6.task.npz"), "--norm", norm)
        assert np.abs(arrays["slack"][arrays["row_equal"]]).max() <= 1e-9


def test_warm_starts_and_threads(solve, task, tmp_path):
    cold, arrays, _ = solve(task, "--norm", "nuc", "--threads", 1)
    _, again, _ = solve(task, "--norm", "nuc", "--threads", 2, out="two.npz")
    assert all((arrays[name] == again[name]).all() for name in arrays)
    warm, _, _ = solve(task, "--norm", "nuc", "--warm-start", tmp_path / "solution.npz", out="warm.npz")
    assert warm["warm_started"] and warm["iterations"] < cold["iterations"]
    assert warm["objective"] == pytest.approx(cold["objective"], rel=1e-12)
    solve(task, out="fro.npz")
    assert solve(task, "--norm", "nuc", "--warm-start", tmp_path / "fro.npz", out="warm.npz")[0]["warm_started"]


def test_verify_refuses_altered_factors(solve, attsvm, task, tmp_path):
    _, arrays, _ = solve(task, "--norm", "nuc")
    for name, change in {"K": arrays["K"] * 1.01, "Q": -arrays["Q"], "dual": arrays["dual"] * 1.01, "W": arrays["W"] * 1.01}.items():
        np.savez(tmp_path / "bad.npz", **(arrays | {name: change}))
        result = attsvm("verify", task, tmp_path / "bad.npz", "--json")
        assert result.code == 5 and result.json()["reason"], name
    np.savez(tmp_path / "bad.npz", **{name: array for name, array in arrays.items() if name not in ("K", "Q")})
    assert attsvm("verify", task, tmp_path / "bad.npz").code == 5


def test_verify_w_alone(solve, attsvm, task, tmp_path):
    fields, arrays, _ = solve(task, "--norm", "nuc")
    np.savez(tmp_path / "w.npz", W=arrays["W"])
    for norm, objective in {"nuc": fields["objective"], "lp:3": (np.abs(arrays["W"]) ** 3).sum() ** (1 / 3)}.items():
        verdict = attsvm("verify", task, tmp_path / "w.npz", "--norm", norm, "--json").json()
        assert verdict["valid"] and verdict["norm"] == norm and verdict["gap"] is None
        assert verdict["objective"] == pytest.approx(objective, rel=1e-12)


@pytest.mark.parametrize("norm", ["most", "lp", "lp:0.9", "schatten:nan", "lp:x", "NUC"])
def test_bad_norms(attsvm, task, tmp_path, norm):
    for words in (["solve", task, "-o", tmp_path / "x.npz"], ["verify", task, task]):
        result = attsvm(*words, "--norm", norm)
        assert result.code == 2 and result.out == "" and len(result.lines()) == 1
    assert not (tmp_path / "x.npz").exists()


NORMS = {"max": lambda W: np.abs(W).max(), "l1": lambda W: np.abs(W).sum(), "spec": lambda W: np.linalg.norm(W, 2),
         "lp:20": lambda W: (np.abs(W) ** 20).sum() ** (1 / 20),
         "schatten:3": lambda W: (np.linalg.svd(W, compute_uv=False) ** 3).sum() ** (1 / 3)}


@pytest.mark.parametrize("norm", NORMS)
def test_every_norm(solve, attsvm, task, tmp_path, norm):
    fields, arrays, _ = solve(task, "--norm", norm)
    assert fields["norm"] == str(arrays["norm"]) == norm and fields["status"] == "optimal" and fields["gap"] <= 1e-10
    assert fields["objective"] == pytest.approx(NORMS[norm](arrays["W"]), rel=1e-12)
    assert fields["unique"] is True or norm == "spec"
    verdict = attsvm("verify", task, tmp_path / "solution.npz", "--json").json()
    assert verdict["valid"] and verdict["gap"] <= 1e-10


@pytest.mark.parametrize("name, same", [("lp:inf", "max"), ("lp:1", "l1"), ("schatten:inf", "spec"),
                                        ("schatten:1", "nuc"), ("schatten:2", "fro"), ("lp:2", "fro")])
def test_names_of_one_norm(solve, attsvm, task, tmp_path, name, same):
    fields, arrays, _ = solve(task, "--norm", name)
    assert fields["norm"] == str(arrays["norm"]) == name
    assert attsvm("verify", task, tmp_path / "solution.npz").code == 0
    assert fields["objective"] == solve(task, "--norm", same, out="same.npz")[0]["objective"]


def test_table_speaks_of_the_rank(attsvm, task, tmp_path):
    result = attsvm("solve", task, "--norm", "nuc", "-o", tmp_path / "x.npz")
    assert result.code == 0 and "nuclear norm" in result.out and "certified" in result.out
