"""The words on a diagram: spaces with their widths, and arithmetic as text."""

from __future__ import annotations

from qvr_core.semantics.types.axes import CONTRACTED
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    ChangeBase,
    Curry,
    Dagger,
    Freeze,
    Instance,
    Lift,
    Ref,
    Scan,
    Stack,
)
from qvr_core.semantics.types.model.expressions import (
    Apply,
    Arrange,
    Bound,
    Builtin,
    Constant,
    Contract,
    Data,
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
    Window,
)
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import ArrowDraw, DrawModel
from qvr_core.semantics.types.spaces import Finite, Linear, Named, Space, has_terms, is_unknown, item_of, width

OPERATORS = {
    "add": ("+", 3), "sub": ("-", 3), "mul": ("*", 4), "div": ("/", 4), "pow": ("^", 6),
    "lt": ("<", 1), "le": ("<=", 1), "gt": (">", 1), "ge": (">=", 1), "eq": ("==", 1), "ne": ("!=", 1),
}  # fmt: skip
"""Operator -> (how it is written, how tightly it binds)."""


def columns(space: Space) -> int | None:
    """Columns of a real space, elements of a finite one; None where it is not known."""
    space = item_of(space)
    size = space.size if isinstance(space, Finite) else width(space)
    return None if isinstance(size, Linear) or is_unknown(space) or has_terms(space) else int(size)


def caption(named: Named) -> str:
    """`Embedded 64`, `FwdHidden * BwdHidden 128`; nothing is added to a space that was written with its numbers."""
    size = columns(named.space)
    if size is None or any(part.isdigit() for part in named.written.split()):
        return named.written
    return f"{named.written} {size}"


def arrow_type(arrow: Arrow | Program) -> str:
    return f"{caption(arrow.domain)} {arrow.sort.value} {caption(arrow.codomain)}"


def expression(expr: Expr, tightness: int = 0) -> str:
    """Arithmetic as the user would write it."""
    match expr:
        case Constant(value=str() as value):
            return f'"{value}"'
        case Constant(value=value):
            return f"{value:g}" if isinstance(value, float) else str(value)
        case Bound(name=name) | Data(name=name):
            return name
        case Matrix(arrow=arrow):
            return arrow_name(arrow)
        case Apply(arrow=arrow, args=args):
            return f"{arrow_name(arrow)}({listed(args)})"
        case Builtin(function="neg", args=(operand,)):
            return f"-{expression(operand, 5)}"
        case Builtin(function=function, args=(left, right)) if function in OPERATORS:
            sign, binds = OPERATORS[function]
            text = f"{expression(left, binds)} {sign} {expression(right, binds + 1)}"
            return f"({text})" if binds < tightness else text
        case Builtin(function=function, args=args, keywords=keywords):
            named = [f"{key}={expression(value)}" for key, value in keywords]
            return f"{function}({', '.join([*map(expression, args), *named])})"
        case Index(base=base, indices=indices):
            return f"{expression(base, 9)}[{listed(indices)}]"
        case Arrange(base=base):
            return expression(base, tightness)
        case IndexValue(name=name):
            return name
        case Window(base=base, index=index, shift=shift):
            return f"{expression(base, 9)}[{index} - {shift}]" if shift else f"{expression(base, 9)}[{index}]"
        case Contract(factors=factors, axes=axes) if any(CONTRACTED in names for names in axes):
            return f"matmul({listed(factors)})"
        case Contract(factors=factors):
            return f"sum({' * '.join(expression(factor, 4) for factor in factors)})"
        case Scatter(body=body):
            return f"sum({expression(body)})"
        case FieldOf(base=base, field=field):
            return f"{expression(base, 9)}.{field}"
        case Method(base=base, method=method, args=args):
            return f"{expression(base, 9)}.{method}({listed(args)})"
        case ListOf(items=items):
            return f"[{listed(items)}]"
        case Solve(function=function, initial=initial, arguments=given):
            return f"solve({function}, {listed((initial, *given))})"
        case Function(parameter=parameter, body=body):
            return f"{parameter} -> {expression(body)}"
        case FactorTable(indices=indices):
            return f"factor {', '.join(name for name, _ in indices)} in …"
        case _:
            return "…"


def short(text: str, limit: int = 36) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def listed(items: tuple[Expr, ...]) -> str:
    return ", ".join(expression(item) for item in items)


def arrow_name(arrow: Arrow) -> str:
    """A short name for an arrow: its own, or that of its combinator."""
    match arrow:
        case Ref(name=name) | Instance(name=name):
            return name
        case Lift(arrow=inner):
            return arrow_name(inner)
        case Scan(cell=cell):
            return f"scan({arrow_name(cell)})"
        case Stack(body=body, count=count):
            return f"stack({arrow_name(body)}, {count})"
        case Dagger(base=base):
            return f"{arrow_name(base)}.dagger"
        case ChangeBase(base=base, transformation=name):
            return f"{arrow_name(base)}.change_base({name})"
        case Curry(base=base, left=left):
            return f"{arrow_name(base)}.{'curry_left' if left else 'curry_right'}"
        case Freeze(base=base):
            return f"{arrow_name(base)}.freeze"
        case _:
            return getattr(arrow, "name", type(arrow).__name__.lower())


def draw_text(draw: DrawModel) -> str:
    """`Normal(0, 1)`, or the arrow's name."""
    match draw:
        case FamilyDraw(family=family, args=args):
            return f"{family}({', '.join(expression(value) for _, value in args)})"
        case ArrowDraw(arrow=arrow):
            return arrow_name(arrow)
