"""Ground terms of deductions, patterns, and matching.

A ground term is an atom (str), an integer, or a tuple (constructor, *arguments).  A variable of a rule is a `Var`.
What a binder binds is numbered by its depth ('#0', '#1', …), so terms that differ in such names are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from qvr_core.semantics.types.model.deductions import TermModel
from qvr_core.syntax.immutable import immutable


@immutable
class Var:
    """A variable of a rule."""

    name: str


Term: TypeAlias = "str | int | Var | tuple[Term, ...]"
Bindings = dict[str, Term]


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
