import os
import pathlib
import subprocess

import pytest

FIXTURES = pathlib.Path(os.environ["ATTSVM_FIXTURES"])
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def program():
    """program("solve", "task.npz", ...): runs the command line and returns the finished process."""

    def run(*words, codes=(0,), **options):
        done = subprocess.run([os.environ["ATTSVM_PROGRAM"], *map(str, words)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120, **options)
        assert done.returncode in codes, done.stderr
        return done

    return run
