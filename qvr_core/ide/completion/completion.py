"""Completion: what the grammar allows here and what fits, best first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.completion import likely
from qvr_core.ide.completion.context import Bracket, Context, context_at
from qvr_core.ide.completion.declared_family_lines import rule_offered
from qvr_core.ide.completion.draws import (
    arguments_of_arrow,
    called_with_what_fits,
    draws_offered,
    given_by_left,
    item_of_cell,
    scans_offered,
    stacks_offered,
)
from qvr_core.ide.completion.equations import in_equation, options_of_solve, solve_offered, without_values
from qvr_core.ide.completion.fitting_arguments import fitting_first, lets_of_unknown_shape, parameter_at
from qvr_core.ide.completion.guides import latents_offered
from qvr_core.ide.completion.imported import from_imports, imported_offered, imported_scans, library_offered
from qvr_core.ide.completion.indexing import (
    axis_of,
    binders_offered,
    compared_offered,
    indexed_name,
    indexed_offered,
    indices_offered,
    over_offered,
    places_offered,
    set_binders_offered,
    sets_of_index,
    summed_offered,
)
from qvr_core.ide.completion.offers import (
    BEST,
    GOOD,
    LAST,
    OTHER,
    PLAIN,
    Items,
    arrow_names,
    arrows_offered,
    atoms_offered,
    attributes_offered,
    combinators_offered,
    families_offered,
    functions_offered,
    objects_offered,
    own_heads_offered,
    parameters_offered,
    readers_of,
    returned_offered,
    spaces_offered,
    terms_offered,
    unobserved_offered,
    used_elsewhere,
    values_offered,
)
from qvr_core.ide.completion.options import (
    attributes_of_rule,
    bounds_offered,
    in_attribute,
    options_offered,
    role_at,
    sides_of,
)
from qvr_core.ide.completion.order_of_values import VALUES, in_a_formula
from qvr_core.ide.completion.places import bounds_a_space, names_indices, space_of_object
from qvr_core.ide.completion.rows import earlier_offered, looked_up_offered, products_offered, rows_offered
from qvr_core.ide.completion.sets import data_offered, header_offered, summed_over
from qvr_core.ide.completion.snippets import FAMILY_RULES, MAP_RULES, OPERATIONS, SNIPPETS, STATEMENTS, STEP_SNIPPETS
from qvr_core.ide.completion.terms import cases_offered, types_offered
from qvr_core.ide.completion.transformations import compositions_offered, transformations_offered
from qvr_core.ide.completion.typing import fits, parsed, role_joins, space_of
from qvr_core.ide.completion.usual_arguments import usual_offered
from qvr_core.ide.keywords import KEYWORDS
from qvr_core.ide.language_words import family_text, keyword_text
from qvr_core.ide.view import arrow_of, model_of
from qvr_core.semantics.language.combinators import COMBINATORS
from qvr_core.semantics.language.compositions import BUILTIN_COMPOSITIONS
from qvr_core.semantics.language.families import heads_for
from qvr_core.semantics.language.prelude import EVERY_FAMILY
from qvr_core.semantics.language.roles import ROLES
from qvr_core.semantics.language.transformations import KEEPS
from qvr_core.semantics.types.model.arrows import Arrow, Sort
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.spaces import Finite, Space
from qvr_core.syntax.layout import ITEM_WORDS, STEP_WORDS
from qvr_core.syntax.source import Cursor

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def complete(snapshot: Snapshot, cursor: Cursor, columns: Mapping[str, str] | None = None) -> list[Completion]:
    """What may stand at the cursor.  `columns` are those of the program's files, for one that declares no data."""
    place = replace(context_at(snapshot, cursor), columns=columns or {})
    if place.start == "" or _in_comment(snapshot, cursor) or _in_string(place):
        return []
    unique: dict[str, Completion] = {}
    imported = from_imports(snapshot, place)
    offers = (_items(snapshot, place), imported_offered(snapshot, place), library_offered(snapshot, place))
    for item in chain(*offers) if imported is None else imported:
        held = unique.get(item.label)
        if held is None or (item.rank, item.order) < (held.rank, held.order):
            unique[item.label] = item
    return sorted(unique.values(), key=lambda item: (item.rank, item.order, item.label.lower()))


def _in_comment(snapshot: Snapshot, cursor: Cursor) -> bool:
    before = snapshot.lines[cursor.line][: cursor.column]
    sign = before.find("#")
    return sign >= 0 and not before.startswith("#[", sign) and before.count('"', 0, sign) % 2 == 0


