"""The campaign of make soak, in its shortest form."""

import json
import pathlib
import subprocess
import sys

SOAK = pathlib.Path(__file__).parent.parent / "soak.py"


def test_two_cases_of_each_class_and_going_on(tmp_path):
    for times in (1, 2):
        words = [sys.executable, SOAK, "--cases", "1", "--folder", tmp_path]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, (done.stdout, done.stderr)
        state = json.loads((tmp_path / "state.json").read_text())
        assert len(state) == 8 and all(one == {"tried": times, "failed": []} for one in state.values()), state
        assert f"{times} tried, {times} survived" in done.stdout
