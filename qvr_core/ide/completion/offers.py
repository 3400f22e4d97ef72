"""What completion offers, whatever the place: names of the file and of the program, families, functions, spaces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.axes import types_of
from qvr_core.ide.completion import likely
from qvr_core.ide.completion.context import Bracket, Context
from qvr_core.ide.completion.fitting_families import FITS, NEVER, fit_at
from qvr_core.ide.completion.snippets import SPACE_SNIPPETS
from qvr_core.ide.completion.typing import fits
from qvr_core.ide.completion.uses_of_names import lines_of, own_names, unread
from qvr_core.ide.descriptions import function_text
from qvr_core.ide.keywords import KEYWORDS
from qvr_core.ide.language_words import builtin_text, combinator_text, family_text, keyword_text
from qvr_core.ide.names import names_of
from qvr_core.ide.outline_and_folding import declaration_detail
from qvr_core.ide.prose import Comment, prose
from qvr_core.ide.symbols import Declared, Symbol, binding_kind, bindings, lookup
from qvr_core.ide.view import arrow_of, declared_facts, model_of
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.combinators import COMBINATORS, POSTFIX
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.language.family_heads import head_problem
from qvr_core.semantics.language.gates import GATED, ungated
from qvr_core.semantics.language.mixtures import MIXTURE, SUMMARY
from qvr_core.semantics.language.prelude import EVERY_FAMILY, PRELUDE
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.data_text import data_text
from qvr_core.semantics.types.model.arrows import Arrow, Sort
from qvr_core.semantics.types.model.file import Replicated
from qvr_core.semantics.types.model.programs import DataName, Program
from qvr_core.semantics.types.model.steps import ObserveModel
from qvr_core.semantics.types.spaces import Finite, Product, Space, Unknown
from qvr_core.semantics.types.type_text import structure
from qvr_core.semantics.types.walk import arrow_named, sites
from qvr_core.syntax.lexer import tokenize
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.tree.declarations import DefDecl, DefHeader

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

Items = Iterator[Completion]

# Small ranks come first.
BEST, GOOD, PLAIN, OTHER, LAST = range(5)

# In a file of more names than this, an answer holds the nearest ones, or those that begin as the word does.
MANY = 200


def partial_answer(snapshot: Snapshot) -> bool:
    """Whether there are more names than are offered at once: more may come when more of the word is written."""
    return len(snapshot.owners) > MANY


def _names(snapshot: Snapshot, place: Context) -> Iterator[tuple[str, Declared]]:
    """Top-level names: all of them in a small file, else at most `MANY`."""
    if not partial_answer(snapshot):
        chosen: Iterable[str] = snapshot.owners
    elif place.partial:
        word = place.partial.lower()
        chosen = islice((name for name in snapshot.owners if name.lower().startswith(word)), MANY)
    else:
        chosen = islice(_nearest(snapshot, place), MANY)
    for name in chosen:
        held = lookup(snapshot, name)
        if held is not None:
            yield name, held


def _nearest(snapshot: Snapshot, place: Context) -> Iterator[str]:
    """Top-level names by how far from the cursor they are declared."""
    statements = snapshot.statements
    above = below = snapshot.layout.index_at(place.line)
    while above >= 0 or below + 1 < len(statements):
        if above >= 0:
            yield from (name.text for name in statements[above].header.unit.declares)
            above -= 1
        if below + 1 < len(statements):
            below += 1
            yield from (name.text for name in statements[below].header.unit.declares)


def arrow_names(snapshot: Snapshot, place: Context) -> Iterator[tuple[str, Declared]]:
    """The names of arrows, programs among them; a guide is none."""
    programs = model_of(snapshot).programs
    for name, held in _names(snapshot, place):
        program = programs.get(name) if held.kind == "program" else None
        if held.kind in ("morphism", "let", "encoder", "decoder", "program") and (
            program is None or program.guidance is None
        ):
            yield name, held


def readers_of(snapshot: Snapshot, name: str) -> frozenset[str]:
    """The top-level names that are declared with a name, directly or by way of others; in a file of many names only the
    name itself, for all of it would be gone through."""
    if partial_answer(snapshot):
        return frozenset((name,))
    readers: dict[str, set[str]] = {}
    for statement in snapshot.statements:
        own = {declared.text for declared in statement.header.unit.declares}
        for line in units_of(statement):
            for used in names_of(line.unit):
                readers.setdefault(used.text, set()).update(own)
    found, pending = {name}, [name]
    while pending:
        new = readers.get(pending.pop(), set()) - found
        found |= new
        pending += new
    return frozenset(found)


def used_elsewhere(snapshot: Snapshot, own: str) -> frozenset[str]:
    """The top-level names that other statements than that of `own` use; in a file of many names none is known to be."""
    if partial_answer(snapshot):
        return frozenset()
    found: set[str] = set()
    for statement in snapshot.statements:
        declared = {name.text for name in statement.header.unit.declares}
        if own not in declared and statement.header.unit.keyword not in ("import", "from"):
            used = {name.text for line in units_of(statement) for name in names_of(line.unit)}
            found |= used - declared
    return frozenset(found)


def objects_offered(snapshot: Snapshot, place: Context, last: Collection[str] = ()) -> Items:
    """The objects of the file; those that are seldom meant come behind all else."""
    own = own_names(place) if place.keyword == "object" else ()
    for name, held in _names(snapshot, place):
        if held.kind == "object" and name not in own:
            detail = declaration_detail(snapshot, name)
            yield Completion(name, "object", detail, prose(Comment(held.doc)), rank=OTHER if name in last else BEST)


def spaces_offered(rank: int = PLAIN, first: str = "") -> Items:
    """The spaces of the language; one may come first of all."""
    for word, text in SPACE_SNIPPETS:
        summary = KEYWORDS[word].summary
        order = likely.order(word, likely.SPACES)
        own, order = (BEST, -1) if word == first else (rank, order)
        yield Completion(word, "struct", summary, keyword_text(word), text, snippet=True, rank=own, order=order)


def arrows_offered(
    snapshot: Snapshot,
    names: Iterable[tuple[str, Declared]],
    given: Space | None,
    accepts: Callable[[Arrow | Program], bool] = lambda arrow: True,
    *,
    only: bool = False,
) -> Items:
    """Arrows by name; those that fit come first, or they `only`: a cell of unknown type may fit."""
    for name, held in names:
        detail = declaration_detail(snapshot, name)
        arrow = arrow_of(snapshot, name)
        if only and arrow is not None and not accepts(arrow):
            continue
        fitting = arrow is not None and accepts(arrow) and (given is None or fits(given, arrow.domain.space))
        yield Completion(name, held.kind, detail, prose(Comment(held.doc)), rank=BEST if fitting else OTHER)
        node = snapshot.node(name)
        for copy in node.copies if isinstance(node, Replicated) else ():
            yield Completion(copy, "morphism", detail, rank=OTHER)


def combinators_offered() -> Items:
    for order, entry in enumerate(COMBINATORS.values()):
        text, described = entry.name if entry.bare else entry.snippet, combinator_text(entry.name)
        yield Completion(entry.name, "function", entry.rule, described, text, snippet=True, rank=PLAIN, order=order)


def families_offered(snapshot: Snapshot, place: Context) -> Items:
    """The families of the file, then those of the language; none that cannot be drawn from here."""
    fit = fit_at(snapshot, place)
    for name, held in _names(snapshot, place):
        facts = declared_facts(snapshot, name) if held.kind == "distribution" else None
        if facts is not None and (fitting := fit(facts)) != NEVER:
            described, text = function_text(snapshot, Symbol("distribution", name)), f"{name}({_placeholders(facts)})"
            rank = BEST if fitting == FITS else OTHER
            yield Completion(name, "class", facts.summary, described, text, snippet=True, rank=rank)
    first = likely.families(snapshot, place)
    for family in EVERY_FAMILY.values():
        fitting = fit(family)
        if fitting == NEVER:
            continue
        yield Completion(
            family.name,
            "class",
            family.summary,
            family_text(family.name),
            f"{family.name}({_placeholders(family)})",
            snippet=True,
            rank=GOOD if fitting == FITS else OTHER,
            order=likely.order(family.name, first) + MANY * (family.name in PRELUDE and family.name not in first),
        )
    fitting = fit(next(family for family in EVERY_FAMILY.values() if ungated(family) is None))
    for at, (gate, summary) in enumerate(GATED.items() if fitting != NEVER else ()):
        rank = GOOD if fitting == FITS else OTHER
        text = f"{gate}(${{1:gate}}, ${{2:Poisson(1.0)}})"
        order = len(first) + 1 + at
        yield Completion(gate, "class", summary, family_text(gate), text, snippet=True, rank=rank, order=order)
    # its components are offered with any number as their support
    fitting = fit(
        next(family for family in EVERY_FAMILY.values() if family.support.kind == "real" and not family.event)
    )
    if fitting == NEVER:
        return
    rank = GOOD if fitting == FITS else OTHER
    text = f"{MIXTURE}(${{1:weights}}, ${{2:Normal(0.0, 1.0)}}, ${{3:Normal(0.0, 1.0)}})"
    yield Completion(MIXTURE, "class", SUMMARY, family_text(MIXTURE), text, snippet=True, rank=rank, order=len(first))


def own_heads_offered(snapshot: Snapshot, place: Context, codomain: Space | None) -> Items:
    """The families of the file that a kernel into a space may have as its head."""
    for name, held in _names(snapshot, place):
        facts = declared_facts(snapshot, name) if held.kind == "distribution" else None
        if facts is not None and head_problem(facts, Unknown() if codomain is None else codomain) is None:
            described = function_text(snapshot, Symbol("distribution", name))
            yield Completion(name, "class", facts.summary, described, rank=BEST)


def _placeholders(family: Family) -> str:
    wanted = [item for item in family.parameters if item.default is None] or list(family.parameters)
    return ", ".join(f"${{{number}:{item.name}}}" for number, item in enumerate(wanted, 1))


def parameters_offered(snapshot: Snapshot, place: Context, bracket: Bracket) -> Items:
    """The parameters of the family that is being called; behind the weights of a mixture, families."""
    name = bracket.before.text if bracket.before is not None else ""
    if bracket.start > 2 and place.tokens[bracket.start - 2].kind == "DOT":
        name = f"{place.tokens[bracket.start - 3].text}.{name}"
    if (name == MIXTURE or name in GATED) and bracket.position:
        yield from families_offered(snapshot, place)
    family = declared_facts(snapshot, name) or EVERY_FAMILY.get(name)
    for parameter in family.parameters if family is not None else ():
        yield Completion(parameter.name, "property", parameter.constraint, insert=f"{parameter.name}=", rank=GOOD)


def values_offered(snapshot: Snapshot, place: Context) -> Items:
    """Bound names first, then the data names that the file already uses."""
    yield from bound_offered(snapshot, place)
    if partial_answer(snapshot):
        own = place.statement.header.unit.declares if place.statement is not None else ()
        programs = [program for name in own if (program := model_of(snapshot).programs.get(name.text)) is not None]
    else:
        here = likely.program_at(snapshot, place)
        programs = [here] if here is not None else list(snapshot.model.programs.values())
    objects = model_of(snapshot).objects
    sets = {name.lower() for name in objects}
    spaces = (held.space.space for held in objects.values())
    labels = {label for space in spaces if isinstance(space, Finite) for label in space.labels or ()}
    for item in (item for program in programs for item in program.data if item.declared or item.name not in labels):
        yield Completion(item.name, "data", "data, supplied at run time", rank=GOOD)
    known = {item.name for program in programs for item in program.data}
    for column, file in place.columns.items():
        if column not in known and column.lower() not in sets:  # a column by the name of a set names its elements
            yield Completion(column, "data", f"a column of {file}", rank=BEST, order=1)


def bound_offered(snapshot: Snapshot, place: Context) -> Items:
    """The names that are bound above the cursor, with their types."""
    if place.statement is None:
        return
    own = place.statement.header.unit.declares
    program = model_of(snapshot).programs.get(own[0].text) if own else None
    types = types_of(program) if program is not None else dict[str, str]()
    for name, (placed, occurrence) in bindings(place.statement).items():
        if place.placed is None or placed.uid != place.placed.uid:
            word, typed = occurrence.of or "input", types.get(name)
            detail = f"{word} · {typed}" if typed and "?" not in typed else word
            # data that are observed are seldom read, and never before what the program draws or computes
            yield Completion(name, binding_kind(occurrence), detail, rank=BEST, order=word in ("data", "observe"))


def returned_offered(snapshot: Snapshot, place: Context) -> Items:
    """What a program may give: first what it computes and no line reads, then its outcome and its latents."""
    lines = lines_of(place)
    loose = unread(lines, returned=False)
    places = {name: at for at, name in enumerate(name for line in lines for name in line.binds)}
    words = {name: line.word for line in lines for name in line.binds}
    for item in bound_offered(snapshot, place):
        word = words.get(item.label, "")
        kind = 0 if word == "let" and item.label in loose else 1 if word in ("observe", "predict") else 2
        if kind == 1 and not any(one.word == "observe" and item.label in one.binds for one in lines):
            kind = 2
        given = 4 if word == "data" else kind if word not in ("", "score") else 3
        yield replace(item, order=given * MANY + places.get(item.label, 0))


def unobserved_offered(snapshot: Snapshot, place: Context) -> Items:
    """The declared data that no step observes yet: first what is no index, what no step reads, what is declared last,
    for most people write the outcome behind its predictors."""
    program = likely.program_at(snapshot, place)
    read = _read(place)
    yield from (
        Completion(column, "data", f"a column of {file}", rank=BEST, order=column in read)
        for column, file in place.columns.items()
    )
    if program is None:
        return
    observed = {site.name for site in sites(program.steps, ObserveModel)}
    for at, item in enumerate(program.data):
        if item.declared and item.name not in observed:
            text = data_text(item.type, item.numbers, item.lengths)
            order = (2 * _seldom_observed(program, item) + (item.name in read)) * len(program.data) - at
            yield Completion(item.name, "data", text, rank=BEST, order=order)


def _read(place: Context) -> frozenset[str]:
    """The names that the lines of the program at a cursor read."""
    lines = () if place.statement is None else units_of(place.statement)
    return frozenset(name.text for line in lines for name in names_of(line.unit) if name.part == "value")


def _seldom_observed(program: Program, data: DataName) -> int:
    """Outcomes are numbers or labels of the program's rows; elements of a set that comes with data are indices."""
    space = data.type.space
    index = isinstance(space, Finite) and space.labels is None and data.numbers == ""
    rows = program.declared_domain.space
    elsewhere = isinstance(rows, Finite) and rows.nominal not in [set_of(name) for name in data.type.indexed if name]
    return 2 * index + elsewhere


