"""The end of a run tells all the time that it took."""

from __future__ import annotations

from pathlib import Path

from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.record.protocol import Cancelled, Event, Finished, Progress
from qvr_core.runs.worker.job import conduct, in_whole
from tests.runs.jobs import make_job

NORMAL = """\
object Row : FinSet 6
program p : Row -> Row
    sample m <- Normal(0.0, 1.0)
    observe y : Row <- Normal(m, 1.0)
    return m
"""


def test_what_comes_before_and_after_the_steps_counts(tmp_path: Path) -> None:
    job = make_job(tmp_path, NORMAL, "p", data="synthetic", steps=40, batch_size=None)
    events: list[Event] = []
    assert conduct(job, Stop(), events.append) == 0
    steps = [event.seconds for event in events if isinstance(event, Progress)]
    end = events[-1]
    # the table, the stored draws and leave-one-out come behind the last step
    assert isinstance(end, Finished) and steps and end.seconds > max(steps)


def test_a_run_that_goes_on_adds_to_the_time_before() -> None:
    end, before = Finished(step=3, seconds=1.0), Cancelled(step=2, seconds=5.0)
    assert isinstance(told := in_whole(end, before, 3.0), Finished) and told.seconds == 8.0
    assert isinstance(told := in_whole(end, None, 3.0), Finished) and told.seconds == 3.0
    # after a crash only the steps of before are known
    assert isinstance(told := in_whole(end.model_copy(update={"seconds": 9.0}), None, 3.0), Finished)
    assert told.seconds == 9.0
