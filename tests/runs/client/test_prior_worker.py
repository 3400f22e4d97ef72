"""The process that draws from priors: given up where it takes too long, ended where nobody asks, started anew."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from qvr_core.runs.client.prior import PriorWorker
from qvr_core.runs.record.config import RunConfig
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


async def test_what_takes_too_long_is_given_up_and_the_next_question_has_another_process(tmp_path: Path) -> None:
    worker = PriorWorker(sys.executable, patience=0.01)
    drawing = asyncio.create_task(worker.draw(job(tmp_path), 10))
    while worker.pid is None and not drawing.done():
        await asyncio.sleep(0)
    first = worker.pid
    with pytest.raises(TimeoutError):
        await drawing
    assert worker.pid is None
    await worker.close()
    assert first is None or wait_gone(first)
    again = PriorWorker(sys.executable, patience=HANG)
    found = await again.draw(job(tmp_path), 10)
    assert found.summary is not None and found.summary.draws == 10
    second = again.pid
    # a question that is cancelled leaves the process to the next one, whose answer is its own
    dropped = asyncio.create_task(again.draw(job(tmp_path), 20))
    await asyncio.sleep(NAP)
    dropped.cancel()
    found = await again.draw(job(tmp_path), 30)
    assert found.summary is not None and found.summary.draws == 30 and again.pid == second
    await again.close()
    assert second is not None and wait_gone(second)


async def test_a_process_that_nobody_asks_is_ended(tmp_path: Path) -> None:
    worker = PriorWorker(sys.executable, idle=3600.0, patience=HANG)
    await worker.draw(job(tmp_path), 10)
    pid = worker.pid
    worker._idle = 0.0
    await worker.draw(job(tmp_path), 10)
    for _ in range(int(HANG / NAP)):
        if worker.pid is None:
            break
        await asyncio.sleep(NAP)
    assert pid is not None and worker.pid is None
    await worker.close()
    assert wait_gone(pid)


async def test_many_observed_numbers_are_drawn_less_often(tmp_path: Path) -> None:
    worker = PriorWorker(sys.executable, patience=HANG)
    many = PROGRAM.replace("FinSet 4", "FinSet 500000")
    found = await worker.draw(job(tmp_path, many), 200)
    await worker.close()
    assert found.summary is not None and found.summary.draws == 4
    assert sum(len(site.elements) for site in found.summary.sites) < 500
