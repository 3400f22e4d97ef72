"""docs/runs.md does what it says: each command is run, in the order of the page, in a copy of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

from tests.forks import shell_path
from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "runs.md").read_text(encoding="utf-8")
SHOWN = [line.split("   #")[0].strip() for line in re.findall(r"^    (qvr .*)$", PAGE, re.MULTILINE)]
"""The commands that stand on a line of their own."""
STEPS = re.findall(r"^    (qvr .*)$|^```python\n((?s:.*?))^```$", PAGE, re.MULTILINE)
"""These, and the Python between them, in the order of the page."""
NAMED = sorted(set(re.findall(r"`(qvr [^`]*)`", PAGE)))
NEW = 'qvr new "y ~ x + (1 + x | g)" --data csv:d.csv -o m.qvr'
HOUSES = """\
object House : FinSet _
program houses : House -> House
    data y : House
    sample m <- Normal(0.0, 5.0)
    observe y[i : House] <- Normal(m, 2.0)
    return m
"""
MEANT = {
    "qvr cv RUN": None,
    "qvr loo RUN": None,
    "qvr report": None,
    "qvr runs compare": None,
    "qvr check-fit": None,
    "qvr calibrate FILE": None,  # a line of the page
    "qvr check radon.qvr": "cd radon; qvr check radon.qvr",
    "qvr check radon.qvr --data csv:houses.csv": "cd radon; qvr check radon.qvr --data csv:houses.csv",
    "qvr check houses.qvr --data parquet:houses": "cd large; qvr check houses.qvr --data parquet:houses",
    "qvr check-fit RUN": None,
    "qvr init DIR": "qvr init other",
    NEW: f"cd radon; {NEW}",
    "qvr run nuts model.qvr": "cd other; qvr run nuts model.qvr",
    "qvr run svi houses.qvr --data parquet:houses --batch-size 1000": (
        "cd large; qvr run svi houses.qvr --data parquet:houses --batch-size 1000 --steps 20"
    ),
    "qvr runs": "cd other; qvr runs",
    "qvr runs compare A B …": None,
    "qvr plot RUN KIND": None,
    "qvr report RUN": None,
    "qvr sample": None,
    "qvr sample RUN": "cd other; qvr sample model",
    "qvr sample RUN --prior": "cd other; qvr sample model --prior",
    "qvr sample last --plot predicted.png": "cd other; qvr sample last --plot predicted.png",
    "qvr schema": "qvr schema",
    "qvr schema --events": "qvr schema --events",
    "qvr summary RUN": None,
}
"""What the commands within a sentence stand for; None where a line of the page is one."""
FAILING = ("qvr check-fit",)
"""Exit status 1 is an answer of these."""


def shell(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-euc", command],
        cwd=folder,
        env={**os.environ, "PATH": shell_path(), "COLUMNS": "160", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=2 * HANG,
        check=False,
    )
    allowed = (0, 1) if command.startswith(FAILING) else (0,)
    assert done.returncode in allowed, (command, done.stdout + done.stderr)
    return done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the page uses of the repository, and the two tables that its sentences speak of."""
    ignored = shutil.ignore_patterns(".qvr", "analyses")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=ignored)
    for name in ("README.md", "qvr.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "radon").mkdir()
    statistics = ROOT / "examples" / "statistics"
    for source, name in (
        ("radon.qvr", "radon.qvr"),
        ("radon.csv", "houses.csv"),
        ("radon_counties.csv", "counties.csv"),
    ):
        shutil.copy(statistics / source, tmp_path / "radon" / name)
    settings = '[run.radon]\ndata = "csv:houses.csv"\ntables = { County = "csv:counties.csv" }\n'
    (tmp_path / "radon" / "qvr.toml").write_text(settings, encoding="utf-8")
    (tmp_path / "large" / "houses").mkdir(parents=True)
    (tmp_path / "large" / "houses.qvr").write_text(HOUSES, encoding="utf-8")
    for part in range(2):
        table = pl.DataFrame({"y": [float(at % 7) for at in range(1500)]})
        table.write_parquet(tmp_path / "large" / "houses" / f"{part}.parquet")
    rows = [f"{0.5 * x + g},{x},{'abc'[g]}" for g in range(3) for x in range(6)]
    (tmp_path / "radon" / "d.csv").write_text("\n".join(["y,x,g", *rows]) + "\n", encoding="utf-8")
    return tmp_path


def test_every_command_of_the_page_is_known() -> None:
    assert sorted(MEANT) == NAMED
    for named in (one for one, command in MEANT.items() if command is None):
        words = " ".join(word for word in named.split() if word == word.lower() and word != "…")
        assert any(shown.startswith(words) for shown in SHOWN), named


@pytest.mark.statistical
@pytest.mark.timeout(20 * HANG)
def test_the_lines_of_the_page_run_one_after_another(checkout: Path) -> None:
    printed: dict[str, str] = {}
    for command, lines in STEPS:
        if lines:
            shell(f"MPLBACKEND=agg python - <<'END'\n{lines}END", checkout)
        else:
            wanted = command.split("   #")[0].strip()
            printed[wanted] = shell(wanted, checkout)
    assert list(printed) == SHOWN
    for name in ("loss.png", "losses.csv", "homes.qvr", "farm/qvr.toml", "ppc.png"):
        assert (checkout / name).stat().st_size > 0
    assert "homes" in printed["qvr runs"] and "finished" in printed["qvr runs"]
    assert "predictive accuracy" in printed["qvr runs compare homes line"]
    assert "line" not in {run.name.split("-", 2)[2] for run in (checkout / ".qvr" / "runs").iterdir()}


@pytest.mark.statistical
@pytest.mark.timeout(10 * HANG)
def test_the_commands_of_its_sentences_run(checkout: Path) -> None:
    commands = [command for command in MEANT.values() if command]
    assert commands
    # What makes the folder, and the run, that others read comes first.
    for command in sorted(commands, key=lambda command: ("init" not in command, "run nuts" not in command)):
        shell(command, checkout)


@pytest.mark.statistical
@pytest.mark.timeout(5 * HANG)
def test_its_settings_are_those_of_a_run(tmp_path: Path) -> None:
    [settings] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "qvr.toml").write_text(settings, encoding="utf-8")
    program = (ROOT / "examples" / "eight_schools.qvr").read_text(encoding="utf-8")
    program = program.replace("observe effect", "observe y").replace("standard_error[s])", "sigma[s])")
    (tmp_path / "schools.qvr").write_text(program, encoding="utf-8")
    table = (ROOT / "examples" / "data" / "eight_schools.csv").read_text(encoding="utf-8")
    (tmp_path / "schools.csv").write_text(table.replace("standard_error", "standard error"), encoding="utf-8")
    explained = shell("qvr run svi schools.qvr --explain", tmp_path)
    assert re.search(r"steps\W+3,?000\W+qvr\.toml", explained), explained
    shell("qvr run svi schools.qvr", tmp_path)
