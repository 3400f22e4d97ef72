"""Which thing a name stands for, where it is declared, and where it is used."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qvr_core.ide.elements import set_of_label
from qvr_core.ide.imports.homes import Home, home_named, imported, imported_item, local_name, spellings
from qvr_core.ide.names import names_of
from qvr_core.ide.occurrences import Occurrence
from qvr_core.ide.view import model_of, statement_named
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.compositions import COMPOSITION
from qvr_core.semantics.language.equations import METHODS, SOLVE
from qvr_core.semantics.language.gates import GATED
from qvr_core.semantics.language.prelude import EVERY_FAMILY
from qvr_core.semantics.modules.module import Target
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Range
from qvr_core.syntax.tree.arithmetic import ArithCall, Lambda, ParenArith
from qvr_core.syntax.tree.declarations import DecoderHeader, DefDecl, EncoderHeader, MorphismDecl, ProgramHeader
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.objects import ObjectRef
from qvr_core.syntax.tree.options import Word
from qvr_core.syntax.tree.steps import LetStep
from qvr_core.syntax.tree.units import Placed, Statement
from qvr_core.syntax.walk import walk

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

KINDS = {
    "object": "object",
    "morphism": "morphism",
    "let": "let",
    "define": "let",
    "program": "program",
    "composition": "composition",
    "deduction": "deduction",
    "def": "function",
    "family": "distribution",
    "transformation": "transformation",
    "data type": "data type",
    "encoder": "encoder",
    "decoder": "decoder",
}
GLOBAL_KINDS = frozenset(KINDS.values())
WRITES = frozenset(
    ["declare", "bind", "parameter", "local-bind", "atom", "rule", "operation", "prefix-bind", "constructor"]
)
"""Parts of a statement at which a name is declared or bound."""

# What of these a user may rename.
RENAMABLE = GLOBAL_KINDS | {
    *("input", "template", "site", "binding", "local", "data", "size", "atom", "rule", "label", "prefix"),
    "constructor",
}


@dataclass(frozen=True, slots=True)
class Symbol:
    """A thing with a name.

    kind: one of `GLOBAL_KINDS`; 'input' (also the parameter of a function), 'template' (typed parameter), 'site',
    'binding' (of a let step), 'data' that is declared, all with the uid of their program in `owner`; 'local' (the name
    of a lambda, a factor or an index), 'atom', 'rule', 'label' (an element, of the set `of`, or the name of a factor)
    and 'operation', with the uid that they belong to; 'constructor' of the data type `of`; other
    'data', 'size' of the whole file; 'prefix' and 'path' of an import; and what belongs to the language: 'family',
    'builtin', 'combinator', 'option', 'keyword', 'word', 'attribute', 'space', 'kind'; else 'unknown'.

    What another file declares has its `target`, and the `name` that the model of this file gives it; a parameter that a
    call of such a thing names is a 'parameter' of it.
    """

    kind: str
    name: str
    owner: int = -1
    of: str = ""
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A symbol at a place."""

    symbol: Symbol
    occurrence: Occurrence
    placed: Placed[Any]
    statement: Statement

    @property
    def span(self) -> Span:
        return self.occurrence.span


@dataclass(frozen=True, slots=True)
class Declared:
    """A top-level name: where it is declared and as what."""

    kind: str
    statement: Statement
    occurrence: Occurrence

    @property
    def doc(self) -> str:
        """The comment above it."""
        return self.statement.doc


def lookup(snapshot: Snapshot, name: str) -> Declared | None:
    """A top-level name.  The first declaration counts where a name is declared twice."""
    statement = statement_named(snapshot, name)
    if statement is None:
        return None
    kind = KINDS.get(statement.header.unit.keyword)
    for occurrence in names_of(statement.header.unit):
        if kind is not None and occurrence.part == "declare" and occurrence.text == name:
            return Declared(kind, statement, occurrence)
    return None


_bindings: dict[int, tuple[Statement, dict[str, tuple[Placed[Any], Occurrence]]]] = {}


def bindings(statement: Statement) -> dict[str, tuple[Placed[Any], Occurrence]]:
    """The names that a program binds, each with its first place.  Kept for the statements asked for last."""
    held = _bindings.get(id(statement))
    if held is not None and held[0] is statement:
        return held[1]
    if len(_bindings) > 64:
        _bindings.clear()
    found = _collected(statement)
    _bindings[id(statement)] = (statement, found)
    return found


