"""What completion writes behind `<-` and `>>`: calls with the names that fit as their arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.axes import let_type, types_of
from qvr_core.ide.completion.context import Bracket, Context
from qvr_core.ide.completion.fitting_families import ascribed_at
from qvr_core.ide.completion.likely import program_at
from qvr_core.ide.completion.offers import BEST, GOOD, MANY, OTHER, PLAIN, Items, arrow_names, used_elsewhere
from qvr_core.ide.completion.typing import codomain_of_text, fits
from qvr_core.ide.completion.uses_of_names import lines_of
from qvr_core.ide.outline_and_folding import declaration_detail
from qvr_core.ide.prose import Comment, prose
from qvr_core.ide.symbols import Declared
from qvr_core.ide.view import arrow_of, model_of
from qvr_core.semantics.types.model.arrows import Arrow, Sort
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, ObserveModel, PredictModel, SampleModel
from qvr_core.semantics.types.spaces import Product, Space, factors_of

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

Values = list[tuple[str, Space]]


def draws_offered(snapshot: Snapshot, place: Context) -> Items:
    """Arrows as calls.  First those that read the program's input, or values bound above; those are written in."""
    model = model_of(snapshot)
    own = [name.text for name in place.statement.header.unit.declares] if place.statement is not None else []
    program = next((model.programs[name] for name in own if name in model.programs), None)
    named = program is not None and any(each.name for each in program.inputs)
    given = program.declared_domain.space if program is not None and not named else None
    ascribed = ascribed_at(snapshot, place)
    values = list(values_above(snapshot, program, place.line)) if program is not None else []
    for name, held in arrow_names(snapshot, place):
        arrow = arrow_of(snapshot, name)
        if name in own or arrow is None:
            continue
        if isinstance(arrow, Program) and _is_a_model(arrow):
            continue
        detail = declaration_detail(snapshot, name)
        wanted = factors_of(arrow.domain.space)
        chosen = chosen_values(wanted, values)
        elsewhere = ascribed is not None and not fits(arrow.codomain.space, ascribed)
        if chosen is not None:
            rank, insert = OTHER if elsewhere else BEST, f"{name}({_placeholders(chosen)})"
        elif given is not None and fits(given, arrow.domain.space):
            rank, insert = GOOD if values else BEST, name
        else:
            lands = ascribed is not None and fits(arrow.codomain.space, ascribed)
            rank, insert = BEST if lands else PLAIN, f"{name}({_placeholders(_words(arrow, len(wanted)))})"
        yield Completion(name, held.kind, detail, prose(Comment(held.doc)), insert, snippet="$" in insert, rank=rank)


def called_with_what_fits(snapshot: Snapshot, place: Context, item: Completion) -> Completion:
    """An arrow in a formula: as a call with the values that fit it, where nothing else of the file uses it first."""
    arrow, program = arrow_of(snapshot, item.label), program_at(snapshot, place)
    if arrow is None or program is None or not program.inputs:
        return item
    values = list(values_above(snapshot, program, place.line))
    chosen = chosen_values(factors_of(arrow.domain.space), values)
    if chosen is None:
        return item
    insert = f"{item.label}({_placeholders(chosen)})"
    mentioned = (re.search(rf"\b{item.label}\b", line.text) for line in lines_of(place))
    fresh = item.label not in used_elsewhere(snapshot, program.name) and not any(mentioned)
    rank, order = (BEST, -(10**6)) if fresh else (item.rank, item.order)
    return replace(item, insert=insert, snippet=True, rank=rank, order=order)


def _is_a_model(program: Program) -> bool:
    """A program with data of its own: a whole model is seldom a step of another one."""
    return any(item.declared for item in program.data)


def arguments_of_arrow(snapshot: Snapshot, place: Context, arrow: Arrow | Program, bracket: Bracket) -> Items:
    """What an arrow may be called with: the values that fit its factor, nearest first, then what computes such."""
    model = model_of(snapshot)
    own = [name.text for name in place.statement.header.unit.declares] if place.statement is not None else []
    program = next((model.programs[name] for name in own if name in model.programs), None)
    factors = factors_of(arrow.domain.space)
    wanted = factors[bracket.position] if bracket.position < len(factors) else None
    spaces: dict[str, Space] = dict(reversed(list(values_above(snapshot, program, place.line)))) if program else {}
    types = types_of(program) if program is not None else dict[str, str]()
    lines = lines_of(place)
    above = [name for line in reversed(lines) if line.before for name in line.binds]
    inputs = [each.name for each in program.inputs if each.name is not None] if program is not None else []
    used = {token.text for token in place.tokens if token.kind == "NAME"}
    for at, name in enumerate(dict.fromkeys((*above, *inputs))):
        held = spaces.get(name) or _let_space(program, name)
        fitting = wanted is None or held is None or fits(held, wanted)
        order = at + MANY * (name in used)
        yield Completion(name, "binding", types.get(name, ""), rank=BEST if fitting else OTHER, order=order)
    for item in program.data if program is not None else ():
        if item.name not in above:
            yield Completion(item.name, "data", "data, supplied at run time", rank=PLAIN)
    for name, _ in arrow_names(snapshot, place):
        other = arrow_of(snapshot, name)
        if name in own or other is None or other.sort is not Sort.DETERMINISTIC:
            continue
        if wanted is None or fits(other.codomain.space, wanted):
            yield Completion(name, "function", declaration_detail(snapshot, name), rank=PLAIN, order=1)


