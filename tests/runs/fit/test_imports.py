"""A run keeps the texts that its program imports: it goes on from them whatever becomes of the files."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from qvr_core.analysis import analyse
from qvr_core.cli import app
from qvr_core.disk import Disk, location_of_file
from qvr_core.runs.record.exports import losses_of
from qvr_core.runs.record.last_fit import rests_on
from qvr_core.runs.record.store import RunStore
from qvr_core.workspace import Workspace

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


SCHOOLS = """\
object School : FinSet 3
program base : School -> School
    sample mu <- Normal(0.0, 5.0)
    let spread = log(mu + 1000.0)
    sample theta : School <- Normal(mu, spread)
    observe y : School <- Normal(theta, 1.0)
    return y
"""
EXPORTED = 'import "schools.qvr" as s\n\nexport s.base\n'
NUTS = ["--data", "csv:y.csv", "--warmup", "20", "--samples", "20", "--chains", "2", "--threads", "1"]


@pytest.fixture
def schools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schools.qvr").write_text(SCHOOLS)
    (tmp_path / "main.qvr").write_text(EXPORTED)
    (tmp_path / "y.csv").write_text("school,y\n1,2.0\n2,3.0\n3,1.0\n")
    return tmp_path


def test_a_program_of_another_file_runs_where_it_is_exported_and_is_told_at_home(schools: Path) -> None:
    output = qvr("run", "nuts", "main.qvr", *NUTS)
    assert "schools.qvr:3: `mu`" in output
    assert "main.qvr:1" not in output
    run = RunStore(schools).open("last")
    (bad,) = [one for one in run.ending().checks if one.name == "R-hat"]
    assert bad.range is not None
    assert bad.range.start.line == 0  # the import, which is what the text at hand has of it


def test_what_fails_in_another_file_is_told_with_its_line_there(schools: Path) -> None:
    (schools / "schools.qvr").write_text(SCHOOLS.replace("+ 1000.0", "- 1000.0"))
    result = CliRunner().invoke(app, ["run", "nuts", "main.qvr", *NUTS])
    assert result.exit_code == 1
    assert "main.qvr:1, which brings schools.qvr:4" in result.output


def test_a_fit_is_known_by_all_that_its_program_imports(schools: Path) -> None:
    (schools / "main.qvr").write_text(
        'from "schools.qvr" import base, School\n'
        "program twice : School -> School\n"
        "    sample t <- base\n"
        "    observe z : School <- Normal(t, 1.0)\n"
        "    return z\n"
    )

    def known() -> frozenset[str]:
        main = schools / "main.qvr"
        snapshot = analyse(main.read_text(), None, location_of_file(main), Workspace(Disk(trusted=True)))
        return rests_on(snapshot, "twice")

    before = known()
    assert any("sample mu" in text for text in before)
    (schools / "schools.qvr").write_text("# a remark\n" + SCHOOLS)
    assert known() == before
    (schools / "schools.qvr").write_text(SCHOOLS.replace("5.0", "4.0"))
    assert known() != before
