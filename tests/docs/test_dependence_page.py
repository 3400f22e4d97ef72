"""docs/dependence.md: its commands and its Python are run, and it names every kind and every attribute."""

import re
import shutil
from pathlib import Path

import pytest

from qvr_core.analysis import analyse
from qvr_core.dependence import dependence_graph
from qvr_core.dependence import graph as kinds
from tests.docs.test_runs_page import shell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "dependence.md").read_text(encoding="utf-8")
TOLD = {
    "--given-data": "not independent: `mu` and `tau` given all that is observed",
    '"mu, tau"': "independent: `mu` and `tau`\n",
    "| theta": "independent: `mu` and `effect` given `theta`\n",
    "--effect": "effect of `tau` on `effect`: nothing has to be adjusted for\n",
    "": "eight_schools\n",
}


@pytest.mark.parametrize(
    "command", [line.split("   #")[0].split("  #")[0].strip() for line in re.findall(r"^    (qvr .*)$", PAGE, re.M)]
)
def test_command(command: str, tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "eight_schools.qvr", tmp_path / "examples")
    if "-o" in command:
        shell(command, tmp_path)
        assert "graphml" in (tmp_path / "schools.graphml").read_text(encoding="utf-8")
        return
    said = shell(f"{command} || test $? = 1", tmp_path)
    assert said.startswith(next(text for part, text in TOLD.items() if part in command))
    if "--given-data" in command:
        (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.S)
        assert said == shown


def test_its_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"<!-- run -->\n```python\n(.*?)```", PAGE, re.S)
    exec(code, {})


def test_every_kind_and_attribute_is_told() -> None:
    tables = re.findall(r"^\| (`\w+`) \| (.*) \|$", PAGE, re.M)
    told = {name.strip("`"): text for name, text in tables}
    model = analyse((ROOT / "examples" / "eight_schools.qvr").read_text(encoding="utf-8")).model
    graph = dependence_graph(model.programs["eight_schools"], model)
    assert set(told) == {*graph.nodes["z"], *graph.edges["mu", "theta"]}
    every = kinds.RANDOM | kinds.DETERMINISTIC | kinds.GIVEN
    assert set(re.findall(r"`(\w+)`", told["kind"])) - {"marginalize"} == every
