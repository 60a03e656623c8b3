"""Heads and audits from Python are those of files and of the command line."""

import json
import pickle

import attsvm
import numpy as np
import pytest

SEQUENCES, LENGTH, D = 8, 9, 6


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    words = rng.choice(["a", "bé", "çа", "日本", "🙂"], SEQUENCES * LENGTH).tolist()
    return dict(keys=rng.normal(size=(2, SEQUENCES * LENGTH, D)).astype(np.float32),
                queries=2 * rng.normal(size=(4, SEQUENCES * LENGTH, D)), key_head=[0, 0, 1, 1], layer=[0, 0, 1, 1],
                head=[0, 1, 0, 1], offsets=np.arange(SEQUENCES + 1) * LENGTH,
                sequence=np.repeat(np.arange(SEQUENCES), LENGTH), position=np.tile(np.arange(LENGTH), SEQUENCES),
                visible=np.tile(np.arange(LENGTH), SEQUENCES) + 1, text=words, difference=[0, 1e-7, 0, 0])


def test_files(tmp_path, program):
    given = arrays()
    heads = attsvm.Heads(**given)
    heads.save(tmp_path / "heads.npz")
    again = attsvm.load(tmp_path / "heads.npz")
    assert isinstance(again, attsvm.Heads) and again.names == ["0.0", "0.1", "1.0", "1.1"] == heads.names
    for name, value in given.items():
        np.testing.assert_array_equal(again.to_dict()[name], value)
    with np.load(tmp_path / "heads.npz") as file:  # what NumPy reads, and writes, is the same
        assert file["text"].tolist() == given["text"] and file["keys"].dtype == np.float32
        np.savez_compressed(tmp_path / "numpy.npz", **file)
    assert attsvm.load(tmp_path / "numpy.npz").to_dict()["text"] == given["text"]
    with pytest.raises(attsvm.InputError, match="heads.npz"):
        heads.save(tmp_path / "heads.npz")
    copy = pickle.loads(pickle.dumps(heads))
    np.testing.assert_array_equal(copy.attention(3), heads.attention(3))
    assert repr(copy) == "Heads(heads=4, tokens=72, queries=72, d=6, difference=1e-07)"


def test_attention():
    given = arrays()
    heads = attsvm.Heads(**given)
    for h in range(4):
        for i in (0, 5, 17, 71):
            s = given["sequence"][i]
            keys = given["keys"][given["key_head"][h]].astype(float)[s * LENGTH:(s + 1) * LENGTH][:given["visible"][i]]
            weights = np.exp(keys @ given["queries"][h][i])
            np.testing.assert_allclose(heads.attention(h)[i, :len(keys)], weights / weights.sum(), rtol=1e-12)
            assert not heads.attention(h)[i, len(keys):].any()
    blind = attsvm.Heads(np.ones((1, 3, 2)), np.ones((1, 3, 2)), visible=np.eye(3, dtype=bool)[[0, 1, 0]] & [[1], [0], [1]] > 0)
    np.testing.assert_array_equal(blind.attention(0), [[1, 0, 0], [0, 0, 0], [1, 0, 0]])


def test_audit_is_that_of_the_command_line(tmp_path, program):
    attsvm.Heads(**arrays()).save(tmp_path / "heads.npz")
    result = attsvm.audit(attsvm.load(tmp_path / "heads.npz"), queries=30, nulls=2, seed=4)
    shown = program("audit", tmp_path / "heads.npz", "--queries", 30, "--nulls", 2, "--seed", 4, "--json", "-o",
                    tmp_path / "program.npz")
    expected = json.loads(shown.stdout)["heads"]
    for one, other in zip(result.heads, expected):
        one.pop("seconds"), other.pop("seconds")
        assert one == other
    result.save(tmp_path / "python.npz")
    assert (tmp_path / "python.npz").read_bytes() == (tmp_path / "program.npz").read_bytes()
    assert result.head("1.1") is result.heads[3] and len(result) == 4
    assert pickle.loads(pickle.dumps(result)).heads == result.heads and "offset" in result._repr_html_()
    with pytest.raises(KeyError, match="2.0"):
        result.head("2.0")


def data_of(page):
    return page.read_text(encoding="utf-8").split('id="data">')[1].split("</script>")[0]


def test_page(tmp_path, program):
    heads = attsvm.Heads(**arrays())
    heads.save(tmp_path / "heads.npz")
    result = attsvm.audit(heads, queries=30, nulls=2)
    result.page(tmp_path / "python.html", title="heads.npz")
    program("audit", "heads.npz", "--queries", 30, "--nulls", 2, "--page", "program.html", cwd=tmp_path)
    own, other = data_of(tmp_path / "python.html"), data_of(tmp_path / "program.html")
    command = '"command":"attsvm audit heads.npz --queries 30 --nulls 2 --page program.html"'
    assert own == other.replace(command, '"command":null'), "the same bytes but for the command"
    with pytest.raises(attsvm.InputError, match="python.html"):
        result.page(tmp_path / "python.html")
    pickle.loads(pickle.dumps(result)).page(tmp_path / "python.html", title="heads.npz", force=True)
    assert data_of(tmp_path / "python.html") == own


