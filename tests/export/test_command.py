"""`qvr export` as a user calls it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qvr_core.cli import app
from tests.examples.statistics.tables import STATISTICS


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("radon.qvr", "radon.csv", "radon_counties.csv", "qvr.toml"):
        shutil.copy(STATISTICS / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_program_is_written_to_stdout() -> None:
    done = CliRunner().invoke(app, ["export", str(STATISTICS / "radon.qvr"), "--to", "numpyro"])
    assert done.exit_code == 0
    assert "def radon(data):" in done.stdout


def test_data_are_written_beside_the_output(folder: Path) -> None:
    given = ["--data", "csv:radon.csv", "--data", "County=csv:radon_counties.csv"]
    for flags, output in ((given, "given.py"), (["--with-data"], "named.py")):
        done = CliRunner().invoke(app, ["export", "radon.qvr", "radon", "--to", "torch", "-o", output, *flags])
        assert done.exit_code == 0, done.output
        data = json.loads((folder / output).with_suffix(".json").read_text())
        assert (data["n_house"], data["n_county"]) == (58, 9) == (len(data["floor"]), len(data["log_uranium"]))
        assert set(data["county"]) <= set(range(9)) and data["county"][0] == 0
        labels = json.loads((folder / output).with_suffix(".labels.json").read_text())
        first = (folder / "radon.csv").read_text().split("\n")[1].split(",")[0]
        assert len(labels["County"]) == 9 and labels["County"][data["county"][0]] == first


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["radon.qvr", "--to", "basic"], 2, "unknown target `basic`"),
        (["radon.qvr", "other", "--to", "torch"], 2, "there is no program `other`: radon"),
        (["radon.qvr", "--to", "torch", "--with-data"], 2, "data are written beside the output"),
        (["radon.qvr", "--to", "torch", "-o", "x.py", "--data", "csv:none.csv"], 1, "none.csv"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, arguments: list[str], status: int, message: str) -> None:
    done = CliRunner().invoke(app, ["export", *arguments])
    assert done.exit_code == status
    assert message in done.output


def test_errors_and_refusals_are_shown_at_their_lines(folder: Path) -> None:
    source = (folder / "radon.qvr").read_text()
    (folder / "wrong.qvr").write_text(source.replace("Normal(0.0, 2.0)", "Normal(0.0, 2.0, 3.0)"))
    done = CliRunner().invoke(app, ["export", "wrong.qvr", "--to", "torch"])
    assert done.exit_code == 1 and "wrong.qvr:10:" in done.output
    (folder / "other.qvr").write_text(source.replace("Normal(0.0, 2.0)", "Horseshoe(2.0)"))
    done = CliRunner().invoke(app, ["export", "other.qvr", "--to", "torch"])
    assert done.exit_code == 1
    assert "error[not-exported]" in done.output and "other.qvr:10:18" in done.output
