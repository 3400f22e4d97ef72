"""Semantic tokens: names coloured by what they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qvr_core.ide.answers import SemanticToken
from qvr_core.ide.names import Occurrence, names_of
from qvr_core.ide.symbols import Symbol, bindings, symbol_of, writes
from qvr_core.ide.view import model_of, statements_between
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.arrows import Arrow, Sort
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.walk import arrow_named
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Range
from qvr_core.syntax.tree.units import Statement

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

# Kind of symbol -> type of token.
TOKEN_TYPES = {
    "object": "type",
    "size": "typeParameter",
    "template": "typeParameter",
    "morphism": "function",
    "let": "function",
    "program": "method",
    "composition": "namespace",
    "deduction": "namespace",
    "function": "function",
    "distribution": "class",
    "transformation": "function",
    "data type": "type",
    "encoder": "function",
    "decoder": "function",
    "constructor": "enumMember",
    "family": "class",
    "builtin": "function",
    "form": "function",
    "combinator": "keyword",
    "input": "parameter",
    "local": "parameter",
    "site": "variable",
    "binding": "variable",
    "data": "data",
    "option": "property",
    "keyword": "property",
    "attribute": "property",
    "operation": "property",
    "word": "enumMember",
    "label": "enumMember",
    "prefix": "namespace",
    "parameter": "property",
    "atom": "enumMember",
    "rule": "function",
    "space": "type",
    "kind": "type",
}
SORT_MODIFIERS = {Sort.DETERMINISTIC: "deterministic", Sort.SAMPLED: "sampled", Sort.TENSOR: "tensor"}
_ROLES = {"sample": ("latent",), "marginalize": ("latent",), "observe": ("observed",)}
"""What the site of a step is; a value that is predicted is neither, nor is a score."""
OF_LANGUAGE = frozenset(("family", "builtin", "form", "combinator", "space", "kind"))


def tokens(snapshot: Snapshot, stretch: Range) -> list[SemanticToken]:
    """The tokens of the statements that touch a stretch of text."""
    return [
        token
        for statement in statements_between(snapshot, stretch.start.line, stretch.end.line)
        for token in statement_tokens(snapshot, statement)
    ]


def statement_tokens(snapshot: Snapshot, statement: Statement) -> Iterator[SemanticToken]:
    """The tokens of one statement, in the order of the text."""
    model = model_of(snapshot)
    for placed in units_of(statement):
        for occurrence in names_of(placed.unit):
            symbol = symbol_of(snapshot, statement, placed, occurrence)
            kind = TOKEN_TYPES.get(symbol.kind)
            if kind is not None:
                start, end = snapshot.range(Origin(placed.uid, occurrence.span))
                if start.line == end.line:
                    modifiers = _modifiers(model, statement, symbol, occurrence)
                    yield SemanticToken(start.line, start.column, end.column - start.column, kind, modifiers)


def _modifiers(model: Model, statement: Statement, symbol: Symbol, occurrence: Occurrence) -> tuple[str, ...]:
    found: list[str] = []
    if writes(occurrence):
        found.append("declaration")
    if symbol.kind in ("morphism", "let", "encoder", "decoder", "program"):
        name = occurrence.text if symbol.target is None else symbol.name
        arrow = arrow_named(model, name) or _first_copy(model, symbol.name)
        if arrow is not None:
            found.append(SORT_MODIFIERS[arrow.sort])
    elif symbol.kind == "site":
        found += _ROLES.get(_keyword_of(statement, symbol.name), ())
    elif symbol.kind in ("object", "input", "template", "size"):
        found.append("readonly")
    elif symbol.kind in OF_LANGUAGE:
        found.append("defaultLibrary")
    return tuple(found)


def _first_copy(model: Model, name: str) -> Arrow | Program | None:
    held = model.replicated.get(name)
    return arrow_named(model, held.copies[0]) if held is not None and held.copies else None


def _keyword_of(statement: Statement, name: str) -> str:
    """The keyword of the step that binds a name."""
    bound = bindings(statement).get(name)
    return bound[1].of if bound is not None else ""
