"""Arrow expressions as text, in canonical spacing."""

from __future__ import annotations

from qvr_core.syntax.tree.arrows import (
    ArrowArg,
    ArrowCall,
    ArrowExpr,
    ArrowRef,
    ComposeExpr,
    ParenArrow,
    PostfixExpr,
    TensorExpr,
)
from qvr_core.syntax.tree.options import Number, String


def arrow_text(expr: ArrowExpr) -> str:
    """'fan(f, g) >> combine'."""
    match expr:
        case ArrowRef(name=name):
            return name.text
        case ArrowCall(func=func, args=args):
            return f"{func.text}({_args(args)})"
        case ComposeExpr(stages=stages):
            return " >> ".join(map(arrow_text, stages))
        case TensorExpr(factors=factors):
            return " @ ".join(map(arrow_text, factors))
        case PostfixExpr(base=base, attribute=attribute, args=args):
            return f"{arrow_text(base)}.{attribute.text}" + ("" if args is None else f"({_args(args)})")
        case ParenArrow(inner=inner):
            return f"({arrow_text(inner)})"


def _args(args: tuple[ArrowArg, ...]) -> str:
    return ", ".join(_arg(arg) for arg in args)


def _arg(arg: ArrowArg) -> str:
    value = arg.value.text if isinstance(arg.value, Number | String) else arrow_text(arg.value)
    return value if arg.key is None else f"{arg.key.text}={value}"


def plain(expr: ArrowExpr) -> ArrowExpr:
    """An expression without the parentheses around it."""
    while isinstance(expr, ParenArrow):
        expr = expr.inner
    return expr


def leading_name(expr: ArrowExpr) -> str | None:
    """The first arrow's name in an expression."""
    match expr:
        case ArrowRef(name=name):
            return name.text
        case ArrowCall(func=func, args=args):
            for arg in args:
                if arg.key is None and not isinstance(arg.value, Number | String):
                    return leading_name(arg.value)
            return func.text
        case ComposeExpr(stages=stages):
            return leading_name(stages[0])
        case TensorExpr(factors=factors):
            return leading_name(factors[0])
        case PostfixExpr(base=base):
            return leading_name(base)
        case ParenArrow(inner=inner):
            return leading_name(inner)
