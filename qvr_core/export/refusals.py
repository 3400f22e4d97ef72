"""What a target cannot say, at its place in the program."""

from __future__ import annotations

from qvr_core.lowered.factors import Factor
from qvr_core.lowered.tails import WITH_TAILS
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import Site


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
    counts = "Poisson, NegativeBinomial, Binomial and BetaBinomial from 1 on"
    return Refused(factor.site.origin, message, f"there are {', '.join(WITH_TAILS)}, and {counts}")


def no_outcome(factor: Factor, what: str) -> Refused:
    """Of options of a computed outcome."""
    return Refused(factor.site.origin, f"`{factor.site.name}`: {what} of a computed outcome are not exported")


def no_gate(draw: FamilyDraw, site: Site, target: str) -> Refused:
    """Of a gate before counts whose probability of 0 is not known in closed form."""
    return Refused(draw.origin, f"`{site.name}`: {draw.family} is not exported to {target}")