def _in_string(place: Context) -> bool:
    return place.last is not None and place.last.kind == "STRING" and not place.text.rstrip().endswith('"')


def _items(snapshot: Snapshot, place: Context) -> Items:
    if place.begins:
        yield from _openers(snapshot, place)
        return
    if not place.expects_operand():
        yield from _after_operand(snapshot, place)
        return
    if place.start == "statement":
        yield from _statement(snapshot, place)
    elif place.start == "step":
        yield from _step(snapshot, place)
    elif place.start == "composition_rule":
        yield from rule_offered(snapshot, place)
    elif place.start in ("deduction_item", "lexicon_entry") and in_attribute(place):
        yield from attributes_of_rule()
    elif place.start in ("deduction_item", "lexicon_entry"):
        yield from terms_offered(place)
        yield from atoms_offered(place)


# ---------------------------------------------------------------- the beginning of a line


def _openers(snapshot: Snapshot, place: Context) -> Items:
    match place.start:
        case "statement":
            first = likely.statements(snapshot, place)
            for word in SNIPPETS:
                if word in STATEMENTS:
                    yield replace(_snippet(word, SNIPPETS[word]), order=likely.order(word, first))
        case "step":
            first = likely.steps(snapshot, place)
            for word in STEP_WORDS:
                if word in first:
                    found = _snippet(word, STEP_SNIPPETS[word])
                    yield replace(found, detail=KEYWORDS[word].inside or found.detail, order=first.index(word))
        case "deduction_item":
            yield from (_keyword(word) for word in ITEM_WORDS)
        case "composition_rule":
            keyword = "" if place.statement is None else place.statement.header.unit.keyword
            if keyword in ("encoder", "decoder"):
                yield from cases_offered(snapshot, place)
                return
            for name, text in {"family": FAMILY_RULES, "transformation": MAP_RULES}.get(keyword, OPERATIONS):
                yield Completion(name, "property", text, insert=text, rank=GOOD)
        case _:
            return


def _snippet(word: str, text: str) -> Completion:
    return Completion(word, "keyword", KEYWORDS[word].summary, keyword_text(word), text, snippet=True, rank=GOOD)


def _keyword(word: str, rank: int = GOOD) -> Completion:
    return Completion(word, "keyword", KEYWORDS[word].summary, keyword_text(word), rank=rank)


# ---------------------------------------------------------------- after something complete


def _after_operand(snapshot: Snapshot, place: Context) -> Items:
    """The words that the grammar wants; behind the type of a morphism its options and its family."""
    accepted = place.accepted or frozenset()
    for kind, word in (("AS", "as"), ("IN", "in"), ("FOR", "for"), ("IF", "if"), ("FROM", "from")):
        if kind in accepted:
            yield Completion(word, "keyword", rank=PLAIN)
    if place.keyword != "morphism" or not _seen(place, "ARROW") or place.brackets:
        return
    domain, codomain = sides_of(snapshot, place)
    if "LSQB" in accepted and not _seen(place, "LSQB"):
        roles = [name for name in ROLES if role_joins(name, domain, codomain)]
        text = f"[role=${{1|{','.join(roles)}|}}]"
        yield Completion("[role=…]", "property", "what kind of arrow this is", insert=text, snippet=True, rank=BEST)
    if "TILDE" in accepted and codomain is not None and role_at(place) == "kernel":
        for family in map(EVERY_FAMILY.__getitem__, heads_for(codomain)):
            if family.common:
                yield Completion(f"~ {family.name}", "class", family.summary, family_text(family.name), rank=GOOD)


# ---------------------------------------------------------------- statements


