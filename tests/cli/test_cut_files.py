"""A file that becomes shorter while it is in use ends the program with one line."""

import os
import signal
import subprocess

import pytest

from test_memory import caught


@pytest.fixture
def large(draw):
    """A task whose tokens are read from the file, where they lie: attsvm aligns them."""
    return draw("random", "--n", 100, "--T", 50, "--d", 40, name="large\n.npz")


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("stays", [0, 100_000])
def test_training_on_a_task_that_is_cut(large, tmp_path, threads, stays):
    out = tmp_path / "run.npz"
    program = subprocess.Popen([os.environ["ATTSVM_PROGRAM"], "train", large, "--steps", "1e9", "-o", out, "--json",
                                "--threads", str(threads)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while not caught(program.pid, signal.SIGTERM):  # it has read the task
            assert program.poll() is None
        os.truncate(large, stays)
        words = program.communicate(timeout=120)
    finally:
        program.kill()
    assert program.returncode == 2 and words[0] == "" and not out.exists()
    assert len(words[1].splitlines()) == 1 and "large\\x0a.npz: became shorter" in words[1], words


def test_a_fault_that_is_not_in_our_files_ends_the_program(large, tmp_path):
    program = subprocess.Popen([os.environ["ATTSVM_PROGRAM"], "train", large, "--steps", "1e9", "-o", tmp_path / "run.npz"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not caught(program.pid, signal.SIGTERM):
        assert program.poll() is None
    program.send_signal(signal.SIGBUS)
    assert program.wait(timeout=120) == -signal.SIGBUS
