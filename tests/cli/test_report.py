"""attsvm report: what the page holds, as the other verbs say it; refusals; names that would be markup."""

import base64
import json
import os
import pathlib

import numpy as np
import pytest

from page_data import data_of

@pytest.fixture
def task(attsvm, tmp_path):
    assert attsvm("generate", "random", "--seed", 1, "-o", tmp_path / "task.npz").code == 0
    return tmp_path / "task.npz"


@pytest.fixture
def run(attsvm, task, tmp_path):
    assert attsvm("train", task, "--record", "every:100", "-o", tmp_path / "run.npz").code == 0
    return tmp_path / "run.npz"


def refused(attsvm, tmp_path, *args, words):
    out = tmp_path / "refused.html"
    for options in ([], ["--json"]):
        result = attsvm("report", *args, "-o", out, *options)
        assert result.code == 2, result
        assert result.out == "" and len(result.err.splitlines()) == 1, result
        for word in words:
            assert word in result.err, result.err
        assert not out.exists()


def test_numbers_are_those_of_solve_verify_and_check(attsvm, report, task, run, tmp_path):
    data = report(task, "--run", run)
    check = attsvm("check", task, "--run", run, "--json").json()
    np.save(tmp_path / "selected.npy", np.array(check["selected"]))
    for k, norm in enumerate(("fro", "nuc")):
        out = tmp_path / f"{norm}.npz"
        solved = attsvm("solve", task, "--norm", norm, "--select", tmp_path / "selected.npy", "-o", out, "--json").json()
        shown = data["solutions"][k]
        for name in ("status", "norm", "problem", "rank", "support", "constraints"):
            assert shown[name] == solved[name], name
        for name in ("objective", "dual_objective", "margin"):
            assert shown[name] == pytest.approx(solved[name], rel=1e-12), name
        assert shown["valid"] and shown["gap"] <= 1e-12
        file = np.load(out)
        rows = shown["rows"]
        assert rows["total"] == len(rows["query"]) == len(file["row_query"])
        for column, array in (("query", "row_query"), ("keep", "row_keep"), ("drop", "row_drop"), ("rhs", "rhs")):
            assert rows[column] == file[array].tolist()
        np.testing.assert_allclose(rows["slack"], file["slack"], atol=1e-9)
        np.testing.assert_allclose(rows["dual"], file["dual"], atol=1e-9)
        assert rows["support"] == np.flatnonzero(np.abs(file["slack"]) <= 1e-6).tolist()
        np.testing.assert_allclose(rows["margin"], (file["slack"] + file["rhs"]) / np.linalg.norm(file["W"]), atol=1e-9)
        np.testing.assert_allclose(shown["singular_values"]["values"], np.linalg.svd(file["W"])[1], atol=1e-9)
    assert data["main"] == 0
    assert data["check"]["verdict"] == check["verdict"] and data["check"]["reason"] == check["reason"]
    assert [kept[0] for kept in data["queries"]["kept"]] == check["selected"]
    assert data["queries"]["optimal"] == check["optimal"]
    support = data["check"]["support"]
    assert support["count"] == len(check["support"])
    for name in ("query", "token", "score_gap", "slack"):
        assert support[name] == [one[name] for one in check["support"]]
    assert data["runs"][0]["step"] == check["record_step"]
    for curve, name in zip(data["runs"][0]["correlations"], ("correlation_fro", "correlation_nuc")):
        assert curve["values"] == check[name]
        assert curve["distances"] == [None if one is None else 1 - one for one in check[name]]
    shown = data["runs"][0]
    assert shown["implied"]["norm"] == check["implied_norm"] and shown["implied"]["proven"] == check["implied_norm_proven"]
    assert {one["norm"] for one in shown["shares"]} == set(check["rho"])
    for one in shown["shares"]:
        norm = one["norm"]
        assert one["rho"] == check["rho"][norm] and one["status"] == check["rho_status"][norm]
        assert one["distances"] == [None if rho is None else 1 - rho for rho in one["rho"]]
        assert one["rises"] == check["rho_rises"][norm] and one["exponent"] == check["rho_exponent"][norm]


