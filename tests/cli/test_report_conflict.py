"""attsvm report of tokens that no W keeps: what conflicts, and the ways out."""

import numpy as np
import pytest


def test_conflict(attsvm, report, tmp_path):
    task = tmp_path / "infeasible.npz"
    assert attsvm("generate", "infeasible", "-o", task).code == 0
    solved = attsvm("solve", task, "-o", tmp_path / "s.npz", "--json")
    assert solved.code == 3
    data = report(task)
    shown, = data["solutions"]
    said = solved.json()
    assert shown["status"] == "infeasible" and shown["valid"] and data["main"] is None
    arrows = np.array([row.pop("arrow") for row in shown["conflict"]["rows"]])
    assert shown["conflict"]["words"] == said["words"] and shown["conflict"]["rows"] == said["conflict"]
    # The arrows are the rows' matrices, seen in the plane that holds most of them.
    with np.load(task) as given:
        matrices = np.array([row["weight"] * np.outer(given["tokens"][row["query"], row["keep"]] -
                                                      given["tokens"][row["query"], row["drop"]],
                                                      given["queries"][row["query"]]).ravel() for row in said["conflict"]])
    sigma = np.linalg.svd(matrices, compute_uv=False)
    assert np.allclose(np.linalg.svd(arrows, compute_uv=False), sigma[:2])
    assert shown["conflict"]["share"] == pytest.approx((sigma[:2] ** 2).sum() / (sigma ** 2).sum())
    assert np.abs(arrows.sum(axis=0)).max() < 1e-12
    # verify adds up in extended precision, solve in double: the same rounding noise to a factor.
    assert shown["norm_bound"] == pytest.approx(1 / attsvm("verify", task, tmp_path / "s.npz", "--json").json()["residual"])
    assert data["check"] is None and shown["objective"] is None


def test_a_conflict_that_is_exact(report, tmp_path):
    np.savez(tmp_path / "line.npz", tokens=np.array([[[0.0], [1.0], [2.0]]]), select=np.array([1]))
    shown, = report(tmp_path / "line.npz")["solutions"]
    assert shown["residual"] == 0 and shown["norm_bound"] is None
    assert "add up to zero: no W meets them all." in shown["words"][1] and "inf" not in " ".join(shown["words"])
    assert [row["arrow"][1] for row in shown["conflict"]["rows"]] == [0, 0]


def test_ways_out_of_a_conflict(attsvm, report, tmp_path):
    """The queries to relax, and the tokens to choose instead, do what the page says of them."""
    task, solution = tmp_path / "t.npz", tmp_path / "s.npz"
    assert attsvm("generate", "random", "--n", 10, "--T", 5, "--d", 3, "--seed", 1, "-o", task).code == 0
    data = report(task)
    way = data["way_out"]
    queries = range(data["task"]["queries"])
    assert attsvm("solve", task, "-o", solution).code == 3
    assert way["relax"] is None  # even without margins, only W = 0 would do
    # Without the queries that are left out there is a W; none of them is there for nothing.
    arrays = dict(np.load(task))

    def without(left):
        kept = [i for i in queries if i not in left]
        part = {**arrays, "tokens": arrays["tokens"][kept], "queries": arrays["queries"][kept]}
        part.update({name: arrays[name][kept] for name in ("labels", "select") if name in arrays})
        np.savez(tmp_path / "part.npz", **{name: array for name, array in part.items() if not name.startswith("x_")})
        return attsvm("solve", tmp_path / "part.npz", "-o", solution, "--force").code

    assert without(way["leave"]) == 0
    assert all(without([one for one in way["leave"] if one != query]) == 3 for query in way["leave"])
    tokens = [kept[0] for kept in data["queries"]["kept"]]
    scores = data["plane"]["scores"]
    assert [one["query"] for one in way["instead"]] == way["leave"]
    for one in way["instead"]:
        i, t = one["query"], one["token"]
        assert one["score_gap"] == pytest.approx(scores[i][tokens[i]] - scores[i][t])
        tokens[i] = t
    select = ",".join(map(str, tokens))
    assert attsvm("solve", task, "--select", select, "-o", solution, "--force").code == 0
    assert report(task, "--solution", solution)["way_out"] is None


def test_relaxing_is_a_way_out_where_it_helps(attsvm, report, tmp_path):
    task, solution = tmp_path / "t.npz", tmp_path / "s.npz"
    # Two queries ask opposite things of one number; a third asks nothing of it.
    np.savez(task, tokens=np.array([[[0.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]]),
             select=np.array([0, 0, 0]))
    way = report(task)["way_out"]
    assert way["relax"] is not None and len(way["relax"]) == 2 and way["leave"] in ([0], [1])
    assert attsvm("solve", task, "--relax", ",".join(map(str, way["relax"])), "-o", solution).code == 0
    assert way["instead"] == [{"query": way["leave"][0], "token": 1, "score_gap": None}]