def _statement(snapshot: Snapshot, place: Context) -> Items:
    bracket = place.brackets[-1] if place.brackets else None
    if bracket is not None and bracket.kind in ("LSQB", "BOUNDS") and place.keyword != "let":
        yield from options_offered(snapshot, place, bracket)
        return
    match place.keyword:
        case "object":
            if _seen(place, "COLON"):
                yield from space_of_object(snapshot, place, bracket)
        case "morphism" | "program" | "deduction" | "family":
            yield from _header(snapshot, place, bracket)
        case "let" | "define":
            if _seen(place, "EQUAL"):
                yield from _expression(snapshot, place, bracket)
        case "def":
            if _seen(place, "EQUAL"):
                yield from _arithmetic(snapshot, place)
        case "export":
            programs = model_of(snapshot).programs
            for item in _expression(snapshot, place, bracket):
                if item.label in programs:
                    yield replace(item, rank=BEST, order=-1)
                elif item.label not in COMBINATORS or place.last is None or place.last.kind != "EXPORT":
                    yield item
        case "encoder":
            if _seen(place, "ARROW"):
                yield from objects_offered(snapshot, place)
                yield from spaces_offered()
            elif _seen(place, "COLON"):
                yield from types_offered(snapshot)
        case "decoder":
            if _seen(place, "ARROW"):
                yield from types_offered(snapshot)
            elif _seen(place, "COLON"):
                yield from objects_offered(snapshot, place)
                yield from spaces_offered()
        case "data type":
            if bracket is not None:
                yield Completion(place.tokens[1].text, "enum", "a term of this type", rank=BEST)
                yield from objects_offered(snapshot, place)
                yield from spaces_offered()
        case "composition":
            yield from (Completion(name, "module", rank=GOOD) for name in BUILTIN_COMPOSITIONS)
        case "transformation" if _seen(place, "AS"):
            yield from (Completion(word, "enum", says, rank=GOOD) for word, says in KEEPS.items())
        case "transformation" if _seen(place, "COLON"):
            yield from compositions_offered(snapshot)
        case _:
            return


def _seen(place: Context, kind: str) -> bool:
    return any(token.kind == kind for token in place.tokens)


def _header(snapshot: Snapshot, place: Context, bracket: Bracket | None) -> Items:
    if bracket is not None and place.keyword == "program" and bracket.kind == "LPAR" and bracket.start == 2:
        if place.last is not None and place.last.kind == "COLON":
            yield from (Completion(kind, "type", rank=GOOD) for kind in ("FinSet", "Real", "Nat", "Object", "Mor"))
        return
    if _seen(place, "TILDE"):
        yield from _after_tilde(snapshot, place, bracket)
    elif _seen(place, "COLON"):
        if place.keyword in ("morphism", "program"):
            yield from header_offered(snapshot, place)
        else:
            yield from objects_offered(snapshot, place)
            yield from spaces_offered()


def _after_tilde(snapshot: Snapshot, place: Context, bracket: Bracket | None) -> Items:
    role = role_at(place)
    if bracket is not None and bracket.kind == "LPAR":
        yield from parameters_offered(snapshot, place, bracket)
        return
    if role == "observed":
        yield from arrows_offered(snapshot, arrow_names(snapshot, place), None)
        yield from combinators_offered()
        return
    codomain = sides_of(snapshot, place)[1]
    fitting = heads_for(codomain, EVERY_FAMILY) if codomain is not None else ()
    scaled = any(one.text == "scale" and two.kind == "EQUAL" for one, two in pairwise(place.tokens))
    if role == "kernel":
        yield from own_heads_offered(snapshot, place, codomain)
    for family in EVERY_FAMILY.values():
        if scaled and role == "kernel" and not family.has_scale:
            continue
        if codomain is None or role != "kernel" or family.name in fitting:
            first = BEST if family.common else GOOD
            yield Completion(family.name, "class", family.summary, family_text(family.name), rank=first)


# ---------------------------------------------------------------- arrow expressions


def _expression(snapshot: Snapshot, place: Context, bracket: Bracket | None) -> Items:
    last = place.last
    if last is not None and last.kind == "DOT":
        yield from attributes_offered(snapshot, place)
        return
    call = bracket.before.text if bracket is not None and bracket.kind == "LPAR" and bracket.before is not None else ""
    if last is not None and last.kind == "EQUAL" and bracket is not None and bracket.since:
        words = COMBINATORS[call].words.get(bracket.since[0].text, ()) if call in COMBINATORS else ()
        yield from (Completion(word, "enum", rank=BEST) for word in words)
        return
    if call == "identity":
        yield from objects_offered(snapshot, place)
        return
    if call == "change_base":
        yield from transformations_offered(snapshot, place)
        return
    if call in COMBINATORS and bracket is not None and bracket.position > 0 and not bracket.since:
        for key in COMBINATORS[call].words:
            yield Completion(key, "property", dict(COMBINATORS[call].parameters)[key], insert=f"{key}=", rank=BEST)
        if call != "fan":
            return
    own = place.tokens[1].text if place.keyword in ("let", "define") and len(place.tokens) > 1 else ""
    given = given_by_left(snapshot, place)
    circular = readers_of(snapshot, own) if own else frozenset[str]()
    names = [(name, held) for name, held in arrow_names(snapshot, place) if name not in circular]
    used = used_elsewhere(snapshot, own)
    for item in arrows_offered(snapshot, names, given, _accepts(call), only=_wants_a_kind(call)):
        many = call == "fan" and item.label in model_of(snapshot).replicated
        yield replace(item, rank=BEST if many else item.rank, order=(item.label in used) - 2 * many)
    yield from stacks_offered(snapshot, names, given)
    yield from scans_offered(snapshot, names, given)
    yield from imported_scans(snapshot, given)
    if call != "scan":
        begins = last is None or last.text != ">>"
        yield from (item for item in combinators_offered() if not (begins and item.label in BEHIND))