def test_run_and_plane_are_those_of_the_files(report, task, run):
    data = report(task, "--run", run)
    tokens, queries = np.load(task)["tokens"], np.load(task)["queries"]
    file = np.load(run)
    shown = data["runs"][0]
    assert shown["records"] == len(file["record_step"])
    np.testing.assert_allclose(shown["norm"], file["record_norm"], rtol=1e-12)
    np.testing.assert_allclose(shown["loss"], file["record_loss"], rtol=1e-15)
    for i, query in enumerate(shown["attention"]):
        end = [weights[-1] for weights in query["weights"]]
        np.testing.assert_allclose(end, file["attention"][i, query["tokens"]], rtol=1e-9)
    gradients = [None if one == -np.inf else one / np.log(10) for one in file["record_log_gradient"]]
    assert shown["log10_gradient"] == pytest.approx(gradients, rel=1e-15)
    kinds = [axis["kind"] for axis in data["plane"]["axes"]]
    assert kinds == ["max-margin", "across", "principal", "principal"] + ["coordinate"] * 8
    flat = tokens.reshape(-1, tokens.shape[2])
    for axis, column in zip(data["plane"]["axes"], data["plane"]["coordinates"]):
        if axis["kind"] == "coordinate":
            assert column == flat[:, axis["index"]].tolist()
        if axis["kind"] == "principal":
            centred = flat - flat.mean(axis=0)
            assert np.sum((np.array(column) - np.mean(column)) ** 2) / np.sum(centred ** 2) == pytest.approx(axis["share"])
    for k, W in enumerate(file["record_W"]):
        for i, z in enumerate(queries):
            u = W @ z
            assert shown["directions"][k]["length"][i] == pytest.approx(np.linalg.norm(u))
            here = [column[i] for column in shown["directions"][k]["coordinates"]][4:]
            if np.any(u):
                np.testing.assert_allclose(here, (u / np.linalg.norm(u))[:8], atol=1e-12)
            else:
                assert here == [None] * 8
    np.testing.assert_allclose(data["plane"]["scores"], tokens @ np.load(task)["head"] * np.load(task)["labels"][:, None]
                               if "labels" in np.load(task) else tokens @ np.load(task)["head"], rtol=1e-12)


@pytest.mark.parametrize("kind", ["random", "causal", "self", "ragged"])
def test_the_max_margin_direction_stands_upright(attsvm, report, tmp_path, kind):
    """Every query has axes of its own: along W z of the solution, and one at right angles."""
    task = tmp_path / "t.npz"
    assert attsvm("generate", kind, "--seed", 3, "-o", task).code == 0
    data = report(task)
    main, plane, queries = data["solutions"][0], data["plane"], data["queries"]
    assert [axis["kind"] for axis in plane["axes"][:2]] == ["max-margin", "across"]
    assert plane["coordinates"][:2] == [None, None] and len(plane["along"]) == data["task"]["queries"]
    for i, kept in enumerate(queries["kept"]):
        up, across = (main["directions"]["coordinates"][axis][i] for axis in (0, 1))
        if up is None:
            continue
        assert up == pytest.approx(1, abs=1e-12) and across == pytest.approx(0, abs=1e-12)
        # The kept token is ahead of every other by at least the margin, its support tokens by that.
        ahead = np.array(plane["along"][i])
        assert len(ahead) == len(plane["across"][i]) == queries["visible"][i]
        gaps = np.delete(ahead[kept[0]] - ahead, kept[0])
        margin = 1 / main["directions"]["length"][i]
        assert len(gaps) == 0 or gaps.min() >= margin * (1 - 1e-6)
        rows = main["rows"]
        for k in rows["support"]:
            if rows["query"][k] == i:
                assert ahead[kept[0]] - ahead[rows["drop"][k]] == pytest.approx(margin, rel=1e-5)
        # A rotation of the space that the axes span: lengths are kept up to what lies outside of the plane.
        keys = np.load(task)["tokens"] if kind == "random" else None
        if keys is not None:
            assert np.all(np.hypot(ahead, plane["across"][i]) <= np.linalg.norm(keys[i], axis=1) * (1 + 1e-12))


def test_the_attention_map_holds_every_weight(report, task, run):
    shown = report(task, "--run", run)["runs"][0]
    queries, T = np.load(run)["attention"].shape
    weights = np.frombuffer(base64.b64decode(shown["map"]["weights"]), np.uint8).reshape(-1, queries, T)
    assert shown["map"]["queries"] == queries and shown["map"]["points"] == list(range(len(shown["norm"])))
    tokens, z = np.load(task)["tokens"], np.load(task)["queries"]
    for W, picture in zip(np.load(run)["record_W"], weights, strict=True):
        logits = np.einsum("itk,kl,il->it", tokens, W, z)
        attention = np.exp(logits - logits.max(axis=1, keepdims=True))
        attention /= attention.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(picture, 255 * np.sqrt(attention), atol=0.5 + 1e-9)


