"""Runs of chains that kill themselves at a moment: at a draw, or around a change of a name on the disk.

As a script: a process of a team, whose rank `RANK` kills itself at draw `DRAW` (job as JSON, rank, draw).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qvr_core.runs.fit import nuts
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.record.protocol import Event, Job
from qvr_core.runs.worker.job import conduct


@dataclass(frozen=True)
class Moment:
    """The `number`-th draw, or before or after the `number`-th name that is changed."""

    what: str
    number: int

    def __str__(self) -> str:
        return f"{self.what}-{self.number}"


def now() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(moment: Moment) -> None:
    """This process ends at that moment."""
    if moment.what == "draw":
        nuts.Watched.transition = _counted(nuts.Watched.transition, moment.number, before=False)
    else:
        os.replace = _counted(os.replace, moment.number, before=moment.what == "before")


def _counted(call: Callable[..., Any], number: int, *, before: bool) -> Any:
    made = 0

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal made
        made += 1
        if made == number and before:
            now()
        found = call(*arguments, **named)
        if made == number:
            now()
        return found

    return counted


def conducted(job: Job) -> list[Event]:
    """The events of a run in this process."""
    events: list[Event] = []
    conduct(job, Stop(), events.append)
    return events


def killed(job: Job, moment: Moment) -> bool:
    """Run a job in a process of its own that ends at a moment; whether it did."""
    pid = os.fork()
    if pid == 0:
        try:
            die_at(moment)
            conducted(job)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    from qvr_core.runs.worker.distributed_run import run_together

    if os.environ["RANK"] == sys.argv[2]:
        die_at(Moment("draw", int(sys.argv[3])))
    asked = Job.model_validate_json(Path(sys.argv[1]).read_text())
    run_together(lambda: asked, lambda event: None, "cpu")
