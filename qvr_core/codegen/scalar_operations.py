"""Operations on single numbers as they are written in a loop."""

from __future__ import annotations

from qvr_core.codegen.loops import Call, Expression, Literal
from qvr_core.operations.operation import Node
from qvr_core.operations.table import NODES


def _text(node: Node) -> str:
    if "{" in node.loop:
        return node.loop
    return f"{node.loop}({{}})" if node.group == "unary" else f"{node.loop}({{}}, {{}})"


WRITTEN = {name: _text(node) for name, node in NODES.items() if node.loop} | {
    "truth": "({} != 0)",
    "number": "(1.0 if {} else 0.0)",
    "whole_power": "({} ** {})",
}
"""The text of each operation; bare names are functions of `kernels`."""


def call(name: str, *arguments: Expression) -> Expression:
    """A call, or what it is where that needs no call: x + 0, x · 1, x / 1, or numbers that are known."""
    match name, arguments:
        case ("add", (Literal(0.0), other)) | ("add" | "sub", (other, Literal(0.0))):
            return other
        case ("mul", (Literal(1.0), other)) | ("mul" | "div" | "pow", (other, Literal(1.0))):
            return other
        case ("add", (Literal(a), Literal(b))):
            return Literal(a + b)
        case ("sub", (Literal(a), Literal(b))):
            return Literal(a - b)
        case ("mul", (Literal(a), Literal(b))):
            return Literal(a * b)
        case ("neg", (Literal(a),)):
            return Literal(-a)
        case ("mul", (Literal(-1.0), other)) | ("mul", (other, Literal(-1.0))):
            return Call("neg", (other,))
        case ("mul", (Literal(a), Call("mul", (Literal(b), other)))) if a * b == b * a:
            return call("mul", Literal(a * b), other)
        case _:
            return Call(name, arguments)


def number(value: float) -> Literal:
    """A known number."""
    return Literal(float(value))


def power(base: Expression, exponent: float) -> Expression:
    """base ** exponent, without a call of `pow` where products do."""
    match exponent:
        case 0.0:
            return Literal(1.0)
        case 1.0:
            return base
        case 2.0:
            return Call("square", (base,))
        case 0.5:
            return Call("sqrt", (base,))
        case -0.5:
            return Call("div", (Literal(1.0), Call("sqrt", (base,))))
        case -1.0:
            return Call("div", (Literal(1.0), base))
        case -2.0:
            return Call("div", (Literal(1.0), Call("square", (base,))))
        case _:
            # the compiler writes products for those that are known and whole
            return Call("whole_power" if exponent.is_integer() else "pow", (base, Literal(exponent)))