def _let_space(program: Program | None, name: str) -> Space | None:
    for step in program.steps if program is not None else ():
        if isinstance(step, LetModel) and name in step.names:
            return let_type(step, name).space
    return None


def values_above(snapshot: Snapshot, program: Program, line: int) -> Iterator[tuple[str, Space]]:
    """The draws above a line and the inputs with their spaces, nearest first."""
    for step in reversed(program.steps):
        if isinstance(step, SampleModel | ObserveModel | PredictModel):
            place = snapshot.find(step.site.origin)
            if place is not None and place.start.line < line:
                yield from ((name, held.space) for name, held in step.site.bound)
    yield from ((each.name, each.space.space) for each in program.inputs if each.name is not None)


def chosen_values(wanted: tuple[Space, ...], values: Values) -> list[str] | None:
    """For each part of a domain the nearest value that fits, none of them twice; None where one lacks."""
    chosen: list[str] = []
    for space in wanted:
        name = next((name for name, held in values if name not in chosen and fits(held, space)), None)
        if name is None:
            return None
        chosen.append(name)
    return chosen


def _words(arrow: Arrow | Program, count: int) -> list[str]:
    """Words for arguments: the names of the spaces that they are in."""
    words = [word.strip("() ").lower() for word in arrow.domain.written.removeprefix("Seq ").split(" * ")]
    return words if len(words) == count and all(word.isidentifier() for word in words) else ["x"] * count


def _placeholders(words: list[str]) -> str:
    return ", ".join(f"${{{number}:{word}}}" for number, word in enumerate(words, 1))


# ---------------------------------------------------------------- behind `>>`


def given_by_left(snapshot: Snapshot, place: Context) -> Space | None:
    """What the left of a `>>` before the cursor gives."""
    if place.last is None or place.last.text != ">>":
        return None
    depth = 0
    start = 0
    for token in reversed(place.tokens[:-1]):
        if token.kind == "RPAR":
            depth += 1
        elif token.kind == "LPAR":
            depth -= 1
        if depth < 0 or (depth == 0 and token.kind in ("EQUAL", "COMMA", "EXPORT")):
            start = token.end
            break
    return codomain_of_text(place.text[start : place.last.start], model_of(snapshot))


def stacks_offered(snapshot: Snapshot, names: Iterable[tuple[str, Declared]], given: Space | None) -> Items:
    """`stack(block, 2)` for every let or program that gives what it reads, where its like stands on the left."""
    for name, held in names if given is not None else ():
        arrow = arrow_of(snapshot, name)
        if held.kind == "morphism" or arrow is None or given is None or not fits(given, arrow.domain.space):
            continue
        if fits(arrow.codomain.space, arrow.domain.space):
            detail = f"layers of `{name}`, each with weights of its own"
            text = f"stack({name}, ${{1:2}})"
            yield Completion(f"stack({name}, n)", "function", detail, insert=text, snippet=True, rank=BEST, order=-1)


def scans_offered(snapshot: Snapshot, names: Iterable[tuple[str, Declared]], given: Space | None) -> Items:
    """`scan(cell)` for every cell that reads what stands on the left."""
    for name, _ in names if given is not None else ():
        arrow = arrow_of(snapshot, name)
        item = item_of_cell(arrow) if arrow is not None else None
        if arrow is not None and item is not None and given is not None and fits(given, item):
            detail = f"Seq … {arrow.sort.value} {arrow.codomain.written}"
            yield Completion(f"scan({name})", "function", detail, insert=f"scan({name})", rank=BEST)


def item_of_cell(arrow: Arrow | Program) -> Space | None:
    """What a cell reads beside its state, which is the last part of its domain; None for what is no cell."""
    domain, state = arrow.domain.space, arrow.codomain.space
    if not isinstance(domain, Product):
        return None
    count = len(factors_of(state))
    first, last = domain.factors[:-count], domain.factors[-count:]
    names = domain.names
    if not first or not fits(state, last[0] if count == 1 else Product(last, names[-count:])):
        return None
    return first[0] if len(first) == 1 else Product(first, names[:-count])
