"""The campaign of make soak, in its shortest form."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

SOAK = pathlib.Path(__file__).parent.parent / "soak.py"
SKIPPED = [] if "ATTSVM_FAILING_MALLOC" in os.environ else ["allocations"]  # a sanitizer has a malloc of its own
if shutil.which("mpirun") is None or not (pathlib.Path(os.environ["ATTSVM_PROGRAM"]).parent / "attsvm_mpi.so").exists():
    SKIPPED.append("ranks")


def test_two_cases_of_each_class_and_going_on(tmp_path):
    for times in (1, 2):
        words = [sys.executable, SOAK, "--cases", "1", "--folder", tmp_path]
        words += [word for name in SKIPPED for word in ("--skip", name)]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, (done.stdout, done.stderr)
        state = json.loads((tmp_path / "state.json").read_text())
        assert len(state) == 9 - len(SKIPPED) and all(one == {"tried": times, "failed": []} for one in state.values()), state
        assert f"{times} tried, {times} survived" in done.stdout


def test_failures_of_earlier_calls_count(tmp_path):
    (tmp_path / "state.json").write_text(json.dumps({"answers": {"tried": 3, "failed": [1]}}))
    words = [sys.executable, SOAK, "--cases", "0", "--folder", tmp_path, "--skip", "allocations"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1 and "3 tried, 2 survived" in done.stdout, done


def test_without_what_makes_memory_fail_nothing_is_tried(tmp_path):
    words = [sys.executable, SOAK, "--cases", "1", "--folder", tmp_path / "new"]
    env = {**os.environ, "ATTSVM_FAILING_MALLOC": str(tmp_path / "no.so")}
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    assert done.returncode == 2 and "no.so is missing" in done.stderr, done
    assert not (tmp_path / "new").exists()
