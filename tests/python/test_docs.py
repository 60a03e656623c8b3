"""Examples in docstrings and documents give what they show."""

import doctest
import importlib
import pathlib
import pkgutil
import sys

import attsvm
import pytest
from conftest import ROOT

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import documents  # noqa: E402

MODULES = [module.name for module in pkgutil.iter_modules(attsvm.__path__) if module.name != "_core"]
FLAGS = doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", ["__init__", *MODULES])
def test_docstrings(name):
    module = attsvm if name == "__init__" else importlib.import_module(f"attsvm.{name}")
    assert doctest.testmod(module, optionflags=FLAGS).failed == 0


@pytest.mark.parametrize("page", [*documents.GUIDES, ROOT / "docs/python.md"], ids=documents.name_of)
def test_documents(page, program, tmp_path, monkeypatch):
    """Every block of Python and every session of a guide, in order, in one folder."""
    monkeypatch.chdir(tmp_path)
    names = {}

    def run(words):
        done = program(*words, codes=range(256))
        return done.returncode, done.stdout, done.stderr

    for number, (language, text) in enumerate(documents.blocks(page)):
        where = f"{documents.name_of(page)}, block {number}"
        if language == "python":
            documents.run_python(text, names)
        elif language == "pycon":
            test = doctest.DocTestParser().get_doctest(text, names, where, str(page), 0)
            assert test.examples
            assert doctest.DocTestRunner(optionflags=FLAGS).run(test, clear_globs=False).failed == 0
            names = test.globs
        elif language == "console":
            documents.run_console(text, run, where)


def test_the_picture_of_readme(tmp_path, monkeypatch):
    """scripts/readme_figure still draws it."""
    import runpy
    monkeypatch.setattr(sys, "argv", ["readme_figure", str(tmp_path / "overview.svg")])
    runpy.run_path(str(ROOT / "scripts/readme_figure"), run_name="__main__")
    assert 10_000 < (tmp_path / "overview.svg").stat().st_size < 100_000
    assert (ROOT / "docs/overview.svg").stat().st_size < 100_000


def test_what_is_public_is_explained():
    for name in attsvm.__all__:
        thing = getattr(attsvm, name)
        assert name.startswith("__") or thing.__doc__, name
        if callable(thing) and not isinstance(thing, type):
            assert ">>>" in thing.__doc__, name


def test_the_reference_has_every_call():
    page = (ROOT / "docs/python-api.md").read_text()
    public = [*attsvm.__all__, *(f"plot.{name}" for name in importlib.import_module("attsvm.plot").__all__),
              "torch.heads_from", "torch.heads_from_cache", "torch.monitor", "torch.Monitor"]
    for name in public:
        wanted = {"AttentionSVM": "::: attsvm.estimator.AttentionSVM", "InputError": "`InputError`"}
        assert name == "__version__" or f"{wanted.get(name, f'::: attsvm.{name}')}\n" in page or wanted.get(name, "no") in page, name
    for name in page.split("::: attsvm.")[1:]:
        thing = attsvm
        for part in name.split()[0].split("."):
            thing = getattr(thing, part)


def test_types_are_there():
    """The stub of the extension module names what the module has, and the package says that it is typed."""
    import pathlib
    folder = pathlib.Path(attsvm.__file__).parent
    assert (folder / "py.typed").exists()
    stub = (folder / "_core.pyi").read_text()
    for name in ("def solve(", "def train(", "class Task", "class Solution", "class InputError(ValueError)"):
        assert name in stub
