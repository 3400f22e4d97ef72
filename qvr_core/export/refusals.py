"""What a target cannot say, at its place in the program."""

from __future__ import annotations

from qvr_core.lowered.factors import Factor
from qvr_core.lowered.tails import WITH_TAILS
from qvr_core.semantics.types.diagnostics import Origin


class Refused(Exception):
    """A part of a program has no counterpart in the target; `remedy` says what would have."""

    def __init__(self, origin: Origin, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.origin = origin
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


def no_tails(factor: Factor) -> Refused:
    """Of limits of a family whose tails are not known in closed form."""
    message = f"`{factor.site.name}`: censoring and truncation of {factor.draw.family} are not exported"
    return Refused(
        factor.site.origin, message, f"there are {', '.join(WITH_TAILS)}, and Poisson and NegativeBinomial from 1 on"
    )
