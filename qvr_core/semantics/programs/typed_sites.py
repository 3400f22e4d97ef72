"""A site with the type of its value: what a typed `sample`, `observe` or `marginalize` step comes to."""

from __future__ import annotations

from enum import Enum

from qvr_core.semantics.programs.family_draws import TypedFamily
from qvr_core.semantics.programs.step_options import StepOptions
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import Density
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.model.steps import DrawModel, Site
from qvr_core.semantics.types.spaces import Named, Unknown
from qvr_core.semantics.types.type_text import structure
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.names import Name


class Ascription(Enum):
    """What `: S` beside a family means (docs/reference.md#plates-without-an-index)."""

    NONE = "none"
    VALUE = "value"  # S ascribes the value
    VALUE_SET = "value set"  # a discrete family per row: S is the set of values
    ROW_DRAWS = "draws in each row"  # continuous, an argument per row: |S| draws in each row
    PLATE = "plate"  # independent draws, or an S-indexed likelihood


@immutable
class TypedSite:
    """A site with the type of its value; `family` where it draws from one."""

    site: Site
    type: ValueType
    named: Named
    family: TypedFamily | None


def drawn_as(kind: str) -> str:
    """The kind of step by whose rules the value of a step is typed: a prediction's are those of a draw."""
    return "sample" if kind == "predict" else kind


def named_type(kind: ValueType, ascription: Ascription, space: Named | None) -> Named:
    if kind.space is None:
        return Named(Unknown(), "?")
    if ascription in (Ascription.VALUE, Ascription.VALUE_SET) and space is not None:
        return Named(kind.space, space.written)
    return Named(kind.space, structure(kind.space))


def plate_and_element(
    ascription: Ascription, ascribed: Named | None, iid_over: Named | None
) -> tuple[Named | None, Named | None]:
    """The sets that a site runs over, and the space of one element."""
    if ascription in (Ascription.PLATE, Ascription.ROW_DRAWS):
        return ascribed, None
    return iid_over, ascribed


def made_site(
    name: Name,
    ascription: Ascription,
    ascribed: Named | None,
    draw: DrawModel,
    density: Density,
    options: StepOptions,
    row_local: bool,
    origin: Origin,
) -> Site:
    plate, element = plate_and_element(ascription, ascribed, options.iid_over)
    return Site(
        name=name.text,
        bound=(),
        plate=plate,
        element=element,
        each_row=ascription is Ascription.ROW_DRAWS,
        draw=draw,
        density=density,
        over=options.over,
        via=options.via,
        mask=options.mask,
        weight=options.weight,
        at=options.at,
        row_local=row_local,
        origin=origin,
        limits=tuple((key, limit.value) for key, limit in options.limits.items()),
        auxiliary=options.auxiliary is not None,
    )
