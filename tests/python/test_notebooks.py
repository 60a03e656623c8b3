"""Every notebook runs from its first cell to its last; those on real models where their weights are there."""

import os

import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_there_are_seven():
    assert len(NOTEBOOKS) == 7


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    if any("import torch" in cell.source for cell in notebook.cells):
        pytest.importorskip("torch", reason="PyTorch is not installed (Debian: python3-torch)")
    for folder in notebook.metadata.get("attsvm", {}).get("weights", []):
        if not (ROOT / "build/weights" / folder).is_dir():
            pytest.skip(f"{folder} is not in build/weights; scripts/fetch_weights fetches it")
    os.environ["ATTSVM_PROJECT"] = str(ROOT)
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    try:
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    finally:
        os.environ["MPLBACKEND"] = "agg"
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in shown)
    assert not any(output.output_type == "stream" and output.name == "stderr" and "Error" in output.text
                   for output in shown)
