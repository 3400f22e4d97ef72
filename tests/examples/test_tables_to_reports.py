"""Each table of the analyses comes to a report in the commands that their README says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qvr_core.cli import app
from tests.examples.test_analyses import ANALYSES, NAMES, checkout

SHORT = ("--warmup", "100", "--samples", "50", "--chains", "2", "--seed", "1")
ROWS = [
    [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in (ANALYSES / "README.md").read_text(encoding="utf-8").partition("## From the table")[2].splitlines()
    if re.match(r"\| [a-z_]+ \| (`|a mixture)", line)
]
PARTS = ("<h2>Program", "<h2>Data", "<h2>Data and what the prior draws", "<h2>Checks", "<h2>Posterior")


def qvr(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.output


def test_every_table_is_there() -> None:
    assert sorted(row[0] for row in ROWS) == NAMES


@pytest.mark.statistical
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_table_comes_to_a_report(row: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, formula, family, count = row
    commands = list[tuple[str, ...]]()
    if formula.startswith("`"):
        shutil.copy(ANALYSES / f"{name}.csv", tmp_path)
        monkeypatch.chdir(tmp_path)
        about = ("--formula", formula.strip("`"), "--family", family)
        commands += [("init", "study", "--data", f"{name}.csv", *about), ("run", "nuts", "study/model.qvr", *SHORT)]
    else:
        monkeypatch.chdir(checkout(tmp_path))
        commands.append(("run", "nuts", f"{name}.qvr", *SHORT))
    commands.append(("report", "last", "-o", "report.html"))
    assert int(count[0]) == len(commands)
    said = [qvr(*command) for command in commands]
    assert ("the order of the labels" in count) == ("in the order of the alphabet" in said[0])
    page = Path("report.html").read_text(encoding="utf-8")
    assert [part for part in PARTS if part not in page] == []
