"""A file that becomes shorter while it is in use raises an error and does not end Python."""

import subprocess
import sys

import pytest

MAKE = """
import os, attsvm, numpy
path = "task.npz"
attsvm.generate("random", n=100, T=50, d=40, seed=1).save(path)
task = attsvm.load_task(path)
"""


def run(text, folder, *options):
    return subprocess.run([sys.executable, *options, "-c", MAKE + text], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("options", [[], ["-X", "faulthandler"]])
@pytest.mark.parametrize("work", ["attsvm.train(task, steps=5)", "attsvm.train(task, steps=5, out='run.npz')",
                                  "attsvm.solve(task, time_limit=1)", "task.tokens.sum()",
                                  "attsvm.verify(task, numpy.ones((40, 40)))"])
def test_calls_raise(tmp_path, work, options):
    done = run(f"""
os.truncate(path, 0)
try:
    {work}
    print("nothing was raised")
except attsvm.InputError as error:
    print("raised", error)
try:
    attsvm.train(task, steps=5)
except attsvm.InputError as error:
    print("again", error)
del task
print(attsvm.train(attsvm.generate("random", seed=1), steps=5).W.shape)
""", tmp_path, *options)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 3, done
    assert lines[0] == "raised task.npz: became shorter while it was in use; what was loaded from it is lost"
    assert lines[1].startswith("again task.npz: became shorter") and lines[2] == "(10, 10)"
    assert not (tmp_path / "run.npz").exists()


def test_the_thread_that_calls_is_told(tmp_path):
    done = run("""
import threading
def work():
    try:
        print("returned", attsvm.train(task, steps=5))
    except attsvm.InputError as error:
        print("raised", error)
os.truncate(path, 0)
thread = threading.Thread(target=work)
try:
    thread.start()
    thread.join()
except attsvm.InputError:  # the main thread may hear of it too, if it runs Python before the call ends
    pass
thread.join()
print("main goes on")
""", tmp_path)
    assert done.returncode == 0 and done.stderr == "", done
    assert done.stdout.splitlines() == [
        "raised task.npz: became shorter while it was in use; what was loaded from it is lost", "main goes on"]


def test_faults_of_others_are_left_alone(tmp_path):
    done = run("""
import mmap
with open("other", "wb") as file:
    file.write(bytes(1 << 16))
with open("other", "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
os.truncate("other", 0)
mapped[1 << 15]
""", tmp_path, "-X", "faulthandler")
    assert done.returncode == -7 and "Bus error" in done.stderr
