"""What is known of a family that a file declares: the same facts as of any other."""

from __future__ import annotations

from collections.abc import Mapping

from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.family import Family, Parameter, Support, bounded
from qvr_core.semantics.language.gates import gated, gated_name
from qvr_core.semantics.language.mixtures import component_names, mixture_of
from qvr_core.semantics.language.outcomes import computed, computed_name
from qvr_core.semantics.language.truncated import truncated, truncated_name
from qvr_core.semantics.types.model.families import DeclaredFamily, DeclaredParameter, FamilyDraw
from qvr_core.semantics.types.spaces import Constrained, Dim, Finite, Linear, Real, Space, width


def facts_of(declared: DeclaredFamily) -> Family:
    """The facts of a declared family."""
    space = declared.space.space
    vector = _size(space) is not None and not isinstance(space, Finite)
    length = _length(_size(space))
    no_head = _no_head(declared, length)
    # of a set whose size is known each factor of a codomain has parameters of its own
    drawn = None if isinstance(space, Finite) and isinstance(length, int) else length
    return Family(
        declared.name,
        tuple(_parameter(one, drawn) for one in declared.parameters),
        _support(space, declared.numbers),
        "discrete" if isinstance(space, Finite) or declared.numbers else "value",
        "declared in this file",
        event=int(vector),
        cdf=declared.cdf is not None or declared.log_survival is not None,
        noncentred=declared.standard is not None,
        step_only=bool(no_head),
        no_head=no_head,
        drawn=declared.draw is not None,
        length=length,
    )


def _no_head(declared: DeclaredFamily, length: int | str | None) -> str:
    """Why no network gives the parameters of a family; '' where one does."""
    for one in declared.parameters:
        space, own = one.space, _length(_size(one.space))
        if one.numbers:
            return f"`{one.name}` is a whole number, which no network gives"
        if isinstance(space, Real) and space.low is None and space.high is not None:
            return f"`{one.name}` has a bound above alone; a network gives numbers above one, or between two"
        vector = isinstance(space, Constrained) and space.kind in ("Simplex", "Ordered")
        if not isinstance(space, Real) and not vector:
            return f"no network gives `{one.name}`"
        if isinstance(own, str) and own != length:
            return f"nothing says how long `{one.name}` is"
    return ""


def facts_of_draw(draw: FamilyDraw) -> Family:
    """The facts of the family, or mixture, that is drawn from."""
    if not draw.declared:
        return FAMILIES[draw.family]
    return _facts_named(draw.family, {one.name: facts_of(one) for one in draw.declared})


def _facts_named(name: str, own: Mapping[str, Family]) -> Family:
    if (inner := truncated_name(name)) is not None:
        return truncated(_facts_named(inner, own))
    if (outcome := computed_name(name)) is not None:
        return computed(outcome[0], _facts_named(outcome[1], own))
    if (gate := gated_name(name)) is not None:
        return gated(gate[0], _facts_named(gate[1], own))
    components = component_names(name)
    if components is None:
        return own[name] if name in own else FAMILIES[name]
    return mixture_of([_facts_named(one, own) for one in components])


def _support(space: Space, numbers: str) -> Support:
    match space:
        case Real(low=low, high=high):
            return Support("count", 0.0) if numbers else Support("real", low, high)
        case Finite(size=size, nominal=name):
            of = None if numbers == "bool" else name
            return Support("finite") if isinstance(size, Linear) else Support("finite", 0.0, float(int(size) - 1), of)
        case Constrained(kind=kind):
            return Support(kind)
        case _:
            return Support("real")


def _parameter(declared: DeclaredParameter, length: int | str | None) -> Parameter:
    """A vector that is not as long as a draw says nothing of how long a draw is."""
    size = _size(declared.space)
    own = _length(size)
    return Parameter(
        declared.name,
        "element" if size is None else "vector",
        _constraint(declared),
        default=declared.default,
        raw="width" if own == length else "components",
        length=own,
    )


def _constraint(declared: DeclaredParameter) -> str:
    match declared.space:
        case Real(low=low, high=high):
            return "natural" if declared.numbers else bounded(low, high, vector=_size(declared.space) is not None)
        case Constrained(kind="Simplex"):
            return "simplex"
        case Constrained(kind="Ordered"):
            return "ordered"
        case _:
            return "real"


def _size(space: Space) -> Dim | None:
    """The length of a vector, the number of values of a finite set; None of one number."""
    match space:
        case Finite(size=size) | Constrained(size=size):
            return size
        case Real():
            return None if (size := width(space)) == 1 else size
        case _:
            return None


def _length(size: Dim | None) -> int | str | None:
    if isinstance(size, Linear):
        return size.terms[0][0].lstrip("%")
    return None if size is None else int(size)
