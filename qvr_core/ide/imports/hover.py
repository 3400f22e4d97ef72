"""Hover: what another file declares, and what an import brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.descriptions import arrow_text, bound_text, deduction_text, function_text, object_text
from qvr_core.ide.imports.homes import Home, called_here, home_of
from qvr_core.ide.prose import Code, Comment, Prose, prose
from qvr_core.ide.symbols import Found
from qvr_core.semantics.modules.module import Module
from qvr_core.semantics.modules.paths import shown
from qvr_core.syntax.tree.declarations import ProgramHeader
from qvr_core.syntax.tree.names import Name

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

SHOWN_NAMES = 20


def imported_text(snapshot: Snapshot, found: Found) -> Prose:
    """A thing of another file: what it is here, and the file."""
    home = home_of(snapshot, found.symbol.target) if found.symbol.target is not None else None
    if home is None:
        return ()
    return prose(_thing(snapshot, found, home), f"From `{written(snapshot, home.module)}`.")


def _thing(snapshot: Snapshot, found: Found, home: Home) -> Prose:
    symbol = found.symbol
    if symbol.kind == "parameter":
        return bound_text(home.statement, symbol.name) or _template_parameter(home, symbol.name)
    if symbol.kind == "label":
        return prose(f"`{symbol.name}`: an element of `{symbol.of}`")
    name = symbol.name if found.occurrence.part in ("imported", "alias") else called_here(snapshot, found.occurrence)
    if snapshot.node(name) is None and symbol.kind not in ("function", "distribution"):
        # nothing of this file uses it, so it is not checked here
        return prose(Code(home.statement.header.unit.text), Comment(home.statement.doc))
    match symbol.kind:
        case "object":
            return object_text(snapshot, symbol)
        case "morphism" | "let" | "program":
            return arrow_text(snapshot, name)
        case "deduction":
            return deduction_text(snapshot, symbol)
        case "function" | "distribution":
            return function_text(snapshot, symbol)
        case _:
            return prose(Code(home.statement.header.unit.text), Comment(home.statement.doc))


def _template_parameter(home: Home, name: str) -> Prose:
    unit = home.statement.header.unit
    if not isinstance(unit.node, ProgramHeader):
        return ()
    for parameter in unit.node.parameters or ():
        if parameter.name.text == name:
            text = unit.text[parameter.span.start : parameter.span.end]
            return prose(Code(text), f"Parameter of the template `{home.name}`.")
    return ()


def import_text(snapshot: Snapshot, found: Found) -> Prose:
    """The path or the prefix of an import: the file, and what it declares."""
    for each in snapshot.table.imports:
        prefix = each.decl.prefix
        here = each.uid == found.statement.uid if found.symbol.kind == "path" else _is(prefix, found.symbol.name)
        if here and each.module is not None:
            names = [f"`{name}`" for name in each.module.public[:SHOWN_NAMES]]
            more = len(each.module.public) - len(names)
            listed = f"It declares {', '.join(names)}{f' and {more} more' if more > 0 else ''}." if names else ""
            stands = "" if prefix is None else f"Its names stand behind `{prefix.text}.` here."
            return prose(f"`{each.decl.path.value}`", listed or "It declares nothing for others.", stands)
    return ()


def _is(prefix: Name | None, name: str) -> bool:
    return prefix is not None and prefix.text == name


def written(snapshot: Snapshot, module: Module) -> str:
    """A file as an import of this one names it."""
    found = ((each.decl.path.value, each.module) for each in snapshot.table.imports)
    here = (path for path, one in found if one is not None and one.location == module.location)
    return next(here, shown(module.location))
