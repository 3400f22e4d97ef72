"""Where the parts of a declaration stand in its header: what a `DeclarationSite` points at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qvr_core.semantics.types.diagnostics import DeclarationSite
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.tree.declarations import DeductionHeader, MorphismDecl, ObjectDecl, ProgramHeader
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.objects import (
    CoproductExpr,
    FinSetExpr,
    ObjectExpr,
    ParenObject,
    ProductExpr,
    SeqExpr,
    Size,
    SpaceExpr,
)
from qvr_core.syntax.tree.units import Statement, Unit


def placed_site(statement: Statement, site: DeclarationSite) -> tuple[int, Span] | None:
    """The unit and the span in it of a part of a declaration, `step:NAME` the step that binds a name."""
    placed = statement.header
    part, _, name = site.part.partition(":")
    if part == "step":
        for inner in units_of(statement):
            found = next((one for one in inner.unit.declares if one.text == name), None)
            if found is not None and inner is not placed:
                return inner.uid, found.span
    span = site_span(placed.unit, site)
    return None if span is None else (placed.uid, span)


def site_span(unit: Unit[Any], site: DeclarationSite) -> Span | None:
    """The span of a part of a declaration in its header; the name's where the part is not written."""
    node = unit.node
    part, _, index = site.part.partition(":")
    found: Span | None = None
    match node:
        case ObjectDecl(space=space) if part == "space":
            found = space.span
        case ObjectDecl(space=space) if part == "size":
            found = _size_span([space], index)
        case MorphismDecl(domain=domain, codomain=codomain) if part == "size":
            found = _size_span([domain, codomain], index)
        case MorphismDecl() | ProgramHeader() | DeductionHeader() if part in ("domain", "codomain"):
            found = node.domain.span if part == "domain" else node.codomain.span
        case MorphismDecl() | ProgramHeader() | DeductionHeader() if part == "option":
            options = node.options.items if node.options is not None else ()
            found = next((option.span for option in options if option.key.text == index), None)
        case _:
            pass
    if found is not None:
        return found
    for name in unit.declares:
        if name.text == site.name or (
            site.name.startswith(name.text + "_") and site.name[len(name.text) + 1 :].isdigit()
        ):
            return name.span
    return unit.declares[0].span if unit.declares else None


def _size_span(exprs: list[ObjectExpr], index: str) -> Span | None:
    sizes = [size for expr in exprs for size in _sizes(expr)]
    number = int(index) if index.isdigit() else 0
    return sizes[number].span if number < len(sizes) else None


def _sizes(expr: ObjectExpr) -> Iterator[Size]:
    """Sizes in the order in which they are checked."""
    match expr:
        case FinSetExpr(size=size):
            yield size
        case SpaceExpr(sizes=sizes):
            yield from sizes
        case SeqExpr(item=inner) | ParenObject(inner=inner):
            yield from _sizes(inner)
        case ProductExpr(factors=parts) | CoproductExpr(parts=parts):
            for part in parts:
                yield from _sizes(part)
        case _:
            return
