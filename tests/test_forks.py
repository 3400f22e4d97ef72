"""What tests start is a fork of a warm process, whatever the process of the tests has done before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forks
from tests.patience import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are had on Linux alone")


def version(**asked: object) -> tuple[bool, str]:
    """Whether a command was a fork, and what it printed."""
    command = [sys.executable, "-m", "qvr_core.cli", "--version"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **asked) as started:
        forked = started.pid in forks.living()
        return forked, started.communicate()[0]


def test_a_command_is_a_fork_that_says_the_same() -> None:
    forked, said = version()
    with forks.as_ever():
        assert version() == (False, said)
    assert forked and said


def test_it_is_one_where_torch_has_named_its_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As torch does in the process of the tests once anything was compiled there."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    assert version()[0]


def test_what_an_interpreter_reads_as_it_starts_is_started_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    assert not version()[0]


def told(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    there = {**os.environ, "PATH": forks.shell_path(), "COLUMNS": "160", **environment}
    return subprocess.run(["bash", "-uc", command], cwd=folder, env=there, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("more", [{}, {"PYTHONHASHSEED": "1"}], ids=["a fork", "as ever"])
def test_a_shell_has_the_output_and_the_status_of_its_commands(tmp_path: Path, more: dict[str, str]) -> None:
    (tmp_path / "wrong.qvr").write_text("object A : Reel 3\n")
    done = told("qvr check wrong.qvr; echo $?; echo 'object A : Real 3' | qvr check - && qvr none", tmp_path, **more)
    assert "Reel" in done.stdout and "\n1\n" in done.stdout
    assert "No such command" in done.stderr and done.returncode == 2


def test_what_a_shell_has_started_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "m.qvr").write_text("object A : Real 3\n")
    watching = "qvr check --watch m.qvr > said & until grep -q problems said; do sleep 0.05; done"
    done = told(f"{watching}; kill -KILL $!; wait $!; echo $?", tmp_path)
    assert done.stdout == "137\n"
    eventually(lambda: not any(there(entry) == str(tmp_path) for entry in Path("/proc").iterdir()))


def there(process: Path) -> str | None:
    """The folder where a process is."""
    try:
        return os.readlink(process / "cwd")
    except OSError:
        return None
