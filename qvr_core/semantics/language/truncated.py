"""`sample x : Real 1 [low=0.0] <- Normal(…)`: the family that another one is on a smaller space than its own.

It is called as the other family in `Truncated(…)`; its parameters are that family's, then the bounds.  `Flat` has no
density to renormalise: on a bounded space it is `Truncated(Flat)`, and on one of vectors or matrices `Flat(Simplex)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from qvr_core.semantics.language.family import Family, Parameter, Support
from qvr_core.semantics.language.outcomes import computed_name
from qvr_core.semantics.language.sum_to_zero import OF, SUM_TO_ZERO

TRUNCATED = "Truncated"
FLAT = "Flat"

LOWEST = Parameter("lowest", default=-math.inf, raw="none")
HIGHEST = Parameter("highest", default=math.inf, raw="none")
"""The bounds, which count where the family is discrete; a side without one has none."""

FLAT_ON: Mapping[str, int] = {"Simplex": 1, "CholeskyFactor": 2, "Correlation": 2, "Covariance": 2}
"""The spaces of vectors and matrices on which there is a `Flat`, with the rank of one draw."""


def truncated_name(name: str) -> str | None:
    """The family that is truncated in one of this name; None where it is the name of no such family."""
    return name[len(TRUNCATED) + 1 : -1] if name.startswith(f"{TRUNCATED}(") and name.endswith(")") else None


def flat_on(name: str) -> str | None:
    """The space of vectors or matrices that a `Flat` of this name is on; None of any other family."""
    kind = name[len(FLAT) + 1 : -1] if name.startswith(f"{FLAT}(") and name.endswith(")") else None
    return kind if kind in FLAT_ON else None


def truncated(family: Family) -> Family:
    """The facts of a family between bounds that the ascription of its step gives."""
    return replace(
        family,
        name=f"{TRUNCATED}({family.name})",
        parameters=(*family.parameters, LOWEST, HIGHEST),
        noise="discrete" if family.discrete else "value" if family.improper else "uniform",
        summary=f"{family.name} between bounds",
        bounded_by=(LOWEST.name, HIGHEST.name),
        above=None,
        counts_to=None,
        head_options={},
        common=False,
        noncentred=False,
        step_only=True,
    )


def flat(kind: str, plain: Family) -> Family:
    """The facts of `Flat` on a space of vectors or matrices; `plain` is that on all numbers."""
    return replace(plain, name=f"{FLAT}({kind})", support=Support(kind), event=FLAT_ON[kind])


def family_words(name: str) -> str:
    """A family as programs call it: that of an ascription by the name behind `<-`."""
    if name == SUM_TO_ZERO:
        return OF
    inner = truncated_name(name)
    if (outcome := computed_name(inner or name)) is not None:
        return outcome[1]
    return inner if inner is not None else FLAT if flat_on(name) is not None else name
