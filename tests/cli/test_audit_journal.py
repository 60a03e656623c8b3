"""An audit that is stopped or killed goes on where it was, and ends with the bytes of one that was not."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import time

import numpy as np
import pytest

SETTINGS = ["--nulls", "2", "--queries", "150"]


@pytest.fixture(scope="module")
def heads(tmp_path_factory):
    """Eight heads, each of which takes a while."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("journal") / "heads.npz"
    np.savez(path, keys=rng.normal(size=(8, 300, 24)), queries=rng.normal(size=(8, 300, 24)),
             offsets=np.arange(0, 301, 30), sequence=np.repeat(np.arange(10), 30), position=np.tile(np.arange(30), 10),
             text=np.array(list("abcdefghij") * 30))
    return path


@pytest.fixture(scope="module")
def whole(attsvm, heads, tmp_path_factory):
    """The files of an audit that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    done = attsvm("audit", heads, *SETTINGS, "-o", folder / "audit.npz", "--page", folder / "audit.html", "--json")
    assert done.code == 0, done.err
    assert sorted(one.name for one in folder.iterdir()) == ["audit.html", "audit.npz"]
    return folder, done.json()


def start(heads, folder, *words):
    """The audit in a process of its own, once it has finished a head or two."""
    # The files go by relative names, so that the pages' command lines agree.
    run = subprocess.Popen([os.environ["ATTSVM_PROGRAM"], "audit", heads, *SETTINGS, "-o", "audit.npz", "--page", "audit.html",
                            "--threads", "1", *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(3000):
        if run.poll() is not None:
            raise AssertionError(run.communicate())
        if rows(folder / "audit.npz.journal") >= 2:  # then the first is committed
            return run
        time.sleep(0.01)
    raise AssertionError("no head was finished in time")


def rows(journal):
    """How many heads a copy of the journal shows; the last may not be committed yet. The program has it locked."""
    copy = journal.with_suffix(".copy")
    try:
        copy.write_bytes(journal.read_bytes())
        with contextlib.closing(sqlite3.connect(f"file:{copy}?immutable=1", uri=True)) as store:
            return store.execute("SELECT count(*) FROM runs").fetchone()[0]
    except (OSError, sqlite3.Error):
        return 0
    finally:
        copy.unlink(missing_ok=True)


def contents(page):
    """The page's data without the command line that made it."""
    text = page.read_text(encoding="utf-8")
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    return {**data, "command": None}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_same_command_continues(attsvm, heads, whole, tmp_path, how):
    run = start(heads, tmp_path)
    run.send_signal(how)
    out, err = run.communicate(timeout=60)
    assert run.returncode == (-9 if how == signal.SIGKILL else 130)
    assert not (tmp_path / "audit.npz").exists() and not (tmp_path / "audit.html").exists()
    if how != signal.SIGKILL:
        assert "audit.npz.journal" in err and "continues" in err
        assert "not run" in out
    done = attsvm("audit", heads, *SETTINGS, "-o", "audit.npz", "--page", "audit.html", "--json", cwd=tmp_path)
    assert done.code == 0 and "of 8 heads are done" in done.err, done.err
    assert 1 <= done.json()["reused"] < 8
    assert sorted(one.name for one in tmp_path.iterdir()) == ["audit.html", "audit.npz"]
    folder, expected = whole
    assert (tmp_path / "audit.npz").read_bytes() == (folder / "audit.npz").read_bytes()
    assert contents(tmp_path / "audit.html") == contents(folder / "audit.html")
    for one, other in zip(done.json()["heads"], expected["heads"]):
        one.pop("seconds"), other.pop("seconds", None)
        assert one == other


def test_other_audits_are_refused(attsvm, heads, whole, tmp_path):
    run = start(heads, tmp_path)
    second = attsvm("audit", heads, *SETTINGS, "-o", tmp_path / "audit.npz")
    assert second.code == 2 and "another process" in second.err and "--out" not in second.err
    run.kill()
    run.communicate()
    before = (tmp_path / "audit.npz.journal").read_bytes()

    def refused(*words, file=heads):
        done = attsvm("audit", file, *words, "-o", tmp_path / "audit.npz")
        assert done.code == 2 and len(done.lines()) == 1 and not done.out
        assert "audit.npz.journal: left by an interrupted audit" in done.err and "start over" in done.err
        return done.err

    assert "its nulls is 2, not 3" in refused("--nulls", "3", "--queries", "150")
    assert "its seed is 0, not 7" in refused(*SETTINGS, "--seed", "7")
    assert "its time_limit is 0.0, not 9.0" in refused(*SETTINGS, "--time-limit", "9")
    with np.load(heads) as file:
        arrays = dict(file)
    arrays["text"] = arrays["text"][::-1]
    np.savez(tmp_path / "other.npz", **arrays)
    assert "other heads" in refused(*SETTINGS, file=tmp_path / "other.npz")
    assert (tmp_path / "audit.npz.journal").read_bytes() == before
    fresh = attsvm("audit", heads, "--nulls", "0", "--queries", "30", "-o", tmp_path / "audit.npz", "--force", "--json")
    assert fresh.code == 0 and fresh.json()["reused"] == 0
    assert not (tmp_path / "audit.npz.journal").exists()


