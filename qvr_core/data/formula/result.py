"""What a formula has become: the program as it is written, and what there is to say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SMALLEST = 0.99
"""The target of steps at which 1,000 transitions of warm-up left one or two divergences in 4,000 draws."""


@dataclass(frozen=True)
class Program:
    """A program as it is written, and what there is to say of it."""

    text: str
    columns: Mapping[str, str]
    """What the table calls a name of the program, where that is something else."""
    told: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    incomplete: Mapping[str, int] = field(default_factory=dict[str, int])
    """Columns that have to be complete, and how many cells they lack."""
    target_accept: float | None = None
    """Above the usual one where scales are drawn with what they scale: such posteriors have necks that want small
    steps, the more so of curves and of few groups."""

    @property
    def settings(self) -> dict[str, float | int]:
        """What a run of it wants otherwise than by default: the smallest steps are tuned for twice as long."""
        if self.target_accept is None:
            return {}
        longer = {"warmup": 2000} if self.target_accept >= SMALLEST else {}
        return {"target_accept": self.target_accept, **longer}
