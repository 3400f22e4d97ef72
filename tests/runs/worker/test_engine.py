"""Real runs in real processes: how they end, what they leave behind, and that going on changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from qvr_core.runs.client.client import WorkerProcess
from qvr_core.runs.record.exports import losses_of
from qvr_core.runs.record.protocol import (
    Cancelled,
    CheckpointWritten,
    Crashed,
    Event,
    Failed,
    Finished,
    HeldOut,
    Job,
    Message,
    Progress,
    Started,
)
from qvr_core.runs.record.store import RunDirectory, RunStore
from qvr_core.runs.worker.emitter import POINTS
from tests.patience import HANG, wait_gone
from tests.runs.jobs import MODEL, make_job, start, watched

pytestmark = pytest.mark.usefixtures("patient")


@pytest.mark.process
@pytest.mark.long
async def test_text_run_learns_and_leaves_a_whole_directory(tmp_path: Path, text: Path) -> None:
    job = make_job(tmp_path, steps=400, learning_rate=0.01, held_out_rows=256, held_out_draws=4, held_out_after=(0.3,))
    events, last = await watched(job)
    assert isinstance(last, Finished), last
    started = events[0]
    assert isinstance(started, Started)
    assert (started.program, started.parameters, started.steps) == ("small_lm", 7736, 400) or started.parameters > 0
    assert started.baselines is not None and started.baselines.bigram < started.baselines.unigram
    steps = [event.step for event in events if isinstance(event, Progress)]
    assert steps == sorted(set(steps)) and steps[-1] == 400
    figures = [event for event in events if isinstance(event, HeldOut)]
    assert len(figures) == 2 and figures[0].seconds < figures[1].seconds
    assert figures[-1].bits_per_byte < figures[-1].unigram
    assert figures[-1].bits_per_byte <= figures[-1].bound
    run = RunDirectory.of(job)
    assert run.status() == "finished"
    assert len(losses_of(run)) == 400
    assert {path.name for path in run.path.iterdir()} >= {"job.json", "environment.json", "program.qvr", "events.log"}
    assert list(run.events())[-1] == last


def progress_times(events: list[Event]) -> list[float]:
    return [event.seconds for event in events if isinstance(event, Progress)]


async def test_progress_comes_at_most_ten_times_a_second_but_for_its_curve(tmp_path: Path, text: Path) -> None:
    events, _ = await watched(make_job(tmp_path, steps=400, held_out=0))
    times = progress_times(events)
    assert len(times) <= 10 * times[-1] + POINTS + 3


async def unbroken(folder: Path, **config: object) -> list[float]:
    job = make_job(folder, **config)
    _, last = await watched(job)
    assert isinstance(last, Finished), last
    return losses_of(RunDirectory.of(job))


SETTINGS = {"steps": 300, "checkpoint_steps": 20, "held_out": 0, "schedule": "cosine"}


async def killed_and_resumed(folder: Path, moments: list[float]) -> list[float]:
    """The losses of a run that is killed at these times after each of its starts, and then left to finish."""
    job = make_job(folder, **SETTINGS)
    for moment in moments:
        first_step = asyncio.Event()

        def look(event: Event, first_step: asyncio.Event = first_step) -> None:
            if isinstance(event, Progress):
                first_step.set()

        worker = await start(job, look)
        with_time = asyncio.wait_for(first_step.wait(), HANG)
        done = asyncio.create_task(worker.wait())
        await asyncio.wait([asyncio.ensure_future(with_time), done], return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(moment)
        worker.kill()
        last = await done
        if isinstance(last, Finished):
            break
        assert isinstance(last, Crashed) and last.signal == "SIGKILL"
        assert RunDirectory.of(job).status() == "crashed"
        job = RunStore(folder).resume(job.run_id)
    _, last = await watched(job)
    assert isinstance(last, Finished), last
    return losses_of(RunDirectory.of(job))


@pytest.mark.long
async def test_killed_and_resumed_run_has_the_losses_of_an_unbroken_one(tmp_path: Path, text: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "t.txt").write_bytes(text.read_bytes())
    whole = await unbroken(tmp_path / "a", **SETTINGS)
    assert len(whole) == 300
    assert await killed_and_resumed(tmp_path, [0.15, 0.3]) == whole  # bit for bit


@pytest.mark.statistical
@pytest.mark.timeout(1200)
async def test_twenty_kills(tmp_path: Path, text: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "t.txt").write_bytes(text.read_bytes())
    whole = await unbroken(tmp_path / "a", **SETTINGS)
    random.seed(0)
    for _ in range(20):
        assert await killed_and_resumed(tmp_path, [random.uniform(0, 1)]) == whole


async def after_first(job: Job, kind: type) -> tuple[WorkerProcess, list[Event]]:
    events: list[Event] = []
    seen = asyncio.Event()

    def take(event: Event) -> None:
        events.append(event)
        if isinstance(event, kind):
            seen.set()

    worker = await start(job, take)
    await asyncio.wait_for(seen.wait(), HANG)
    return worker, events


@pytest.mark.long
async def test_cancelled_run_keeps_a_checkpoint_and_goes_on(tmp_path: Path, text: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "t.txt").write_bytes(text.read_bytes())
    whole = await unbroken(tmp_path / "a", steps=300, held_out=0)
    job = make_job(tmp_path, steps=300, held_out=0)
    worker, _ = await after_first(job, Progress)
    last = await worker.cancel()
    assert isinstance(last, Cancelled) and 0 < last.step < 300 and last.checkpoint
    again = RunStore(tmp_path).resume(job.run_id)
    events, last = await watched(again)
    assert isinstance(last, Finished)
    resumed = events[0]
    assert isinstance(resumed, Started) and resumed.resumed_from is not None
    assert losses_of(RunDirectory.of(job)) == whole


async def test_worker_dies_with_its_parent(tmp_path: Path, text: Path) -> None:
    program = tmp_path / "m.qvr"
    program.write_text(MODEL)
    command = [sys.executable, "-m", "qvr_core.cli", "run", "svi", str(program), "--data", f"text:{text}",
               "--steps", "1000000", "--json", "--threads", "1"]  # fmt: skip
    parent = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = None
    for line in parent.stdout:
        event = Started.model_validate_json(line) if '"started"' in line else None
        if event is not None:
            pid = event.pid
            break
    assert pid is not None
    parent.kill()
    parent.wait()
    assert wait_gone(pid)


async def test_worker_dies_with_its_parent_before_it_has_a_job(tmp_path: Path) -> None:
    code = (
        "import asyncio\nfrom qvr_core.runs.client.client import WorkerProcess\n"
        "async def main():\n worker = await WorkerProcess.spawn()\n print(worker.pid, flush=True)\n"
        " await asyncio.sleep(600)\nasyncio.run(main())"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    assert wait_gone(pid)


async def failed(job: Job) -> Failed:
    _, last = await watched(job)
    assert isinstance(last, Failed), last
    assert RunDirectory.of(job).status() == "failed"
    return last


async def test_program_with_an_error_fails_at_its_place(tmp_path: Path, text: Path) -> None:
    last = await failed(make_job(tmp_path, MODEL.replace("-> Embedded [", "-> Embeded [")))
    assert last.code == "unknown-name" and "Embeded" in last.message
    assert last.range is not None
    line = MODEL.replace("-> Embedded [", "-> Embeded [").splitlines()[last.range.start.line]
    assert line[last.range.start.character : last.range.end.character] == "Embeded"


async def test_data_that_does_not_fit_fails_at_the_site(tmp_path: Path, text: Path) -> None:
    last = await failed(make_job(tmp_path, MODEL.replace("FinSet 256", "FinSet 32")))
    assert last.code == "data" and "t.txt" in last.message and "FinSet 256" in last.message
    assert last.range is not None


async def test_absent_file(tmp_path: Path) -> None:
    last = await failed(make_job(tmp_path))
    assert last.code == "data" and "no such file" in last.message


async def test_run_that_cannot_fit_is_refused_with_the_widths_to_blame(tmp_path: Path, text: Path) -> None:
    last = await failed(make_job(tmp_path, MODEL.replace("Hidden : Real 12", "Hidden : Real 900000000")))
    assert last.code == "memory"
    assert "`cell : Embedded * Hidden -> Hidden`" in last.message and "TB" in last.message


async def test_nan_is_traced_to_its_site(tmp_path: Path, text: Path) -> None:
    events, last = await watched(make_job(tmp_path, steps=200, learning_rate=1e30, held_out=0))
    assert isinstance(last, Failed), last
    assert last.code == "not-finite"
    assert "learning_rate" in last.message
    skipping = make_job(tmp_path, steps=30, learning_rate=1e30, held_out=0, nan="skip")
    events, last = await watched(skipping)
    assert isinstance(last, Finished), last
    assert any(isinstance(event, Message) and "left out" in event.text for event in events)


async def test_time_limit_ends_a_run_with_what_it_has(tmp_path: Path, text: Path) -> None:
    events, last = await watched(make_job(tmp_path, steps=10_000_000, time_limit=0.5, held_out=0))
    assert isinstance(last, Finished) and last.reason == "the time limit of 0.5 s"
    assert any(isinstance(event, CheckpointWritten) for event in events)


def fill(file: Path) -> None:
    """Write until nothing more fits."""
    with open(file, "wb", buffering=0) as opened, contextlib.suppress(OSError):
        while opened.write(b"x" * 4096):
            pass


async def test_full_disk_keeps_the_last_checkpoint(tmp_path: Path, text: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", str(disk)], check=False).returncode
    ):
        pytest.skip("a small file system cannot be mounted here")
    try:
        (disk / "t.txt").write_bytes(text.read_bytes())
        job = make_job(disk, steps=400, checkpoint_steps=50, held_out=0)
        filler = itertools.count()
        events: list[Event] = []

        def take(event: Event) -> None:
            events.append(event)
            if isinstance(event, CheckpointWritten) and next(filler) == 0:
                fill(disk / "filler")

        worker = await start(job, take)
        last = await asyncio.wait_for(worker.wait(), HANG)
        assert isinstance(last, Finished), last
        warnings = [event.text for event in events if isinstance(event, Message)]
        assert any("no checkpoint" in text and "No space left" in text for text in warnings), warnings
        (disk / "filler").unlink()
        assert len(losses_of(RunDirectory.of(job))) >= 50
    finally:
        subprocess.run(["umount", str(disk)], check=True)


async def test_synthetic_data_come_from_the_program(tmp_path: Path) -> None:
    events, last = await watched(make_job(tmp_path, data="synthetic", steps=300, learning_rate=0.01, rows=64))
    assert isinstance(last, Finished) and last.losses is not None
    assert last.losses.first is not None and last.losses.mean_of_last is not None
    assert last.losses.mean_of_last < last.losses.first
    started = events[0]
    assert isinstance(started, Started) and started.data.startswith("synthetic: 64 rows")
