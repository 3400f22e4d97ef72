"""Families of distributions as the typed model has them: drawn from with arguments, or declared by the file."""

from __future__ import annotations

from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import FamilyBase
from qvr_core.semantics.types.model.expressions import Expr, ValueType
from qvr_core.semantics.types.spaces import Finite, Named, Space
from qvr_core.syntax.immutable import immutable, immutable_by_name


@immutable
class Weights:
    """The weights of a morphism with a prior: the family of each number, with its arguments, and the sets that the site
    of the weights runs over."""

    name: str
    family: str
    arguments: tuple[tuple[str, float], ...]
    sets: tuple[Finite, ...]
    declared: tuple[DeclaredFamily, ...] = ()


@immutable_by_name
class FamilyDraw:
    """A family with its parameters by their canonical names, in the family's order.

    `declared` are the families of the file that it names: the family itself, or components of a mixture.
    """

    family: str
    args: tuple[tuple[str, Expr], ...]
    origin: Origin
    declared: tuple[DeclaredFamily, ...] = ()


@immutable
class DeclaredParameter:
    """A parameter of a declared family; `numbers` is 'count' for `Nat`."""

    name: str
    space: Space
    default: float | None = None
    numbers: str = ""


@immutable
class Formula:
    """`density(x) = …`: what the value is called, and the expression."""

    argument: str
    value: Expr


@immutable
class Standard:
    """`standard(z) = shift + factor * z`; no shift where it is 0."""

    shift: Expr | None
    factor: Expr


@immutable
class InnerDraw:
    """A family that stands in the formula of a draw: its value is bound under `name`."""

    name: str
    draw: FamilyDraw
    type: ValueType


@immutable_by_name
class DeclaredFamily(FamilyBase):
    """A family that the file declares (docs/reference.md#families-of-your-own).

    `space` is that of one element, `numbers` 'count' for `Nat` and 'bool' for `Bool`; a size that the arguments decide
    is an unknown `%k`.  `lets` are bound in front of every formula; those of `drawn` are drawn, in their order, before
    `draw` is computed.
    """

    space: Named
    parameters: tuple[DeclaredParameter, ...]
    density: Formula
    origin: Origin
    numbers: str = ""
    lets: tuple[tuple[str, Expr], ...] = ()
    cdf: Formula | None = None
    log_survival: Formula | None = None
    drawn: tuple[InnerDraw, ...] = ()
    draw: Expr | None = None
    standard: Standard | None = None
