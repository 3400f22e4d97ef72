"""Which statements of another file cannot stand in this one."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.modules.module import Declared, Module
from qvr_core.semantics.modules.paths import shown
from qvr_core.syntax.tree.declarations import TransformationHeader

# Statements that compose no arrows.
SCALAR = frozenset(("object", "def", "family", "transformation", "data type"))


def refusal(module: Module, one: Declared, hidden: Sequence[str]) -> str | None:
    """Why a statement of another file cannot stand in this one."""
    what = f"`{one.names[0]}`" if one.names else "a statement"
    if hidden:
        return f"{what} cannot be imported: a name that it binds, `{hidden[0]}`, is declared in its file as well"
    if one.statement.header.unit.keyword == "deduction":
        return f"{what} is a deduction, and those cannot be imported yet"
    node = one.statement.header.unit.node
    sides = (node.source.text, node.target.text) if isinstance(node, TransformationHeader) else ()
    if own := next(filter(module.declares_algebra, sides), ""):
        return f"{what} maps weights of `{own}`, which its file defines itself: it cannot be imported yet"
    if one.statement.header.unit.keyword not in SCALAR and module.declares_algebra(one.algebra):
        file = shown(module.location)
        return f"{file} composes by `{one.algebra}`, which it defines itself: its arrows cannot be imported yet"
    return None
