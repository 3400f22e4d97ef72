"""Ground terms of deductions, patterns, and matching.

A ground term is an atom (str), an integer, or a tuple (constructor, *arguments).  A variable of a rule is a `Var`.
What a binder binds is numbered by its depth ('#0', '#1', …), so terms that differ in such names are the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from qvr_core.runtime.errors import InputProblem
from qvr_core.semantics.model import TermModel

Term = Any
"""str | int | tuple[Any, ...] | Var"""
Bindings = dict[str, Term]


@dataclass(frozen=True, slots=True)
class Var:
    """A variable of a rule."""

    name: str


def from_model(term: TermModel, binders: Collection[str], bound: Mapping[str, str] | None = None) -> Term:
    """A term of the typed model; bound names become numbers."""
    inside = bound or {}
    if term.kind == "integer":
        return int(term.head)
    if term.kind == "atom":
        return term.head
    if term.kind == "variable":
        return inside.get(term.head) or Var(term.head)
    if term.head in binders and term.args:
        inside = {**inside, term.args[0].head: f"#{len(inside)}"}
    return (term.head, *(from_model(arg, binders, inside) for arg in term.args))


def match(pattern: Term, term: Term, bindings: Bindings) -> Bindings | None:
    """The bindings that make `pattern` equal `term`, extending `bindings`; None where there are none."""
    if isinstance(pattern, Var):
        known = bindings.get(pattern.name)
        if known is None:
            return {**bindings, pattern.name: term}
        return bindings if known == term else None
    if isinstance(pattern, tuple):
        if not isinstance(term, tuple) or len(term) != len(pattern) or term[0] != pattern[0]:
            return None
        found: Bindings | None = bindings
        for inner, value in zip(pattern[1:], term[1:], strict=True):
            found = match(inner, value, found)
            if found is None:
                return None
        return found
    return bindings if pattern == term else None


def fill(pattern: Term, bindings: Bindings) -> Term:
    """The pattern with its variables replaced."""
    if isinstance(pattern, Var):
        return bindings[pattern.name]
    if isinstance(pattern, tuple):
        return (pattern[0], *(fill(inner, bindings) for inner in pattern[1:]))
    return pattern


def variables(pattern: Term) -> set[str]:
    """Names of the variables in a pattern."""
    if isinstance(pattern, Var):
        return {pattern.name}
    if isinstance(pattern, tuple):
        return {name for inner in pattern[1:] for name in variables(inner)}
    return set()


def depth(term: Term) -> int:
    """Nesting of constructors: 0 for an atom, 1 for `Fwd(NP, S)`."""
    if isinstance(term, tuple):
        return 1 + max((depth(inner) for inner in term[1:]), default=0)
    return 0


def show(term: Term) -> str:
    """A term as users write it."""
    if isinstance(term, tuple):
        return f"{term[0]}({', '.join(show(inner) for inner in term[1:])})"
    return str(term)


_TOKEN = re.compile(r"\s*([A-Za-z_#][A-Za-z0-9_]*|[0-9]+|[(),])")


def read(text: str, binders: Collection[str]) -> Term:
    """A ground term from its text.  Raises `InputProblem` where it is none."""
    tokens: list[str] = []
    position = 0
    while position < len(text.rstrip()):
        found = _TOKEN.match(text, position)
        if found is None:
            raise InputProblem(f"`{text}` is not a term: unexpected `{text[position:].strip()[:1]}`")
        tokens.append(found.group(1))
        position = found.end()
    term, rest = _read(tokens, 0, binders, {}, text)
    if rest != len(tokens):
        raise InputProblem(f"`{text}` is not one term")
    return term


def _read(
    tokens: list[str], at: int, binders: Collection[str], bound: Mapping[str, str], text: str
) -> tuple[Term, int]:
    if at >= len(tokens) or tokens[at] in "(),":
        raise InputProblem(f"`{text}` is not a term")
    head = tokens[at]
    if at + 1 >= len(tokens) or tokens[at + 1] != "(":
        return (int(head) if head.isdigit() else bound.get(head, head)), at + 1
    at += 2
    if head in binders and at < len(tokens):
        bound = {**bound, tokens[at]: f"#{len(bound)}"}
    args: list[Term] = []
    while at < len(tokens) and tokens[at] != ")":
        if tokens[at] == ",":
            at += 1
            continue
        arg, at = _read(tokens, at, binders, bound, text)
        args.append(arg)
    if at >= len(tokens):
        raise InputProblem(f"`{text}` lacks a `)`")
    return (head, *args), at + 1
