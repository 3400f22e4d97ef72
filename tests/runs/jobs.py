"""Small programs, and runs of them in real processes."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from qvr_core.runs.client.client import OnEvent, WorkerProcess
from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.protocol import Event, Job
from qvr_core.runs.record.store import RunStore
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
LATENTS = """\
object Row : FinSet 64
program normal_of_data : Row -> Row
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(5.0)
    sample z : Row <- Normal(mu, tau)
    observe y : Row <- Normal(z, 1.0)
    return y
"""


def make_job(folder: Path, model: str = MODEL, program: str | None = None, **config: object) -> Job:
    asked = RunConfig.model_validate({"data": "text:t.txt", "batch_size": 16, "threads": 1, **config})
    return RunStore(folder).create(path="m.qvr", text=model, program=program, config=asked, base=str(folder))


async def start(job: Job, on_event: OnEvent, *, python: str = sys.executable) -> WorkerProcess:
    """Start a worker on a job.  Raises OSError where the interpreter cannot be started."""
    worker = await WorkerProcess.spawn(python)
    await worker.run(job, on_event)
    return worker


async def watched(job: Job) -> tuple[list[Event], Event]:
    events: list[Event] = []
    worker = await start(job, events.append)
    return events, await asyncio.wait_for(worker.wait(), HANG)
