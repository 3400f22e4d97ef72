"""Elementwise arithmetic: shapes that must go together, and how a clash is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qvr_core.semantics.arithmetic.alignment import align
from qvr_core.semantics.arithmetic.broadcasting import (
    ROW_SCALAR,
    SCALAR,
    Clash,
    all_scalars,
    axes,
    broadcast,
    broadcast_shapes,
    element,
    is_data,
    tail,
    tied_pairs,
)
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.expressions import COLUMN, Arrange, Bound, Data, Expr, ValueType
from qvr_core.semantics.types.program_codes import ARITHMETIC_MISMATCH
from qvr_core.semantics.types.spaces import Dim, Named, Real, Seq, Space, Unknown
from qvr_core.semantics.types.type_text import structure
from qvr_core.syntax.tree.arithmetic import Arith, ArithCall, Gather, ParenArith, Variable

Check = Callable[[Arith, StepContext], Expr]
"""`check_arith`, handed to the modules that it is made of."""

Operand = tuple[Expr, str]
"""A typed expression and how messages call it."""


def named_value(expr: Expr, ctx: StepContext) -> Named:
    """The space of a value as messages give it."""
    if isinstance(expr, Bound | Data) and (binding := ctx.find(expr.name)) is not None:
        return binding.named
    space: Space = Unknown() if expr.type.space is None else expr.type.space
    return Named(space, structure(space))


def words(expr: Arith, otherwise: str) -> str:
    """A subexpression in a message: its name, or `otherwise`."""
    while isinstance(expr, ParenArith):
        expr = expr.inner
    if isinstance(expr, Variable):
        return f"`{expr.name.text}`"
    if isinstance(expr, ArithCall):
        return f"`{expr.func.text}(…)`"
    return f"`{expr.base.name.text}[…]`" if isinstance(expr, Gather) and isinstance(expr.base, Variable) else otherwise


def elementwise(
    values: Sequence[Expr], texts: Sequence[str], where: Origin, ctx: StepContext
) -> tuple[list[Expr], ValueType]:
    """The operands arranged by the names of their axes, and the shape of elementwise arithmetic on them.

    What cannot go together is reported at `where`, both sides in `texts`.
    """
    aligned = align(values, texts, where, ctx)
    if aligned.failed or any(isinstance(value.type.space, Unknown) for value in values):
        return aligned.values, ValueType(Unknown(), rows=any(value.type.rows for value in values))
    kind = broadcast_shape(list(zip(aligned.values, texts, strict=True)), where, ctx)
    return _in_columns(aligned.values), kind


def _in_columns(values: list[Expr]) -> list[Expr]:
    """The operands, numbers one a position as columns where they meet what has axes, or numbers kept so.

    `mean(h)` of `h : Seq (Real 8)` may have no axis but the positions, which would else meet the 8 entries of `h`.
    """
    single = [isinstance(value.type.space, Seq) and axes(value.type) == [] for value in values]
    if not any(single) or (not any(axes(value.type) for value in values) and not _kept_apart(values, single)):
        return values
    return [
        Arrange(type=value.type, origin=value.origin, base=value, axes=COLUMN) if alone else value
        for value, alone in zip(values, single, strict=True)
    ]


def _kept_apart(values: Sequence[Expr], single: Sequence[bool]) -> bool:
    """Whether numbers one a position meet of which some may be columns: those of arrows are, whole numbers are not."""
    found = [value for value, alone in zip(values, single, strict=True) if alone]
    return len(found) > 1 and any(isinstance(element(value.type), Real) for value in found)


def broadcast_shape(operands: Sequence[Operand], where: Origin, ctx: StepContext) -> ValueType:
    """The shape that operands broadcast to from the last axis; a clash is reported at `where`."""
    types = [expr.type for expr, _ in operands]
    if all_scalars(types):
        return ROW_SCALAR if any(each.rows for each in types) else SCALAR
    shapes = [axes(each) for each in types]
    kind = broadcast_shapes(types, shapes)
    if any(is_data(each) for each in types):
        # what meets data may well run along it
        ctx.plates.update(name for each in types for name in each.indexed if name is not None)
    if isinstance(kind, Clash):
        _report_clash(operands, kind, where, ctx)
        return ValueType(Unknown(), rows=any(t.rows for t in types))
    for left, right in tied_pairs(shapes):
        _require_equal(left, right, operands, where, ctx)
    return kind


def _report_clash(operands: Sequence[Operand], clash: Clash, where: Origin, ctx: StepContext) -> None:
    (left, left_words), (right, right_words) = _clashing(operands)
    names = [_axis_name(expr.type, size) for expr, size in ((left, clash.left), (right, clash.right))]
    runs = any(name is not None for name in names)
    given, wanted = (
        Named(Real((size,)), name or structure(Real((size,))))
        for size, name in zip((clash.left, clash.right), names, strict=True)
    )
    gives, wants = (
        (f"{left_words} runs over", f"{right_words} over") if runs else (f"{left_words} is", f"{right_words} is")
    )
    ctx.scope.require_fit(given, wanted, where, ARITHMETIC_MISMATCH, gives, wants)


def _clashing(operands: Sequence[Operand]) -> tuple[Operand, Operand]:
    for index, first in enumerate(operands):
        for second in operands[index + 1 :]:
            if isinstance(broadcast([first[0].type, second[0].type]), Clash):
                one, other = (axes(each.type) for each in (first[0], second[0]))
                longer = one is None or other is None or len(one) >= len(other)
                return (first, second) if longer else (second, first)
    return operands[0], operands[-1]


def _axis_name(kind: ValueType, size: Dim) -> str | None:
    for axis_size, name in reversed(tail(kind, axes(kind))):
        if axis_size == size and name is not None:
            return name
    return None


def _require_equal(left: Dim, right: Dim, operands: Sequence[Operand], where: Origin, ctx: StepContext) -> None:
    ctx.scope.require_fit(
        Named(Real((left,)), structure(Real((left,)))),
        Named(Real((right,)), structure(Real((right,)))),
        where,
        ARITHMETIC_MISMATCH,
        f"{operands[0][1]} is",
        f"{operands[-1][1]} is",
    )
