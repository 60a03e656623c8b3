"""The page for clusters shows what the model of ranks says."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_table_is_that_of_the_model():
    done = subprocess.run([sys.executable, ROOT / "scripts/ranks_model.py"], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 8
    assert done.stdout in (ROOT / "docs/howto/cluster.md").read_text()
