"""A typed expression as a user would write it, for messages: the text itself is not at hand where a program runs."""

from __future__ import annotations

from collections.abc import Mapping

from qvr_core.semantics.types.model.arrows import Arrow, Lift, Ref
from qvr_core.semantics.types.model.expressions import (
    Apply,
    Arrange,
    Bound,
    Builtin,
    Constant,
    Contract,
    Data,
    DeductionRef,
    Expr,
    FactorTable,
    FieldOf,
    Function,
    Index,
    IndexValue,
    ListOf,
    Matrix,
    Method,
    Scatter,
    Solve,
    TermValue,
    Window,
)

_SIGNS: Mapping[str, tuple[str, int]] = {
    "lt": ("<", 1), "le": ("<=", 1), "gt": (">", 1), "ge": (">=", 1), "eq": ("==", 1), "ne": ("!=", 1),
    "add": ("+", 2), "sub": ("-", 2), "mul": ("*", 3), "div": ("/", 3), "pow": ("^", 5),
}  # fmt: skip
"""Operators by the function that they stand for, and how tightly they bind."""
_LOOSEST, _PRODUCT, _NEGATION, _ATOM = 0, 3, 4, 6


def text(expr: Expr) -> str:
    """An expression as a user would write it."""
    return _text(expr)[0]


def _text(expr: Expr) -> tuple[str, int]:
    """The text, and how tightly its outermost operator binds."""
    match expr:
        case Constant(value=value):
            return str(value), _ATOM
        case Bound(name=name) | Data(name=name) | IndexValue(name=name) | DeductionRef(name=name):
            return name, _ATOM
        case TermValue(text=written):
            return written, _ATOM
        case Builtin(function="neg", args=(operand,)):
            return f"-{_inside(operand, _NEGATION)}", _NEGATION
        case Builtin(function=function, args=(left, right)) if function in _SIGNS:
            sign, tight = _SIGNS[function]
            # `^` binds to the right, all others to the left
            near, far = (tight + 1, tight) if function == "pow" else (tight, tight + 1)
            return f"{_inside(left, near)} {sign} {_inside(right, far)}", tight
        case Arrange(base=operand):
            return _text(operand)
        case Builtin(function=function, args=args, keywords=keywords):
            given = [*map(text, args), *(f"{key}={text(value)}" for key, value in keywords)]
            return f"{function}({', '.join(given)})", _ATOM
        case Apply(arrow=arrow, args=args):
            return f"{_named(arrow)}({', '.join(map(text, args))})", _ATOM
        case Matrix(arrow=arrow):
            return _named(arrow), _ATOM
        case Index(base=base, indices=indices):
            return f"{_inside(base, _ATOM)}[{', '.join(map(text, indices))}]", _ATOM
        case Window():
            return _windows(expr), _ATOM
        case FieldOf(base=base, field=name):
            return f"{_inside(base, _ATOM)}.{name}", _ATOM
        case Method(base=base, method=name, args=args):
            return f"{_inside(base, _ATOM)}.{name}({', '.join(map(text, args))})", _ATOM
        case ListOf(items=items):
            return f"[{', '.join(map(text, items))}]", _ATOM
        case Contract(factors=factors):
            return f"sum({' * '.join(_inside(one, _PRODUCT) for one in factors)})", _ATOM
        case Scatter(body=body, index=index):
            return f"sum({text(body)} by {text(index)})", _ATOM
        case Solve(function=function, initial=initial, arguments=given, start=start, at=at):
            values = ", ".join(map(text, (initial, *given)))
            return f"solve({function}, {values}, start={text(start)}, at={text(at)})", _ATOM
        case Function(parameter=name, body=body):
            return f"{name} -> {text(body)}", _LOOSEST
        case FactorTable(indices=indices, body=body, cases=cases):
            written = text(body) if body is not None else "{" + ", ".join(f"{at} -> {text(e)}" for at, e in cases) + "}"
            return f"factor {', '.join(name for name, _ in indices)} in {written}", _LOOSEST


def _windows(expr: Window) -> str:
    """`x[g, t - 1]`: what an indexed step reads of each axis, outermost first."""
    read: dict[int, str] = {}
    base: Expr = expr
    while isinstance(base, Window):
        sign = "-" if base.shift > 0 else "+"
        read[base.axis] = f"{base.index} {sign} {abs(base.shift)}" if base.shift else base.index
        base = base.base
    return f"{_inside(base, _ATOM)}[{', '.join(read[axis] for axis in sorted(read))}]"


def _named(arrow: Arrow) -> str:
    while isinstance(arrow, Lift):
        arrow = arrow.arrow
    return arrow.name if isinstance(arrow, Ref) else "the arrow"


def _inside(expr: Expr, tight: int) -> str:
    words, own = _text(expr)
    return words if own >= tight else f"({words})"