BEHIND = ("last", "mean_over_time", "from_data")
"""What no composition begins with: behind `>>`, or behind `~`, it may stand."""


def _wants_a_kind(call: str) -> bool:
    """Whether the arrow of a call has to be of a kind: others would be an error."""
    return call == "scan" or (call in COMBINATORS and COMBINATORS[call].endomorphism)


def _accepts(call: str) -> Callable[[Arrow | Program], bool]:
    """Which arrows a combinator takes."""
    if call == "scan":
        return lambda arrow: item_of_cell(arrow) is not None
    if call in COMBINATORS and COMBINATORS[call].endomorphism:
        return lambda arrow: fits(arrow.codomain.space, arrow.domain.space)
    return lambda arrow: True


# ---------------------------------------------------------------- steps


def _step(snapshot: Snapshot, place: Context) -> Items:
    bracket = place.brackets[-1] if place.brackets else None
    drawn = _seen(place, "DRAW") or _seen(place, "DRAW_EXPR")
    match place.keyword:
        case "return":
            yield from returned_offered(snapshot, place)
        case "observe" if len(place.tokens) == 1:
            yield from unobserved_offered(snapshot, place)
        case _ if bracket is not None and bracket.since and bracket.since[-1].kind == "COLON":
            letter = bracket.since[-2].text if len(bracket.since) > 1 else ""
            yield from sets_of_index(snapshot, place, letter)
        case _ if bracket is not None and (offered := over_offered(snapshot, place, bracket)) is not None:
            yield from offered
        case _ if bracket is not None and names_indices(place, bracket, drawn=drawn):
            yield from binders_offered(snapshot, place, bracket)
        case _ if bracket is not None and bounds_a_space(place, bracket, drawn=drawn):
            yield from bounds_offered()
        case _ if place.last is not None and place.last.kind == "FOR":
            yield from set_binders_offered(snapshot, place)
        case _ if bracket is not None and indexed_name(place, bracket) is not None:
            places = list(places_offered(snapshot, place, bracket))
            own = places or list(indices_offered(snapshot, place, bracket))
            yield from own
            if not places and (not own or axis_of(snapshot, place, bracket) is None):
                yield from (replace(item, rank=max(item.rank, PLAIN)) for item in _arithmetic(snapshot, place))
        case "let" | "score":
            if _seen(place, "EQUAL"):
                yield from _arithmetic(snapshot, place)
        case keyword if _in_options(place, bracket, drawn=drawn or keyword == "param"):
            assert bracket is not None
            yield from options_offered(snapshot, place, bracket)
        case _ if bracket is not None and drawn:
            yield from _argument(snapshot, place, bracket)
        case _ if place.last is not None and place.last.kind == "FROM":
            # what is drawn begins with a draw
            for item in families_offered(snapshot, place):
                yield replace(item, rank=BEST, order=item.order - FIRST) if item.rank == GOOD else item
            yield from _arithmetic(snapshot, place)
        case _ if place.last is not None and place.last.kind == "DRAW":
            yield from draws_offered(snapshot, place)
            yield from families_offered(snapshot, place)
        case "sample" if _seen(place, "COLON") and not drawn:
            # a latent is seldom a label, or a row of the data
            yield from objects_offered(snapshot, place, _sets_of_data(snapshot, place))
            used = likely.used_as(place, place.tokens[1].text)
            yield from spaces_offered(GOOD, likely.SPACES_OF.get(used, ""))
        case "data" if _seen(place, "COLON"):
            yield from data_offered(snapshot, place)
        case "marginalize" if _seen(place, "COLON") and not drawn:
            yield from summed_over(snapshot, place)
        case _ if _seen(place, "COLON") and not drawn:
            yield from objects_offered(snapshot, place)
            yield from (item for item in spaces_offered() if item.label in ("Real", "FinSet"))
        case "sample" if len(place.tokens) <= 2:
            yield from latents_offered(snapshot, place)
        case _:
            return


