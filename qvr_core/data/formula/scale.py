"""What a predictor predicts, how far it goes, and what its sites are called."""

from __future__ import annotations

from dataclasses import dataclass

from qvr_core.data.formula.text import Text


@dataclass(frozen=True)
class Scale:
    """What a predictor predicts: where it is in the middle, and how far it may go."""

    what: str
    centre: float
    around: float
    """The sd of the prior of the intercept."""
    wide: float
    """The sd of the prior of what one sd of a predictor adds."""
    spread: float
    """The size of differences between groups."""
    unit: str
    """`wide` in words."""
    centred: frozenset[str] = frozenset()
    """Columns whose levels are drawn about the intercept."""


class Place:
    """Where the steps of a predictor go: `part` stands in front of their names, `suffix` behind."""

    def __init__(self, text: Text, scale: Scale, part: str = "", suffix: str = "") -> None:
        self.text, self.scale, self.part, self.suffix = text, scale, part, suffix

    def name(self, of: str) -> str:
        """A free name for a step of this predictor."""
        return self.text.free(f"{of}{self.suffix}")
