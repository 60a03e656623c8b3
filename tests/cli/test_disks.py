"""Full, read-only and vanishing disks: one line, and neither a file nor a part of one."""

import os
import resource
import shutil
import signal
import subprocess

import pytest

from test_memory import caught

WRITERS = {
    "generate": lambda task, out: ["generate", "random", "--n", 60, "--d", 40, "-o", out],
    "solve": lambda task, out: ["solve", task, "-o", out],
    "train": lambda task, out: ["train", task, "--steps", 50, "-o", out],
    "path": lambda task, out: ["path", task, "--radius", "1,2", "-o", out],
    "positions": lambda task, out: ["positions", task, "--kind", "sinusoidal", "-o", out],
    "report": lambda task, out: ["report", task, "-o", out],
}
PROGRAM = os.environ["ATTSVM_PROGRAM"]


@pytest.fixture
def task(draw):
    return draw("random", "--n", 40, "--T", 12, "--d", 24)


def refused(done, folder):
    assert done.returncode == 2 and done.stdout == "", done
    assert len(done.stderr.splitlines()) == 1 and str(folder) in done.stderr, done
    return done.stderr


def run(words, **options):
    return subprocess.run([*map(str, words), "--quiet", "--json"], capture_output=True, text=True, timeout=300, **options)


@pytest.mark.parametrize("verb", WRITERS)
def test_a_limit_on_the_size_of_files(task, tmp_path, verb):
    folder = tmp_path / "out"
    folder.mkdir()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
    done = run([PROGRAM, *WRITERS[verb](task, folder / "file")], preexec_fn=limit)
    assert "cannot write" in refused(done, folder)
    assert [path for path in folder.iterdir() if not path.name.endswith(".journal")] == []


def in_small_disk(folder, script):
    """The result of a shell script that sees a disk of 64 kB at the folder; None where nobody may mount one."""
    mount = f'mount -t tmpfs -o size=64k tmpfs "{folder}" || exit 99\n'
    done = subprocess.run(["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-m", "sh", "-c", mount + script],
                          capture_output=True, text=True, timeout=300)
    return None if done.returncode == 99 or done.stderr.startswith("unshare:") else done


@pytest.mark.parametrize("verb", WRITERS)
def test_a_full_disk(task, tmp_path, verb):
    folder = tmp_path / "disk"
    folder.mkdir()
    words = " ".join(map(str, WRITERS[verb](task, folder / "file")))
    fill = f'dd if=/dev/zero of="{folder}/full" bs=1k count=60 2>/dev/null\n'
    done = in_small_disk(folder, f'{fill}"{PROGRAM}" {words} --quiet --json\ncode=$?\nls "{folder}" >&2\nexit $code')
    if done is None:
        pytest.skip("no disk can be mounted here")
    line, *files = done.stderr.splitlines()
    assert done.returncode == 2 and done.stdout == "" and str(folder) in line and "No space" in line, done
    assert [name for name in files if not name.endswith(".journal")] == ["full"], done


def test_a_disk_that_cannot_be_written(task, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    words = " ".join(map(str, WRITERS["solve"](task, folder / "file")))
    done = in_small_disk(folder, f'mount -o remount,ro "{folder}"\n"{PROGRAM}" {words} --quiet --json')
    if done is None:
        pytest.skip("no disk can be mounted here")
    assert "Read-only" in refused(done, folder)


def test_a_folder_that_vanishes(task, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    program = subprocess.Popen([PROGRAM, "train", task, "--steps", "1e9", "--quiet", "-o", folder / "run.npz"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        while not caught(program.pid, signal.SIGTERM):
            assert program.poll() is None
        shutil.rmtree(folder)
        program.send_signal(signal.SIGTERM)
        words = program.communicate(timeout=120)[1]
    finally:
        program.kill()
    assert program.returncode == 2 and len(words.splitlines()) == 1 and str(folder) in words, words
