"""What tests start is a fork of a warm process, whatever the process of the tests has done before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import fork_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are had on Linux alone")


def version(**asked: object) -> tuple[bool, str]:
    """Whether a command was a fork, and what it printed."""
    command = [sys.executable, "-m", "qvr_core.cli", "--version"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **asked) as started:
        forked = started.pid in fork_server.living()
        return forked, started.communicate()[0]


def test_a_command_is_a_fork_that_says_the_same() -> None:
    forked, said = version()
    with fork_server.as_ever():
        assert version() == (False, said)
    assert forked and said


def test_it_is_one_where_torch_has_named_its_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As torch does in the process of the tests once anything was compiled there."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    assert version()[0]


def test_what_an_interpreter_reads_as_it_starts_is_started_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    assert not version()[0]
