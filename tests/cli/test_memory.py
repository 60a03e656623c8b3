"""Too little memory ends every verb in one line, soon, with nothing written."""

import os
import resource
import signal
import subprocess

import pytest

MEGABYTE = 1 << 20
LIMITS = [70, 80, 90, 110, 130, 160, 200, 240, 280, 330, 400, 600]  # megabytes of address space
VERBS = {
    "solve": lambda task, out: ["solve", task, "-o", out],
    "nuclear": lambda task, out: ["solve", task, "--norm", "nuc", "-o", out],
    "spectral": lambda task, out: ["solve", task, "--norm", "spec", "-o", out],
    "train": lambda task, out: ["train", task, "--steps", "200", "-o", out],
    "check": lambda task, out: ["check", task],
    "path": lambda task, out: ["path", task, "--radius", "1,10", "-o", out],
    "report": lambda task, out: ["report", task, "-o", out],
    "claims": lambda task, out: ["claims", "direction", "--tasks", "2"],
}


def codes_under_limits(attsvm, arguments, tmp_path):
    """The exit code at each limit; those of the loader, which had no room for libraries, are left out."""
    codes = []
    for limit in LIMITS:
        out = tmp_path / f"{limit}.out"
        done = attsvm(*arguments(out), "--quiet", "--threads", "2", memory=limit * MEGABYTE)
        if done.code == 127:
            continue
        codes.append(done.code)
        assert done.code in (0, 2), (limit, done.err)
        if done.code == 2:
            assert len(done.lines()) == 1, done.err
            assert "out of memory" in done.err or "could be started" in done.err
            assert not out.exists()
    return codes


@pytest.mark.parametrize("verb", VERBS)
def test_small_tasks_under_limits(attsvm, draw, tmp_path, verb):
    task = draw()
    assert codes_under_limits(attsvm, lambda out: VERBS[verb](task, out), tmp_path)[-1] == 0


def test_a_buffer_of_openblas_that_does_not_fit(attsvm, draw, tmp_path):
    task = draw("random", "--n", 100, "--T", 16, "--d", 48)
    codes = codes_under_limits(attsvm, lambda out: ["solve", task, "-o", out], tmp_path)
    assert 2 in codes and codes[-1] == 0, codes


def test_requests_that_fail(attsvm, draw, tmp_path):
    """One request of many that malloc refuses, and all from there on: in our code, and in the libraries'."""
    task, solution = draw(), tmp_path / "solution.npz"
    assert attsvm("solve", task, "-o", solution).code == 0
    verbs = {**VERBS, "verify": lambda task, out: ["verify", task, solution], "info": lambda task, out: ["info", task],
             "soft": lambda task, out: ["solve", task, "--soft", "10", "-o", out]}
    few = int(os.environ.get("ATTSVM_ALLOCATIONS", 3))
    refused = 0
    for verb, arguments in verbs.items():
        out = tmp_path / f"{verb}.out"

        def at(where, count):
            counting = {"ATTSVM_FAIL_AT": str(where), "ATTSVM_FAIL_COUNT": str(count), "ATTSVM_COUNT_REQUESTS": "1",
                        "LD_PRELOAD": os.environ["ATTSVM_FAILING_MALLOC"]}
            return attsvm(*arguments(task, out), "--quiet", "--threads", "1", env={**os.environ, **counting})

        whole = at(0, 0)
        requests = int(whole.err.split()[0])
        assert whole.code == 0 and requests > 100, whole
        for count in (1, 10**9):
            for where in [1, 2, *range(30, requests, requests // few + 1)]:
                out.unlink(missing_ok=True)
                done = at(where, count)
                lines = [line for line in done.lines() if not line.endswith(" requests")]
                assert done.code in (0, 2), (verb, where, count, done)
                if done.code == 2:
                    refused += 1
                    assert len(lines) == 1 and "memory" in lines[0] and not out.exists(), (verb, where, count, done)
    assert refused > few * len(verbs)


def test_a_hangup_stops_as_an_interrupt_does(draw, tmp_path):
    task, out = draw(), tmp_path / "run.npz"
    program = subprocess.Popen([os.environ["ATTSVM_PROGRAM"], "train", task, "--steps", "1e9", "-o", out, "--quiet"],
                               stdout=subprocess.DEVNULL, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60)))
    try:
        while not caught(program.pid, signal.SIGHUP):
            assert program.poll() is None
        program.send_signal(signal.SIGHUP)
        assert program.wait(timeout=60) == 130 and out.exists()
    finally:
        program.kill()


def caught(process, number):
    with open(f"/proc/{process}/status") as status:
        mask = next(line for line in status if line.startswith("SigCgt:"))
    return int(mask.split()[1], 16) >> (number - 1) & 1
