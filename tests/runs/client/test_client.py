"""Starting, watching and ending processes, whatever they do.  The worker here misbehaves on purpose."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import textwrap
from pathlib import Path

import pytest

from qvr_core.runs.client import client
from qvr_core.runs.client.client import CANCEL_LADDER, WorkerProcess
from qvr_core.runs.client.pool import WorkerPool
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.protocol import Cancelled, Crashed, Event, Finished, Job, Message, Progress
from qvr_core.runs.record.store import RunDirectory, RunStore, process_start
from tests.patience import HANG, wait_gone
from tests.runs.jobs import start

PRELUDE = """\
#!{python}
import json, os, signal, subprocess, sys, time
def say(**event):
    print(json.dumps(event), flush=True)
def ending(**more):
    say(event="finished", step=1, seconds=0.1, **more)
"""


def interpreter(folder: Path, body: str) -> str:
    """An executable that stands in for the worker's Python, and runs `body`."""
    file = folder / "worker-python"
    file.write_text(PRELUDE.format(python=sys.executable) + textwrap.dedent(body))
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def job(folder: Path) -> Job:
    return RunStore(folder).create(path="p.qvr", text="", program="p", config=RunConfig(), base=".")


async def run(folder: Path, body: str) -> tuple[list[Event], Event]:
    events: list[Event] = []
    worker = await start(job(folder), events.append, python=interpreter(folder, body))
    return events, await worker.wait()


async def test_events_arrive_in_order_and_the_last_one_once(tmp_path: Path) -> None:
    events, last = await run(
        tmp_path,
        """
        sys.stdin.readline()
        for step in range(1, 4):
            say(event="progress", step=step, steps=3, seconds=step, loss=1.5)
        print("a library says hello")
        ending()
        """,
    )
    assert [e.step for e in events if isinstance(e, Progress)] == [1, 2, 3]
    assert Message(level="info", text="a library says hello") in events
    assert isinstance(last, Finished)
    assert events[-1] == last


async def test_killed_worker_is_crashed_with_its_last_words(tmp_path: Path) -> None:
    _, last = await run(
        tmp_path,
        """
        sys.stdin.readline()
        print("deep inside", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    assert isinstance(last, Crashed)
    assert (last.signal, last.log) == ("SIGKILL", ("deep inside",))
    store = RunStore(tmp_path)
    assert store.open("last").status() == "crashed"
    assert store.open("last").log_tail() == ("deep inside",)


async def test_silent_end_is_a_crash(tmp_path: Path) -> None:
    _, last = await run(tmp_path, "sys.stdin.readline(); sys.exit(3)")
    assert isinstance(last, Crashed) and last.returncode == 3


async def test_interpreter_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="none"):
        await start(job(tmp_path), lambda event: None, python=str(tmp_path / "none"))


POLITE = """
    sys.stdin.readline()
    say(event="message", level="info", text="ready")
    for line in sys.stdin:
        if json.loads(line)["control"] == "cancel":
            say(event="cancelled", step=5, seconds=1.0)
            sys.exit()
"""
DEAF = """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "qvr_core.runs child"])
    say(event="message", level="info", text=str(child.pid))
    say(event="progress", step=7, steps=9, seconds=2.5)
    say(event="checkpoint", step=7, path="there")
    while True:
        time.sleep(1)
"""


async def started(folder: Path, body: str) -> tuple[WorkerProcess, Message]:
    ready: asyncio.Queue[Event] = asyncio.Queue()
    worker = await start(job(folder), ready.put_nowait, python=interpreter(folder, body))
    first = await asyncio.wait_for(ready.get(), HANG)
    assert isinstance(first, Message)
    return worker, first


async def test_cancel_by_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CANCEL_LADDER", tuple((after + HANG, rung) for after, rung in CANCEL_LADDER))
    worker, _ = await started(tmp_path, POLITE)
    assert isinstance(await worker.cancel(), Cancelled)


async def test_cancel_of_a_deaf_worker_is_over_in_three_seconds_with_its_children(tmp_path: Path) -> None:
    worker, said = await started(tmp_path, DEAF)
    child = int(said.text)
    assert process_start(child) is not None
    assert CANCEL_LADDER[-1][0] < 3
    last = await worker.cancel()
    assert last == Cancelled(step=7, seconds=2.5, checkpoint="there")
    assert wait_gone(child)


async def test_cancel_twice_and_after_the_end(tmp_path: Path) -> None:
    worker, _ = await started(tmp_path, POLITE)
    first, second = await asyncio.gather(worker.cancel(), worker.cancel())
    assert first == second == await worker.cancel()


async def test_twenty_runs_two_at_a_time(tmp_path: Path) -> None:
    python = interpreter(
        tmp_path,
        """
        sys.stdin.readline()
        say(event="message", level="info", text="in")
        time.sleep(0.05)
        ending()
        """,
    )
    pool = WorkerPool(python, limit=2, keep_warm=True)
    inside: set[str] = set()
    most = 0

    def listener(name: str):
        def take(event: Event) -> None:
            nonlocal most
            if isinstance(event, Message):
                inside.add(name)
                most = max(most, len(inside))
            elif isinstance(event, Finished):
                inside.discard(name)

        return take

    runs = []
    for number in range(20):
        one = job(tmp_path)
        runs.append(pool.submit(one, listener(f"{number}")))
    assert pool.waiting == 18
    await runs[-1].cancel()
    endings = await asyncio.gather(*(run.wait() for run in runs))
    assert [type(event) for event in endings] == [Finished] * 19 + [Cancelled]
    assert most == 2
    assert RunDirectory.of(runs[-1].job).status() == "cancelled"
    await pool.close()


async def test_closing_the_pool_ends_everything(tmp_path: Path) -> None:
    pool = WorkerPool(interpreter(tmp_path, POLITE), limit=1)
    pool.prewarm()
    runs = [pool.submit(job(tmp_path), lambda event: None) for _ in range(3)]
    await asyncio.sleep(0.3)
    await pool.close()
    assert all(run.ending.done() for run in runs)
    assert os.path.exists(tmp_path)


async def test_an_idle_worker_is_ended_in_time_and_when_another_interpreter_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first, other = interpreter(tmp_path, POLITE), interpreter(tmp_path / "other", POLITE)
    pool = WorkerPool(first, idle=0.3)

    def idle() -> set[int]:
        return {int(e.name) for e in Path("/proc").iterdir() if e.name.isdigit() and polite(e)}

    def polite(entry: Path) -> bool:
        try:
            return str(tmp_path).encode() in (entry / "cmdline").read_bytes()
        except OSError:
            return False

    async def until(count: int) -> None:
        async with asyncio.timeout(HANG):
            while len(idle()) != count:
                await asyncio.sleep(0.02)

    pool.prewarm()
    await until(1)
    await until(0)
    pool.idle = 60
    pool.prewarm()
    await until(1)
    pool.use(other)
    await until(0)
    run = pool.submit(job(tmp_path), lambda event: None)
    worker = await run.placed()
    assert worker is not None
    await until(2)  # it, and the next one that is kept warm
    pool.kill()
    await until(0)
    assert isinstance(await run.wait(), Crashed)


async def test_an_interpreter_that_cannot_be_started_is_reported(tmp_path: Path) -> None:
    pool = WorkerPool(str(tmp_path / "none"), keep_warm=False)
    run = pool.submit(job(tmp_path), lambda event: None)
    assert await run.placed() is None
    assert run.problem is not None and run.problem.strerror == "No such file or directory"
    assert isinstance(await run.wait(), Crashed)
    await pool.close()
