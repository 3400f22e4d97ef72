"""`Mixture(w, A(…), B(…))`: the family that a mixture of some families is.

It is called as it is written, `Mixture(Normal, StudentT)`; its parameters are the weights, then those of each component
with the number of the component behind: `loc_1`, `scale_1`, `df_2`, …
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qvr_core.semantics.language.family import Family, Parameter

MIXTURE = "Mixture"
CALL = "Mixture(weights, A(…), B(…), …)"
SUMMARY = "a draw from one of several families on one support, the first with the first weight"

WEIGHTS = Parameter(
    "weights", "vector", "simplex", ("probs", "w"), alternatives=(("logits", "real"),), raw="components"
)


def component_names(name: str) -> tuple[str, ...] | None:
    """The families that a mixture of this name is made of; None where it is the name of no mixture."""
    if not name.startswith(f"{MIXTURE}(") or not name.endswith(")"):
        return None
    return tuple(name[len(MIXTURE) + 1 : -1].split(", "))


def numbered(parameter: Parameter, component: int) -> Parameter:
    """A parameter of the component of this number, from 1."""
    others = tuple((f"{name}_{component}", constraint) for name, constraint in parameter.alternatives)
    return replace(parameter, name=f"{parameter.name}_{component}", aliases=(), alternatives=others)


def mixture_of(components: Sequence[Family]) -> Family:
    """The facts of a mixture; its components have one support (`other_support`)."""
    first = components[0]
    inner = [numbered(one, at) for at, family in enumerate(components, 1) for one in family.parameters]
    return Family(
        f"{MIXTURE}({', '.join(family.name for family in components)})",
        (WEIGHTS, *inner),
        first.support,
        "discrete" if first.discrete else "value",
        f"a mixture of {len(components)} families",
        event=first.event,
        cdf=all(family.cdf for family in components),
        step_only=True,
        open=all(family.open for family in components),
    )


def unfit(family: Family) -> str | None:
    """Why a family can be no component, as the end of a sentence; None where it can."""
    if family.improper:
        return "is no distribution"
    if family.bounded_by is not None or family.above is not None:
        return "has bounds that are arguments of its own, and the components of a mixture have one support"
    if family.event == 2 or any(parameter.sizes for parameter in family.parameters):
        return "draws matrices"
    return None


def other_support(first: Family, other: Family) -> bool:
    """Whether two families do not draw from one set."""
    return (first.support, first.event) != (other.support, other.event)
