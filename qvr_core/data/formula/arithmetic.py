"""Numeric parts of a formula, `log(x)` or `I(x^2)`: as arithmetic of a program, and their values in the table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from qvr_core.data.formula.columns import Table
from qvr_core.data.formula.problems import LeftOut
from qvr_core.data.formula.syntax import Binary, Call, Minus, Name, Node, Number, written

Values = NDArray[np.float64]
FUNCTIONS: dict[str, Callable[[Values], Values]] = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "exp": np.exp,
    "expm1": np.expm1,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
}
# The first spelling is R's, the second numpy's, which Bambi's formulas use.
_SPELT = {"np.log": "log", "np.exp": "exp", "np.sqrt": "sqrt", "np.abs": "abs", "np.log1p": "log1p"}
_OPERATIONS: dict[str, Callable[[Values, Values], Values]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "^": np.power,
}


def values(node: Node, table: Table) -> Values:
    """The value of each row, NaN where a cell is missing.  Raises `LeftOut`."""
    match node:
        case Number(value):
            return np.full(table.rows, value)
        case Name(text):
            column = table.column(text)
            if column is None:
                return np.full(table.rows, np.nan)
            if column.kind not in ("number", "bool"):
                raise LeftOut(f"`{text}` holds {'dates' if column.kind == 'date' else 'text'}, and numbers are wanted")
            return column.numbers
        case Minus(operand):
            return -values(operand, table)
        case Binary(operator, left, right) if operator in _OPERATIONS:
            with np.errstate(all="ignore"):
                return _finite(_OPERATIONS[operator](values(left, table), values(right, table)), node, table)
        case Call("I", (inner,)):
            return values(inner, table)
        case Call(name, (inner,)) if _SPELT.get(name, name) in FUNCTIONS:
            with np.errstate(all="ignore"):
                return _finite(FUNCTIONS[_SPELT.get(name, name)](values(inner, table)), node, table)
        case _:
            raise LeftOut(f"there is no program for `{written(node)}` yet")


def _finite(found: Values, node: Node, table: Table) -> Values:
    del table
    if np.isinf(found).any():
        raise LeftOut(f"`{written(node)}` is infinite in some row")
    return found


def said(node: Node, word: Callable[[str], str]) -> str:
    """The same as arithmetic; `word` says a column at the row."""
    return _said(node, word)[0]


def _said(node: Node, word: Callable[[str], str]) -> tuple[str, int]:
    """The text, and how strongly it binds: 3 for sums, 4 for products, 7 for powers, 9 for what stands alone."""
    match node:
        case Number(value):
            return (f"{value:.10g}" if "." in f"{value:.10g}" or "e" in f"{value:.10g}" else f"{value:.0f}.0"), 9
        case Name(text):
            return word(text), 9
        case Minus(operand):
            return f"-{_inside(operand, word, 7)}", 4
        case Binary("^", left, Number(power)):
            return f"{_inside(left, word, 9)}^{power:g}", 7
        case Binary(operator, left, right):
            strength = {"+": 3, "-": 3, "*": 4, "/": 4, "^": 7}[operator]
            return f"{_inside(left, word, strength)} {operator} {_inside(right, word, strength + 1)}", strength
        case Call("I", (inner,)):
            return _said(inner, word)
        case Call(name, (inner,)):
            return f"{_SPELT.get(name, name)}({_said(inner, word)[0]})", 9
        case _:
            raise LeftOut(f"there is no program for `{written(node)}` yet")


def _inside(node: Node, word: Callable[[str], str], least: int) -> str:
    text, strength = _said(node, word)
    return text if strength >= least else f"({text})"
