"""Too little memory raises MemoryError and leaves Python, and the package, as they were."""

import subprocess
import sys

WORK = """
import gc, resource, attsvm
task = attsvm.generate("random", n=60, T=12, d=40, seed=1)
calls = {
    "nuclear": lambda: attsvm.solve(task, norm="nuc", threads=1).W.tobytes(),
    "spectral": lambda: attsvm.solve(task, norm="spec", threads=1).W.tobytes(),
    "train": lambda: attsvm.train(task, steps=100, threads=1).W.tobytes(),
    "threads": lambda: attsvm.solve(task, threads=3).W.tobytes(),
}
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
refused = 0
for name, call in calls.items():
    for kilobytes in (0, 300, 3000, 30_000, None):
        gc.collect()
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (hard if kilobytes is None else now + (kilobytes << 10), hard))
        try:
            answer = call()
        except (MemoryError, attsvm.InputError) as error:
            answer, words = None, str(error)
            refused += 1
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        assert answer is not None or kilobytes is not None, words
    assert answer == call()
print(refused)
"""


def test_calls_under_limits():
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True)
    assert done.returncode == 0 and int(done.stdout) >= 4, done
