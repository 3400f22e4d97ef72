"""A run keeps the texts that its program imports: it goes on from them whatever becomes of the files."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from qvr_core.cli import app
from qvr_core.runs.record.exports import losses_of
from qvr_core.runs.record.store import RunStore

LIB = """\
object Token : FinSet 5
object Topic : FinSet 3
morphism topic : Token -> Topic [role=kernel] ~ Categorical
"""
MAIN = """\
import "lib.qvr" as l
morphism word : l.Topic -> l.Token [role=kernel] ~ Categorical
program discrete : l.Token -> l.Token
    sample z <- l.topic
    observe y <- word(z)
    return y
"""
FLAGS = ["--rows", "40", "--batch-size", "8", "--learning-rate", "0.05", "--threads", "1"]


def qvr(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_a_resumed_run_reads_what_was_imported_when_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib.qvr").write_text(LIB)
    (tmp_path / "main.qvr").write_text(MAIN)
    qvr("run", "svi", "main.qvr", "--steps", "12", *FLAGS)
    whole = RunStore(tmp_path).open("last")
    qvr("run", "svi", "main.qvr", "--steps", "6", *FLAGS)
    run = RunStore(tmp_path).open("last")
    location = (tmp_path / "lib.qvr").as_posix()
    assert run.job().imports == {location: LIB}
    (tmp_path / "lib.qvr").write_text(LIB.replace("FinSet 3", "FinSet 4"))
    (tmp_path / "main.qvr").unlink()
    qvr("run", "svi", "--resume", run.run_id, "--steps", "12")
    assert losses_of(run) == losses_of(whole)


def test_a_run_whose_imports_were_changed_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib.qvr").write_text(LIB)
    (tmp_path / "main.qvr").write_text(MAIN)
    qvr("run", "svi", "main.qvr", "--steps", "2", *FLAGS)
    run = RunStore(tmp_path).open("last")
    file = run.path / "imports.json"
    file.write_text(file.read_text().replace("FinSet 3", "FinSet 4"))
    result = CliRunner().invoke(app, ["run", "svi", "--resume", run.run_id, "--steps", "4"])
    assert result.exit_code == 1
    assert "imports.json is damaged" in result.output