def test_several_runs(attsvm, report, task, run, tmp_path):
    """The page follows the tokens of the first run; every run is judged by its own."""
    other = tmp_path / "kq.npz"
    assert attsvm("train", task, "--param", "KQ", "--seed", 1, "--record", "every:50", "-o", other).code == 0
    files = [run, other]
    data = report(task, "--run", run, "--run", other)
    assert [one["file"] for one in data["runs"]] == [str(file) for file in files]
    assert data["runs"][0]["kept"] != data["runs"][1]["kept"]  # so that it matters
    assert data["selection"] == "chosen by the first run" and data["queries"]["kept"] == data["runs"][0]["kept"]
    for file, shown in zip(files, data["runs"]):
        check = attsvm("check", task, "--run", file, "--json").json()
        assert [kept[0] for kept in shown["kept"]] == check["selected"]
        assert shown["verdict"] == check["verdict"] and shown["reason"] == check["reason"]
        assert {one["norm"]: one["rho"] for one in shown["shares"]} == check["rho"]
        for curve, name in zip(shown["correlations"], ("correlation_fro", "correlation_nuc")):
            assert curve["values"] == pytest.approx(check[name], nan_ok=True)
            assert curve["norm"] == name.removeprefix("correlation_")
            assert (curve["solution"] is None) == (shown["kept"] != data["queries"]["kept"])
    assert data["runs"][0] == report(task, "--run", run)["runs"][0]
    said = attsvm("report", task, "--run", run, "--run", other, "-o", tmp_path / "both.html", "--json").json()
    assert said["runs"] == [str(file) for file in files]
    stranger = tmp_path / "stranger.npz"
    assert attsvm("generate", "random", "--seed", 2, "-o", tmp_path / "t2.npz").code == 0
    assert attsvm("train", tmp_path / "t2.npz", "--steps", 5, "-o", stranger).code == 0
    refused(attsvm, tmp_path, task, "--run", run, "--run", stranger, words=[str(stranger), "another task"])


def test_margins_of_the_run(report, task, run):
    data = report(task, "--run", run)
    W = np.load(run)["W"]
    tokens, queries = np.load(task)["tokens"], np.load(task)["queries"]
    rows = data["solutions"][data["main"]]["rows"]
    want = [(tokens[i, a] - tokens[i, t]) @ W @ queries[i] / np.linalg.norm(W) for i, a, t in zip(rows["query"], rows["keep"], rows["drop"])]
    np.testing.assert_allclose(data["runs"][0]["margins"], want, atol=1e-12)


def test_the_same_bytes_for_any_number_of_threads(attsvm, task, run, tmp_path):
    apart = tmp_path / "apart.npz"
    assert attsvm("generate", "random", "--n", 10, "--T", 5, "--d", 3, "--seed", 1, "-o", apart).code == 0
    for args in ([task, "--run", run], [task, "--run", run, "--run", run], [apart]):
        pages = []
        for threads in (1, 3):
            out = tmp_path / "same.html"
            assert attsvm("report", *args, "--threads", threads, "-o", out, "--force").code == 0
            pages.append(out.read_bytes())
        assert pages[0] == pages[1], args


def test_solutions_of_the_readers_own(attsvm, report, task, tmp_path):
    good, bad, alone, v = (tmp_path / name for name in ("good.npz", "bad.npz", "alone.npz", "v.npz"))
    assert attsvm("solve", task, "--norm", "lp:3", "-o", good).code == 0
    assert attsvm("solve", task, "--problem", "v", "-o", v).code in (0, 3)
    arrays = dict(np.load(good))
    np.savez(alone, W=2 * arrays["W"])
    np.savez(bad, **{**arrays, "objective": arrays["objective"] * 0.9})
    data = report(task, "--solution", good, "--solution", bad, "--solution", alone, "--solution", v)
    assert [one["file"] for one in data["solutions"]] == [str(good), str(bad), str(alone), str(v), None, None]
    first, second, third, fourth, *solved = data["solutions"]
    assert first["valid"] and first["norm"] == "lp:3" and first["objective"] == float(arrays["objective"])
    assert not second["valid"] and second["objective"] is None and second["rows"] is None
    verdict = attsvm("verify", task, bad, "--json").json()
    assert second["reason"] == verdict["reason"]
    assert third["valid"] and third["status"] is None and third["dual_objective"] is None and third["rows"] is not None
    assert fourth["problem"] == "v" and fourth["directions"] is None
    assert [one["norm"] for one in solved] == ["fro", "nuc"]
    assert data["selection"] == "of the first solution"
    # A solution that is one of the selection's own takes its place.
    own = tmp_path / "own.npz"
    assert attsvm("solve", task, "-o", own).code == 0
    data = report(task, "--solution", own)
    assert [(one["norm"], one["file"]) for one in data["solutions"]] == [("fro", str(own)), ("nuc", None)]


