"""What is said of the names that a program binds, and of its data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from qvr_core.ide import arrows_in_words
from qvr_core.ide.axes import let_type, type_text
from qvr_core.ide.descriptions import bound_text
from qvr_core.ide.hovers.sites import PREDICTED, site_text, value_text
from qvr_core.ide.indices import order_note
from qvr_core.ide.language_words import sentence
from qvr_core.ide.names import names_of
from qvr_core.ide.prose import Code, Comment, Paragraph, Prose, prose
from qvr_core.ide.symbols import Found, Symbol, bindings
from qvr_core.ide.types_in_words import data_words, element_words, let_words
from qvr_core.ide.view import model_of
from qvr_core.semantics.language.truncated import family_words
from qvr_core.semantics.types.counted import counted, in_file
from qvr_core.semantics.types.data_text import data_text
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.file import Model, ObjectModel
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    ArrowDraw,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    ParamModel,
    PredictModel,
    SampleModel,
    ScoreModel,
    StepModel,
)
from qvr_core.semantics.types.sentences import sentences_of
from qvr_core.semantics.types.spaces import Finite
from qvr_core.semantics.types.type_text import space_text
from qvr_core.semantics.types.walk import all_steps, sites
from qvr_core.syntax.layout import shape
from qvr_core.syntax.tree.units import Statement

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def program_of(snapshot: Snapshot, statement: Statement) -> Program | None:
    names = statement.header.unit.declares
    return model_of(snapshot).programs.get(names[0].text) if names else None


def bound(snapshot: Snapshot, found: Found) -> Prose:
    """A name that a program binds: its step, where that stands on another line, and what it is."""
    owner = next((each for each in snapshot.statements if each.uid == found.symbol.owner), found.statement)
    program = program_of(snapshot, owner)
    name = found.symbol.name
    if program is None:
        return bound_text(owner, name) or prose(f"`{name}`: {found.symbol.kind}")
    if found.symbol.kind == "input":
        for item in program.inputs:
            if item.name == name:
                shape = arrows_in_words.shape_text(item.space.space)
                words = element_words(item.space.space) or space_text(item.space)
                return prose(
                    Code(f"{name} : {item.space.written}"),
                    f"An input of `{program.name}`: {words} · shape of a batch `{shape}`",
                )
    if found.symbol.kind == "template":
        for item in program.template:
            if item.name == name:
                return prose(Code(item.written), "Parameter of the template")
    text = binding_text(program, found.statement, name)
    if not text:
        return prose(f"`{name}`: {found.symbol.kind}")
    scored = _scored(program, name, snapshot.model)
    return prose(text[:1], Comment(_beside(snapshot, found)), _line(found), text[1:], scored)


def _scored(program: Program, name: str, model: Model) -> str:
    """What the arrow behind a draw adds to the density besides."""
    draw = next((one.draw for one in sites(program.steps, SampleModel, ObserveModel) if one.name == name), None)
    inside = counted(draw.arrow, in_file(model)) if isinstance(draw, ArrowDraw) else ()
    told: list[str] = []
    for word, verb in (("score", "scores"), ("observe", "observes")):
        found = [
            f"`{name}.{one.name}`" + (f" (one a {one.axes[-1]})" if one.axes else "")
            for one in inside
            if one.word == word
        ]
        told += [f"{verb} {', '.join(found)}"] if found else []
    return f"Its arrow {' and '.join(told)}: terms of the log joint density." if told else ""


def binding_text(program: Program, statement: Statement, name: str) -> Prose:
    """What the step that binds a name makes of it; () for a name that no step binds."""
    for step in all_steps(program.steps):
        text = _step(step, name, program.uses_input)
        if not text:
            continue
        if not isinstance(step, LetModel):
            return text
        return prose(text, _computed(statement, step, name, program), _observed_note(program, name))
    return ()


def _observed_note(program: Program, name: str) -> str:
    """What it means that a let is observed."""
    site = next((one for one in sites(program.steps, ObserveModel) if one.of_let and one.name == name), None)
    if site is None:
        return ""
    drawn = f" from `{family_words(site.draw.family)}`" if isinstance(site.draw, FamilyDraw) else ""
    return f"Observed{drawn}: its own numbers are the data, so the density has no Jacobian."


def in_words(program: Program, statement: Statement, name: str) -> str:
    """The same in one line: `latent · from Normal · one number`; '' where nothing is known."""
    paragraphs = [part.prose for part in binding_text(program, statement, name) if isinstance(part, Paragraph)]
    known = next((item for item in program.data if item.name == name), None)
    return paragraphs[0] if paragraphs else data_words(known) if known is not None else ""


def _step(step: StepModel, name: str, rows: bool) -> Prose:
    match step:
        case SampleModel(site=site) if name == site.name or name in (bound for bound, _ in site.bound):
            return site_text(site, name, "auxiliary draw" if site.auxiliary else "latent", rows=rows)
        case ObserveModel(site=site) if name == site.name:
            return site_text(site, name, "observed", rows=rows)
        case PredictModel(site=site) if name == site.name:
            return site_text(site, name, PREDICTED, rows=rows)
        case MarginalizeModel(site=site, over=over) if name == site.name:
            site = replace(site, over=over or site.over)
            return site_text(site, name, "summed out exactly", rows=rows)
        case LetModel(names=names) if name in names:
            kind = let_type(step, name)
            typed = f" : {type_text(kind)}" if kind.indexed else ""
            words = "" if rows else let_words(kind)
            unknown = kind.space is None and not kind.indexed and not rows
            shown = words or ("" if unknown else value_text(replace(kind, indexed=(), sizes=()), rows=rows))
            return prose(Code(f"let {name}{typed}"), shown, order_note(step))
        case ParamModel(names=names) if name in names:
            start = "" if step.init is None else f", from {', '.join(f'{number:g}' for number in step.init)}"
            return prose(Code(f"param {name} : {type_text(step.type)}"), f"Learned by a fit with this guide{start}")
        case ScoreModel(name=own) if own == name:
            return prose(Code(f"score {name}"), "A number that is added to the log joint density, as a likelihood is.")
        case _:
            return ()


def data(snapshot: Snapshot, found: Found) -> Prose:
    """A name that comes from outside."""
    name = found.symbol.name
    users = [program for program in snapshot.model.programs.values() if any(item.name == name for item in program.data)]
    sets = [] if users else [each.name for each in snapshot.model.objects.values() if name in labels_of(each)]
    if sets:
        return prose(f"`{name}`: an element of {' and of '.join(f'`{each}`' for each in sets)}")
    return prose(data_told(users, name, Comment(_beside(snapshot, found))))


def data_told(users: Sequence[Program], name: str, comment: Comment | str = "") -> Prose:
    """What data are to the programs that read them."""
    kinds = [
        ("" if program.uses_input else data_words(item)) or value_text(item.type, rows=program.uses_input)
        for program in users
        for item in program.data
        if item.name == name
    ]
    lexicon = next((words for program in users if (words := sentences_of(program).get(name)) is not None), None)
    if lexicon is not None:
        kinds = [f"sentences, text or lists of words, which `{lexicon.deduction}` parses"]
    names = ", ".join(f"`{program.name}`" for program in users)
    observed = any(site.name == name for program in users for site in sites(program.steps, ObserveModel))
    role = "Data, observed" if observed else "Data, given"
    declared = (item for program in users for item in program.data if item.name == name and item.declared)
    written = next((data_text(item.type, item.numbers, item.lengths) for item in declared), "")
    return prose(
        Code(f"data {name} : {written}" if written else name),
        comment,
        f"{role} {'by' if observed else 'to'} {names}." + (f" {sentence(kinds[0].rstrip('.'))}" if kinds else "")
        if names
        else "Data.",
        next((MISSING_CELLS[word] for word in _missing(users, name)), ""),
    )


MISSING_CELLS = {
    "impute": "Cells without a value are filled in: each is a latent, estimated with the rest.",
    "drop": "Cells without a value do not count.",
    "sum": "Cells without a value are summed out: each counts with all the values that it may have.",
}


def _missing(users: Sequence[Program], name: str) -> Iterator[str]:
    """What the steps that observe data do with missing cells."""
    for program in users:
        for site in sites(program.steps, ObserveModel):
            if site.name == name and site.missing is not None:
                yield site.missing.how


MOST_READ = 8


def _computed(statement: Statement, step: LetModel, name: str, program: Program) -> str:
    """What the line of a let reads: it is neither data nor a latent."""
    read = _read(statement, name, program)
    listed = made_of(statement, name, program)
    made = f"{listed.rstrip('.')}: neither data nor a latent." if listed else ""
    return f"{made} {_shaped_by(step, name, read, program)}".strip()


def made_of(statement: Statement, name: str, program: Program) -> str:
    """`Computed from a, b.`, of the line that binds a name."""
    read = _read(statement, name, program)
    shown = ", ".join(f"`{each}`" for each in read[:MOST_READ]) + (", …" if len(read) > MOST_READ else "")
    return f"Computed from {shown}." if read else ""


def _read(statement: Statement, name: str, program: Program) -> Sequence[str]:
    held = bindings(statement)
    placed = held.get(name, (None,))[0]
    if placed is None:
        return ()
    known = {*held, *(item.name for item in program.data), *(item.name for item in program.inputs)}
    uses = [each.text for each in names_of(placed.unit) if each.part == "value"]
    return [each for each in dict.fromkeys(uses) if each in known and each != name]


def _shaped_by(step: LetModel, name: str, read: Sequence[str], program: Program) -> str:
    """Where a let gets its shape, if no line says it."""
    kind = let_type(step, name)
    if kind.space is not None or kind.indexed or program.uses_input:
        return ""
    given = {item.name for item in program.data}
    data = " and ".join(f"`{each}`" for each in read if each in given)
    return f"How many numbers it is comes with {data}." if data else "How many numbers it is comes with the data."


def label_text(snapshot: Snapshot, symbol: Symbol) -> str:
    """A label: the set that it is an element of."""
    held = model_of(snapshot).objects.get(symbol.of)
    labels = labels_of(held) if held is not None else ()
    shown = ", ".join(f"`{label}`" for label in labels[:MOST_LABELS]) + (", …" if len(labels) > MOST_LABELS else "")
    return f"an element of `{symbol.of}`" + (f", whose labels are {shown}" if labels else "")


MOST_LABELS = 8


def _line(found: Found) -> Code | str:
    """The line that binds a name, for who stands on another one."""
    placed = bindings(found.statement).get(found.symbol.name, (None,))[0]
    return "" if placed is None or placed.uid == found.placed.uid else Code(placed.unit.text)


def _beside(snapshot: Snapshot, found: Found) -> str:
    """The comment behind the line that declares or binds a name, which documents it."""
    placed = bindings(found.statement).get(found.symbol.name, (None,))[0]
    if placed is None:
        return ""
    first = snapshot.layout.locate(placed.uid)[0]
    line = snapshot.lines[first + placed.unit.text.count("\n")]
    return line[shape(line).end :].strip().lstrip("#").strip()


def labels_of(declared: ObjectModel) -> tuple[str, ...]:
    space = declared.space.space
    return (space.labels or ()) if isinstance(space, Finite) else ()
