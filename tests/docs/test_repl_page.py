"""docs/repl.md does what it says: its sessions are typed, one after another; its commands are all there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qvr_core.cli.repl import answer
from qvr_core.cli.repl.commands import COMMANDS, run_command
from qvr_core.cli.repl.session import Session
from tests.docs.test_runs_page import shell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "repl.md").read_text(encoding="utf-8")
PROMPTS = ("qvr> ", "...> ")
DATA = "y,sigma\n28,15\n8,10\n-3,16\n7,11\n-1,9\n1,11\n18,10\n12,18\n"


def test_its_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "schools.csv").write_text(DATA)
    monkeypatch.chdir(tmp_path)
    session = Session(run_command)
    blocks = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        for exchange in re.split(r"^(?=qvr> )", block, flags=re.MULTILINE)[1:]:
            lines = exchange.splitlines()
            typed = [line[len(PROMPTS[0]) :] for line in lines if line.startswith(PROMPTS)]
            told = "\n".join(line for line in lines if not line.startswith(PROMPTS))
            answer(session, [f"{line}\n" for line in typed])
            said = capsys.readouterr().out.strip()
            # three dots stand for whatever a fit says there
            wanted = re.escape(told).replace("…", "(?s:.*)")
            assert re.fullmatch(wanted, said), (typed, said)


def test_its_table_has_every_command() -> None:
    told = re.findall(r"^\| `(:\w+)(.*?)` \|", PAGE, re.MULTILINE)
    assert [(word, word + rest.replace("\\", "")) for word, rest in told] == [(one.word, one.usage) for one in COMMANDS]


def test_its_pipe(tmp_path: Path) -> None:
    (command,) = re.findall(r"^    (printf .*)$", PAGE, re.MULTILINE)
    assert shell(command, tmp_path).splitlines() == ["A : FinSet 3", "e : A => Real 2", "e : A => Real 2"]


def test_its_extra_is_there() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r"^repl = \[\"prompt_toolkit", project, re.MULTILINE)
