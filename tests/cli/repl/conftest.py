"""A session that is handed lines, as a pipe hands them in, and what it prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from qvr_core.cli.repl import answer
from qvr_core.cli.repl.commands import run_command
from qvr_core.cli.repl.session import Session

Ask = Callable[..., str]
SCHOOLS = """\
object School : FinSet 8
program schools : School -> School
    data sigma : School
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(5.0)
    sample theta : School <- Normal(mu, tau)
    observe y : School <- Normal(theta, sigma)
    return theta
"""


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.chdir(tmp_path)
    return Session(run_command)


@pytest.fixture
def ask(session: Session, capsys: pytest.CaptureFixture[str]) -> Ask:
    """What is printed to lines that are piped in."""

    def asked(*lines: str) -> str:
        capsys.readouterr()
        answer(session, [f"{line}\n" for text in lines for line in text.split("\n")])
        said = capsys.readouterr()
        return (said.out + said.err).rstrip()

    return asked
