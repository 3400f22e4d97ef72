"""Two machines fit one program: network namespaces of this one, where root may make some, else its loopback.

In a namespace the name of the machine leads to 127.0.0.1, as on many machines; there nobody else would be found.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qvr_core.runs.fit.distributed import interface_towards
from qvr_core.runs.record.exports import losses_of
from qvr_core.runs.record.protocol import CheckpointWritten, parse_event
from qvr_core.runs.record.store import RunStore
from tests.patience import HANG
from tests.runs.fit.test_distributed import MODEL

SETTINGS = ["model.qvr", "--data", "text:book.txt", "--batch-size", "32", "--held-out", "0", "--threads", "1",
            "--learning-rate", "0.01", "--json"]  # fmt: skip


def ip(*words: str) -> bool:
    """Ask for a change of the network; False where this user may not."""
    try:
        return subprocess.run(["ip", *words], capture_output=True, check=False, timeout=HANG).returncode == 0
    except OSError:
        return False


@pytest.fixture(params=["namespaces", "loopback"])
def machines(request: pytest.FixtureRequest) -> Iterator[tuple[list[list[str]], str]]:
    """What a command on each of two machines begins with, and the address of the first."""
    if request.param == "loopback":
        yield [[], []], "127.0.0.1"
        return
    names = [f"qvr{os.getpid()}{side}" for side in "ab"]
    try:
        if not all(ip("netns", "add", name) for name in names):
            pytest.skip("only root may make network namespaces")
        ends = [f"v{os.getpid()}{side}" for side in "ab"]
        assert ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for number, (name, end) in enumerate(zip(names, ends, strict=True), start=1):
            assert ip("link", "set", end, "netns", name)
            assert ip("-n", name, "addr", "add", f"10.91.7.{number}/24", "dev", end)
            assert ip("-n", name, "link", "set", end, "up") and ip("-n", name, "link", "set", "lo", "up")
        yield [["ip", "netns", "exec", name] for name in names], "10.91.7.1"
    finally:
        for name in names:
            ip("netns", "del", name)


def node(begin: list[str], rank: int, first: str, port: int, folder: Path, *words: str) -> subprocess.Popen[str]:
    """The line that docs/many-machines.md has for each machine; a process group of its own, to be killed whole."""
    launch = ["--nnodes", "2", "--node-rank", str(rank), "--nproc-per-node", "1", "--master-addr", first,
              "--master-port", str(port), "-m", "qvr_core.cli", "run", "svi"]  # fmt: skip
    return subprocess.Popen(
        [*begin, sys.executable, "-m", "torch.distributed.run", *launch, *words], cwd=folder, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, start_new_session=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def kill_whole(machine: subprocess.Popen[str]) -> None:
    """A machine without power: torchrun and what it started, which has sessions of its own."""
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(machine.pid)], check=False, capture_output=True, text=True
    )
    for pid in (machine.pid, *map(int, children.stdout.split())):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_machine_is_killed_and_the_run_goes_on_with_others(
    machines: tuple[list[list[str]], str], tmp_path: Path
) -> None:
    """Two machines of which one dies, then one process, then two machines again: the losses are those of one
    process that nobody disturbed."""
    begins, first = machines
    (tmp_path / "model.qvr").write_text(MODEL)
    (tmp_path / "book.txt").write_bytes(b"the quick brown fox jumps over the lazy dog; " * 100)
    store = RunStore(tmp_path)
    long = [*SETTINGS, "--steps", "1000000", "--checkpoint-steps", "5"]
    port = free_port()
    pair = [node(begin, rank, first, port, tmp_path, *long) for rank, begin in enumerate(begins)]
    try:
        assert pair[0].stdout is not None
        for line in pair[0].stdout:
            if isinstance(parse_event(line), CheckpointWritten):
                break
        kill_whole(pair[1])
        said, _ = pair[0].communicate(timeout=HANG)
        assert pair[0].returncode == 1 and "one of the 2 processes of this run is gone" in said
    finally:
        for one in pair:
            kill_whole(one)
            one.communicate()
    run = store.open("last")
    reached = run.step()
    alone = [sys.executable, "-m", "qvr_core.cli", "run", "svi"]
    further = [*alone, "--resume", run.path.name, "--steps", str(reached + 5)]
    subprocess.run(further, cwd=tmp_path, check=True, timeout=HANG, capture_output=True)
    port = free_port()
    more = ["--resume", run.path.name, "--steps", str(reached + 10)]
    again = [node(begin, rank, first, port, tmp_path, *more) for rank, begin in enumerate(begins)]
    for one in again:
        one.communicate(timeout=HANG)
        assert one.returncode == 0
    assert run.status() == "finished"
    subprocess.run([*alone, *SETTINGS, "--steps", str(reached + 10)], cwd=tmp_path, check=True, timeout=HANG,
                   capture_output=True)  # fmt: skip
    losses = losses_of(run)
    assert len(losses) == reached + 10
    assert losses == pytest.approx(losses_of(store.open("last")), abs=1e-5)


def test_the_interface_is_the_one_from_which_the_other_is_reached() -> None:
    assert interface_towards("127.0.0.1", 1) is None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # set aside for documents: nobody is there, and nothing is sent
        except OSError:
            return
    assert interface_towards("192.0.2.1", 9) in {name for _, name in socket.if_nameindex()}
