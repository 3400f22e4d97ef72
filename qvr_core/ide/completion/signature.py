"""Signature help: the call or option list around the cursor, and which of its parts is being written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Signature
from qvr_core.ide.completion.context import Bracket, Context, context_at
from qvr_core.ide.completion.indexing import NO_AXES, axes_at, axes_of_first, binders, gathers, indexed_name, running
from qvr_core.ide.language_words import constraint_words
from qvr_core.ide.prose import prose
from qvr_core.ide.symbols import Symbol, lookup
from qvr_core.ide.target import called
from qvr_core.ide.view import declared_facts, model_of
from qvr_core.operations.operation import BuiltinFunction
from qvr_core.semantics.language import equations
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.combinators import COMBINATORS
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.language.gates import GATE, GATED
from qvr_core.semantics.language.mixtures import MIXTURE, SUMMARY
from qvr_core.semantics.language.options import FLAGS, MEANINGS, STEP_KEYS
from qvr_core.semantics.language.prelude import EVERY_FAMILY, PRELUDE
from qvr_core.semantics.language.roles import ROLES
from qvr_core.semantics.types.model.arrows import Arrow
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.spaces import Product
from qvr_core.semantics.types.type_text import structure
from qvr_core.semantics.types.walk import arrow_named
from qvr_core.syntax.source import Cursor
from qvr_core.syntax.tree.declarations import DefDecl, DefHeader

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def signature(snapshot: Snapshot, cursor: Cursor) -> Signature | None:
    """The signature of the innermost call or option list that the cursor is in."""
    place = context_at(snapshot, cursor)
    for bracket in reversed(place.brackets):
        found = _signature(snapshot, place, bracket)
        if found is not None:
            return found
    return None


def _signature(snapshot: Snapshot, place: Context, bracket: Bracket) -> Signature | None:
    if bracket.kind == "LPAR":
        symbol = called(snapshot, place, bracket)
        return None if symbol is None else _call(snapshot, place, symbol, bracket)
    if bracket.kind == "LSQB":
        indexed = _indexed(snapshot, place, bracket)
        return _options(place, bracket) if indexed is None and len(place.brackets) == 1 else indexed
    return None


def _indexed(snapshot: Snapshot, place: Context, bracket: Bracket) -> Signature | None:
    """Behind `a[`: the sets that index `a`, and which of them stands here."""
    name = indexed_name(place, bracket)
    known = axes_at(snapshot, place)
    axes, text, _ = known.get(name.text, NO_AXES) if name is not None else NO_AXES
    if name is None or not axes:
        return None
    in_sight = tuple(running(place))
    fitting = (
        [*(index for index, runs in in_sight if runs == over), *(text for text, _ in gathers(known, in_sight, over))]
        for over in axes
    )
    parameters = tuple((over or "_", _index_text(over, own)) for over, own in zip(axes, fitting, strict=True))
    label = f"{name.text}[{', '.join(over for over, _ in parameters)}]"
    return _signature_of(label, f"`{name.text} : {text}`", parameters, bracket)


def _index_text(over: str | None, fitting: list[str]) -> str:
    """What may stand in one place of an index."""
    if over is None:
        return "an index of an axis without a name"
    shown = " or ".join(f"`{index}`" for index in fitting[:3])
    return f"an element of `{over}`" + (f", such as {shown}" if shown else "")


def _call(snapshot: Snapshot, place: Context, symbol: Symbol, bracket: Bracket) -> Signature | None:
    name = bracket.before.text if bracket.before is not None else ""
    match symbol.kind:
        case "family":
            return _family(name, place, bracket)
        case "combinator":
            return _combinator(name, bracket)
        case "morphism" | "let" | "encoder" | "decoder" | "program":
            arrow = arrow_named(model_of(snapshot), name)
            return None if arrow is None else _arrow(name, arrow, bracket)
        case "distribution":
            facts = declared_facts(snapshot, name)
            return None if facts is None else _of_family(name, facts, place, bracket)
        case "function":
            return _function(snapshot, name, bracket)
        case "builtin":
            return _builtin(snapshot, place, BUILTINS[name], bracket)
        case "form":
            options = ((f"{key}=", meaning) for key, meaning in equations.OPTIONS.items())
            return _labelled_signature(name, equations.SUMMARY, (*equations.PARAMETERS, *options), bracket)
        case _ if symbol.kind == "unknown" and (known := PRELUDE.get(name)) is not None:
            # the line is not whole yet, so the library is not read for it
            return _labelled_signature(name, known.summary, tuple(_typed(known.parameters)), bracket)
        case _:
            return None


def _typed(parameters: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The parameters of a template that have a kind, `scale : Real = 1.0` as `scale=1.0`; the others are its inputs."""
    for written in parameters:
        name, colon, kind = written.partition(" : ")
        kind, equals, default = kind.partition(" = ")
        if colon:
            yield f"{name}={default}" if equals else name, kind


def _labelled_signature(
    name: str, documentation: str, parameters: tuple[tuple[str, str], ...], bracket: Bracket
) -> Signature:
    label = f"{name}({', '.join(text for text, _ in parameters)})"
    return _signature_of(label, documentation, parameters, bracket)


def _signature_of(
    label: str, documentation: str, parameters: tuple[tuple[str, str], ...], bracket: Bracket
) -> Signature:
    described = tuple((name, prose(text)) for name, text in parameters)
    return Signature(label, prose(documentation), described, _active(parameters, bracket))


