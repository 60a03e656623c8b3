"""The types that editors and checkers see: mypy and pyright, both strict, on the package and on a user's file."""

import json
import pathlib
import subprocess
import sys
from importlib.util import find_spec

import attsvm
import pytest

PACKAGE = pathlib.Path(attsvm.__file__).parents[1]
USER = """
import attsvm
import numpy as np
from numpy.typing import NDArray

task = attsvm.Task(np.ones((2, 3, 4)), queries=np.ones((2, 4)), head=np.ones(4))
solution: attsvm.Solution = attsvm.solve(task, norm=("lp", 3), callback=lambda state: state.gap < 1e-3)
again: attsvm.Solution = attsvm.solve(task, norm=solution.norm, relax=solution.relax)
W: NDArray[np.float64] = solution.W
runs: attsvm.Runs = attsvm.train_many([task], steps=1, optimizer=("steepest", "spec"))
run: attsvm.Run = runs[0]
some: list[attsvm.Solution] = attsvm.solve_many([task])[0:1]
words: str = run.settings
loaded: tuple[attsvm.Task, attsvm.Run, attsvm.Solution] = (
    attsvm.load_task("task.npz"), attsvm.load_run("run.npz"), attsvm.load_solution("svm.npz"))
found: attsvm.Margin = attsvm.margin(task, W)
verdict: str | None = attsvm.report(task, run, out="page.html").verdict
queries: NDArray[np.float64] | None = task.queries
judged: attsvm.Check = attsvm.check(task)
if isinstance(judged, attsvm.NextTokenCheck):
    graphs: list[attsvm.PriorityGraph] = judged.graph
    edges: list[tuple[int, int]] = graphs[0].edges
path: attsvm.Path = attsvm.path(task, [1, 10], param="KQ")
stack: attsvm.Stack = attsvm.stack(task, values="identity", askers="all")
sizes: attsvm.Capacity = attsvm.capacity(3, 4, 5, attention="self")
heads = attsvm.Heads(np.ones((1, 3, 4)), np.ones((1, 3, 4)))
audit: attsvm.Audit = attsvm.audit(heads)
copies = found.to_dict(copy=True)
"""
PARTS_USER = """
import attsvm
import attsvm.plot
import attsvm.torch
import numpy as np
import torch
from numpy.typing import NDArray

model = attsvm.AttentionSVM(norm=("lp", 3), C=1.0).fit(np.ones((2, 3, 4)), [0, 1], sample_weight=[1, 2])
chosen: NDArray[np.int64] = model.predict(np.ones((2, 3, 4)))
shares: NDArray[np.float64] = model.predict_proba(np.ones((2, 3, 4)))
share: float = model.score(np.ones((2, 3, 4)), chosen)
solution: attsvm.Solution = model.solution_
layer = torch.nn.TransformerEncoderLayer(16, 4, batch_first=True)
heads: attsvm.Heads = attsvm.torch.heads_from(layer, torch.ones(8, 10, 16))
with attsvm.torch.monitor(layer, every=10) as seen:
    layer(torch.ones(8, 10, 16))
steps: list[int] = seen.steps
attsvm.plot.singular_values(solution).get_yscale()
"""
WRONG = """
import attsvm

task = attsvm.load_task("task.npz")
attsvm.solve(task, norm="frobenius")
attsvm.train(task, optimizer="sgd")
attsvm.train(task, loss="hinge")
number: int = attsvm.solve(task).norm
attsvm.solve(task, norm=("l", 3))
if attsvm.solve(task).status == "stuck":
    pass
judged = attsvm.check(task)
if isinstance(judged, attsvm.NextTokenCheck):
    count: str = judged.graphs
"""


# Not held to strict mode: the stub that nanobind writes, and files whose packages are not here.
PARTS = {"sklearn": ["estimator.py"], "matplotlib": ["plot.py"],
         "torch": [file.name for file in (PACKAGE / "attsvm").glob("*torch*.py")]}
LOOSE = ["_core.pyi", *(file for package, files in PARTS.items() if not find_spec(package) for file in files)]
# Arguments may be anything that looks like an array, so they are Any until they are checked; and the package's files
# share what users must not touch.
BY_DESIGN = ("reportUnknownMemberType", "reportUnknownArgumentType", "reportUnknownVariableType",
             "reportUnknownParameterType", "reportUnknownLambdaType", "reportPrivateUsage")


def strict(errors):
    return [one for one in errors if not pathlib.Path(one.split(":")[0]).name in LOOSE]


def mypy(*words, folder):
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder / "cache", *words],
                          capture_output=True, text=True, cwd=folder, env={"MYPYPATH": str(PACKAGE)})
    return [line for line in done.stdout.splitlines() if ": error: " in line]


def pyright(folder, *, include, off=()):
    """The errors, as `file:line rule`."""
    pytest.importorskip("pyright")
    (folder / "pyrightconfig.json").write_text(json.dumps({
        "typeCheckingMode": "strict", "include": include, "extraPaths": [str(PACKAGE)], "pythonVersion": "3.11",
        **{rule: False for rule in off}}))
    done = subprocess.run([sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable], cwd=folder,
                          capture_output=True, text=True)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [f"{pathlib.Path(one['file']).name}:{one['range']['start']['line'] + 1} {one.get('rule')}: {one['message']}"
            for one in found if one["severity"] == "error"]


def lines(errors):
    return sorted({int(one.split(":")[1].split()[0]) for one in errors})


def test_mypy_passes_the_package(tmp_path):
    assert strict(mypy("-p", "attsvm", folder=tmp_path)) == []


def test_pyright_passes_the_package(tmp_path):
    (tmp_path / "package").symlink_to(PACKAGE / "attsvm")
    assert strict(pyright(tmp_path, include=["package"], off=BY_DESIGN)) == []


def test_a_users_file_with_all_parts(tmp_path):
    for package in PARTS:
        pytest.importorskip(package)
    (tmp_path / "user.py").write_text(PARTS_USER)
    assert pyright(tmp_path, include=["user.py"]) == []
    (tmp_path / "user.py").write_text(PARTS_USER.replace("NDArray[np.int64]", "str").replace("list[int]", "int"))
    assert lines(pyright(tmp_path, include=["user.py"])) == [10, 18]


def of_the_user(errors):
    """Without those in the package, which mypy does not show where it is installed."""
    return [one for one in errors if one.startswith("user.py:")]


@pytest.mark.parametrize("checker", [lambda folder: of_the_user(mypy("user.py", folder=folder)),
                                     lambda folder: pyright(folder, include=["user.py"])], ids=["mypy", "pyright"])
def test_a_users_file(checker, tmp_path):
    (tmp_path / "user.py").write_text(USER)
    assert checker(tmp_path) == []
    (tmp_path / "user.py").write_text(WRONG)
    assert lines(checker(tmp_path)) == [5, 6, 7, 8, 9, 10, 14]
