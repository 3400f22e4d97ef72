"""Of many events of progress some go out: enough for a curve of losses, and no more of any other."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from qvr_core.runs.record.protocol import Event, Finished, Progress
from qvr_core.runs.record.store import RunDirectory
from qvr_core.runs.worker.emitter import Emitter


@pytest.mark.parametrize(("loss", "kept"), [(1.0, range(100, 103)), (None, range(1, 3))])
def test_a_run_of_an_instant_has_the_curve_of_its_losses(loss: float | None, kept: range, tmp_path: Path) -> None:
    sent = list[Event]()
    events = Emitter(RunDirectory(tmp_path), sent.append, clock=lambda: 0.0)
    for step in range(1, 2001):
        events.emit(Progress(step=step, steps=2000, seconds=step / 1e6, loss=loss))
    events.emit(Finished(step=2000, seconds=0.002))
    stored = [event.step for event in RunDirectory(tmp_path).events() if isinstance(event, Progress)]
    assert [event.step for event in sent if isinstance(event, Progress)] == stored
    assert len(stored) in kept and stored[-1] == 2000
    assert max(after - before for before, after in pairwise(stored)) <= (20 if loss else 2000)
