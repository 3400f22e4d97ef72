"""C3: what `qvr check` prints, and what it holds meanwhile, is bounded; what is left out is counted."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from qvr_core.analysis import Analyzer
from qvr_core.syntax.source import split_lines

MANY = 2_000
LONG = 200_000


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def checked(text: str, folder: Path, *more: str) -> str:
    (folder / "a.qvr").write_text(text)
    command = [sys.executable, "-m", "qvr_core.cli", "check", *more, "a.qvr"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, preexec_fn=limit)
    assert (done.returncode, done.stderr) == (1, "")
    return done.stdout


def test_c3_a_hundred_errors_are_printed_and_all_are_counted(tmp_path: Path) -> None:
    shown = checked("".join(f"object A{i} : Unknown{i}\n" for i in range(MANY)), tmp_path)
    assert shown.count("error[unknown-name]") == 100
    assert shown.endswith("\n1,900 more are not shown; --output-format json has them all\n2,000 errors\n")


def test_c3_programs_are_told_all_of_them(tmp_path: Path) -> None:
    text = "".join(f"object A{i} : Unknown{i}\n" for i in range(MANY))
    assert checked(text, tmp_path, "--json").count('"unknown-name"') == MANY


def test_c3_the_text_is_split_once_for_all_findings() -> None:
    from qvr_core.cli.output.diagnostics_text import Finding

    text = "".join(f"object A{i} : Unknown{i}\n" for i in range(20))
    findings = [Finding("a.qvr", text, found) for found in Analyzer(text).snapshot().diagnostics()]
    assert len(findings) > 1
    assert list(findings[0].lines) == split_lines(text)[0]
    assert all(finding.lines is findings[0].lines for finding in findings)


@pytest.mark.parametrize(
    "line",
    [
        "object A : Real 3 + " + " * ".join(["Real 3"] * (LONG // 9)) + " )",
        "object A : " + "x " * (LONG // 2),
        "export " + "a" * LONG,
        "object A : Real 3 $" + "%" * LONG,
        "object A : Real 3" + "x" * LONG,
    ],
)
@pytest.mark.sampled(2)
def test_c3_of_a_long_line_what_is_marked_is_printed(line: str, tmp_path: Path) -> None:
    shown = checked(line + "\n", tmp_path)
    assert "a.qvr:1:" in shown
    assert "^" in shown
    assert len(shown) < 10_000


def test_c3_the_mark_stands_below_what_it_marks(tmp_path: Path) -> None:
    shown = checked("export " + " " * 1000 + "missing" + " " * 1000 + "# end\n", tmp_path).splitlines()
    source = next(line for line in shown if line.startswith("1 | "))
    marks = shown[shown.index(source) + 1]
    assert source.endswith(" …")
    assert source[marks.index("^") : marks.rindex("^") + 1] == "missing"
