"""Expressions of numbers, as they stand in steps, definitions and families."""

from __future__ import annotations

from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.objects import ObjectExpr
from qvr_core.syntax.tree.options import Number


@immutable
class Binder:
    """`i : I`: an index that runs over a set, for one step or one comprehension."""

    name: Name
    space: ObjectExpr
    span: Span


@immutable
class Literal:
    """A number or a string in arithmetic."""

    value: int | float | str
    text: str
    span: Span


@immutable
class Variable:
    """A bound name, a data name, or an arrow."""

    name: Name

    @property
    def span(self) -> Span:
        return self.name.span


@immutable
class Unary:
    """`-x`."""

    operator: str
    operand: Arith
    span: Span


@immutable
class Binary:
    """`x op y` with op one of + - * / ^ < <= > >= == !=."""

    operator: str
    operator_span: Span
    left: Arith
    right: Arith
    span: Span


@immutable
class ArithArg:
    """An argument of a call in arithmetic or in a draw."""

    key: Name | None
    value: Arith
    span: Span


@immutable
class ArithCall:
    """`f(x, y)`."""

    func: Name
    args: tuple[ArithArg, ...]
    span: Span


@immutable
class Gather:
    """`x[i, j]`."""

    base: Arith
    indices: tuple[Arith, ...]
    span: Span


@immutable
class Field:
    """`x.f`."""

    base: Arith
    field: Name
    span: Span


@immutable
class MethodCall:
    """`x.m(args)`."""

    base: Arith
    method: Name
    args: tuple[ArithArg, ...]
    span: Span


@immutable
class ListArith:
    """`[a, b]`."""

    items: tuple[Arith, ...]
    span: Span


@immutable
class Lambda:
    """`x -> e`."""

    parameter: Name
    body: Arith
    span: Span


@immutable
class FactorIndex:
    """`i : I` in a factor."""

    name: Name
    space: ObjectExpr
    span: Span


@immutable
class FactorCase:
    """`0 -> e` in a factor's table."""

    index: Number
    value: Arith
    span: Span


@immutable
class FactorExpr:
    """`factor i : I, j : J in e`, or `in { 0 -> e, 1 -> f }`."""

    indices: tuple[FactorIndex, ...]
    body: Arith | tuple[FactorCase, ...]
    span: Span


@immutable
class TupleArith:
    """`(e1, e2)`: one entry a name of a pattern, several first values, several axes."""

    items: tuple[Arith, ...]
    span: Span


@immutable
class Comprehension:
    """`sum(body for i : I, j : J if condition)`."""

    function: Name
    body: Arith
    binders: tuple[Binder, ...]
    condition: Arith | None
    span: Span


@immutable
class ParenArith:
    """`( … )` around arithmetic."""

    inner: Arith
    span: Span


Arith = (
    Literal
    | Variable
    | Unary
    | Binary
    | ArithCall
    | Gather
    | Field
    | MethodCall
    | ListArith
    | Lambda
    | FactorExpr
    | TupleArith
    | Comprehension
    | ParenArith
)
