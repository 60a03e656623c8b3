"""The two programs that are measured: attsvm itself, and attsvm_bench, which calls the library in loops."""

import json
import pathlib
import subprocess

LIMIT = 1200  # seconds that a call of ours may take
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Programs:
    def __init__(self, build):
        self.build = pathlib.Path(build)
        self.folder = self.build / "instances"  # task and solution files
        self.folder.mkdir(exist_ok=True)

    def attsvm(self, *words, accept=(0,), timeout=LIMIT):
        """The JSON object that a verb prints."""
        done = subprocess.run([self.build / "attsvm", *map(str, words), "--json", "--quiet"], capture_output=True, text=True, timeout=timeout)
        if done.returncode not in accept:
            raise RuntimeError(f"attsvm {' '.join(map(str, words))}: {done.stderr.strip() or done.returncode}")
        return json.loads(done.stdout)

    def bench(self, *words, timeout=LIMIT):
        """The measurements that attsvm_bench prints, a list of objects."""
        done = subprocess.run([self.build / "attsvm_bench", *map(str, words)], capture_output=True, text=True, timeout=timeout)
        if done.returncode != 0:
            raise RuntimeError(f"attsvm_bench {' '.join(map(str, words))}: {done.stderr.strip()}")
        return [json.loads(line) for line in done.stdout.splitlines()]
