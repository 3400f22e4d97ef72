"""Which sets and spaces come first: behind the letter of an index, in a `data` line, in the headers of arrows and
programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.axes import Known
from qvr_core.ide.completion.context import Context
from qvr_core.ide.completion.likely import program_at
from qvr_core.ide.completion.offers import (
    BEST,
    GOOD,
    OTHER,
    PLAIN,
    Items,
    objects_offered,
    partial_answer,
    spaces_offered,
)
from qvr_core.ide.completion.uses_of_names import lines_of, own_names
from qvr_core.ide.view import model_of
from qvr_core.semantics.types.model.file import ObjectModel
from qvr_core.semantics.types.spaces import Finite, Linear, factors_of
from qvr_core.syntax.lexer import tokenize
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.tokens import Token
from qvr_core.syntax.tree.declarations import MorphismDecl, ProgramHeader
from qvr_core.syntax.tree.objects import ObjectExpr, ParenObject, ProductExpr
from qvr_core.syntax.tree.steps import DataStep
from qvr_core.syntax.tree_to_text import to_text

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def in_this_order(items: Iterable[Completion], first: Sequence[str]) -> Iterator[Completion]:
    """The same items, those that are named before the others and in the order of their names."""
    places = {name: at for at, name in reversed(list(enumerate(first)))}
    for item in items:
        at = places.get(item.label)
        yield item if at is None else replace(item, rank=BEST, order=at - len(first) - MANY_FIRST)


MANY_FIRST = 10


def declared_objects(snapshot: Snapshot) -> dict[str, ObjectModel]:
    """The objects of the file in the order of their lines; none in a file of many names."""
    if partial_answer(snapshot):
        return {}
    objects = model_of(snapshot).objects
    names = (name.text for statement in snapshot.statements for name in statement.header.unit.declares)
    return {name: objects[name] for name in names if name in objects}


# ---------------------------------------------------------------- behind the letter of an index


def likely_sets(snapshot: Snapshot, place: Context, letter: str, known: dict[str, Known]) -> list[str]:
    """The sets that an index most likely runs over: what other lines say of the name and of the letter."""
    lines = lines_of(place)
    found = list(_read_at(place, known))
    for line in lines:
        found += [over for name, over in _binders(tokenize(line.text, "step")[0]) if name == letter]
    sets = [name for name, held in declared_objects(snapshot).items() if _finite(held)]
    found += [name for name in sets if name[:1].lower() == letter[:1].lower()]
    rows = _first_axes(snapshot)
    unlabelled = [name for name in sets if not _labels(declared_objects(snapshot)[name])]
    found += sorted(unlabelled, key=lambda name: -rows.count(name))
    return list(dict.fromkeys(found))


def _read_at(place: Context, known: dict[str, Known]) -> Iterator[str]:
    """The sets of the indices at which other lines read the name that the line at a cursor binds, at the place of the
    index that is being written."""
    bracket = place.brackets[-1] if place.brackets else None
    position = bracket.position if bracket is not None else 0
    own = own_names(place)
    for line in lines_of(place):
        tokens = tokenize(line.text, "step")[0]
        runs = dict(_binders(tokens))
        for at, token in enumerate(tokens[:-2]):
            if token.text in own and tokens[at + 1].kind == "LSQB" and not runs.get(token.text):
                index = _nth(tokens, at + 2, position)
                if index is None:
                    continue
                over = runs.get(index.text) or known.get(index.text, ((), "", None))[2]
                if over is not None:
                    yield over


def _nth(tokens: Sequence[Token], start: int, position: int) -> Token | None:
    """The token that an index in brackets begins with."""
    depth, commas = 0, 0
    for at in range(start, len(tokens)):
        token = tokens[at]
        if depth == 0 and commas == position:
            return token if token.kind == "NAME" else None
        if token.kind in ("LSQB", "LPAR"):
            depth += 1
        elif token.kind in ("RSQB", "RPAR"):
            depth -= 1
            if depth < 0:
                return None
        elif token.kind == "COMMA" and depth == 0:
            commas += 1
    return None


def _binders(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    for name, colon, over in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if name.kind == over.kind == "NAME" and colon.kind == "COLON":
            yield name.text, over.text


def _finite(held: ObjectModel) -> bool:
    return all(isinstance(factor, Finite) for factor in factors_of(held.space.space))


def _labels(held: ObjectModel) -> bool:
    return isinstance(held.space.space, Finite) and held.space.space.labels is not None


# ---------------------------------------------------------------- `data x : … -> …`, `marginalize z : …`


def data_offered(snapshot: Snapshot, place: Context) -> Items:
    """Behind `data x :` first the rows of the program, behind `->` the set of the same name, numbers, counts."""
    program = program_at(snapshot, place)
    rows = program.declared_domain.written if program is not None else ""
    objects = declared_objects(snapshot)
    sets = [name for name, held in objects.items() if _finite(held)]
    behind = any(token.kind == "ARROW" for token in place.tokens)
    if not behind:
        given = {token.text for token in place.tokens if token.kind == "NAME"}
        order = [*(name for name in (rows,) if name not in given), *sets]
        yield from in_this_order((item for item in objects_offered(snapshot, place) if item.label in sets), order)
        if place.last is not None and place.last.kind == "COLON":
            yield from (Completion(kind, "type", word, rank=PLAIN) for kind, word in KINDS)
            yield from (item for item in spaces_offered(PLAIN) if item.label in ("Real", "FinSet"))
        return
    name = own_names(place)[0].lower() if own_names(place) else ""
    alike = [each for each in sets if each.lower() in name or (name and name in each.lower())]
    axes = [name for name in sets if any(token.text == name for token in place.tokens)]
    yield from (Completion(kind, "type", f"{word} for each", rank=GOOD, order=1) for kind, word in KINDS)
    yield from (replace(item, rank=GOOD, order=item.order) for item in spaces_offered(GOOD) if item.label == "Real")
    yield from (item for item in spaces_offered(OTHER) if item.label != "Real")
    for item in in_this_order(objects_offered(snapshot, place), alike):
        own = item.label in axes
        yield replace(item, rank=OTHER if own else GOOD, order=2) if item.label not in alike else item


KINDS = (("Nat", "a count"), ("Bool", "true or false"))


def summed_over(snapshot: Snapshot, place: Context) -> Items:
    """Behind `marginalize z :`: finite sets, those of a few elements before the rows of the data."""
    objects = declared_objects(snapshot)
    name = own_names(place)[0].lower() if own_names(place) else ""
    sets = [each for each, held in objects.items() if _finite(held)]
    order = sorted(sets, key=lambda each: (each.lower() not in name, _size(objects[each])))
    yield from in_this_order((item for item in objects_offered(snapshot, place) if item.label in sets), order)
    yield from (item for item in spaces_offered(PLAIN) if item.label == "FinSet")


def _size(held: ObjectModel) -> float:
    space = held.space.space
    return float("inf") if not isinstance(space, Finite) or isinstance(space.size, Linear) else float(int(space.size))


# ---------------------------------------------------------------- headers of arrows and programs


def header_offered(snapshot: Snapshot, place: Context) -> Items:
    """The spaces of a morphism's or a program's type, by what other lines of the file say."""
    behind = any(token.kind == "ARROW" for token in place.tokens)
    first = _of_program(snapshot, place, behind) if place.keyword == "program" else _of_arrow(snapshot, place, behind)
    yield from in_this_order(objects_offered(snapshot, place), first)
    few = ("Real", "FinSet", "Seq") if place.keyword == "program" else None
    yield from (item for item in spaces_offered() if few is None or item.label in few)


def _of_program(snapshot: Snapshot, place: Context, behind: bool) -> list[str]:
    arrows = [node for _, node in _declared(snapshot) if isinstance(node, MorphismDecl)]
    objects = declared_objects(snapshot)
    sets = [name for name, held in objects.items() if _finite(held)]
    rows = [name for name in sets if not _labels(objects[name])]
    own = _written(place, behind)
    if behind:
        last = [_factors(arrows[-1].codomain)[-1]] if arrows else []
        return [*last, *own, *rows, *sets]
    entered = [_factors(arrows[0].domain)[0]] if arrows else []
    begun = [name for name in entered if name not in own]
    data = _first_axes(snapshot)
    later = sorted(rows, key=lambda name: (-data.count(name), _size(objects[name]) != float("inf")))
    return [*begun, *(name for name in later if name not in own), *sets]


def _first_axes(snapshot: Snapshot) -> list[str]:
    """For each line of data of the file the set that it has a row for."""
    units = (placed.unit for statement in snapshot.statements for placed in units_of(statement))
    return [_factors(unit.node.axes)[0] for unit in units if isinstance(unit.node, DataStep)]


def _of_arrow(snapshot: Snapshot, place: Context, behind: bool) -> list[str]:
    """A domain is what an arrow above gives, a codomain what ends the domain or what nothing gives yet."""
    above = [node for line, node in _declared(snapshot) if line < place.line and isinstance(node, MorphismDecl)]
    used = {name for node in above for side in (node.domain, node.codomain) for name in _factors(side)}
    objects = list(declared_objects(snapshot))
    fresh = [name for name in objects if name not in used]
    own = _written(place, behind)
    if behind:
        others = [name for name in (*fresh, *objects) if name not in own]
        return [own[-1], *others, *own] if len(own) > 1 else [*others[:2], *own, *others[2:]]
    if own:
        return [*(name for name in fresh if name not in own), *objects]
    given = [_factors(node.codomain)[-1] for node in reversed(above)]
    return [*given, *fresh, *objects]


def _written(place: Context, behind: bool) -> list[str]:
    """The names of the domain, as far as it is written."""
    colon = next((at for at, token in enumerate(place.tokens) if token.kind == "COLON"), len(place.tokens))
    arrow = next((at for at, token in enumerate(place.tokens) if token.kind == "ARROW"), len(place.tokens))
    return [token.text for token in place.tokens[colon:arrow] if token.kind == "NAME"]


def _declared(snapshot: Snapshot) -> Iterator[tuple[int, object]]:
    for statement in snapshot.statements:
        node = statement.header.unit.node
        if isinstance(node, MorphismDecl | ProgramHeader):
            yield snapshot.layout.start_line(statement.uid), node


def _factors(space: ObjectExpr) -> list[str]:
    match space:
        case ProductExpr(factors=factors):
            return [name for factor in factors for name in _factors(factor)]
        case ParenObject(inner=inner):
            return _factors(inner)
        case _:
            return [to_text(space)]
