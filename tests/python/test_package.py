"""Wheels and source distribution: complete, self-contained, and usable in clean environments.

The wheel wraps the module of the build tree and is tried with Debian's Python. ATTSVM_WHEEL_FROM_SOURCE=1 compiles the
wheels that we give out instead, which takes many minutes, and tries each with every Python here that it is for.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import pytest
import rattler_build
from conftest import FIXTURES, ROOT

FROM_SOURCE = os.environ.get("ATTSVM_WHEEL_FROM_SOURCE") == "1"
CLEAN = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
LARGEST = 10_000_000  # bytes of a wheel that we give out
GLIBC = (2, 28)  # the oldest that it runs on: what RHEL 8 and Debian 10 have


TAGS = {"3.10": "cp310-cp310", "3.11": "cp311-cp311", "3.12": "cp312-abi3"}  # of the wheels, by the Python that makes them
PYENV = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"


def starts(python):
    """Whether it is there and is no stand-in of pyenv's that leads nowhere."""
    found = shutil.which(python)
    return found is not None and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0


def pythons():
    """The interpreters to try, by version: Debian's, and for the wheels that we give out pyenv's too."""
    found = {"debian": pathlib.Path("/usr/bin/python3")}
    if FROM_SOURCE:
        found |= {path.name: path / "bin/python" for path in sorted(PYENV.glob("3.[1-9][0-9].*"))}
    return found


def tags_of_pythons_here():
    """What scripts/build_wheels must have made: a wheel for each Python that is on PATH or pyenv's."""
    return {tag for version, tag in TAGS.items()
            if any(map(starts, (f"python{version}", *PYENV.glob(f"{version}.*/bin/python"))))}


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
def wheels(tmp_path_factory):
    if FROM_SOURCE:
        run(ROOT / "scripts/build_wheels")
        return sorted((ROOT / "build/wheels").glob("attsvm-*.whl"))
    folder = tmp_path_factory.mktemp("wheel")
    run(ROOT / "scripts/build_wheel", ROOT, folder, "--no-build-isolation",
        f"--config-settings=build-dir={folder}/build",
        f"--config-settings=cmake.define.ATTSVM_PYTHON_PREBUILT={os.environ['ATTSVM_BUILD']}")
    return list(folder.glob("attsvm-*.whl"))


def metadata_of(wheel):
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return archive.read(name).decode()


