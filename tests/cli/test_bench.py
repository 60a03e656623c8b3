"""The benchmark suite's own judgement. Nothing is timed here, and no peer is needed."""

import json
import math
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from suite import aims, compare, document, fit, instances, judge, pages, peers, results, saturation, table, worker  # noqa: E402
from suite.rows import load_rows  # noqa: E402

MACHINE = {"date": "2026-01-01T00:00:00+00:00", "processor": "a processor", "vector": ["avx2"], "cores": 2, "memory": 2**33, "system": "a system", "load": [0.0, 0.0, 0.0],
           "load_end": [0.1, 0.0, 0.0], "seconds": 60.0, "commit": "abc", "python": "3.11", "packages": {"numpy": "2", "ecos": None}}


class Programs:
    """suite.programs.Programs around the program under test."""

    def __init__(self, attsvm, folder):
        self.program, self.folder = attsvm, folder

    def attsvm(self, *words, accept=(0,)):
        done = self.program(*words, "--json", "--quiet")
        assert done.code in accept, done
        return done.json()


@pytest.fixture
def programs(attsvm, tmp_path):
    return Programs(attsvm, tmp_path)


def made(*rows):
    """Results of (section, case, who, samples, more)."""
    found = results.Results(dict(MACHINE), {"quick": False, "sections": []})
    for section, case, who, seconds, more in rows:
        found.add(section, case, who, seconds, **more)
    return found


def timed(*seconds, who="attsvm", **more):
    return made(("large", "a problem", who, list(seconds), more))


def verdicts(a, b):
    return {verdict: len(found) for verdict, found in compare.compare(a, b).items() if found}


def test_spread_is_median_and_quartiles():
    assert results.spread([5.0, 1.0, 2.0, 4.0, 3.0]) == {"median": 3.0, "low": 2.0, "high": 4.0, "count": 5}
    assert results.spread([7.0]) == {"median": 7.0, "low": None, "high": None, "count": 1}


def test_compare_names_what_is_beyond_the_noise_only():
    quiet, noisy = timed(1.0, 1.01, 1.0, 0.99), timed(0.6, 0.9, 1.1, 1.6)
    assert verdicts(quiet, timed(1.3, 1.31, 1.3, 1.29)) == {"slower": 1}
    assert verdicts(timed(1.3, 1.31, 1.3, 1.29), quiet) == {"faster": 1}
    assert verdicts(noisy, timed(0.8, 1.2, 1.3, 2.0)) == {"same": 1}
    assert verdicts(timed(1.0, 1.0, 1.0), timed(1.02, 1.02, 1.02)) == {"same": 1}  # no spread, but below 3 %
    assert verdicts(timed(1.0), timed(1.2)) == {"same": 1}  # measured once each: no spread is known
    assert verdicts(timed(1.0), timed(1.5)) == {"slower": 1}


def test_compare_sees_answers_that_got_worse():
    good = timed(1.0, 1.0, 1.0, verified=True)
    assert verdicts(good, timed(0.5, 0.5, 0.5, verified=False)) == {"worse": 1}
    assert verdicts(good, made(("large", "a problem", "attsvm", None, {"status": "out of time"}))) == {"worse": 1}
    assert verdicts(good, made()) == {"missing": 1}


