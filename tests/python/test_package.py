"""Wheel and source distribution: complete, self-contained, and usable in a clean environment.

The wheel wraps the module of the build tree. ATTSVM_WHEEL_FROM_SOURCE=1 compiles it from the source distribution
instead, which takes minutes.
"""

import os
import pathlib
import subprocess
import sys
import tarfile
import zipfile

import pytest
from conftest import FIXTURES, ROOT

FROM_SOURCE = os.environ.get("ATTSVM_WHEEL_FROM_SOURCE") == "1"
CLEAN = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def run(*words, env=CLEAN, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=env, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", folder, ROOT)
    [archive] = folder.glob("attsvm-*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, sdist):
    folder = tmp_path_factory.mktemp("wheel")
    if FROM_SOURCE:
        run(ROOT / "scripts/build_wheel", sdist, folder)
    else:
        run(ROOT / "scripts/build_wheel", ROOT, folder, "--no-build-isolation",
            f"--config-settings=build-dir={folder}/build",
            f"--config-settings=cmake.define.ATTSVM_PYTHON_PREBUILT={os.environ['ATTSVM_BUILD']}")
    [found] = folder.glob("attsvm-*.whl")
    return found


@pytest.fixture(scope="module")
def clean(tmp_path_factory, wheel):
    """The interpreter of a fresh environment with the wheel in it, and pytest for the tests."""
    folder = tmp_path_factory.mktemp("clean")
    run("/usr/bin/python3", "-m", "venv", folder)
    run(folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", wheel, "pytest")
    return folder / "bin/python"


def test_the_source_distribution_is_complete(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    tracked = run("git", "-C", ROOT, "ls-files", "src", "include", "app", "python", "cmake", "CMakeLists.txt",
                  "pyproject.toml", "LICENSE", "README.md", "packages.txt").split()
    assert tracked and set(tracked) <= names, sorted(set(tracked) - names)
    assert not any(name.startswith(("build", "tests", "bench")) for name in names)


def test_the_wheel_has_what_it_needs(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith(".dist-info/METADATA"))).decode()
    assert "manylinux" in wheel.name
    for name in ("attsvm/__init__.py", "attsvm/py.typed", "attsvm/_core.pyi", "attsvm/__main__.py"):
        assert name in names
    assert any("libopenblas" in name for name in names)
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra" not in line]
    assert required == ["Requires-Dist: numpy>=1.23"]
    for extra in ("plot", "sklearn", "torch"):
        assert f"Provides-Extra: {extra}" in metadata


SMOKE = """
import pathlib, sys
import numpy as np
import attsvm
assert not {"matplotlib", "sklearn", "torch", "tqdm"} & set(sys.modules)
task = attsvm.generate("random", n=30, T=20, d=30, seed=1)
solution = attsvm.solve(task)
assert attsvm.verify(task, solution)
assert attsvm.train(task, steps=10).steps == 10
for name in ("plot", "AttentionSVM"):
    try:
        getattr(attsvm, name)
    except ImportError as error:
        assert "pip install attsvm[" in str(error)
    else:
        raise AssertionError(name)
package = pathlib.Path(attsvm.__file__).parent.parent
libraries = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
for wanted in ("openblas", "fmt", "sqlite3", "deflate"):
    [found] = {one for one in libraries if f"lib{wanted}" in one and "numpy" not in one}
    assert found.startswith(str(package)), found
print(attsvm.__version__, np.__version__)
"""


def test_a_clean_environment(clean, tmp_path):
    version = run(clean, "-c", SMOKE, cwd=tmp_path).split()[0]
    assert run(clean.parent / "attsvm", "--version", cwd=tmp_path) == f"attsvm {version}\n"
    assert run(clean, "-m", "attsvm", "--version", cwd=tmp_path) == f"attsvm {version}\n"


def test_the_suite_in_a_clean_environment(clean, tmp_path):
    tests = [pathlib.Path(__file__).parent / f"test_{name}.py" for name in ("fixtures", "arrays", "results")]
    out = run(clean, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, cwd=tmp_path,
              env={**CLEAN, "ATTSVM_FIXTURES": str(FIXTURES)})
    assert " passed" in out and "failed" not in out


def test_a_missing_library_is_named(tmp_path):
    done = subprocess.run(["cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", "-DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON",
                           "-DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON"], capture_output=True, text=True)
    assert done.returncode != 0
    for words in ("Eigen3 (Debian: libeigen3-dev)", "CLI11 (Debian: libcli11-dev)"):
        assert words in done.stderr
