"""What is asked of the process that draws from priors, and what it answers: a line of JSON each."""

from __future__ import annotations

from pydantic import Field

from qvr_core.runs.record.protocol import Frozen, Job
from qvr_core.runs.record.summary import Summary

MOST_DRAWS = 1_000


class PriorAsked(Frozen):
    """Draws from the prior of a job's program, on its data; `number` comes back with the answer."""

    number: int
    job: Job
    draws: int = 200
    seed: int = 0


class PriorDrawn(Frozen):
    """`summary` is that of the draws: latents, lets, observed and predicted steps as its sites; `predictive` are the
    observed steps whose data are known.  `outside` says of those whose data the prior leaves out how far.  `problem`
    is why there are no draws."""

    number: int
    summary: Summary | None = None
    notes: tuple[str, ...] = ()
    outside: dict[str, str] = Field(default_factory=dict[str, str])
    problem: str | None = None