@pytest.mark.parametrize("kind", ["random", "self", "prompt", "causal", "ragged", "relu", "quadratic", "separable", "planted", "single-local", "losses"])
def test_every_kind_of_task(attsvm, report, tmp_path, kind):
    task, run = tmp_path / "t.npz", tmp_path / "r.npz"
    assert attsvm("generate", kind, "-o", task).code == 0
    data = report(task)
    assert data["solutions"] and all(one["valid"] for one in data["solutions"])
    if attsvm("train", task, "--steps", 50, "-o", run).code == 0:
        data = report(task, "--run", run)
        assert data["runs"][0]["step"] == list(range(51))


def test_joint_runs_are_judged_by_their_own_head(attsvm, report, tmp_path):
    task, run = tmp_path / "t.npz", tmp_path / "r.npz"
    assert attsvm("generate", "joint-tight", "-o", task).code == 0
    start = tmp_path / "start.npz"
    np.savez(start, W0=np.array([0.0, -1.0]), v0=np.array([-1.0, 0.0]))
    assert attsvm("train", task, "--param", "p", "--joint", "--init", start, "--steps", 100, "-o", run).code == 0
    data = report(task, "--run", run)
    check = attsvm("check", task, "--run", run, "--json").json()
    assert data["check"]["verdict"] == check["verdict"] and data["queries"]["optimal"] == check["optimal"]


def test_the_accuracy_of_a_joint_run_is_that_of_the_head_it_had(attsvm, report, tmp_path):
    task, start, run = (tmp_path / name for name in ("t.npz", "start.npz", "r.npz"))
    assert attsvm("generate", "random", "--seed", 2, "-o", task).code == 0
    with np.load(task) as given:
        tokens, queries, labels, head = (given[name] for name in ("tokens", "queries", "labels", "head"))
    np.savez(start, W0=np.zeros((10, 10)), v0=-head)
    assert attsvm("train", task, "--joint", "--init", start, "--step", 1, "--steps", 400, "--record", "every:40", "-o",
                  run).code == 0

    def right(W, v):
        chosen = np.argmax(np.einsum("itd,de,ie->it", tokens, W, queries), axis=1)
        return np.mean(labels * (tokens[np.arange(len(labels)), chosen] @ v) > 0)

    with np.load(run) as stored:
        own = [right(*point) for point in zip(stored["record_W"], stored["record_v"])]
        last = [right(W, stored["v"]) for W in stored["record_W"]]
        broken = {**stored, "record_v": stored["record_v"][:, 1:]}
    assert own != last  # else this tests nothing
    assert report(task, "--run", run)["runs"][0]["accuracy"] == own
    np.savez(run, **broken)
    refused(attsvm, tmp_path, task, "--run", run, words=[str(run), "record_v has shape (11,9)"])


def test_many_records_are_thinned(attsvm, report, task, tmp_path):
    run = tmp_path / "long.npz"
    assert attsvm("train", task, "--steps", 1000, "--record", "every:1", "-o", run).code == 0
    shown = report(task, "--run", run)["runs"][0]
    assert shown["records"] == 1001 and len(shown["step"]) == 200
    assert shown["step"][0] == 0 and shown["step"][-1] == 1000
    assert max(np.diff(shown["step"])) <= 6


