"""What is asked of the process that draws while somebody types, and what it answers: a line of JSON each."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from qvr_core.runs.record.protocol import Frozen, Job
from qvr_core.runs.record.summary import Summary

MOST_DRAWS = 1_000
BUDGET = 2.0
"""Seconds that chains may take."""

Kind = Literal["prior", "posterior"]


class Asked(Frozen):
    """Draws of a job's program, on its data: `draws` from the prior, or what chains find in `budget` seconds; `number`
    comes back with the answers."""

    number: int = 0
    kind: Kind = "prior"
    job: Job
    draws: int = 200
    seed: int = 0
    budget: float = BUDGET


class Line(Frozen):
    """What stands in one line: a question, or the number of one whose answer nobody wants any more."""

    asked: Asked | None = None
    drop: int | None = None


class Drawn(Frozen):
    """An answer.  `summary` is that of the draws: latents and lets as its sites, of a prior observed and predicted
    steps as well; `predictive` are the observed steps whose data are known.  `outside` says of those whose data the
    prior leaves out how far.  `problem` is why there are no draws."""

    number: int
    last: bool = True
    """Whether no other answer to the question follows."""
    method: Literal["prior", "nuts", "pathfinder"] = "prior"
    """How the draws were made: `pathfinder` is an approximation."""
    summary: Summary | None = None
    seconds: float = 0.0
    """In which they were."""
    diverged: int = 0
    """Transitions of chains that diverged."""
    notes: tuple[str, ...] = ()
    outside: dict[str, str] = Field(default_factory=dict[str, str])
    problem: str | None = None
    dropped: bool = False
    """Whether the question was dropped: nothing is at work for it any more."""