def test_damaged_journals(attsvm, heads, tmp_path):
    journal = tmp_path / "audit.npz.journal"
    journal.write_bytes(b"x" * 5000)
    done = attsvm("audit", heads, *SETTINGS, "-o", tmp_path / "audit.npz")
    assert done.code == 2 and len(done.lines()) == 1 and "is not a run store, or is damaged" in done.err
    journal.unlink()
    run = start(heads, tmp_path)
    run.kill()
    run.communicate()
    with sqlite3.connect(journal) as store:
        good = json.loads(store.execute("SELECT result FROM runs WHERE instance = 0").fetchone()[0])
    for value, words in (("{", "is not JSON"), ("{}", "is damaged: head 0"), (json.dumps({**good, "head": 3}), "of another head"),
                         (json.dumps({**good, "views": [{"view": 3}]}), "is damaged: head 0")):
        with sqlite3.connect(journal) as store:
            store.execute("UPDATE runs SET result = ? WHERE instance = 0", (value,))
        done = attsvm("audit", heads, *SETTINGS, "-o", tmp_path / "audit.npz")
        assert done.code == 2 and len(done.lines()) == 1 and words in done.err, done.err


def test_some_heads_first(attsvm, heads, whole, tmp_path):
    """Which heads are audited makes no other audit: those of a stopped one count for all."""
    run = start(heads, tmp_path, "--head", "0.0,0.1,0.2,0.3")
    run.send_signal(signal.SIGINT)
    run.communicate()
    done = attsvm("audit", heads, *SETTINGS, "-o", tmp_path / "audit.npz", "--json")
    assert done.code == 0 and done.json()["reused"] >= 1
    assert (tmp_path / "audit.npz").read_bytes() == (whole[0] / "audit.npz").read_bytes()


def test_finished_heads_survive_other_commands(attsvm, heads, whole, tmp_path):
    """An audit of one head keeps what the interrupted audit of all had finished."""
    run = start(heads, tmp_path)
    run.send_signal(signal.SIGINT)
    run.communicate()
    journal = tmp_path / "audit.npz.journal"
    before = rows(journal)
    assert before >= 1
    some = attsvm("audit", heads, *SETTINGS, "--head", "0.7", "-o", tmp_path / "audit.npz", "--json")
    assert some.code == 0 and some.json()["reused"] == 0 and "are done" not in some.err
    assert f"audit.npz.journal keeps {before} finished head" in some.err and rows(journal) == before + 1
    done = attsvm("audit", heads, *SETTINGS, "-o", tmp_path / "audit.npz", "--force", "--json")
    assert done.code == 0 and done.json()["reused"] == before + 1 and not journal.exists()
    assert (tmp_path / "audit.npz").read_bytes() == (whole[0] / "audit.npz").read_bytes()


def test_refused_outputs(attsvm, heads, tmp_path):
    (tmp_path / "there.html").write_text("mine")
    for words, message in ((["--page", tmp_path / "there.html"], "there.html"), (["--page", heads], "heads.npz"),
                           (["--page", tmp_path / "no" / "page.html"], "no/page.html"), (["--page", "-"], "--page"),
                           (["--page", tmp_path / "a", "-o", tmp_path / "a"], "the same file")):
        done = attsvm("audit", heads, *words)
        assert done.code == 2 and message in done.err and len(done.lines()) == 1, done.err
    assert (tmp_path / "there.html").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1


def test_progress(stopped, heads, tmp_path):
    """A terminal sees how many heads are done and how long the others will take, also after the audit has gone on."""
    for sign in (r"[1-7] of 8 heads; \d[^\r]* left", r"[2-7] of 8 heads; \d[^\r]* left"):
        result = stopped("audit", heads, *SETTINGS, "--threads", "1", "-o", tmp_path / "audit.npz", sign=sign)
        assert result.code == 130 and (tmp_path / "audit.npz.journal").exists(), result