_NEEDING_OPTIONS = {
    "bspline": "bspline(${1:x}, knots=[${2:0.0, 1.0}])",
    "hsgp": "hsgp(${1:x}, m=${2:20}, c=${3:1.5})",
}


def functions_offered(snapshot: Snapshot) -> Items:
    """The functions of the file, then the builtin ones."""
    yield from own_functions_offered(snapshot)
    for function in BUILTINS.values():
        parameters = ", ".join(f"${{{number}:{name}}}" for number, name in enumerate(function.parameters[:1], 1))
        yield Completion(
            function.name,
            "function",
            function.summary,
            builtin_text(function.name),
            _NEEDING_OPTIONS.get(function.name, f"{function.name}({parameters})"),
            snippet=True,
            rank=LAST,
            order=likely.order(function.name, likely.FUNCTIONS),
        )


def own_functions_offered(snapshot: Snapshot, *, called: bool = True) -> Items:
    """The functions of the file, as calls or by their names."""
    for statement in snapshot.statements:
        node = statement.header.unit.node
        if isinstance(node, DefDecl | DefHeader):
            name = node.name.text
            described = function_text(snapshot, Symbol("function", name))
            text = f"{name}(${{1:{node.parameters[0].name.text if node.parameters else ''}}})" if called else name
            yield Completion(name, "function", "a function of this file", described, text, snippet=called, rank=GOOD)