@pytest.fixture(scope="module", params=pythons().items(), ids=lambda item: item[0])
def clean(request, tmp_path_factory, wheels):
    """The interpreter of a fresh environment with the wheel that pip chooses for it, NumPy, and pytest for the tests."""
    folder = tmp_path_factory.mktemp("clean")
    run(request.param[1], "-m", "venv", folder)
    install = (folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check")
    run(*install, "--no-index", "--no-deps", "--only-binary", ":all:", "--find-links", wheels[0].parent, "attsvm")
    run(*install, "numpy", "pytest")
    run(folder / "bin/pip", "check")
    return folder / "bin/python"


def test_the_source_distribution_is_complete(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    tracked = run("git", "-C", ROOT, "ls-files", "src", "include", "app", "python", "cmake", "web",
                  "scripts/compile_kernels", "CMakeLists.txt", "pyproject.toml", "LICENSE", "README.md", "packages.txt").split()
    assert tracked and set(tracked) <= names, sorted(set(tracked) - names)
    assert not any(name.startswith(("build", "tests", "bench")) for name in names)


def test_the_wheel_has_what_it_needs(wheels):
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        assert "manylinux" in wheel.name
        for name in ("attsvm/__init__.py", "attsvm/py.typed", "attsvm/_core.pyi", "attsvm/__main__.py"):
            assert name in names
        metadata = metadata_of(wheel)
        required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra" not in line]
        assert required == ["Requires-Dist: numpy>=1.23"]
        for line in ("Provides-Extra: plot", "Provides-Extra: sklearn", "Provides-Extra: torch",
                     "Classifier: Typing :: Typed", "Author: The attsvm authors", "License-Expression: MIT"):
            assert line in metadata


def test_the_description_has_no_links_that_break(wheels):
    metadata, description = metadata_of(wheels[0]).split("\n\n", 1)
    assert "Description-Content-Type: text/markdown" in metadata and description.startswith("# attsvm")
    assert "![" not in description
    targets = re.findall(r"\]\(([^)]*)\)", description)
    assert targets and all(target.startswith("https://") for target in targets), targets


@pytest.mark.skipif(not FROM_SOURCE, reason="the wheel of the build tree is for this machine alone")
def test_wheels_are_small_and_run_on_old_systems(wheels, tmp_path):
    assert {re.search(r"-(cp\d+-\w+)-manylinux_2_28_x86_64", wheel.name)[1] for wheel in wheels} == tags_of_pythons_here()
    for wheel in wheels:
        assert wheel.stat().st_size < LARGEST, wheel
        folder = tmp_path / wheel.stem
        zipfile.ZipFile(wheel).extractall(folder)
        libraries = [path for path in folder.rglob("*.so*") if path.is_file()]
        assert libraries
        for library in libraries:
            symbols = run("objdump", "-T", library)
            versions = [tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", symbols)]
            assert versions and max(versions) <= GLIBC, (library, max(versions))
            assert "GLIBCXX" not in symbols
        shown = run(sys.executable, "-m", "auditwheel", "show", wheel).replace("\n", " ")
        assert int(re.search(r'following platform tag: "manylinux_2_(\d+)_x86_64"', shown)[1]) <= GLIBC[1], shown
        [licence] = folder.glob("attsvm-*.dist-info/licenses/LICENSE")
        assert all(f"======== {name}" in licence.read_text() for name in ("libflint-dev", "libgmp-dev", "libc++"))


@pytest.mark.skipif(not FROM_SOURCE or len(tags_of_pythons_here()) < 2, reason="needs two wheels that we give out")
def test_the_library_is_compiled_once_for_all_wheels(wheels):
    log = (ROOT / "build/manylinux/wheel.log").read_text()  # of the last one
    assert "Linking CXX shared module" in log
    assert re.findall(r"Building CXX object (src/\S+)", log) == []


def test_pythons_that_are_missing_are_named(tmp_path):
    for name in ("bash", "dirname"):
        (tmp_path / name).symlink_to(shutil.which(name))
    done = subprocess.run([tmp_path / "bash", ROOT / "scripts/build_wheels"], capture_output=True, text=True,
                          env={"PATH": str(tmp_path), "PYENV_ROOT": str(tmp_path)})
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.splitlines() == [f"there is no Python {version} here, so no wheel for it" for version in TAGS]


def test_the_conda_recipe():
    recipe = rattler_build.Stage0Recipe.from_file(ROOT / "packaging/conda/recipe.yaml")
    variants = rattler_build.VariantConfig({"python": ["3.9", "3.10", "3.12"], "c_stdlib": ["sysroot"],
                                            "c_stdlib_version": ["2.28"]})
    rendered = [variant.recipe.to_dict() for variant in recipe.render(variants)]
    version = re.search(r"project\(attsvm VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert {one["package"]["version"] for one in rendered} == {version}
    program, python = ([one for one in rendered if one["package"]["name"] == name] for name in ("libattsvm", "attsvm"))
    assert program and len(python) == 2, "3.9 is too old"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    tools, needs = ([need.replace(">=", " >=") for need in list]
                    for list in (project["build-system"]["requires"], project["project"]["dependencies"]))
    for_old = {tool.split(";")[0] for tool in tools if tool.endswith("; python_version < '3.11'")}
    always = {"pip", "python", *program[0]["requirements"]["host"], *(tool for tool in tools if ";" not in tool)}
    hosts = sorted((set(one["requirements"]["host"]) for one in python), key=len)
    assert for_old and hosts == [always, always | for_old]
    assert all(one["requirements"]["run"] == ["python", *needs] for one in python)
    for one in rendered:
        assert (ROOT / "packaging/conda" / one["build"]["script"]).exists()


SMOKE = """
import sys
import numpy as np
import attsvm
assert not {"matplotlib", "sklearn", "torch", "tqdm"} & set(sys.modules)
task = attsvm.generate("random", n=30, T=20, d=30, seed=1)
solution = attsvm.solve(task)
assert attsvm.verify(task, solution)
run = attsvm.train(task, steps=10)
assert run.steps == 10
attsvm.check(task, run)
rng = np.random.default_rng(0)
heads = attsvm.Heads(rng.normal(size=(2, 30, 4)), rng.normal(size=(2, 30, 4)), position=np.arange(30))
heads.save("heads.npz")
audit = attsvm.audit(attsvm.load("heads.npz"), queries=20, nulls=1)
assert audit.complete and len(audit) == 2
attsvm.report(task, run, out="report.html")
for name in ("plot", "AttentionSVM"):
    try:
        getattr(attsvm, name)
    except ImportError as error:
        assert "pip install attsvm[" in str(error)
    else:
        raise AssertionError(name)
print(attsvm.__version__, np.__version__)
"""
# Of the system: glibc's, and those that the rules for manylinux wheels expect of every Linux.
SYSTEM = {"linux-vdso", "ld-linux-x86-64", "libc", "libm", "libdl", "libpthread", "librt", "libgcc_s", "libstdc++", "libz"}


def test_a_clean_environment(clean, tmp_path):
    version = run(clean, "-c", SMOKE, cwd=tmp_path).split()[0]
    assert run(clean.parent / "attsvm", "--version", cwd=tmp_path) == f"attsvm {version}\n"
    assert run(clean, "-m", "attsvm", "--version", cwd=tmp_path) == f"attsvm {version}\n"
    assert "verify" in run(clean, "-m", "attsvm", "demo", cwd=tmp_path)
    run(clean, "-m", "attsvm", "playground", "-o", "playground.html", cwd=tmp_path)
    for page in ("report.html", "demo/report.html", "playground.html"):
        assert (tmp_path / page).read_text().startswith("<!doctype html>"), page
    package = pathlib.Path(run(clean, "-c", "import attsvm; print(attsvm.__path__[0])", cwd=tmp_path).strip())
    [module] = package.glob("_core.*.so")
    for line in run("ldd", module).splitlines():
        assert "not found" not in line
        assert line.split(".so")[0].split("/")[-1].strip() in SYSTEM or str(package.parent) in line, line


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
