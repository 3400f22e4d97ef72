"""What the grammar expected at the place where a unit stops making sense, in the user's words."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.syntax.lalr import Token, acceptable, reductions
from qvr_core.syntax.tables import Table

# What a symbol of the grammar is called after "after".
PARTS = {
    "names": "the name",
    "space": "the object",
    "domain": "the domain",
    "codomain": "the codomain",
    "objexpr": "the object",
    "objprod": "the object",
    "objatom": "the object",
    "size": "the size",
    "options": "the options",
    "bounds": "the bounds",
    "option": "the option",
    "value": "the value",
    "parameters": "the parameters",
    "parameter": "the parameter",
    "kind": "the parameter's kind",
    "expr": "the arrow",
    "tensor": "the arrow",
    "postfix": "the arrow",
    "atom": "the arrow",
    "arrow_arg": "the argument",
    "arith_arg": "the argument",
    "arith_args": "the arguments",
    "arrow_args": "the arguments",
    "pattern": "the name",
    "ascription": "the object",
    "draw": "the draw",
    "arith": "the expression",
    "sum": "the expression",
    "product_": "the expression",
    "unary": "the expression",
    "power": "the expression",
    "apply": "the expression",
    "primary": "the expression",
    "factor_index": "the index",
    "factor_body": "the body of the factor",
    "factor_case": "the case",
    "term": "the term",
    "attributes": "the attributes",
    "init": "the family",
}

# Signs that tie a declaration together, the one that gets furthest first.
JOINTS = ("ARROW", "DRAW", "EQUAL", "TURNSTILE", "COLON", "IN", "AS", "FROM")
CLOSERS = ("COMMA", "RPAR", "RSQB", "RBRACE")

_EXPRESSION = frozenset({"INT", "STRING", "LPAR", "MINUS"})


def literal_of(table: Table, kind: str) -> str | None:
    """The fixed text of a terminal, if it has one."""
    return next((text for text, name in table.literals.items() if name == kind), None)


def operand(expected: frozenset[str]) -> str | None:
    """What is missing where no operator fits: 'an object', 'an arrow', 'a name', …"""
    if {"FINSET", "LBRACE"} <= expected:
        return "an object such as `FinSet 3`, `Real 64` or a declared name"
    if expected >= _EXPRESSION:
        return "an expression"
    if {"OBJECT", "RETURN"} <= expected:
        return "a value" if "STRING" in expected else "an option"
    if {"FINSET", "SPACE", "NAME"} <= expected:
        return "`FinSet`, `Real`, `Nat`, `Object` or `Mor[A, B]`"
    if {"INT", "UNDERSCORE"} <= expected:
        return "a size: a number, a name or `_`"
    if {"NAME", "STRING"} <= expected:
        return "an argument"
    if {"NAME", "LPAR"} <= expected and "COLON" not in expected:
        return "a name" if expected & {"LSQB", "UNDERSCORE"} or "COMPOSE" in expected else "an arrow or a name"
    if "NAME" in expected and not expected & {"COMMA", "RPAR", "RSQB"}:
        return "a name"
    if {"INT", "FLOAT"} <= expected:
        return "a number"
    if "INT" in expected:
        return "a number"
    if "STRING" in expected:
        return "a string"
    return None


def wanted(table: Table, states: Sequence[int]) -> tuple[str, str | None]:
    """What was expected, in words, and the one fixed terminal that would do ('' and None: nothing more)."""
    expected = acceptable(table, states)
    for joint in JOINTS:
        if joint in expected and not (joint == "ARROW" and "NAME" not in expected and "CARET" in expected):
            if joint == "COLON" and "$END" in expected:
                continue
            if joint == "EQUAL" and expected & set(CLOSERS):
                continue
            others = [kind for kind in ("COLON", "LPAR") if joint != kind == "COLON" and kind in expected]
            del others
            return f"`{literal_of(table, joint)}`", joint
    found = operand(expected)
    if found:
        return found, None
    closers = [kind for kind in CLOSERS if kind in expected]
    if closers:
        shown = [f"`{literal_of(table, kind)}`" for kind in closers]
        return " or ".join(shown), closers[0] if len(closers) == 1 else None
    return "", None


def after(table: Table, states: Sequence[int], kind: str | None, previous: Token | None) -> str:
    """The phrase that says behind what it was expected: ' after the domain'; '' at the start."""
    if previous is None:
        return ""
    stack = (reductions(table, states, kind) if kind else None) or list(states)
    symbol = table.symbols[stack[-1]]
    if symbol in PARTS and symbol != "names":
        return f" after {PARTS[symbol]}"
    return f" after `{previous.text}`"