def _active(parameters: tuple[tuple[str, str], ...], bracket: Bracket) -> int:
    """The parameter that is being written: the one named by a keyword, else the one at this position."""
    since = bracket.since
    if len(since) > 1 and since[1].kind == "EQUAL":
        names = [text.partition("=")[0].partition(" ")[0] for text, _ in parameters]
        if since[0].text in names:
            return names.index(since[0].text)
    rest = next((at for at, (text, _) in enumerate(parameters) if text == "…"), len(parameters) - 1)
    return min(bracket.position, max(0, rest))


def _builtin(snapshot: Snapshot, place: Context, function: BuiltinFunction, bracket: Bracket) -> Signature:
    """A function; one along an axis names it by its set."""
    if "over" not in function.keywords:
        return _labelled_signature(
            function.name, function.summary, tuple((item, "") for item in function.parameters), bracket
        )
    axes = [f"`{over}`" for over in axes_of_first(snapshot, place, bracket) if over is not None]
    runs = f"here {' or '.join(axes)}" if axes else "a set that `x` runs over"
    parameters = (
        ("x", ""),
        ("dim", "an axis by its position"),
        ("over=", f"{runs}, or several in parentheses; the last where it is left out"),
    )
    return _labelled_signature(function.name, function.summary, parameters, bracket)


EVENTS = ("", "its last axis is the vector", "its last two axes are the matrix")


def _family(name: str, place: Context, bracket: Bracket) -> Signature:
    if name == MIXTURE:
        parts = (("weights", "simplex"), ("A(…)", "a family with its arguments"), ("B(…)", "another, and so on"))
        return _labelled_signature(name, SUMMARY, parts, bracket)
    if name in GATED:
        counts = ("A(…)", "a family of counts with its arguments")
        return _labelled_signature(name, GATED[name], (("gate", constraint_words(GATE)), counts), bracket)
    return _of_family(name, EVERY_FAMILY[name], place, bracket)


def _of_family(name: str, family: Family, place: Context, bracket: Bracket) -> Signature:
    parameters = tuple(
        (
            item.name if item.default is None else f"{item.name}={item.default:g}",
            "; ".join(filter(None, (item.constraint, EVENTS[item.rank]))),
        )
        for item in family.parameters
    )
    return _labelled_signature(name, " ".join((family.summary, *_draws(place))), parameters, bracket)


def _draws(place: Context) -> tuple[str, ...]:
    """For which elements a step with indices draws."""
    drawn = next((at for at, token in enumerate(place.tokens) if token.kind == "DRAW"), 0)
    indices = ", ".join(f"`{name} : {over}`" for name, over in binders(place.tokens[:drawn]))
    return (f"One draw for each {indices}.",) if indices else ()


def _function(snapshot: Snapshot, name: str, bracket: Bracket) -> Signature | None:
    """A function of the file: its parameters as they are written."""
    held = lookup(snapshot, name)
    unit = None if held is None else held.statement.header.unit
    if unit is None or not isinstance(unit.node, DefDecl | DefHeader):
        return None
    parameters = tuple((unit.text[one.span.start : one.span.end], "") for one in unit.node.parameters)
    return _labelled_signature(name, "a function of this file, typed at each call", parameters, bracket)


def _combinator(name: str, bracket: Bracket) -> Signature:
    entry = COMBINATORS[name]
    return _labelled_signature(name, f"{entry.summary} {entry.rule}", entry.parameters, bracket)


def _arrow(name: str, arrow: Arrow | Program, bracket: Bracket) -> Signature:
    """One parameter per factor of the domain; a program's inputs by their names."""
    space = arrow.domain.space
    if isinstance(arrow, Program) and arrow.template:
        parameters = tuple(
            (item.name if item.default is None else f"{item.name}={item.default}", item.kind) for item in arrow.template
        )
    elif isinstance(arrow, Program) and any(item.name for item in arrow.inputs):
        parameters = tuple((item.name or item.space.written, structure(item.space.space)) for item in arrow.inputs)
    elif isinstance(space, Product):
        parameters = tuple(
            (written or structure(factor), structure(factor))
            for written, factor in zip(space.names, space.factors, strict=True)
        )
    else:
        parameters = ((arrow.domain.written, structure(space)),)
    return _labelled_signature(
        name, f"{arrow.domain.written} {arrow.sort.value} {arrow.codomain.written}", parameters, bracket
    )


def _options(place: Context, bracket: Bracket) -> Signature | None:
    if place.keyword == "morphism":
        words = [token.text for token in place.tokens]
        role = ROLES.get(words[words.index("role") + 2] if "role" in words[:-2] else "kernel")
        if role is None:
            return None
        keys = tuple(
            (f"{spec.key}={role.name if spec.key == 'role' else _default(spec.default)}", spec.meaning)
            for spec in role.options.values()
        )
        return _listed(f"options of {role.name}", role.summary, keys, bracket)
    if place.start == "step" and place.keyword in STEP_KEYS:
        keys = tuple((key if key in FLAGS else f"{key}=", MEANINGS[key]) for key in STEP_KEYS[place.keyword])
        return _listed(f"options of {place.keyword}", "", keys, bracket)
    return None


def _default(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _listed(title: str, documentation: str, keys: tuple[tuple[str, str], ...], bracket: Bracket) -> Signature:
    label = f"{title} [{', '.join(key for key, _ in keys)}]"
    return _signature_of(label, documentation, keys, bracket)
