"""Real runs in real processes: how they end, what they leave behind, and that going on changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from qvr_core.inference.mcmc import MCMCResult
from qvr_core.runs.client import client
from qvr_core.runs.client.client import CANCEL_LADDER, WorkerProcess, start
from qvr_core.runs.figures.posterior import chain_table
from qvr_core.runs.fit.chains import together
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.exports import export_csv, losses_of
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
from qvr_core.runs.record.store import RunDirectory, RunStore, wait_gone
from tests.patience import HANG

MODEL = """\
object Token : FinSet 256
object Embedded : Real 8
object Hidden : Real 12
morphism embed : Token -> Embedded [role=embed]
morphism cell : Embedded * Hidden -> Hidden [role=kernel, scale=0.1, hidden_dim=16] ~ Normal
morphism head : Hidden -> Token [role=kernel, hidden_dim=16] ~ Categorical

program small_lm : Token -> Token
    sample h <- states
    observe next_token : Token <- head(h)
    return next_token

let states = embed >> scan(cell)
export small_lm
"""
SENTENCE = b"the quick brown fox jumps over the lazy dog and then it sleeps; "


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "t.txt"
    file.write_bytes(SENTENCE * 200)
    return file


def make_job(folder: Path, model: str = MODEL, program: str | None = None, **config: object) -> Job:
    asked = RunConfig.model_validate({"data": "text:t.txt", "batch_size": 16, "threads": 1, **config})
    return RunStore(folder).create(path="m.qvr", text=model, program=program, config=asked, base=str(folder))


async def watched(job: Job) -> tuple[list[Event], Event]:
    events: list[Event] = []
    worker = await start(job, events.append)
    return events, await asyncio.wait_for(worker.wait(), HANG)


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


async def test_progress_comes_at_most_ten_times_a_second(tmp_path: Path, text: Path) -> None:
    events, _ = await watched(make_job(tmp_path, steps=600, held_out=0))
    times = progress_times(events)
    assert len(times) <= 10 * times[-1] + 3


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


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancelled worker has all the time that a busy machine needs before it is sent a signal."""
    monkeypatch.setattr(client, "CANCEL_LADDER", tuple((after + HANG, rung) for after, rung in CANCEL_LADDER))


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


async def test_cancelled_run_keeps_a_checkpoint_and_goes_on(tmp_path: Path, text: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "t.txt").write_bytes(text.read_bytes())
    whole = await unbroken(tmp_path / "a", steps=800, held_out=0)
    job = make_job(tmp_path, steps=800, held_out=0)
    worker, _ = await after_first(job, Progress)
    last = await worker.cancel()
    assert isinstance(last, Cancelled) and 0 < last.step < 800 and last.checkpoint
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
    assert wait_gone(pid, HANG)


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
    assert wait_gone(pid, HANG)


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


LATENTS = """\
object Row : FinSet 64
program normal_of_data : Row -> Row
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(5.0)
    sample z : Row <- Normal(mu, tau)
    observe y : Row <- Normal(z, 1.0)
    return y
"""


async def test_cancelled_chains_keep_their_draws(tmp_path: Path) -> None:
    job = make_job(
        tmp_path, LATENTS, algorithm="nuts", data="synthetic", warmup=20, samples=1_000_000, chains=2, max_tree_depth=4
    )
    sampling = asyncio.Event()
    events: list[Event] = []

    def take(event: Event) -> None:
        events.append(event)
        if isinstance(event, Progress) and event.step > 40:
            sampling.set()

    worker = await start(job, take)
    await asyncio.wait_for(sampling.wait(), HANG)
    last = await worker.cancel()
    assert isinstance(last, Cancelled), last
    assert {row.name for row in last.posterior} >= {"mu", "tau"}
    assert any(isinstance(event, Message) and "of 1000000 draws each" in event.text for event in events)
    run = RunDirectory.of(job)
    assert run.status() == "cancelled"
    export_csv(run, tmp_path / "draws.csv")
    rows = (tmp_path / "draws.csv").read_text().splitlines()
    assert rows[0].startswith("chain,draw,mu,tau,z[0]") and len(rows) > 3
    assert len(rows) % 2 == 1  # both chains have as many