def test_compare_as_a_command(tmp_path):
    timed(1.0, 1.01, 1.0, 0.99).save(tmp_path / "a.json")
    timed(2.0, 2.01, 2.0, 1.99).save(tmp_path / "b.json")
    done = subprocess.run([ROOT / "bench/compare", tmp_path / "a.json", tmp_path / "b.json"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "slower: large, a problem, attsvm: 1 s -> 2 s, 2.00 times" in done.stdout
    same = subprocess.run([ROOT / "bench/compare", tmp_path / "a.json", tmp_path / "a.json"], capture_output=True, text=True)
    assert same.returncode == 0 and "1 within the noise" in same.stdout


def test_files_hold_what_json_can(tmp_path):
    timed(1.0, 2.0, gap=math.nan, shares=[math.inf]).save(tmp_path / "a.json")
    (row,) = results.load(tmp_path / "a.json").rows
    assert row["gap"] is None and row["shares"] == [None]


@pytest.mark.parametrize("kind, norm", [("random", "fro"), ("random", "nuc"), ("prompt", "fro"), ("sets", "fro"), ("sets", "nuc")])
def test_an_optimum_has_no_gap_and_a_stretched_one_has(programs, kind, norm):
    task = instances.Instance(kind, 4, 5, 6).file(programs)
    solution = programs.folder / "solution.npz"
    optimum = programs.attsvm("solve", task, "--norm", norm, "-o", solution)["objective"]
    W, rows = np.load(solution)["W"], load_rows(task)
    assert rows.equal.sum() == (4 if kind == "sets" else 0)
    found = judge.judge(programs, task, rows, W, norm, optimum)
    assert abs(found["gap"]) < 1e-9 and found["violation"] < 1e-9 and found["verified"]
    short = judge.judge(programs, task, rows, 0.9 * W, norm, optimum)  # shrunk: infeasible, but as good a direction
    assert abs(short["gap"]) < 1e-9 and short["violation"] == pytest.approx(0.1, abs=1e-6) and not short["verified"]
    bent = W + 0.05 * np.linalg.norm(W) * np.random.default_rng(1).standard_normal(W.shape) / W.size**0.5
    gap = judge.honest_gap(rows, bent, norm, optimum)
    assert gap is None or gap > 1e-4
    assert judge.judge(programs, task, rows, -W, norm, optimum)["gap"] is None  # nothing makes that feasible
    assert not judge.judge(programs, task, rows, math.nan * W, norm, optimum)["verified"]


def test_heads_are_what_the_methods_for_heads_get(programs):
    """Rows in few directions; each query keeps its largest product, and those with the smallest gaps are left out."""
    task = instances.Instance("head", 100, 24, 16).file(programs)
    with np.load(task) as file:
        tokens, queries, select = file["tokens"], file["queries"], file["select"]
    with np.load(instances.Instance("random", 100, 24, 16).file(programs)) as file:
        sizes = instances.LEAST ** (np.arange(16) / 15)
        logits = np.sort(np.einsum("ntd,nd->nt", file["tokens"] * sizes, file["queries"] * sizes))
    gaps = np.sort(logits[:, -1] - logits[:, -2])
    own = np.einsum("ntd,nd->nt", tokens, queries)
    np.testing.assert_array_equal(select, own == own.max(1, keepdims=True))
    own.sort()
    np.testing.assert_allclose(np.sort(own[:, -1] - own[:, -2]), gaps[10:])
    for norm, method in (("fro", "proximal Newton"), ("nuc", "interior point, Newton on the face")):
        solution = programs.folder / f"{norm}.npz"
        assert programs.attsvm("solve", task, "--norm", norm, "-o", solution)["method"] == method
        assert programs.attsvm("verify", task, solution)["valid"]


def test_rank_counts_what_is_above_the_threshold():
    assert judge.rank_of(np.diag([1.0, 1e-3, 1e-8])) == 2


def test_rows_are_those_of_the_program(programs):
    for kind in ("random", "sets", "prompt", "head"):
        task = instances.Instance(kind, 3, 4, 5).file(programs)
        programs.attsvm("solve", task, "-o", programs.folder / f"{kind}.npz")
        solution, rows = np.load(programs.folder / f"{kind}.npz"), load_rows(task)
        np.testing.assert_array_equal(rows.equal, solution["row_equal"])
        np.testing.assert_allclose(rows.values(solution["W"]) - rows.rhs, solution["slack"], atol=1e-12)
        np.testing.assert_allclose(rows.matrix @ solution["W"].ravel(), rows.values(solution["W"]), atol=1e-12)
        np.testing.assert_allclose(rows.gram, rows.matrix @ rows.matrix.T, atol=1e-12)
        np.testing.assert_allclose(rows.weigh(solution["dual"]).ravel(), rows.matrix.T @ solution["dual"], atol=1e-12)


def test_every_peer_says_what_it_is():
    found = peers.all_peers()
    assert len({peer.name for peer in found}) == len(found)
    for peer in found:
        assert peer.form and bool(peer.tight) == ("tight" in peer.settings) and set(peer.norms) <= {"fro", "nuc", "spec", "max", "l1"}
        assert peer.package in (ROOT / "bench/requirements.txt").read_text().split()


def sleep_for(seconds):
    return lambda: time.sleep(seconds) or "slept"


def missing_package():
    import no_such_package_anywhere  # noqa: F401


def broken():
    raise ValueError("a reason")


def test_a_worker_is_warm_and_can_be_given_up():
    quick = worker.Worker(sleep_for, 0.001)
    quick.round(0.02, 5)
    quick.stop()
    assert quick.state == "ready" and quick.answer == "slept" and len(quick.seconds) > 1 and quick.peak_memory > 0
    slow = worker.Worker(sleep_for, 60)
    slow.round(0, 0.1)
    assert slow.state == "out of time" and slow.seconds == [] and not slow.process.is_alive()
    assert worker.Worker(missing_package).state == "not available"
    failed = worker.Worker(broken)
    assert failed.state == "failed" and "a reason" in failed.reason


def test_exponents():
    assert fit.exponent([(1, 2.0), (2, 8.0), (4, 32.0)]) == pytest.approx((2.0, 0.0), abs=1e-9)
    assert fit.exponent([(1, 1.0), (4, 2.0)]) == (pytest.approx(0.5), None)


def test_direction_errors():
    exact = np.array([[0.6], [0.8]])
    assert saturation.direction_error(1e-300 * exact, exact) < 1e-15
    assert saturation.direction_error(np.zeros((2, 1)), exact) is None
    assert saturation.direction_error(np.array([[-0.6], [-0.8]]), exact) == pytest.approx(2)


def test_numbers_read_well():
    assert [table.duration(x) for x in (5.43e-6, 0.0123, 1.5, 4000, None)] == ["5.43 us", "12.3 ms", "1.5 s", "4,000 s", "-"]
    assert table.spread_text({"median": 2.0, "low": 1.0, "high": 2.2}) == "-50/+10 %"
    row = made(("solvers", "c", "peer", None, {"status": "out of time", "limit": 60, "times_ours": 1000.0})).rows[0]
    assert "> 60 s" in table.line(row) and "over 1,000x ours" in table.line(row)


def solver_run():
    case = "Att-SVM fro (6,8,10)"
    return made(("solvers", case, "attsvm", [5e-6] * 3, {"gap": 1e-15, "violation": 0.0, "rank": 6, "times_ours": 1.0}),
                ("solvers", case, "CVXOPT, primal, default", [6e-4] * 3, {"gap": 1e-8, "violation": 0.0, "rank": 6, "times_ours": 120.0}),
                ("solvers", case, "CVXOPT, dual, default", [4e-4] * 3, {"gap": 1e-8, "violation": 0.0, "rank": 6, "times_ours": 80.0}),
                ("solvers", case, "ProxQP, primal, default", [1e-4] * 3, {"gap": 0.1, "violation": 0.0, "rank": 6, "times_ours": 20.0}),
                ("solvers", case, "cvxpy + ECOS, default", None, {"status": "not available", "reason": "no wheel"}),
                ("solvers", case, "cvxpy + OSQP, tight", None, {"status": "out of time", "limit": 30, "times_ours": 6e6}))


def test_aims_count_the_better_form_and_missed_ones_are_shown():
    found = solver_run()
    aim = next(aim for aim in aims.all_aims(2) if aim.what.startswith("times CVXOPT's better form"))
    assert aim.judged(found) == ("≥ 100x", "80x", False)
    assert "**missed**" in pages.aims_text(found)
    assert aim.judged(made()) is None


@pytest.mark.parametrize("text", [None, "", "{", "{}", "[]", '{"machine": {}, "settings": {}, "rows": [{}]}'])
def test_what_is_no_results_file_is_one_clear_line(tmp_path, text):
    path = tmp_path / "a.json"
    if text is not None:
        path.write_text(text)
    done = subprocess.run([ROOT / "bench/compare", path, ROOT / "docs/benchmarks.json"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1 and str(path) in done.stderr, done


def test_a_time_out_is_no_measurement():
    case = "Att-SVM nuc (100,32,64)"
    one = ("solvers", case, "CVXOPT, dual SDP, default", None, {"status": "out of time", "limit": 60, "times_ours": 1300.0})
    other = ("solvers", case, "cvxpy + Clarabel, default", [9.0] * 3, {"gap": 1e-9, "times_ours": 2000.0})
    aim = next(aim for aim in aims.all_aims(2) if aim.subject == case and aim.what == "times the best other peer")
    assert aim.judged(made(one, other)) == ("≥ 100x", "> 1,300x", True)
    assert aim.judged(made(one)) is None  # the other was never tried


def test_runs_that_do_not_depend_on_each_other_are_compared_core_by_core():
    mine = ("training", "(6,8,10) W, 1000 at once, 2 threads", "attsvm", [1e-7] * 3, {"threads": 2})
    alone = ("training", "(6,8,10) W, 1000 at once, 1 threads", "PyTorch, batched, bmm", [6e-7] * 3, {"threads": 1})
    both = ("training", "(6,8,10) W, 1000 at once, 2 threads", "PyTorch, batched, bmm", [5e-7] * 3, {"threads": 2})
    assert aims.batched_ratio("W", "PyTorch, batched", 2)(made(mine, alone, both)) == pytest.approx(3)


def test_documents_show_every_row(tmp_path):
    found = solver_run()
    text = pages.whole(found, set())
    for words in ("| CVXOPT, dual, default | 400 us |", "80x", "not available", "no wheel", "out of time (30 s)", "> 6,000,000x", "not installed: ecos"):
        assert words in text
    assert "Provisional" not in text
    found.machine["load"] = [1.5, 0, 0]
    assert "Provisional" in pages.whole(found, set())
    assert "80x (CVXOPT, dual, default)" in pages.short(found)  # ProxQP is faster, but a gap of 0.1 is no answer


def test_readme_gets_its_figures():
    text = f"before\n{document.BEGIN}\nold\n{document.END}\nafter\n"
    assert document.placed(text, "new\n") == f"before\n{document.BEGIN}\nnew\n{document.END}\nafter\n"


def test_readme_has_the_figures_of_the_numbers_in_docs():
    text = (ROOT / "README.md").read_text()
    assert document.placed(text, pages.readme(results.load(ROOT / "docs/benchmarks.json"))) == text


def test_documents_are_those_of_the_numbers_beside_them(tmp_path):
    """docs/benchmarks.md is what bench/document makes of docs/benchmarks.json, charts included."""
    numbers = ROOT / "docs/benchmarks.json"
    (tmp_path / "docs").mkdir()
    subprocess.run([ROOT / "bench/document", numbers, "--root", tmp_path, "--no-readme"], check=True)
    assert (tmp_path / "docs/benchmarks.md").read_text() == (ROOT / "docs/benchmarks.md").read_text()
    drawn = {path.name for path in (tmp_path / "docs/benchmarks").iterdir()}
    assert drawn == {path.name for path in (ROOT / "docs/benchmarks").iterdir()}
    assert all(path.stat().st_size < 60_000 for path in (ROOT / "docs/benchmarks").iterdir())
    assert json.loads(numbers.read_text())["rows"]
