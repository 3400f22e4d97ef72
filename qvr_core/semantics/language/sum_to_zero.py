"""`sample u[s : S] <- Normal(0.0, tau) [sum_to_zero]`: the family of the vectors over the last set."""

from __future__ import annotations

from qvr_core.semantics.language.family import Family, Parameter, Support

SUM_TO_ZERO = "Normal summing to 0"
"""What the family is called in a model; no program can call one so."""
OF = "Normal"
"""The family that a program writes."""

FACTS = Family(
    SUM_TO_ZERO,
    (Parameter("scale", constraint="positive"),),
    Support("real"),
    "normal",
    "numbers of a Normal around 0 that sum to 0",
    event=1,
    noncentred=True,
    step_only=True,
)