async def test_chains_at_their_time_limit_say_what_they_have(tmp_path: Path) -> None:
    job = make_job(
        tmp_path, LATENTS, algorithm="nuts", data="synthetic", warmup=5, samples=1_000_000, chains=2,
        max_tree_depth=2, time_limit=2.0,
    )  # fmt: skip
    _, last = await watched(job)
    assert isinstance(last, Finished) and last.posterior
    assert last.reason is not None and last.reason.startswith("the time limit of 2 s: 2 of 2 chains, ")


async def test_chains_of_parameters_that_have_not_mixed_are_told_at_the_end(tmp_path: Path) -> None:
    job = make_job(
        tmp_path, LATENTS, algorithm="nuts", data="synthetic", warmup=0, samples=60, chains=2, max_tree_depth=1,
        step_size=0.01,
    )  # fmt: skip
    events, last = await watched(job)
    assert isinstance(last, Finished)
    (warning,) = [text for text in last.warnings if text.startswith("the chains have not mixed")]
    assert [event.text for event in events if isinstance(event, Message)].count(warning) == 1


def result_of(draws: int, chains: int) -> MCMCResult:
    """Chains whose draws are their numbers."""
    numbers = torch.arange(draws).expand(chains, draws)
    return MCMCResult(
        {"mu": numbers.double()}, torch.ones(chains), torch.zeros(chains), torch.ones(chains), numbers, numbers,
        numbers < 0, numbers.double(), torch.ones(chains, draws),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lengths", "shape"), [((50, 50, 3), (2, 50)), ((50, 40), (2, 40)), ((3,), (1, 3)), ((5, 5), (2, 5))]
)
def test_chains_that_ended_early_cost_as_few_draws_as_can_be(lengths: tuple[int, ...], shape: tuple[int, int]) -> None:
    kept = together([result_of(draws, 1) for draws in lengths])
    assert kept is not None
    assert tuple(kept.samples["mu"].shape) == shape == tuple(kept.acceptance.shape)
    assert together([]) is None


WORDS = MODEL.replace("FinSet 256", "FinSet 10000").replace("scan(cell)", "scan(cell, emit=all)")
"""Most of its memory are the logits of a large vocabulary."""
LSTM = (Path(__file__).resolve().parents[2] / "examples" / "lstm_lm.qvr").read_text()


@pytest.mark.parametrize(
    ("model", "config"),
    [
        (LSTM, {"sequence_length": 256, "batch_size": 256, "steps": 2, "held_out": 0}),
        (MODEL.replace("Real 12", "Real 3000"), {"batch_size": 8, "steps": 2, "held_out": 0}),
        (WORDS, {"data": "synthetic", "rows": 64, "batch_size": 64, "sequence_length": 32, "steps": 2}),
        (WORDS, {"data": "synthetic", "rows": 256, "batch_size": 8, "sequence_length": 16, "steps": 2}),
        (LATENTS.replace("64", "20000"), {"algorithm": "nuts", "data": "synthetic", "warmup": 2, "samples": 150,
                                          "max_tree_depth": 1}),
    ],
)  # fmt: skip
async def test_memory_is_foretold_within_a_factor_of_two(
    model: str, config: dict[str, object], tmp_path: Path, text: Path
) -> None:
    foretold = peak = 0

    def look(event: Event) -> None:
        nonlocal foretold
        if isinstance(event, Started):
            foretold = event.memory or 0

    text.write_bytes(SENTENCE * 2000)
    worker = await start(make_job(tmp_path, model, **config), look)
    done = asyncio.create_task(worker.wait())
    while not done.done():
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{worker.pid}/status").read_text().splitlines()
            peak = max([peak, *(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))])
        await asyncio.sleep(0.02)
    assert isinstance(done.result(), Finished), done.result()
    assert peak / 2 < foretold < peak * 2, (foretold / 2**20, peak / 2**20)


def test_a_table_in_a_hurry_leaves_out_what_takes_long() -> None:
    draws = torch.randn(2, 100_000, 8)
    result = dataclasses.replace(result_of(100_000, 2), samples={"mu": draws[:, :, 0], "z": draws})
    hurried = {row.name: row for row in chain_table(result, {"mu", "z"}, hurry=True)}
    assert hurried["mu"].r_hat is not None and hurried["mu"].ess is not None
    assert hurried["z[7]"].ess is None and hurried["z[7]"].sd == pytest.approx(1, abs=0.02)
