"""Examples in docstrings and documents give what they show."""

import doctest
import importlib
import pkgutil

import attsvm
import pytest
from conftest import ROOT

MODULES = [module.name for module in pkgutil.iter_modules(attsvm.__path__) if module.name != "_core"]
FLAGS = doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", ["__init__", *MODULES])
def test_docstrings(name):
    module = attsvm if name == "__init__" else importlib.import_module(f"attsvm.{name}")
    assert doctest.testmod(module, optionflags=FLAGS).failed == 0


@pytest.mark.parametrize("name", ["docs/python.md", "README.md"])
def test_documents(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    attsvm.generate("random", n=6, T=8, d=10, seed=1).save("task.npz")  # what the command-line session of README made
    result = doctest.testfile(str(ROOT / name), module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert result.attempted >= 5 and result.failed == 0


def test_what_is_public_is_explained():
    for name in attsvm.__all__:
        thing = getattr(attsvm, name)
        assert name.startswith("__") or thing.__doc__, name
        if callable(thing) and not isinstance(thing, type):
            assert ">>>" in thing.__doc__ or name == "load", name


def test_types_are_there():
    """The stub of the extension module names what the module has, and the package says that it is typed."""
    import pathlib
    folder = pathlib.Path(attsvm.__file__).parent
    assert (folder / "py.typed").exists()
    stub = (folder / "_core.pyi").read_text()
    for name in ("def solve(", "def train(", "class Task", "class Solution", "class InputError(ValueError)"):
        assert name in stub