def _collected(statement: Statement) -> dict[str, tuple[Placed[Any], Occurrence]]:
    found: dict[str, tuple[Placed[Any], Occurrence]] = {}
    for placed in units_of(statement):
        for occurrence in names_of(placed.unit):
            if occurrence.part in ("bind", "parameter"):
                found.setdefault(occurrence.text, (placed, occurrence))
    return found


def binding_kind(occurrence: Occurrence) -> str:
    """'input', 'template', 'site', 'binding' or 'data'."""
    if occurrence.part == "parameter":
        return "template" if occurrence.of else "input"
    return {"let": "binding", "param": "binding", "data": "data"}.get(occurrence.of, "site")


def symbol_of(snapshot: Snapshot, statement: Statement, placed: Placed[Any], occurrence: Occurrence) -> Symbol:
    """What an occurrence stands for."""
    name = occurrence.text
    match occurrence.part:
        case "declare":
            return Symbol(KINDS.get(placed.unit.keyword, "unknown"), name)
        case "bind" | "parameter":
            return _bound(statement, name) or Symbol("unknown", name)
        case "local" | "local-bind":
            start = occurrence.scope.start if occurrence.scope is not None else 0
            return Symbol("local", name, placed.uid, str(start))
        case "path":
            return Symbol("path", name)
        case "prefix" | "prefix-bind":
            return Symbol("prefix", name)
        case "imported" | "alias":
            written = name if occurrence.part == "imported" else occurrence.of
            return _imported(snapshot, imported_item(snapshot, statement, written)) or Symbol("unknown", name)
        case "object" | "attribute" if occurrence.of and not _hidden(statement, occurrence.of):
            otherwise = Symbol(occurrence.part if occurrence.part == "attribute" else "unknown", name)
            return _imported(snapshot, imported(snapshot, local_name(occurrence))) or otherwise
        case "arrow" | "value" if name in snapshot.table.prefixes and not _hidden(statement, name):
            return Symbol("prefix", name)
        case "object" | "size":
            return _of_file_or_template(snapshot, statement, name, "size" if occurrence.part == "size" else "unknown")
        case "arrow":
            return _of_file_or_template(snapshot, statement, name, "unknown")
        case "composition":
            declared = statement_named(snapshot, f"{COMPOSITION}{name}") is not None
            return Symbol("composition", name) if declared else Symbol("word", name, -1, "composition")
        case "transformation":
            return _of_file(snapshot, name) or Symbol("word", name, -1, "change_base")
        case "family":
            return _of_file(snapshot, name) or Symbol("family", name, -1, occurrence.of or _owner_role(placed))
        case "value" | "callee" | "returned":
            return _value(snapshot, statement, placed, occurrence)
        case "element":
            return _element(snapshot, statement, placed, occurrence) or Symbol("unknown", name)
        case "data":
            return Symbol("data", name)
        case "term":
            return _term(statement, placed, occurrence)
        case "atom" | "rule":
            return Symbol(occurrence.part, name, statement.uid)
        case "label":
            return _label(statement, placed, name)
        case "constructor":
            return Symbol("constructor", name, -1, occurrence.of)
        case "operation" if isinstance(node := statement.header.unit.node, EncoderHeader | DecoderHeader):
            held = node.domain if isinstance(node, EncoderHeader) else node.codomain
            own = held.name.text if isinstance(held, ObjectRef) else ""
            if isinstance(node, DecoderHeader) and name == own.rpartition(".")[2]:
                return _of_file(snapshot, own) or Symbol("unknown", name)  # the line that chooses a constructor
            return Symbol("constructor", name, -1, own)
        case "operation":
            return Symbol("operation", name, statement.uid)
        case "keyword" if (parameter := _parameter(snapshot, occurrence)) is not None:
            return parameter
        case "keyword":
            return Symbol("keyword", name, -1, occurrence.of.rpartition(".")[2])
        case part:
            return Symbol(part, name, -1, occurrence.of or _owner_role(placed))


def _hidden(statement: Statement, prefix: str) -> bool:
    """Whether a program has another thing of the name of a prefix."""
    return prefix in bindings(statement)


