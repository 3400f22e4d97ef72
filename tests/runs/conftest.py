"""No test of this folder may leave a process behind."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qvr_core.runs.client import client
from qvr_core.runs.client.client import CANCEL_LADDER
from tests import forks
from tests.patience import HANG
from tests.runs.jobs import SENTENCE


def workers() -> set[int]:
    """Pids of living worker processes that this test session started, however far down."""
    found = forks.living()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            environment = (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        mine = f"QVR_TEST_SESSION={os.getpid()}".encode() in environment
        if mine and b"qvr_core.runs" in command and state != "Z":
            found.add(int(entry.name))
    return found


@pytest.fixture(autouse=True)
def no_orphans(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Checked in /proc after every test: the kernel knows what the bookkeeping may have forgotten."""
    monkeypatch.setenv("QVR_TEST_SESSION", str(os.getpid()))
    # servers that a worker of pytest has from tests of another folder are none of this one's
    before = workers()
    yield
    if not Path("/proc").exists():
        return
    for _ in range(int(HANG * 20)):
        if not (left := workers() - before):
            return
        time.sleep(0.05)
    assert not left, f"worker processes {sorted(left)} are still alive"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "t.txt"
    file.write_bytes(SENTENCE * 200)
    return file


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancelled worker has all the time that a busy machine needs before it is sent a signal."""
    monkeypatch.setattr(client, "CANCEL_LADDER", tuple((after + HANG, rung) for after, rung in CANCEL_LADDER))
