"""`ZeroInflated(gate, Poisson(rate))` and `Hurdle(gate, …)`: families of counts with zeros of their own.

They are called by the family of the other counts, `Hurdle(Poisson)`; the parameters are the gate, then those of that
family.  The gate is the probability of an extra zero, or of a zero at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from qvr_core.semantics.language.family import Family, Parameter, support_words

ZERO_INFLATED, HURDLE = "ZeroInflated", "Hurdle"
GATED: Mapping[str, str] = {
    ZERO_INFLATED: "counts of a family, or an extra zero with the probability `gate`",
    HURDLE: "zero with the probability `gate`, else counts of a family that are not 0",
}
"""What each is."""
GATE = Parameter("gate", constraint="unit", alternatives=(("gate_logits", "real"),))


def gated_call(name: str) -> str:
    """How one is called."""
    return f"{name}(gate, Poisson(rate))"


def gated_name(name: str) -> tuple[str, str] | None:
    """Which of the two a family of this name is, and the family of its counts; None of any other."""
    for kind in GATED:
        if name.startswith(f"{kind}(") and name.endswith(")"):
            return kind, name[len(kind) + 1 : -1]
    return None


def gated(kind: str, family: Family) -> Family:
    """The facts of the family with a gate."""
    return replace(
        family,
        name=f"{kind}({family.name})",
        parameters=(GATE, *family.parameters),
        noise="discrete",
        summary=GATED[kind],
        head_options={},
        common=False,
        noncentred=False,
        step_only=True,
    )


def ungated(family: Family) -> str | None:
    """Why a family has no such gate, as the end of a sentence; None where it can have one."""
    if family.event or family.support.kind != "count" or family.support.low != 0.0:
        return f"draws {support_words(family)}, and a gate is for counts from 0"
    if any(one.name == GATE.name for one in family.parameters):
        return "has a gate of its own"
    return None