def _imported(snapshot: Snapshot, home: Home | None) -> Symbol | None:
    if home is None:
        return None
    kind = KINDS.get(home.statement.header.unit.keyword, "unknown")
    return Symbol(kind, snapshot.table.name_of(home.target), target=home.target)


def _parameter(snapshot: Snapshot, keyword: Occurrence) -> Symbol | None:
    """The parameter of a family, function or template that an argument names."""
    home = imported(snapshot, keyword.of) if keyword.of else None
    if home is not None and home.parameter(keyword.text) is not None:
        return Symbol("parameter", keyword.text, -1, home.name, home.target)
    called = statement_named(snapshot, keyword.of) if keyword.of else None
    if called is None or called.header.unit.keyword not in ("family", "def", "program"):
        return None
    for occurrence in names_of(called.header.unit):
        if occurrence.text == keyword.text and occurrence.part in ("parameter", "local-bind"):
            return symbol_of(snapshot, called, called.header, occurrence)
    return None


def _bound(statement: Statement, name: str) -> Symbol | None:
    held = bindings(statement).get(name)
    return Symbol(binding_kind(held[1]), name, statement.uid) if held is not None else None


def _calls_the_language(statement: Statement, name: str) -> bool:
    """Whether a call of a bound name is one of the language's function or family: a value is none, a lambda is one."""
    if name not in BUILTINS and name not in EVERY_FAMILY:
        return False
    step = bindings(statement)[name][0].unit.node
    value = step.value if isinstance(step, LetStep) else None
    while isinstance(value, ParenArith):
        value = value.inner
    return not isinstance(value, Lambda)


def _of_file_or_template(snapshot: Snapshot, statement: Statement, name: str, otherwise: str) -> Symbol:
    if isinstance(statement.header.unit.node, ProgramHeader):
        bound = _bound(statement, name)
        if bound is not None and bound.kind == "template":
            return bound
    return _of_file(snapshot, name) or Symbol(otherwise, name)


def _of_file(snapshot: Snapshot, name: str) -> Symbol | None:
    held = lookup(snapshot, name)
    if held is not None:
        return Symbol(held.kind, name)
    # A copy of a replicated morphism goes by its family's declaration.
    base, _, index = name.rpartition("_")
    if index.isdigit() and lookup(snapshot, base) is not None and base in model_of(snapshot).replicated:
        return Symbol("morphism", base)
    return _imported(snapshot, imported(snapshot, name))


def _value(snapshot: Snapshot, statement: Statement, placed: Placed[Any], occurrence: Occurrence) -> Symbol:
    name = occurrence.text
    if statement.header.unit.keyword in ("program", "def", "family"):
        bound = _bound(statement, name)
        if bound is not None and not (occurrence.part == "callee" and _calls_the_language(statement, name)):
            return bound
    symbol = _element(snapshot, statement, placed, occurrence) or _of_file(snapshot, name)
    if symbol is not None:
        return symbol
    if name in BUILTINS and (occurrence.part == "callee" or BUILTINS[name].reserved):
        return Symbol("builtin", name)
    if occurrence.part == "callee" and (name in EVERY_FAMILY or name in GATED):
        return Symbol("family", name)
    if occurrence.part == "callee" and name == SOLVE:
        return Symbol("form", name)
    if name in METHODS and _is_method(placed, occurrence.span):
        return Symbol("word", name, -1, "method")
    return Symbol("data" if occurrence.part == "value" else "unknown", name)


def _is_method(placed: Placed[Any], span: Span) -> bool:
    """Whether a name stands behind `method=` in a call of `solve`."""
    calls = (node for node in walk(placed.unit.node) if isinstance(node, ArithCall) and node.func.text == SOLVE)
    keyed = (argument for call in calls for argument in call.args if argument.key is not None)
    return any(one.value.span == span for one in keyed if one.key is not None and one.key.text == "method")


def _term(statement: Statement, placed: Placed[Any], occurrence: Occurrence) -> Symbol:
    atoms = {
        found.text for child in statement.header.children for found in names_of(child.unit) if found.part == "atom"
    }
    if occurrence.text in atoms or occurrence.of == "constructor":
        return Symbol("atom", occurrence.text, statement.uid)
    return Symbol("local", occurrence.text, placed.uid, "term")


