"""What a run will take of memory is known before it begins."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from qvr_core.runs.record.protocol import (
    Event,
    Finished,
    Started,
)
from tests.runs.jobs import LATENTS, MODEL, SENTENCE, make_job, start

WORDS = MODEL.replace("FinSet 256", "FinSet 10000").replace("scan(cell)", "scan(cell, emit=all)")
"""Most of its memory are the logits of a large vocabulary."""
LSTM = (Path(__file__).resolve().parents[3] / "examples" / "lstm_lm.qvr").read_text()


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
@pytest.mark.sampled(3)
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
