"""What the grammar expected at the place where a unit stops making sense, in the user's words."""

from __future__ import annotations

from lark.parsers.lalr_interactive_parser import InteractiveParser

from qvr_core.syntax.grammar import grammar
from qvr_core.syntax.parser import beginnings, part_before
from qvr_core.syntax.tokens import Token

OBJECT = "an object such as `FinSet 3`, `Real 64` or a declared name"

# What is missing where a rule of the grammar should begin; the first rule that may begin there counts.
BEGINNINGS = {
    "parameter": "a parameter",
    "kind": "`FinSet`, `Real`, `Nat`, `Object` or `Mor[A, B]`",
    "arrow_arg": "an argument",
    "arith_arg": "an argument",
    "option": "an option",
    "value": "a value",
    "factor_index": "an index such as `i : I`",
    "binder": "an index such as `i : I`",
    "def_parameter": "a parameter",
    "family_parameter": "a parameter",
    "value_arg": "an argument",
    "label": "a label",
    "factor_case": "a case such as `0 -> e`",
    "size": "a size: a number, a name or `_`",
    "objexpr": OBJECT,
    "objprod": OBJECT,
    "objatom": OBJECT,
    "expr": "an arrow",
    "tensor": "an arrow",
    "postfix": "an arrow",
    "atom": "an arrow",
    "arith": "an expression",
    "sum": "an expression",
    "product_": "an expression",
    "unary": "an expression",
    "return_tuple": "a name",
    "pattern": "a name",
    "bound": "a name",
    "names": "a name",
    "return_item": "a name",
    "word": "a name",
    "term": "a term",
}

# What a symbol that has been read is called behind "after".
PARTS = {
    "space": "the object",
    "domain": "the domain",
    "codomain": "the codomain",
    "objexpr": "the object",
    "objprod": "the object",
    "objatom": "the object",
    "options": "the options",
    "bounds": "the bounds",
    "option": "the option",
    "value": "the value",
    "parameters": "the parameters",
    "parameter": "the parameter",
    "kind": "the parameter's kind",
    "expr": "the arrow",
    "tensor": "the arrow",
    "arrow_arg": "the argument",
    "arith_arg": "the argument",
    "arith_args": "the arguments",
    "arrow_args": "the arguments",
    "ascription": "the object",
    "draw": "the draw",
    "arith": "the expression",
    "sum": "the expression",
    "product_": "the expression",
    "factor_index": "the index",
    "binder": "the index",
    "binders": "the indices",
    "condition": "the condition",
    "start": "the first elements",
    "def_parameter": "the parameter",
    "family_parameter": "the parameter",
    "def_parameters": "the parameters",
    "family_parameters": "the parameters",
    "value_arg": "the argument",
    "label": "the label",
    "default": "the default",
    "factor_body": "the body of the factor",
    "factor_case": "the case",
    "term": "the term",
    "attributes": "the attributes",
    "init": "the family",
}

# Signs that tie a declaration together, the one that gets furthest first; then those that go on with a list.
JOINTS = ("ARROW", "DRAW", "EQUAL", "TURNSTILE", "COLON", "IN", "FROM")
CLOSERS = ("COMMA", "RPAR", "RSQB", "RBRACE")


def literal_of(kind: str) -> str:
    """The fixed text of a terminal, '' where it has none."""
    return next((text for text, name in grammar().literals.items() if name == kind), "")


def wanted(reader: InteractiveParser, expected: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    """What was expected, in words ('': nothing in particular), and the fixed terminals that it names."""
    rules = beginnings(reader)
    for rule, words in BEGINNINGS.items():
        if rule in rules:
            return words, ()
    named = _signs(expected)
    if named:
        shown = [f"`{literal_of(kind)}`" for kind in named]
        return " or ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown), named
    if "$END" in expected:
        return "", ()
    for kind, words in (("NAME", "a name"), ("STRING", "a string"), ("INT", "a number")):
        if kind in expected:
            return words, ()
    return "", ()


def _signs(expected: frozenset[str]) -> tuple[str, ...]:
    """The signs that are worth naming."""
    closers = tuple([kind for kind in CLOSERS if kind in expected])
    if closers and closers != ("COMMA",):
        return ("EQUAL", *closers) if "EQUAL" in expected and "RSQB" in expected else closers
    for joint in JOINTS:
        # A colon may end any header, `from` any step, and an arrow makes a lambda of any name: none is what was meant.
        optional = (
            (joint == "COLON" and "$END" in expected)
            or (joint == "FROM" and "LSQB" in expected)
            or (joint == "ARROW" and "CARET" in expected)
        )
        if joint in expected and not optional:
            return ("COMMA", joint) if closers and joint == "COLON" else (joint,)
    return ()


def after(reader: InteractiveParser, kind: str | None, previous: Token | None) -> str:
    """The phrase that says behind what something was expected: ' after the domain'; '' at the start."""
    if previous is None:
        return ""
    part = PARTS.get(part_before(reader, kind))
    return f" after {part}" if part else f" after `{previous.text}`"
