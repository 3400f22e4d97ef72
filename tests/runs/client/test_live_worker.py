"""The process that draws from priors: given up where it takes too long, ended where nobody asks, started anew."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from qvr_core.runs.client.live import LiveWorker
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.live import Asked, Drawn
from qvr_core.runs.record.protocol import Job
from tests.patience import HANG, NAP, wait_gone

PROGRAM = """\
object Row : FinSet 4
program p : Row -> Row
    sample m <- Normal(0.0, 1.0)
    observe y : Row <- Normal(m, 1.0)
    return m
"""


def job(folder: Path, text: str = PROGRAM) -> Job:
    return Job(run_id="", directory=str(folder), path="m.qvr", text=text, config=RunConfig(), base=str(folder))


def asked(folder: Path, text: str = PROGRAM, draws: int = 200) -> Asked:
    return Asked(job=job(folder, text), draws=draws)


@pytest.fixture
def long_to_drop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process has all the time that a busy machine needs to drop a question."""
    monkeypatch.setattr("qvr_core.runs.client.live.DROPPED", HANG)


@pytest.mark.usefixtures("long_to_drop")
async def test_what_takes_too_long_is_given_up_and_the_next_question_has_another_process(tmp_path: Path) -> None:
    worker = LiveWorker(sys.executable, patience=0.01)
    drawing = asyncio.create_task(worker.ask(asked(tmp_path, draws=10)))
    while worker.pid is None and not drawing.done():
        await asyncio.sleep(0)
    first = worker.pid
    with pytest.raises(TimeoutError):
        await drawing
    assert worker.pid is None
    await worker.close()
    assert first is None or wait_gone(first)
    again = LiveWorker(sys.executable, patience=HANG)
    found = await again.ask(asked(tmp_path, draws=10))
    assert found.summary is not None and found.summary.draws == 10
    second = again.pid
    # a question that is cancelled leaves the process to the next one, whose answer is its own
    dropped = asyncio.create_task(again.ask(asked(tmp_path, draws=20)))
    await asyncio.sleep(NAP)
    dropped.cancel()
    found = await again.ask(asked(tmp_path, draws=30))
    assert found.summary is not None and found.summary.draws == 30 and again.pid == second
    await again.close()
    assert second is not None and wait_gone(second)


async def test_a_process_that_nobody_asks_is_ended(tmp_path: Path) -> None:
    worker = LiveWorker(sys.executable, idle=3600.0, patience=HANG)
    await worker.ask(asked(tmp_path, draws=10))
    pid = worker.pid
    worker._idle = 0.0
    await worker.ask(asked(tmp_path, draws=10))
    for _ in range(int(HANG / NAP)):
        if worker.pid is None:
            break
        await asyncio.sleep(NAP)
    assert pid is not None and worker.pid is None
    await worker.close()
    assert wait_gone(pid)


async def test_many_observed_numbers_are_drawn_less_often(tmp_path: Path) -> None:
    worker = LiveWorker(sys.executable, patience=HANG)
    many = PROGRAM.replace("FinSet 4", "FinSet 500000")
    found = await worker.ask(asked(tmp_path, many, draws=200))
    await worker.close()
    assert found.summary is not None and found.summary.draws == 4
    assert sum(len(site.elements) for site in found.summary.sites) < 500


def posterior(folder: Path, text: str = PROGRAM, **settings: object) -> Asked:
    (folder / "d.csv").write_text("y\n1\n2\n3\n4\n")
    config = RunConfig(**{"data": "csv:d.csv", **settings})  # type: ignore[arg-type]
    return Asked(kind="posterior", job=job(folder, text).model_copy(update={"config": config}), budget=5.0)


def children(pid: int | None) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.usefixtures("long_to_drop")
async def test_answers_grow_until_the_last_and_a_question_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    worker, told = LiveWorker(sys.executable, patience=HANG), list[Drawn]()
    last = await worker.ask(posterior(tmp_path), told.append)
    methods = [one.method for one in [*told, last]]
    # where the first evaluations are slow, an approximation comes before the chains
    assert methods == sorted(methods, key="nuts".__eq__)
    counts = [one.summary.draws for one in [*told, last] if one.summary is not None and one.method == "nuts"]
    assert counts == sorted(counts) and counts[-1] == 1000 and len(counts) > 1 and last.method == "nuts"
    pid = worker.pid
    # 40,000 latents take longer than anybody waits for
    many = PROGRAM.replace("FinSet 4", "FinSet 4\nobject Many : FinSet 40000").replace(
        "    observe", "    sample z : Many <- Normal(m, 1.0)\n    observe"
    )
    asking = asyncio.create_task(worker.ask(posterior(tmp_path, many)))
    for _ in range(int(HANG / NAP)):
        if asking.done() or children(pid):
            break
        await asyncio.sleep(NAP)
    (fork,) = children(pid)
    asking.cancel()
    # a question that waits is answered once the one before is dropped
    again = await worker.ask(posterior(tmp_path))
    assert again.summary is not None and worker.pid == pid and wait_gone(int(fork))
    for _ in range(int(HANG / NAP)):
        if not children(pid):
            break
        await asyncio.sleep(NAP)
    assert not children(pid) and not (tmp_path / ".qvr").exists()
    await worker.close()
    assert pid is not None and wait_gone(pid)


@pytest.mark.process
async def test_it_computes_without_torch(tmp_path: Path) -> None:
    worker = LiveWorker(sys.executable, patience=HANG)
    assert (await worker.ask(asked(tmp_path, draws=10))).summary is not None
    maps = Path(f"/proc/{worker.pid}/maps").read_text()
    assert "numpy" in maps and "torch" not in maps
    await worker.close()


@pytest.mark.parametrize(
    ("text", "settings", "why"),
    [
        (PROGRAM, {"data": "synthetic"}, "qvr.toml names no data for `p`"),
        (PROGRAM, {"data": "csv:none.csv"}, "none.csv"),
        (PROGRAM.replace("observe y", "observe z"), {}, "`z`"),
        (
            "object Row : FinSet 4\nobject R : Real 2\nmorphism f : Row -> R [role=embed]\nprogram p : Row -> R\n"
            "    sample x <- f\n    observe y : Real 2 <- Normal(x, 1.0)\n    return x\n",
            {},
            "",
        ),
        (PROGRAM.replace("Normal(0.0, 1.0)", "Bernoulli(0.5)"), {}, "m"),
    ],
)
async def test_what_cannot_be_sampled_is_the_answer(
    tmp_path: Path, text: str, settings: dict[str, str], why: str
) -> None:
    worker = LiveWorker(sys.executable, patience=HANG)
    drawn = await worker.ask(posterior(tmp_path, text, **settings).model_copy(update={"budget": 0.5}))
    assert drawn.summary is None and drawn.problem is not None and why in drawn.problem
    await worker.close()


async def test_a_question_behind_one_that_is_dropped_too_late_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = LiveWorker(sys.executable, patience=HANG)
    await worker.ask(asked(tmp_path, draws=10))
    first = worker.pid
    monkeypatch.setattr("qvr_core.runs.client.live.DROPPED", 0.0)
    dropped = asyncio.create_task(worker.ask(asked(tmp_path, draws=20)))
    await asyncio.sleep(NAP)
    dropped.cancel()
    found = await worker.ask(asked(tmp_path, draws=30))
    assert found.summary is not None and found.summary.draws == 30
    assert worker.pid != first
    await worker.close()
