"""Families that the file declares, as their draws name them."""

from __future__ import annotations

from collections.abc import Iterable

from qvr_core.semantics.types.model.expressions import Bound, Constant, Expr, ValueType
from qvr_core.semantics.types.model.families import DeclaredFamily, FamilyDraw
from qvr_core.semantics.types.spaces import Real, Space
from qvr_core.semantics.types.walk import until_arrows, walk


def family_of_file(draw: FamilyDraw) -> DeclaredFamily | None:
    """The family that the file declares and the draw is wholly of; None of the language's, and of mixtures."""
    return next((one for one in draw.declared if one.name == draw.family), None)


def is_of_numbers(family: DeclaredFamily) -> bool:
    """Whether an element and every parameter is one number."""
    return all(map(_is_number, (family.space.space, *(one.space for one in family.parameters))))


def _is_number(space: Space) -> bool:
    return isinstance(space, Real) and space.shape == (1,)


def given(draw: FamilyDraw, family: DeclaredFamily) -> list[Expr]:
    """The arguments, in the order of the parameters."""
    found = dict(draw.args)
    return [
        found[one.name]
        if one.name in found or one.default is None
        else Constant(type=ValueType(one.space), origin=draw.origin, value=one.default)
        for one in family.parameters
    ]


def lets_of_density(family: DeclaredFamily) -> list[tuple[str, Expr]]:
    """The lets that the density reads, in their order."""
    wanted = _reads([family.density.value])
    for name, value in reversed(family.lets):
        if name in wanted:
            wanted |= _reads([value])
    return [(name, value) for name, value in family.lets if name in wanted]


def reads_value(family: DeclaredFamily) -> bool:
    """Whether the density depends on the element."""
    return family.density.argument in _reads([family.density.value])


def _reads(values: Iterable[Expr]) -> set[str]:
    return {node.name for value in values for node in walk(value, until_arrows) if isinstance(node, Bound)}