def _sets_of_data(snapshot: Snapshot, place: Context) -> set[str]:
    """The rows of the program at a cursor, and the sets with labels."""
    program = likely.program_at(snapshot, place)
    labelled = {name for name, held in model_of(snapshot).objects.items() if _has_labels(held.space.space)}
    return labelled | ({program.declared_domain.written} if program is not None else set())


def _has_labels(space: Space) -> bool:
    return isinstance(space, Finite) and space.labels is not None


def _in_options(place: Context, bracket: Bracket | None, *, drawn: bool) -> bool:
    return drawn and bracket is not None and bracket.kind in ("LSQB", "OPTIONS") and len(place.brackets) == 1


def _argument(snapshot: Snapshot, place: Context, bracket: Bracket) -> Items:
    """An argument of a family, or of an arrow that is drawn from."""
    called = bracket.before.text if bracket.before is not None and bracket.kind == "LPAR" else ""
    arrow = arrow_of(snapshot, called)
    if arrow is not None and not bracket.since:
        yield from arguments_of_arrow(snapshot, place, arrow, bracket)
        return
    if not bracket.since:
        yield from usual_offered(snapshot, place, bracket)
        yield from parameters_offered(snapshot, place, bracket)
    parameter = parameter_at(snapshot, bracket)
    if parameter is None or not parameter.rank:
        yield from fitting_first(snapshot, place, bracket, _arithmetic(snapshot, place))
        return
    rows = list(in_a_formula(snapshot, place, rows_offered(snapshot, place, parameter), parameter.rank))
    yield from rows
    unknown = lets_of_unknown_shape(snapshot, place)
    for item in _arithmetic(snapshot, place, parameter.rank):
        fitting = next(iter(fitting_first(snapshot, place, bracket, (item,))))
        number = item.kind in VALUES and fitting.order == item.order and item.label not in unknown
        yield replace(item, rank=LAST, order=FIRST) if number else fitting


def _arithmetic(snapshot: Snapshot, place: Context, rank: int = 0) -> Items:
    """A formula, or an argument of a `rank` of its own."""
    if place.last is not None and place.last.kind == "DOT":
        methods = ("goal_weight()", "weight(item)", "derivations(item)")
        yield from (Completion(call.partition("(")[0], "method", call, insert=call, rank=GOOD) for call in methods)
        return
    bracket = place.brackets[-1] if place.brackets else None
    called = bracket.before.text if bracket is not None and bracket.before is not None else ""
    if bracket is not None and called in ("parse", "compose") and not bracket.since:
        for name, held in model_of(snapshot).deductions.items():
            if called == "compose" or not bracket.position:
                detail = f"deduction {held.domain.written} -> {held.codomain.written}"
                yield Completion(name, "module", detail, rank=BEST, order=-FIRST)
        return
    arrow = arrow_of(snapshot, called) if bracket is not None and bracket.kind == "LPAR" and called else None
    if bracket is not None and arrow is not None and not bracket.since:
        yield from arguments_of_arrow(snapshot, place, arrow, bracket)
        return
    equation = in_equation(snapshot, place)
    if equation is not None:
        only = without_values(snapshot, equation)
        yield from only if only is not None else options_of_solve(place, equation)
        if only is not None:
            return
    yield from solve_offered(snapshot, place)
    yield from in_a_formula(snapshot, place, _values(snapshot, place), rank)
    owners = () if place.statement is None else place.statement.header.unit.declares
    own = {name.text for name in owners} if place.start == "step" else set[str]()
    names = [(name, held) for name, held in arrow_names(snapshot, place) if name not in own]
    for item in arrows_offered(snapshot, names, None, lambda arrow: arrow.sort is not Sort.SAMPLED, only=True):
        yield called_with_what_fits(snapshot, place, replace(item, rank=OTHER, order=LATER))
    yield from functions_offered(snapshot)


FIRST, LATER = 10**6, 10**5
"""Orders before and behind those of all values."""


def _values(snapshot: Snapshot, place: Context) -> Items:
    indexed = {item.label.partition("[")[0]: item for item in indexed_offered(snapshot, place)}
    yield from compared_offered(snapshot, place)
    yield from summed_offered(snapshot, place)
    yield from products_offered(snapshot, place)
    yield from earlier_offered(snapshot, place)
    yield from looked_up_offered(snapshot, place)
    yield from indexed.values()
    for item in values_offered(snapshot, place):
        # without its indices it would be an error here
        yield replace(item, rank=OTHER, order=1) if item.label in indexed else item


__all__ = ["complete", "parsed", "space_of"]