def _element(snapshot: Snapshot, statement: Statement, placed: Placed[Any], occurrence: Occurrence) -> Symbol | None:
    """The label that a name in arithmetic stands for."""
    if occurrence.part == "callee" or statement.header.unit.keyword != "program":
        return None
    start = occurrence.span.start - (occurrence.part == "element")
    owner = set_of_label(snapshot, statement, placed.uid, Span(start, occurrence.span.end))
    if owner is None:
        return None
    declared = lookup(snapshot, owner)
    if declared is None and (home := home_named(snapshot, owner)) is not None:
        return Symbol("label", occurrence.text, -1, owner, home.target)
    for place in (declared.statement if declared is not None else statement, *snapshot.statements):
        for unit in units_of(place):
            if any(one.part == "label" and one.text == occurrence.text for one in names_of(unit.unit)):
                return _label(place, unit, occurrence.text)
    return None


def _label(statement: Statement, placed: Placed[Any], name: str) -> Symbol:
    owner = placed.unit.declares[0].text if placed.unit.declares else ""
    return Symbol("label", name, statement.uid, owner)


def _owner_role(placed: Placed[Any]) -> str:
    """What an option belongs to: the role of its morphism, or the keyword of its step."""
    node = placed.unit.node
    if isinstance(node, MorphismDecl):
        for option in node.options.items if node.options is not None else ():
            if option.key.text == "role" and isinstance(option.value, Word):
                return option.value.text
        return "kernel"
    return placed.unit.keyword


# ---------------------------------------------------------------- questions


def references(snapshot: Snapshot, symbol: Symbol) -> list[Found]:
    """Every place of this file that names the symbol, its declaration included, in the order of the text."""
    names = {symbol.name} if symbol.target is None or symbol.of else spellings(snapshot, symbol.target)
    return [
        Found(symbol, occurrence, placed, statement)
        for statement in _scope(snapshot, symbol)
        for placed in units_of(statement)
        # a name in quotes may be written with escapes
        if symbol.kind in ("data", "label", "path") or any(name in placed.unit.text for name in names)
        for occurrence in names_of(placed.unit)
        if _may_name(occurrence.text, symbol.kind, names)
        and symbol_of(snapshot, statement, placed, occurrence) == symbol
    ]


def _scope(snapshot: Snapshot, symbol: Symbol) -> list[Statement]:
    if symbol.owner < 0 or symbol.kind in ("label", "input", "template") or _is_parameter(snapshot, symbol):
        return list(snapshot.statements)
    return [
        statement
        for statement in snapshot.statements
        if statement.uid == symbol.owner or any(placed.uid == symbol.owner for placed in units_of(statement))
    ]


def _is_parameter(snapshot: Snapshot, symbol: Symbol) -> bool:
    """Whether a local name is a parameter of a function of one line, which calls may name."""
    return symbol.kind == "local" and any(
        statement.header.uid == symbol.owner and isinstance(statement.header.unit.node, DefDecl)
        for statement in snapshot.statements
    )


def _may_name(text: str, kind: str, names: Set[str]) -> bool:
    return text in names or (kind == "morphism" and any(text.startswith(f"{name}_") for name in names))


def declarations(snapshot: Snapshot, symbol: Symbol) -> list[Found]:
    """Where this file declares the symbol; for data names, which nobody declares, the first use."""
    if symbol.target is not None or symbol.kind == "path":
        return []
    if symbol.kind == "composition":
        statement = statement_named(snapshot, f"{COMPOSITION}{symbol.name}")
        named = () if statement is None else names_of(statement.header.unit)
        own = (Found(symbol, one, statement.header, statement) for one in named if one.part == "declare" and statement)
        return list(own)[:1]
    if symbol.kind in GLOBAL_KINDS:
        held = lookup(snapshot, symbol.name)
        if held is None:
            return []
        return [Found(symbol, held.occurrence, held.statement.header, held.statement)]
    found = references(snapshot, symbol)
    made = "constructor" if symbol.kind == "constructor" else ""
    binding = [place for place in found if (place.occurrence.part == made if made else writes(place.occurrence))]
    return (binding or found)[:1]


def writes(occurrence: Occurrence) -> bool:
    """Whether the name is declared or bound at this place."""
    return occurrence.part in WRITES


def place_of(snapshot: Snapshot, found: Found) -> Range:
    """Where the name stands."""
    return snapshot.range(Origin(found.placed.uid, found.occurrence.span))
