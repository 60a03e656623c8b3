import json
import os
import resource
import subprocess
from dataclasses import dataclass

import numpy as np
import pytest


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

    def run(*args, memory=None, timeout=60, **options):
        limit = memory and (lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)))
        done = subprocess.run([program, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              encoding="utf-8", errors="replace", timeout=timeout, preexec_fn=limit, **options)
        return Result(done.returncode, done.stdout, done.stderr)

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
