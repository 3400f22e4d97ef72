"""What a chain starts from: one family for all of its first elements, one for each, or their values."""

from __future__ import annotations

from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import Start


def draws_of(start: Start | None) -> tuple[FamilyDraw, ...]:
    """The families of the first elements, one for all of them or one for each; none where they have values."""
    found = (start,) if isinstance(start, FamilyDraw) else start or ()
    return tuple(one for one in found if isinstance(one, FamilyDraw))


def values_of(start: Start | None) -> tuple[Expr, ...]:
    """The values of the first elements, one for all of them or one for each; none where they are drawn."""
    found = () if start is None or isinstance(start, FamilyDraw) else start
    return tuple(one for one in found if not isinstance(one, FamilyDraw))


def written_in(start: Start | None) -> tuple[Expr, ...]:
    """The arithmetic that `from` is written with: values, or the arguments of families."""
    return values_of(start) or tuple(value for draw in draws_of(start) for _, value in draw.args)
