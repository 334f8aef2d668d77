"""The notebooks run as they are; tests/test_translations.py compares their languages."""

import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

from paddle_tfm.cli import common

NOTEBOOKS = Path(__file__).parent.parent / "docs/notebooks"
ENGLISH = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb") if ".zh-CN" not in path.name)


def test_they_are_saved_without_outputs_which_age():
    cells = [cell for file in NOTEBOOKS.glob("*.ipynb") for cell in json.loads(file.read_text("utf-8"))["cells"]]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.pages
@pytest.mark.skipif(importlib.util.find_spec("nbclient") is None, reason="needs the extra [docs]")
@pytest.mark.parametrize("name", ENGLISH)
def test_a_notebook_runs_as_it_is(name, tmp_path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(NOTEBOOKS / name, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    # The interpreter of the tests is that of the kernel, and its folder holds the command.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    NotebookClient(book, timeout=1200, kernel_name="python3", resources=resources).execute()
    texts = [
        output.get("text", "") + str(output.get("data", ""))
        for cell in book.cells
        for output in cell.get("outputs", [])
    ]
    everything = "".join(texts)
    assert "Traceback" not in everything and "Error:" not in everything
    expected = {
        "1": ["2024年3月5日"],
        "2": ["best mean", "data:image/png;base64", "post/seed-3"],
        "3": ["causal"],
    }
    assert [text for text in expected[name[0]] if text not in everything] == []


@pytest.mark.parametrize("in_notebook", [False, True])
def test_progress_in_a_notebook_is_lines_and_no_bar(in_notebook, monkeypatch):
    """What a cell runs stands in a terminal that no one can move the cursor of."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setitem(os.environ, common.NOTEBOOK, "1") if in_notebook else monkeypatch.delenv(common.NOTEBOOK, False)
    assert common.notes.__wrapped__().is_terminal != in_notebook