def attributes_offered(snapshot: Snapshot, place: Context) -> Items:
    """What may stand behind the dot of an arrow."""
    base = place.tokens[-2].text if len(place.tokens) > 1 else ""
    arrow = arrow_named(model_of(snapshot), base)
    if arrow is None or arrow.sort is Sort.TENSOR:
        yield from (Completion(name, "method", summary, rank=GOOD) for name, (_, summary) in POSTFIX.items())
    if arrow is not None and isinstance(arrow.codomain.space, Product):
        for name, factor in zip(arrow.codomain.space.names, arrow.codomain.space.factors, strict=True):
            if name is not None:
                yield Completion(name, "property", structure(factor), rank=BEST)


def terms_offered(place: Context) -> Items:
    """In the rules of a deduction: the variables of the line at the cursor, and what is applied to arguments above."""
    if place.statement is None or place.keyword != "rule":
        return
    own = tokenize(place.text, place.start)[0]
    for name, behind in pairwise(own):
        if name.kind == "NAME" and name.text[:1].isupper() and behind.kind in ("COMMA", "RPAR"):
            yield Completion(name.text, "variable", "a variable of this rule", rank=BEST)
    for child in place.statement.header.children:
        tokens = tokenize(child.unit.text, place.start)[0]
        for name, behind in pairwise(tokens):
            if name.kind == "NAME" and behind.kind == "LPAR":
                text = f"{name.text}($0)"
                yield Completion(name.text, "function", "of rules here", insert=text, snippet=True, rank=BEST, order=1)


def atoms_offered(place: Context) -> Items:
    """The atoms of the deduction at the cursor."""
    if place.statement is None:
        return
    seen: dict[str, None] = {}
    for child in place.statement.header.children:
        node = child.unit.node
        names = getattr(node, "names", ()) if child.unit.keyword in ("atoms", "binders") else ()
        for name in names:
            seen[name.text] = None
    yield from (Completion(name, "constant", "atom", rank=GOOD) for name in seen)
