"""`%%qvr` cells in a real kernel: the notebook of the examples runs, and what is wrong stands below its cell."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "examples" / "notebook" / "eight_schools.ipynb"

pytestmark = pytest.mark.long


def executed(notebook: Path, *more: str) -> list[dict[str, Any]]:
    """The code cells of a notebook, with what they gave."""
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", *more, "--output", "out.ipynb"]
    done = subprocess.run(
        [*command, str(notebook)], cwd=notebook.parent, capture_output=True, text=True, check=False, timeout=2 * HANG
    )
    assert done.returncode == 0, done.stderr
    cells = json.loads((notebook.parent / "out.ipynb").read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def bundles(cell: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for output in cell["outputs"]:
        yield output.get("data", {})


def test_the_notebook_of_the_examples(tmp_path: Path) -> None:
    copy = tmp_path / NOTEBOOK.name
    copy.write_text(NOTEBOOK.read_text(encoding="utf-8"), encoding="utf-8")
    _, program, fit, tree = executed(copy)
    (drawn,) = bundles(program)
    assert "effect" in "".join(drawn["text/plain"])
    bar, table = bundles(fit)
    assert '<progress value="600" max="600">' in "".join(bar["text/html"])
    assert "sampling 600 of 600" in "".join(bar["text/plain"])
    shown = "".join(table["text/html"])
    assert "<td>tau</td>" in shown and "<th>r_hat</th>" in shown
    (series,) = bundles(tree)
    assert "Choate" in "".join(series["text/plain"])


def cell(source: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": source.splitlines(keepends=True),
    }


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "widths.qvr").write_text("object Hidden : Real 3\n", encoding="utf-8")
    program = (
        "object School : FinSet _\nprogram p : School -> School\n    data error : School\n"
        "    sample mu <- Normal(0.0, 5.0)\n    observe effect[s : School] <- Normal(mu, error[s])\n    return mu\n"
    )
    sources = [
        "%load_ext qvr",
        "%%qvr model\nobject A : Real 3\nobject B : Real 4\nmorphism f : A -> B [role=linear]\nlet g = f >> f\n",
        "print('model' in dir())",
        '%%qvr model\nimport "widths.qvr"\nmorphism f : Hidden -> Hidden [role=linear]\nlet g = f >> f\n',
        "import torch; print(model(torch.ones(2, 3)).shape)",
        "%%qvr two words\nobject A : Real 3\n",
        "import qvr; qvr.loads('object A : Real 3\\nmorphism f : A -> A [role=linear]\\nlet g = f >> f\\n')",
        f"%%qvr schools --data \"{{'error': [1.0, 2.0]}}\"\n{program}",
        "print(schools.log_joint(None, {'mu': 0.0, 'effect': torch.zeros(2)}))",
    ]
    notebook = folder / "n.ipynb"
    notebook.write_text(
        json.dumps({"cells": [cell(each) for each in sources], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}),
        encoding="utf-8",
    )
    return executed(notebook, "--allow-errors")


def said(cell: dict[str, Any]) -> str:
    return "".join("".join(output.get("text", [])) for output in cell["outputs"])


def test_an_error_is_shown_as_in_the_terminal_and_binds_nothing(cells: list[dict[str, Any]]) -> None:
    (output,) = cells[1]["outputs"]
    trace = "\n".join(output["traceback"])
    assert output["ename"] == "NotChecked" and "compose-mismatch" in trace and "model:4:" in trace
    assert "notebook.py" not in trace
    assert said(cells[2]) == "False\n"


def test_a_program_is_bound_with_what_it_imports(cells: list[dict[str, Any]]) -> None:
    assert said(cells[4]) == "torch.Size([2, 3])\n"


def test_usage(cells: list[dict[str, Any]]) -> None:
    assert any("%%qvr NAME" in json.dumps(output) for output in cells[5]["outputs"])


def test_a_file_is_a_picture(cells: list[dict[str, Any]]) -> None:
    (shown,) = bundles(cells[6])
    assert "".join(shown["text/plain"]).startswith("Program")
    assert ("<svg" in "".join(shown.get("image/svg+xml", ""))) == (shutil.which("dot") is not None)


def test_data_of_the_notebook(cells: list[dict[str, Any]]) -> None:
    assert said(cells[8]).startswith("tensor([-")
