"""Definition, type definition, references, highlights, linked editing, calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.answers import Call, DocumentSymbol, Highlight
from qvr_core.ide.imports.homes import FilePlace, called_here, home_named, home_of, imported_file
from qvr_core.ide.imports.shared import Shared, uses
from qvr_core.ide.names import names_of
from qvr_core.ide.outline_and_folding import statement_symbols
from qvr_core.ide.symbols import (
    GLOBAL_KINDS,
    Found,
    Symbol,
    declarations,
    lookup,
    place_of,
    references,
    symbol_of,
    writes,
)
from qvr_core.ide.target import symbol_at
from qvr_core.ide.view import model_of
from qvr_core.semantics.types.model.steps import MarginalizeModel, ObserveModel, PredictModel, SampleModel
from qvr_core.semantics.types.spaces import Named
from qvr_core.semantics.types.walk import all_steps
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Cursor, Range

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

# What is used only where it is declared, and words of the language: nothing to go to.
OF_LANGUAGE = frozenset(
    ("family", "builtin", "form", "combinator", "option", "keyword", "word", "attribute", "space", "kind")
)


ARROWS = frozenset(("morphism", "let", "encoder", "decoder", "program"))


def definition(snapshot: Snapshot, cursor: Cursor) -> list[Range]:
    """Where the name at the cursor is declared."""
    found = symbol_at(snapshot, cursor)
    if found is None or found.symbol.kind in OF_LANGUAGE:
        return []
    return [place_of(snapshot, place) for place in declarations(snapshot, found.symbol)]


def definition_elsewhere(snapshot: Snapshot, cursor: Cursor) -> FilePlace | None:
    """Where another file declares the name at the cursor, or the file that the path of an import names."""
    found = symbol_at(snapshot, cursor)
    if found is None:
        return None
    if found.symbol.kind == "path":
        return imported_file(snapshot, found.statement)
    home = None if found.symbol.target is None else home_of(snapshot, found.symbol.target)
    if home is None:
        return None
    return home.member_place(found.symbol.name) if found.symbol.of else home.name_place()


def type_definition(snapshot: Snapshot, cursor: Cursor) -> list[Range]:
    """Where this file declares the objects in the type of the name at the cursor."""
    return [
        place_of(snapshot, place)
        for name in _objects(snapshot, cursor)
        if (held := lookup(snapshot, name)) is not None
        for place in declarations(snapshot, Symbol(held.kind, name))
    ]


def type_elsewhere(snapshot: Snapshot, cursor: Cursor) -> list[FilePlace]:
    """Where other files declare such objects."""
    homes = (home_named(snapshot, name) for name in _objects(snapshot, cursor) if lookup(snapshot, name) is None)
    return [home.name_place() for home in homes if home is not None]


def _objects(snapshot: Snapshot, cursor: Cursor) -> list[str]:
    found = symbol_at(snapshot, cursor)
    if found is None:
        return []
    words = [word for space in _spaces(snapshot, found) for word in space.written.replace("*", " ").split()]
    return list(dict.fromkeys(words))


def _spaces(snapshot: Snapshot, found: Found) -> list[Named]:
    model, name = model_of(snapshot), found.symbol.name
    arrow_name = found.occurrence.text if found.symbol.target is None else called_here(snapshot, found.occurrence)
    match found.symbol.kind:
        case "morphism" if arrow_name in model.arrows:
            arrow = model.arrows[arrow_name]
            return [arrow.domain, arrow.codomain]
        case "let" if name in model.lets:
            arrow = model.lets[name].arrow
            return [arrow.domain, arrow.codomain]
        case "program" if name in model.programs:
            program = model.programs[name]
            return [program.domain, program.codomain]
        case "object" if name in model.objects:
            alias = model.objects[name].alias
            return [Named(model.objects[name].space.space, alias)] if alias else [model.objects[name].space]
        case "site" | "input":
            return _bound_spaces(snapshot, found)
        case _:
            return []


def _bound_spaces(snapshot: Snapshot, found: Found) -> list[Named]:
    names = found.statement.header.unit.declares
    program = model_of(snapshot).programs.get(names[0].text) if names else None
    if program is None:
        return []
    spaces = [item.space for item in program.inputs if item.name == found.symbol.name]
    for step in all_steps(program.steps):
        if isinstance(step, SampleModel | ObserveModel | PredictModel | MarginalizeModel):
            spaces += [space for name, space in step.site.bound if name == found.symbol.name]
    return spaces


def find_references(snapshot: Snapshot, cursor: Cursor, *, declaration: bool = True) -> list[Range]:
    """Every place that names the thing at the cursor."""
    found = symbol_at(snapshot, cursor)
    if found is None or found.symbol.kind == "unknown":
        return []
    return [
        place_of(snapshot, place)
        for place in references(snapshot, found.symbol)
        if declaration or not writes(place.occurrence)
    ]


def places(snapshot: Snapshot, shared: Shared, *, declaration: bool = True) -> list[Range]:
    """Every place of a file that names a thing of its own or of another file."""
    return [
        place_of(snapshot, place) for place in uses(snapshot, shared) if declaration or not writes(place.occurrence)
    ]


def highlights(snapshot: Snapshot, cursor: Cursor) -> list[Highlight]:
    """Every place that names the thing at the cursor, declarations marked as writes."""
    found = symbol_at(snapshot, cursor)
    if found is None:
        return []
    return [
        Highlight(place_of(snapshot, place), writes(place.occurrence)) for place in references(snapshot, found.symbol)
    ]


def linked(snapshot: Snapshot, cursor: Cursor) -> list[Range]:
    """The places of a name that lives in one program: they may be edited together."""
    found = symbol_at(snapshot, cursor)
    if found is None or found.symbol.kind not in ("site", "binding", "input", "template", "local"):
        return []
    return [place_of(snapshot, place) for place in references(snapshot, found.symbol)]


# ---------------------------------------------------------------- calls


def callable_at(snapshot: Snapshot, cursor: Cursor) -> DocumentSymbol | None:
    """The arrow at the cursor, for a call hierarchy."""
    found = symbol_at(snapshot, cursor)
    if found is None or found.symbol.kind not in ARROWS:
        return None
    return symbol_named(snapshot, found.symbol.name)


def callable_elsewhere(snapshot: Snapshot, cursor: Cursor) -> Shared | None:
    """The same where another file declares it."""
    found = symbol_at(snapshot, cursor)
    if found is None or found.symbol.kind not in ARROWS or found.symbol.target is None:
        return None
    return Shared(*found.symbol.target)


def symbol_named(snapshot: Snapshot, name: str) -> DocumentSymbol | None:
    held = lookup(snapshot, name)
    if held is None:
        return None
    return next((symbol for symbol in statement_symbols(snapshot, held.statement) if symbol.name == name), None)


def callers(snapshot: Snapshot, shared: Shared) -> list[Call]:
    """The lets and programs of a file that use an arrow, its own or that of another file."""
    places: dict[str, list[Range]] = {}
    for found in uses(snapshot, shared):
        names = found.statement.header.unit.declares
        if names and found.occurrence.part != "declare":
            places.setdefault(names[0].text, []).append(place_of(snapshot, found))
    return _calls(snapshot, places)


def callees(snapshot: Snapshot, name: str) -> list[Call]:
    """The arrows that a let or a program uses."""
    held = lookup(snapshot, name)
    if held is None:
        return []
    places: dict[str, list[Range]] = {}
    for placed in units_of(held.statement):
        for occurrence in names_of(placed.unit):
            symbol = symbol_of(snapshot, held.statement, placed, occurrence)
            if symbol.target is None and symbol.kind in GLOBAL_KINDS - {"object"} and occurrence.part != "declare":
                place = place_of(snapshot, Found(symbol, occurrence, placed, held.statement))
                places.setdefault(symbol.name, []).append(place)
    return _calls(snapshot, places)


def callees_elsewhere(snapshot: Snapshot, name: str) -> dict[Shared, list[Range]]:
    """The declarations of other files that a let or a program uses, each with its places here."""
    held = lookup(snapshot, name)
    found: dict[Shared, list[Range]] = {}
    if held is None:
        return found
    for placed in units_of(held.statement):
        for occurrence in names_of(placed.unit):
            symbol = symbol_of(snapshot, held.statement, placed, occurrence)
            if symbol.target is not None and symbol.kind in GLOBAL_KINDS - {"object"}:
                place = place_of(snapshot, Found(symbol, occurrence, placed, held.statement))
                found.setdefault(Shared(*symbol.target), []).append(place)
    return found


def _calls(snapshot: Snapshot, places: dict[str, list[Range]]) -> list[Call]:
    found = ((symbol_named(snapshot, name), stretches) for name, stretches in places.items())
    return [Call(symbol, tuple(stretches)) for symbol, stretches in found if symbol is not None]