def test_token_names(attsvm, report, task, tmp_path):
    names = [f"\u00fc{k}<\U0001f600" for k in range(48)]
    named = tmp_path / "named.npz"
    for shape in ((48,), (6, 8)):
        np.savez(named, **np.load(task), x_token_names=np.array(names).reshape(shape))
        assert report(named)["plane"]["names"] == names
    np.savez(named, **np.load(task), x_token_names=np.array(names[:7]))
    refused(attsvm, tmp_path, named, words=[str(named), "x_token_names has 7 texts", "48 tokens"])
    np.savez(named, **np.load(task), x_token_names=np.arange(48))
    refused(attsvm, tmp_path, named, words=[str(named), "x_token_names", "int64"])


def test_hostile_names_stay_inside_the_data(attsvm, task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = "<\u2044script><script>alert(1)'\"&<!--.npz"
    names = ["</script><script>alert(1)</script>", "<!--<script>", "]]>", "\\u003c"] * 12
    np.savez(file, **np.load(task), x_token_names=np.array(names))
    assert attsvm("report", file, "-o", "page.html").code == 0
    html = pathlib.Path("page.html").read_text(encoding="utf-8")
    assert html.count("<script") == html.count("</script>") == 2
    data = data_of(pathlib.Path("page.html"))
    assert data["title"] == file and data["plane"]["names"] == names
    assert data["command"].startswith("attsvm report '<\u2044script>")
    # A name that is no text at all.
    os.rename(file.encode(), b"\xff\xfe.npz")
    result = attsvm("report", b"\xff\xfe.npz".decode(errors="surrogateescape"), "-o", "bytes.html")
    assert result.code == 0, result.err
    data_of(pathlib.Path("bytes.html"))


def test_refusals(attsvm, task, run, tmp_path):
    refused(attsvm, tmp_path, tmp_path / "none.npz", words=["none.npz"])
    refused(attsvm, tmp_path, task, "--run", task, words=[str(task), "W is missing"])
    refused(attsvm, tmp_path, task, "--solution", tmp_path / "none.npz", words=["none.npz"])
    refused(attsvm, tmp_path, task, "--coordinates", "0,10", words=["coordinate 10", "0 to 9"])
    refused(attsvm, tmp_path, task, "--coordinates", "x", words=["--coordinates x"])
    other = tmp_path / "other.npz"
    assert attsvm("generate", "random", "--d", 4, "-o", other).code == 0
    refused(attsvm, tmp_path, other, "--run", run, words=[str(run), "(10,10)", "(4,4)"])
    bare = tmp_path / "bare.npz"
    np.savez(bare, tokens=np.load(task)["tokens"], queries=np.load(task)["queries"])
    refused(attsvm, tmp_path, bare, words=[str(bare), "head is missing"])
    broken = tmp_path / "broken.npz"
    np.savez(broken, **{**np.load(run), "record_loss": np.zeros(3)})
    refused(attsvm, tmp_path, task, "--run", broken, words=[str(broken), "record_loss"])
    page = tmp_path / "page.html"
    page.write_text("mine")
    result = attsvm("report", task, "-o", page)
    assert result.code == 2 and "--force" in result.err and page.read_text() == "mine"
    result = attsvm("report", task, "-o", task, "--force")
    assert result.code == 2 and "input of this command" in result.err


def test_demo_writes_its_page(attsvm, tmp_path):
    result = attsvm("demo", "--out", tmp_path / "d")
    assert result.code == 0 and f"{tmp_path}/d/report.html" in result.out
    data = data_of(tmp_path / "d" / "report.html")
    assert [run["implied"]["norm"] for run in data["runs"]] == ["fro", "nuc"]
    for run in data["runs"]:
        assert run["step"][-1] == 20000 and run["records"] > 50
    assert attsvm("demo", "--out", tmp_path / "d", "--json").json()["report"] == f"{tmp_path}/d/report.html"


def test_index_holds_what_the_schema_says(attsvm, tmp_path):
    assert attsvm("reproduce", "losses", "svm-rank", "--runs", 2, "--out", tmp_path).code == 0
    data = data_of(tmp_path / "index.html")
    assert [one["experiment"] for one in data["experiments"]] == ["losses", "svm-rank"]
    for one in data["experiments"]:
        kept = json.loads((tmp_path / one["experiment"] / "data.json").read_text())
        absent = {"log_x": False, "log_y": False, "x_range": None, "y_range": None, "square": False,
                  "grid": None}
        panels = [{**absent, **panel} for panel in kept["figure"]["panels"]]
        assert one["figure"] == {**kept["figure"], "panels": panels} and one["findings"] == kept["findings"]
        assert all((tmp_path / one["experiment"] / file).exists() for file in one["files"])
