"""Hover: what a name, an operator, an option or a word of the language is, here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from qvr_core.ide import arrows
from qvr_core.ide.answers import Hover
from qvr_core.ide.axes import let_type, type_text
from qvr_core.ide.descriptions import (
    PREDICTED,
    RULES_OF_FAMILIES,
    arrow_text,
    bound_text,
    deduction_text,
    documentation,
    function_text,
    object_text,
    scan_note,
    site_text,
    value_text,
)
from qvr_core.ide.imports.hover import import_text, imported_text
from qvr_core.ide.indices import index_text, order_note
from qvr_core.ide.keywords import KEYWORDS
from qvr_core.ide.language_words import (
    builtin_text,
    combinator_text,
    family_text,
    keyword_text,
    option_text,
    sentence,
)
from qvr_core.ide.names import names_of
from qvr_core.ide.operators import arrow_of, operator_text, sign_text
from qvr_core.ide.prose import Code, Comment, Heading, Prose, prose
from qvr_core.ide.reading import data_words, let_words
from qvr_core.ide.symbols import Found, Symbol, bindings
from qvr_core.ide.target import Keyword, Operator, Sign, Target, range_of, target_at
from qvr_core.ide.view import model_of
from qvr_core.semantics.language.combinators import COMBINATORS, POSTFIX
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.options import MEANINGS
from qvr_core.semantics.language.roles import ROLES
from qvr_core.semantics.types.data_text import data_text
from qvr_core.semantics.types.display import space_text, structure
from qvr_core.semantics.types.model.arrows import Arrow, Fan, Scan, TakeFactor
from qvr_core.semantics.types.model.file import ObjectModel
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    LetModel,
    MarginalizeModel,
    ObserveModel,
    ParamModel,
    PredictModel,
    SampleModel,
    ScoreModel,
    StepModel,
)
from qvr_core.semantics.types.spaces import Finite
from qvr_core.semantics.types.walk import all_steps, parts, sites, walk
from qvr_core.syntax.layout import shape
from qvr_core.syntax.source import Cursor
from qvr_core.syntax.tree.declarations import ProgramHeader
from qvr_core.syntax.tree.units import Statement

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


Known = Mapping[str, Mapping[str, str | Prose]]


def hover(snapshot: Snapshot, cursor: Cursor, held: Sequence[Known] = (), blankets: bool = False) -> Hover | None:
    """What stands at the cursor; None where there is nothing to say.  `held` is what files hold and runs have found, by
    program and name.  With `blankets` a site says what shields it, which takes networkx."""
    target = target_at(snapshot, cursor)
    content = _content(snapshot, target) if target is not None else ()
    if content and isinstance(target, Found) and target.symbol.kind in ("data", "site", "binding"):
        header = snapshot.statement_at(cursor)
        node = None if header is None else header.header.unit.node
        program, name = node.name.text if isinstance(node, ProgramHeader) else "", target.symbol.name
        shield = _shield(snapshot, program, name) if blankets else ""
        content = prose(content, shield, *(known.get(program, {}).get(name, "") for known in held))
    return Hover(content, range_of(snapshot, target)) if target is not None and content else None


def _content(snapshot: Snapshot, target: Target) -> Prose:
    match target:
        case Found():
            return _symbol(snapshot, target)
        case Operator():
            return operator_text(snapshot, target)
        case Sign():
            return sign_text(target)
        case Keyword(text=word):
            return keyword_text(word)


# ---------------------------------------------------------------- names


def _symbol(snapshot: Snapshot, found: Found) -> Prose:
    symbol = found.symbol
    if symbol.target is not None:
        return imported_text(snapshot, found)
    if symbol.name in ("Bool", "Nat", "One") and symbol.name not in model_of(snapshot).objects:
        return keyword_text(symbol.name)
    match symbol.kind:
        case "path" | "prefix":
            return import_text(snapshot, found)
        case "object":
            return object_text(snapshot, symbol)
        case "morphism" | "let" | "program":
            return arrow_text(snapshot, found.occurrence.text if symbol.kind == "morphism" else symbol.name)
        case "composition":
            return prose(
                Code(f"composition {symbol.name}"), KEYWORDS["composition"].summary, documentation(snapshot, symbol)
            )
        case "deduction":
            return deduction_text(snapshot, symbol)
        case "function" | "distribution":
            return function_text(snapshot, symbol)
        case "site" | "binding" | "input" | "template":
            return _bound(snapshot, found)
        case "data":
            return _data(snapshot, found)
        case "family":
            return family_text(symbol.name)
        case "combinator":
            return _combinator(snapshot, found)
        case "builtin":
            return builtin_text(symbol.name)
        case "option":
            return option_text(symbol.name, symbol.of, found.placed.unit.keyword)
        case "word":
            return _option_word(found)
        case "keyword":
            return _keyword_argument(symbol)
        case "space":
            return keyword_text(symbol.name)
        case "attribute":
            return _attribute(snapshot, found)
        case "size":
            return prose(f"`{symbol.name}`: a size, the same wherever the file names it", _size_value(snapshot, found))
        case "local":
            return index_text(snapshot, found) or prose(f"`{symbol.name}`: {_local_text(found)}")
        case "label":
            return prose(
                f"`{symbol.name}`: " + (_label_text(snapshot, symbol) if symbol.of else "the name of a factor")
            )
        case "operation" if found.statement.header.unit.keyword == "family" and symbol.name in RULES_OF_FAMILIES:
            return prose(Heading(symbol.name, f": {RULES_OF_FAMILIES[symbol.name]}"))
        case "atom" | "rule":
            return prose(f"`{symbol.name}`: {symbol.kind} of this deduction")
        case "kind" if symbol.name in KEYWORDS:
            return keyword_text(symbol.name)
        case _:
            return ()


def _local_text(found: Found) -> str:
    """A name that its line alone knows, and that is no index."""
    if found.placed.unit.keyword == "rule":
        return "a variable of this rule; it stands for the same wherever the rule names it."
    return "known in this line alone."


# ---------------------------------------------------------------- names of a program


def _program_of(snapshot: Snapshot, statement: Statement) -> Program | None:
    names = statement.header.unit.declares
    return model_of(snapshot).programs.get(names[0].text) if names else None


def _bound(snapshot: Snapshot, found: Found) -> Prose:
    owner = next((each for each in snapshot.statements if each.uid == found.symbol.owner), found.statement)
    program = _program_of(snapshot, owner)
    name = found.symbol.name
    if program is None:
        return bound_text(owner, name) or prose(f"`{name}`: {found.symbol.kind}")
    if found.symbol.kind == "input":
        for item in program.inputs:
            if item.name == name:
                shape = arrows.shape_text(item.space.space)
                return prose(Code(f"{name} : {item.space.written}"), f"Input · {space_text(item.space)} · `{shape}`")
    if found.symbol.kind == "template":
        for item in program.template:
            if item.name == name:
                return prose(Code(item.written), "Parameter of the template")
    for step in all_steps(program.steps):
        text = _step(step, name, program.uses_input)
        if text:
            made = _computed(found, program) if isinstance(step, LetModel) else ""
            return prose(text[:1], Comment(_beside(snapshot, found)), _line(found), text[1:], made)
    return prose(f"`{name}`: {found.symbol.kind}")


MOST_STEPS = 300
"""Steps of a program whose dependences are looked through while somebody waits."""


def _shield(snapshot: Snapshot, program: str, name: str) -> str:
    """The Markov blanket of a site."""
    model = model_of(snapshot)
    found = model.programs.get(program)
    if found is None or sum(1 for _ in all_steps(found.steps)) > MOST_STEPS:
        return ""
    from qvr_core.dependence import blanket, dependence_graph, is_site

    graph = dependence_graph(found, model)
    around = blanket(graph, name) if is_site(graph, name) else ()
    named = ", ".join(f"`{each}`" for each in around)
    return f"Markov blanket: {named} (given these, the rest tells nothing more about it)" if around else ""


def _step(step: StepModel, name: str, rows: bool) -> Prose:
    match step:
        case SampleModel(site=site) if name == site.name or name in (bound for bound, _ in site.bound):
            return site_text(site, name, "auxiliary draw" if site.auxiliary else "latent", rows=rows)
        case ObserveModel(site=site) if name == site.name:
            return site_text(site, name, "observed", rows=rows)
        case PredictModel(site=site) if name == site.name:
            return site_text(site, name, PREDICTED, rows=rows)
        case MarginalizeModel(site=site) if name == site.name:
            return site_text(site, name, "summed out exactly", rows=rows)
        case LetModel(names=names) if name in names:
            kind = let_type(step, name)
            typed = f" : {type_text(kind)}" if kind.indexed else ""
            words = "" if rows else let_words(kind)
            shown = words or value_text(replace(kind, indexed=(), sizes=()), rows=rows)
            return prose(Code(f"let {name}{typed}"), shown, order_note(step))
        case ParamModel(names=names) if name in names:
            start = "" if step.init is None else f", from {', '.join(f'{number:g}' for number in step.init)}"
            return prose(Code(f"param {name} : {type_text(step.type)}"), f"Learned by a fit with this guide{start}")
        case ScoreModel(name=own) if own == name:
            return prose(Code(f"score {name}"), "A number that is added to the log joint density, as a likelihood is.")
        case _:
            return ()


def _data(snapshot: Snapshot, found: Found) -> Prose:
    name = found.symbol.name
    users = [program for program in snapshot.model.programs.values() if any(item.name == name for item in program.data)]
    sets = [] if users else [each.name for each in snapshot.model.objects.values() if name in _labels(each)]
    if sets:
        return prose(f"`{name}`: an element of {' and of '.join(f'`{each}`' for each in sets)}")
    kinds = [
        ("" if program.uses_input else data_words(item)) or value_text(item.type, rows=program.uses_input)
        for program in users
        for item in program.data
        if item.name == name
    ]
    names = ", ".join(f"`{program.name}`" for program in users)
    observed = any(site.name == name for program in users for site in sites(program.steps, ObserveModel))
    role = "Data, observed" if observed else "Data, given"
    declared = (item for program in users for item in program.data if item.name == name and item.declared)
    written = next((data_text(item.type, item.numbers) for item in declared), "")
    return prose(
        Code(f"data {name} : {written}" if written else name),
        Comment(_beside(snapshot, found)),
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


def _computed(found: Found, program: Program) -> str:
    """What the line of a let reads: it is neither data nor a latent."""
    bound = bindings(found.statement)
    placed = bound.get(found.symbol.name, (None,))[0]
    if placed is None:
        return ""
    known = {*bound, *(item.name for item in program.data), *(item.name for item in program.inputs)}
    uses = [each.text for each in names_of(placed.unit) if each.part == "value"]
    read = [name for name in dict.fromkeys(uses) if name in known and name != found.symbol.name]
    shown = ", ".join(f"`{name}`" for name in read[:MOST_READ]) + (", …" if len(read) > MOST_READ else "")
    return f"Computed from {shown}: neither data nor a latent." if read else ""


def _label_text(snapshot: Snapshot, symbol: Symbol) -> str:
    held = model_of(snapshot).objects.get(symbol.of)
    labels = _labels(held) if held is not None else ()
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


def _labels(declared: ObjectModel) -> tuple[str, ...]:
    space = declared.space.space
    return (space.labels or ()) if isinstance(space, Finite) else ()


# ---------------------------------------------------------------- the language


def _option_word(found: Found) -> Prose:
    symbol = found.symbol
    if symbol.of == "role" and symbol.name in ROLES:
        role = ROLES[symbol.name]
        return prose(
            Heading(symbol.name, f" (a role): {role.summary}"), f"{role.between}, {arrows.sort_word(role.sort)}"
        )
    if symbol.of in MEANINGS:
        return option_text(symbol.of, "", found.placed.unit.keyword)
    return prose(f"`{symbol.name}`: value of `{symbol.of}`")


def _keyword_argument(symbol: Symbol) -> Prose:
    entry = COMBINATORS.get(symbol.of)
    if entry is not None:
        meaning = dict(entry.parameters).get(symbol.name, "")
        words = entry.words.get(symbol.name, ())
        return prose(
            Heading(symbol.name, f" (of `{symbol.of}`): {meaning}"), f"One of {', '.join(words)}" if words else ""
        )
    if symbol.of in FAMILIES:
        return family_text(symbol.of)
    return ()


def _attribute(snapshot: Snapshot, found: Found) -> Prose:
    """What stands behind a dot: a method, or a factor of a product, with the others beside it."""
    name = found.symbol.name
    if name in POSTFIX:
        call, summary = POSTFIX[name]
        return prose(Code(call), summary)
    root = arrow_of(snapshot, found.statement)
    nodes = walk(root, parts) if root is not None else ()
    taking = next((each for each in nodes if isinstance(each, TakeFactor) and each.field == name), None)
    if taking is None:
        return prose(f"`.{name}`: a factor of the value, or a method")
    given = taking.base.codomain.written
    return prose(
        Code(f".{name}"),
        f"The part `{name}` of what stands before the dot, `{given}`; its other parts are left out.",
        f"Gives `{structure(taking.codomain.space)}`.",
    )


def _size_value(snapshot: Snapshot, found: Found) -> str:
    names = found.placed.unit.declares
    held = model_of(snapshot).objects.get(names[0].text) if names else None
    return f"Here: {structure(held.space.space)}" if held is not None else ""


# ---------------------------------------------------------------- words


def _combinator(snapshot: Snapshot, found: Found) -> Prose:
    general = combinator_text(found.symbol.name)
    root = arrow_of(snapshot, found.statement)
    if root is None:
        return general
    here = _instance(root, found)
    if here is None:
        return general
    typed = Code(f"{found.symbol.name} : {here.domain.written} {here.sort.value} {here.codomain.written}")
    note = scan_note(here) if isinstance(here, Scan) else ""
    shapes = arrows.shapes_text(here.domain.space, here.codomain.space)
    return prose(typed, note, _branches(here) if isinstance(here, Fan) else "", shapes, general)


def _branches(fan: Fan) -> str:
    """What the branches read and give, in words."""
    if len(fan.branches) < 2:
        return ""
    gives = ", then ".join(f"`{branch.codomain.written}`" for branch in fan.branches[:MOST_READ])
    more = ", …" if len(fan.branches) > MOST_READ else ""
    reads = f"Each of its {len(fan.branches)} branches reads the same `{fan.domain.written}`."
    return f"{reads} The result has one part for each of them, in order: {gives}{more}."


def _instance(root: Arrow, found: Found) -> Arrow | None:
    """The node that a combinator's name begins."""
    kind = COMBINATORS[found.symbol.name].node if found.symbol.name in COMBINATORS else ()
    for arrow in walk(root, parts):
        begins = arrow.origin.unit == found.placed.uid and arrow.origin.span.start == found.occurrence.span.start
        if begins and isinstance(arrow, kind):
            return arrow
    return None
