import json
import os
import pty
import re
import resource
import signal
import subprocess
import tempfile
from dataclasses import dataclass

import numpy as np
import pytest

from page_data import data_of


@dataclass
class Result:
    code: int
    out: str
    err: str

    def json(self):
        """The one JSON object that stdout must be."""
        return json.loads(self.out)

    def lines(self):
        """Those of stderr."""
        return self.err.strip().splitlines()


@pytest.fixture(scope="session")
def attsvm():
    """attsvm("info", file, memory=bytes): runs the program that ATTSVM_PROGRAM names."""
    program = os.environ["ATTSVM_PROGRAM"]

    def run(*args, memory=None, timeout=600, **options):
        limit = memory and (lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)))
        done = subprocess.run([program, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              encoding="utf-8", errors="replace", timeout=timeout, preexec_fn=limit, **options)
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def stopped():
    """stopped("path", task, sign="radius 10"): the result of a program that gets Ctrl-C (or another signal) once its
    progress line shows the sign. The line shows what the work is at, so no test has to know how fast a machine is."""

    def run(*args, sign, how=signal.SIGINT, **options):
        ours, theirs = pty.openpty()
        with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
            program = subprocess.Popen([os.environ["ATTSVM_PROGRAM"], *map(str, args)], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=theirs, **options)
            os.close(theirs)
            shown, asked = b"", False
            try:
                while part := os.read(ours, 4096):
                    shown += part
                    if not asked and re.search(sign.encode(), shown):
                        program.send_signal(how)
                        asked = True
            except OSError:  # the program has closed the terminal
                pass
            finally:
                os.close(ours)
                program.kill()
            code = program.wait()
            out.seek(0)
            assert asked, (code, shown)
            # What a progress line wrote over itself is no message.
            text = shown.decode("utf-8").replace("\r\n", "\n")
            return Result(code, out.read(), re.sub(r"(\r\x1b\[K[^\r\n]*)*\r\x1b\[K", "", text))

    return run


@pytest.fixture(scope="session")
def halfway(attsvm):
    """halfway("train", …): the result of a run that a time limit stopped after its first and before its last step. How
    long it may take is found by trying, because that depends on the machine."""

    def run(*args):
        limit = 0.02
        for _ in range(100):
            result = attsvm(*args, "--time-limit", limit, "--force", "--json")
            if result.code == 4 and result.json()["steps"] > 0:
                return result
            assert result.code in (0, 4), result
            limit *= 0.6 if result.code == 0 else 1.5
        raise AssertionError("no time limit stops this run halfway")

    return run


@pytest.fixture
def task_file(tmp_path):
    """task_file(tokens=..., labels=...): the path of a task file that holds these arrays."""

    def write(file="task.npz", /, *, save=np.savez, **arrays):
        save(tmp_path / file, **arrays)
        return tmp_path / file

    return write


@pytest.fixture
def draw(attsvm, tmp_path):
    """draw("random", "--n", 3): the path of a drawn task."""

    def make(kind="random", *options, name="task.npz"):
        assert attsvm("generate", kind, "--seed", 4, "-o", tmp_path / name, "--force", *options).code == 0
        return tmp_path / name

    return make


@pytest.fixture
def solve(attsvm, tmp_path):
    """solve(task, "--relax", 1): JSON fields, arrays, and the whole result; the answer must pass verify."""

    def run(task, *options, code=0, out="solution.npz"):
        result = attsvm("solve", task, "-o", tmp_path / out, "--force", "--json", *options)
        assert result.code == code, result
        verdict = attsvm("verify", task, tmp_path / out, "--json")
        assert verdict.code == 0 and verdict.json()["valid"] is True, verdict
        with np.load(tmp_path / out) as file:
            return result.json(), {name: file[name] for name in file.files}, result

    return run


@pytest.fixture
def refused(attsvm):
    """refused(path, "tokens[1]"): asserts that attsvm info refuses the file as the contract says, in little memory."""
    memory = 400 << 20  # enough for any small file, whatever it claims to hold

    def check(path, *words):
        for options in ([], ["--json"]):
            result = attsvm("info", path, "--threads", 1, *options, memory=memory, timeout=20)
            assert result.code == 2, result
            assert result.out == ""
            assert result.err.endswith("\n") and len(result.err.splitlines()) == 1, result.err
            for word in (str(path), *words):
                assert word in result.err, result.err

    return check


@pytest.fixture
def refused_bytes(refused, tmp_path):
    """The same for a file of these bytes."""

    def check(data, *words, name="task.npz"):
        (tmp_path / name).write_bytes(data)
        refused(tmp_path / name, *words)

    return check


@pytest.fixture
def report(attsvm, tmp_path):
    """report(task, "--run", run): the data of the page that this writes."""

    def write(*args):
        out = tmp_path / "report.html"
        result = attsvm("report", *args, "-o", out, "--force", "--json")
        assert result.code == 0, result.err
        said = result.json()
        assert said["command"] == "report" and said["file"] == str(out) and said["bytes"] == out.stat().st_size
        return data_of(out)

    return write