def test_journal(tmp_path):
    rng = np.random.default_rng(1)
    heads = attsvm.Heads(rng.normal(size=(6, 200, 16)), rng.normal(size=(6, 200, 16)), position=np.arange(200))
    journal, settings = tmp_path / "audit.journal", dict(queries=100, nulls=2, threads=1)
    stopped = attsvm.audit(heads, **settings, journal=journal, callback=lambda done, count: done >= 1)
    assert journal.exists() and not stopped.complete and stopped.heads[0]["complete"]
    with pytest.raises(attsvm.InputError, match="audit.journal: left by an interrupted audit, and its seed is 0, not 3"):
        attsvm.audit(heads, **settings, seed=3, journal=journal)
    attsvm.audit(heads, **settings, only=["0.5"], journal=journal)
    assert journal.exists(), "the heads that it did not ask for are still wanted"
    resumed = attsvm.audit(heads, **settings, journal=journal)
    assert not journal.exists() and resumed.complete
    assert resumed.heads[0]["seconds"] == stopped.heads[0]["seconds"], "the first head was not audited again"
    for one, other in zip(resumed.heads, attsvm.audit(heads, **settings).heads):
        one.pop("seconds"), other.pop("seconds")
        assert one == other


def test_only_some_heads():
    heads = attsvm.Heads(**arrays())
    every, some = attsvm.audit(heads, nulls=1), attsvm.audit(heads, nulls=1, only=["1.0"])
    assert len(some) == 1
    for one in (every.heads[2], some.heads[0]):
        one.pop("seconds")
    assert every.heads[2] == some.heads[0]


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("norm, field", [("fro", "frobenius"), ("nuc", "nuclear")])
def test_solutions_are_proven(hidden, norm, field):
    """The task of a head, solved and verified independently, has the audit's norms; the head itself keeps its choices."""
    heads = attsvm.Heads(**arrays())
    audit = attsvm.audit(heads, queries=40, nulls=0)
    for h in range(4):
        task = heads.task(h, hide_sinks=hidden, queries=40)
        view = audit.heads[h]["views"][int(hidden)]
        assert task.n_queries == view["queries"] and task.d == task.dz == D
        solution = attsvm.solve(task, norm=norm)
        assert attsvm.verify(task, solution)
        assert view[field]["objective"] == pytest.approx(solution.objective, rel=1e-7)
        assert (task.attention(np.eye(D)).argmax(1) == task.select.argmax(1)).all()


@pytest.mark.parametrize("hidden", [False, True])
def test_kinds_are_the_audits(hidden):
    heads = attsvm.Heads(**arrays())
    audit = attsvm.audit(heads, nulls=0)
    for h in range(len(heads)):
        assert heads.kinds(h, hide_sinks=hidden) == audit.heads[h]["views"][int(hidden)]["kinds"]


def test_rho_of_one_head():
    """In the Frobenius norm it is the audit's, null and all; in every norm the margin of the identity."""
    heads = attsvm.Heads(**arrays())
    audit = attsvm.audit(heads, nulls=4, seed=7)
    for h in range(len(heads)):
        assert heads.rho(h, nulls=4, seed=7) == pytest.approx(audit.heads[h]["views"][0]["rho"], rel=1e-6)
    for norm in ("fro", "nuc", "spec", "max", ("lp", 3)):
        for hidden in (False, True):
            found = heads.rho(1, norm, hide_sinks=hidden, nulls=2)
            task = heads.task(1, hide_sinks=hidden)
            assert attsvm.verify(task, attsvm.solve(task, norm=norm))
            [expected] = attsvm.margin(task, np.eye(D), norms=norm).rho.values()
            assert found["value"] == pytest.approx(expected, rel=2e-3) and found["draws"] == 2
    assert heads.rho(0, nulls=2, seed=1)["null_mean"] != heads.rho(0, nulls=2, seed=2)["null_mean"]
    with pytest.raises(ValueError, match="nulls = -1"):
        heads.rho(0, nulls=-1)


def test_stops():
    heads = attsvm.Heads(**arrays())
    stopped = attsvm.audit(heads, callback=lambda done, count: True, threads=1)
    assert len(stopped) == 4
    rng = np.random.default_rng(0)
    large = attsvm.Heads(rng.normal(size=(1, 1500, 40)), rng.normal(size=(1, 1500, 40)), position=np.arange(1500))
    with pytest.warns(attsvm.ConvergenceWarning, match="audit: .*the limit ended"):
        limited = attsvm.audit(large, time_limit=0.05)
    assert not limited.complete and not limited.heads[0]["complete"]
    assert limited.heads[0]["views"][0]["kinds"] and limited.heads[0]["views"][0]["nuclear"]["status"] in ("not run", "limit")


def test_refusals():
    given = arrays()
    with pytest.raises(ValueError, match=r"keys\[1\]\[3,2\] = nan; must be finite"):
        bad = given["keys"].copy()
        bad[1, 3, 2] = np.nan
        attsvm.Heads(**{**given, "keys": bad})
    with pytest.raises(TypeError, match="position has dtype float64; must be integers"):
        attsvm.Heads(**{**given, "position": np.zeros(72)})
    with pytest.raises(TypeError, match=r"text\[1\] = 3; must be a str"):
        attsvm.Heads(**{**given, "text": ["a", 3]})
    with pytest.raises(ValueError, match="text has shape"):
        attsvm.Heads(**{**given, "text": ["a"]})
    heads = attsvm.Heads(**given)
    with pytest.raises(ValueError, match="only: there is no head '7.7'"):
        attsvm.audit(heads, only=["7.7"])
    with pytest.raises(ValueError, match="drop = 1"):
        attsvm.audit(heads, drop=1.0)
    for words in ((given,), (given, [1, 2])):
        with pytest.raises(TypeError, match="heads is a dict; must be attsvm.Heads .* or a PyTorch model with its inputs"):
            attsvm.audit(*words)
    with pytest.raises(TypeError, match="inputs and text are for a model"):
        attsvm.audit(heads, [1, 2])
    with pytest.raises(ValueError, match="head = 4"):
        heads.task(4)
