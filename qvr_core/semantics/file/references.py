"""Which names a statement mentions, read off the tree: who must be checked again when a name changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from qvr_core.syntax import tree
from qvr_core.syntax.tree import Name, Placed, Size, Span, Statement, Unit, Word

# The children of each node that may mention a name; keys, labels, kinds and fields are none.
_CHILDREN: dict[type[object], tuple[str, ...]] = {
    tree.Option: ("value",),
    tree.Options: ("items",),
    tree.ListValue: ("items",),
    tree.FinSetExpr: ("size",),
    tree.SpaceExpr: ("sizes",),
    tree.SeqExpr: ("item",),
    tree.ObjectRef: ("name",),
    tree.ParenObject: ("inner",),
    tree.ProductExpr: ("factors",),
    tree.CoproductExpr: ("parts",),
    tree.ArrowRef: ("name",),
    tree.ArrowArg: ("value",),
    tree.ArrowCall: ("func", "args"),
    tree.ComposeExpr: ("stages",),
    tree.TensorExpr: ("factors",),
    tree.PostfixExpr: ("base", "args"),
    tree.ParenArrow: ("inner",),
    tree.Variable: ("name",),
    tree.Unary: ("operand",),
    tree.Binary: ("left", "right"),
    tree.ArithArg: ("value",),
    tree.ArithCall: ("func", "args"),
    tree.Gather: ("base", "indices"),
    tree.Field: ("base",),
    tree.MethodCall: ("base", "args"),
    tree.ListArith: ("items",),
    tree.Lambda: ("body",),
    tree.FactorIndex: ("space",),
    tree.FactorCase: ("value",),
    tree.FactorExpr: ("indices", "body"),
    tree.ParenArith: ("inner",),
    tree.Draw: ("name", "args", "expression"),
    tree.SampleStep: ("space", "draw", "options"),
    tree.ObserveStep: ("space", "draw", "options"),
    tree.MarginalizeStep: ("space", "draw", "options"),
    tree.LetStep: ("value",),
    tree.ScoreStep: ("value",),
    tree.ReturnItem: ("name",),
    tree.ReturnStep: ("items",),
    tree.CompositionRule: ("body",),
    tree.ObjectDecl: ("space",),
    tree.MorphismDecl: ("domain", "codomain", "options", "init"),
    tree.LetDecl: ("value",),
    tree.ExportDecl: ("value",),
    tree.Parameter: ("mor",),
    tree.ProgramHeader: ("parameters", "domain", "codomain", "options"),
    tree.DeductionHeader: ("domain", "codomain", "options"),
}

_BINDERS: dict[type[object], str] = {
    tree.SampleStep: "pattern",
    tree.LetStep: "pattern",
    tree.ObserveStep: "name",
    tree.MarginalizeStep: "name",
    tree.ScoreStep: "name",
    tree.Parameter: "name",
    tree.Lambda: "parameter",
    tree.FactorIndex: "name",
}


@dataclass(frozen=True, slots=True)
class UnitReferences:
    """Names that one unit mentions, with their places in it, and names that it binds for its program."""

    mentions: tuple[tuple[str, Span], ...]
    names: frozenset[str]
    binds: frozenset[str]


@dataclass(frozen=True, slots=True)
class References:
    """`reads`: every name whose meaning a check may look up.  `uses`: those that must be declarations of the file."""

    reads: frozenset[str]
    uses: frozenset[str]


NONE = UnitReferences((), frozenset(), frozenset())


def unit_references(unit: Unit[Any]) -> UnitReferences:
    """What one unit mentions; the same text is walked once."""
    if unit.node is None:
        if not unit.declares:
            return NONE
        declared = frozenset(name.text for name in unit.declares)
        return UnitReferences((), declared, declared)
    kind = cast("type[object]", type(unit.node))
    key = (unit.text, kind)
    found = _known.get(key)
    if found is None:
        if len(_known) > 100_000:
            _known.clear()
        found = _known[key] = _walk(unit.node)
    return found


_known: dict[tuple[str, type[object]], UnitReferences] = {}


def statement_references(statement: Statement) -> References:
    """What a whole statement mentions."""
    header = statement.header
    own = unit_references(header.unit)
    if not header.children:
        return References(own.names | own.binds, own.names - own.binds if own.binds else own.names)
    names, binds = set(own.names), set(own.binds)
    if not isinstance(header.unit.node, tree.DeductionHeader):
        for placed in _below(header):
            found = unit_references(placed.unit)
            names |= found.names
            binds |= found.binds
    # a name that is bound may hide a declaration, so its meaning is read as well
    return References(frozenset(names | binds), frozenset(names - binds))


def _below(placed: Placed[Any]) -> Iterator[Placed[Any]]:
    for child in placed.children:
        yield child
        yield from _below(child)


def mentions(statement: Statement, name: str) -> Iterator[tuple[int, Span]]:
    """(unit, span) of every place where a statement mentions a name."""
    for placed in (statement.header, *_below(statement.header)):
        for text, span in unit_references(placed.unit).mentions:
            if text == name:
                yield placed.uid, span


def _walk(node: Any) -> UnitReferences:
    found: list[tuple[str, Span]] = []
    binds: set[str] = set()
    pending: list[Any] = [node]
    while pending:
        item = pending.pop()
        kind = cast("type[object]", type(item))
        if isinstance(item, Name):
            found.append((item.text, item.span))
        elif isinstance(item, Size):
            if isinstance(item.value, str):
                found.append((item.value, item.span))
        elif isinstance(item, Word):
            found.append((item.text, item.span))
        elif isinstance(item, tuple):
            pending.extend(reversed(item))  # pyright: ignore[reportUnknownArgumentType]
        elif (children := _CHILDREN.get(kind)) is not None:
            if isinstance(item, tree.Option) and item.key.text == "role":
                continue
            pending.extend(getattr(item, child) for child in reversed(children))
            if (binder := _BINDERS.get(kind)) is not None:
                bound = getattr(item, binder)
                binds.update((bound.text,) if isinstance(bound, Name) else (name.text for name in bound.names))
    return UnitReferences(tuple(found), frozenset(text for text, _ in found), frozenset(binds))
