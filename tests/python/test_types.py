"""The types that editors and mypy see."""

import pathlib
import subprocess
import sys

import attsvm

USER = """
import attsvm
import numpy as np

task = attsvm.Task(np.ones((2, 3, 4)), queries=np.ones((2, 4)), head=np.ones(4))
solution: attsvm.Solution = attsvm.solve(task, norm=("lp", 3), callback=lambda state: state.gap < 1e-3)
W: np.ndarray = solution.W
runs: attsvm.Runs = attsvm.train_many([task], steps=1)
run: attsvm.Run = runs[0]
some: list[attsvm.Solution] = attsvm.solve_many([task])[0:1]
words: str = run.settings
wrong: int = solution.norm
"""


def mypy(*arguments, folder):
    return subprocess.run([sys.executable, "-m", "mypy", "--ignore-missing-imports", "--cache-dir", folder / "cache",
                           *arguments], capture_output=True, text=True, cwd=folder,
                          env={"MYPYPATH": str(pathlib.Path(attsvm.__file__).parents[1])})


def test_the_package_and_a_users_file(tmp_path):
    package = mypy("-p", "attsvm", folder=tmp_path)
    assert package.returncode == 0, package.stdout
    (tmp_path / "user.py").write_text(USER)
    user = mypy("user.py", folder=tmp_path)
    assert "user.py:12: error" in user.stdout and "Found 1 error" in user.stdout, user.stdout
