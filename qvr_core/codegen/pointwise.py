"""Operations on single numbers: how torch calls them, and how they are written in a loop."""

from __future__ import annotations

from qvr_core.codegen.loops import Call, Expression, Literal

WRITTEN = {
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "div": "({} / {})",
    "neg": "(-{})",
    "eq": "({} == {})",
    "ne": "({} != {})",
    "lt": "({} < {})",
    "le": "({} <= {})",
    "gt": "({} > {})",
    "ge": "({} >= {})",
    "and": "({} and {})",
    "or": "({} or {})",
    "xor": "({} != {})",
    "not": "(not {})",
    "where": "({1} if {0} else {2})",
    "truth": "({} != 0)",
    "number": "(1.0 if {} else 0.0)",
    "exp": "math.exp({})",
    "expm1": "math.expm1({})",
    "log": "math.log({})",
    "log1p": "math.log1p({})",
    "sqrt": "math.sqrt({})",
    "tanh": "math.tanh({})",
    "sin": "math.sin({})",
    "cos": "math.cos({})",
    "atan": "math.atan({})",
    "erf": "erf({})",
    "erfc": "erfc({})",
    "lgamma": "lgamma({})",
    "sinh": "math.sinh({})",
    "cosh": "math.cosh({})",
    "tan": "math.tan({})",
    "asin": "math.asin({})",
    "acos": "math.acos({})",
    "asinh": "math.asinh({})",
    "acosh": "math.acosh({})",
    "atan2": "math.atan2({}, {})",
    "hypot": "math.hypot({}, {})",
    "log10": "math.log10({})",
    "floor": "floor({})",
    "log_add": "log_add({}, {})",
    "log_ndtr": "log_ndtr({})",
    "i0e": "i0e({})",
    "i1e": "i1e({})",
    "trigamma": "trigamma({})",
    "abs": "abs({})",
    "pow": "power({}, {})",
    "whole_power": "({} ** {})",
    "square": "square({})",
    "sigmoid": "sigmoid({})",
    "softplus": "softplus({}, {}, {})",
    "log_sigmoid": "log_sigmoid({})",
    "digamma": "digamma({})",
    "at_least": "at_least({}, {})",
    "at_most": "at_most({}, {})",
    "sign": "sign({})",
}
"""The text of each operation; bare names are functions of `kernels`."""

TRUTHS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "not", "truth"))
"""Those that answer yes or no."""


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
