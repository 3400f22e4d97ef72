"""`qvr check` in a team's hands: what other programs read, fixes applied, files watched; and `qvr explain`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_cli import BROKEN, ROOT, qvr
from tests.ide.cases import applied
from tests.patience import HANG, eventually

MISSPELT = """\
object Token : FinSet 256
object Hidden : Real 8
morphism tok_embed : Token -> Hidden [role=embed]
morphism mix : Hidden -> Hidden [role=linear]
let model = tok_embde >> mix
"""


@pytest.fixture
def misspelt(tmp_path: Path) -> Path:
    file = tmp_path / "m.qvr"
    file.write_text(MISSPELT)
    return file


def test_github_annotations(tmp_path: Path) -> None:
    file = tmp_path / "a,b%.qvr"
    file.write_text(MISSPELT)
    (line,) = qvr("check", "--output-format", "github", str(file)).stdout.splitlines()
    place, _, message = line.removeprefix("::error ").partition("::")
    found = dict(part.split("=") for part in place.split(","))
    assert found["file"] == str(file).replace("%", "%25").replace(",", "%2C")
    assert (found["line"], found["endLine"], found["col"], found["endColumn"]) == ("5", "5", "13", "21")
    assert "tok_embde" in message and "%0Afix: " in message


def test_gitlab_knows_a_finding_again_when_it_moves(misspelt: Path) -> None:
    def reported() -> dict[str, object]:
        (found,) = json.loads(qvr("check", "--output-format", "gitlab", str(misspelt)).stdout)
        return found

    before = reported()
    assert before["severity"] == "major"
    assert before["location"] == {"path": misspelt.as_posix(), "lines": {"begin": 5}}
    misspelt.write_text("# A comment.\n" + MISSPELT)
    after = reported()
    assert after["location"] == {"path": misspelt.as_posix(), "lines": {"begin": 6}}
    assert before["fingerprint"] == after["fingerprint"]


def test_sarif_with_fixes(misspelt: Path) -> None:
    report = json.loads(qvr("check", "--output-format", "sarif", misspelt.name, cwd=misspelt.parent).stdout)
    (run,) = report["runs"]
    (result,) = run["results"]
    (rule,) = run["tool"]["driver"]["rules"]
    assert result["ruleId"] == rule["id"] and rule["help"]["markdown"].startswith(f"# {rule['id']}")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "m.qvr"
    assert place["region"] == {"startLine": 5, "startColumn": 13, "endLine": 5, "endColumn": 22}
    (replacement,) = result["fixes"][0]["artifactChanges"][0]["replacements"]
    assert replacement["insertedContent"]["text"] == "tok_embed"


def test_a_place_in_another_file_is_shown_there(tmp_path: Path) -> None:
    (tmp_path / "a.qvr").write_text("# Widths.\n\nobject A : Real 3\nmorphism f : A -> A [role=linear]\n")
    (tmp_path / "b.qvr").write_text(
        'from "a.qvr" import f\nobject B : Real 4\nmorphism g : B -> B [role=linear]\nlet h = f >> g\n'
    )
    (found,) = json.loads(qvr("check", "--json", "b.qvr", cwd=tmp_path).stdout)
    elsewhere = [each for each in found["related"] if each["file"] != "b.qvr"]
    assert [(Path(each["file"]).name, each["range"]["start"]) for each in elsewhere] == [
        ("a.qvr", {"line": 2, "character": 7})
    ]
    said = qvr("check", "b.qvr", cwd=tmp_path).stdout
    assert "a.qvr:3:8" in said and "3 | object A : Real 3" in said


def test_diff_writes_nothing_and_fix_does(misspelt: Path) -> None:
    done = qvr("check", "--diff", str(misspelt))
    assert done.returncode == 1
    assert "-let model = tok_embde >> mix\n+let model = tok_embed >> mix\n" in done.stdout
    assert misspelt.read_text() == MISSPELT
    done = qvr("check", "--fix", str(misspelt))
    assert (done.returncode, done.stdout) == (0, "no problems\n")
    assert misspelt.read_text() == MISSPELT.replace("embde", "embed")
    assert (qvr("check", "--diff", str(misspelt)).returncode, qvr("check", "--fix", "-").returncode) == (0, 2)


def test_what_has_several_ways_out_is_left_alone() -> None:
    assert qvr("check", "--diff", str(BROKEN)).stdout == ""


def test_line_ends_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "m.qvr"
    file.write_bytes(MISSPELT.replace("\n", "\r\n").encode())
    qvr("check", "--fix", str(file))
    assert file.read_bytes() == MISSPELT.replace("embde", "embed").replace("\n", "\r\n").encode()


def test_edits_in_json_are_those_of_the_editors(misspelt: Path) -> None:
    from qvr_core.ide.answers import TextEdit
    from qvr_core.syntax.source import Cursor, Range

    (found,) = json.loads(qvr("check", "--json", str(misspelt)).stdout)
    fix = next(fix for fix in found["fixes"] if fix["preferred"])
    edits = [
        TextEdit(Range(*(Cursor(*edit["range"][end].values()) for end in ("start", "end"))), edit["text"])
        for edit in fix["edits"]
    ]
    assert applied(MISSPELT, tuple(edits)) == MISSPELT.replace("embde", "embed")


def test_watching(misspelt: Path) -> None:
    """A change of the file, then of one that it imports, is checked again; Control-C ends it."""
    command = [sys.executable, "-m", "qvr_core.cli", "check", "--watch", str(misspelt)]
    log = misspelt.with_name("log")
    with log.open("w") as out, subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out) as running:
        try:
            eventually(lambda: log.read_text().count("Control-C") == 1)
            assert "1 error" in log.read_text()
            misspelt.with_name("other.qvr").write_text("object A : Real 3\n")
            misspelt.write_text('import "other.qvr"\n' + MISSPELT.replace("embde", "embed"))
            eventually(lambda: log.read_text().count("Control-C") == 2)
            assert log.read_text().count("no problems") == 1
            misspelt.with_name("other.qvr").write_text("object A : Reel 3\n")
            eventually(lambda: log.read_text().count("Control-C") == 3)
            assert "import-error" in log.read_text()
        finally:
            running.send_signal(2)
        assert running.wait(HANG) == 0


@pytest.mark.parametrize(
    "arguments", [("--json", "--output-format", "sarif"), ("--watch", "--fix"), ("--watch", "--diff")]
)
def test_what_cannot_be_had_together(misspelt: Path, arguments: tuple[str, ...]) -> None:
    done = qvr("check", *arguments, str(misspelt))
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_explain() -> None:
    page = (ROOT / "docs" / "diagnostics" / "axes-mismatch.md").read_text(encoding="utf-8")
    assert qvr("explain", "axes-mismatch").stdout == page
    done = qvr("explain", "axes-mismach")
    assert done.returncode == 2 and "did you mean `axes-mismatch`" in done.stderr
    assert qvr("explain", "../README").returncode == 2
    assert qvr("explain", "data-file").stdout.startswith("# data-file\n\nA file does not fit")
    listed = qvr("explain").stdout.splitlines()
    assert len(listed) > 100 and all("  " in line for line in listed)
