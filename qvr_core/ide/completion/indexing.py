"""What completion offers in index notation: the sets behind `[i :` and `for f :`, and what stands inside `x[…]`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.axes import plate_of, site_type, type_text
from qvr_core.ide.completion.context import Bracket, Context
from qvr_core.ide.completion.offers import BEST, GOOD, PLAIN, Items, objects_offered
from qvr_core.ide.names import names_of
from qvr_core.ide.view import model_of
from qvr_core.semantics.types import model as m
from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.spaces import Finite, factors_of
from qvr_core.semantics.types.walk import all_steps
from qvr_core.syntax.lalr import Token
from qvr_core.syntax.lexer import tokenize

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

Axes = tuple[str | None, ...]


def sets_offered(snapshot: Snapshot, place: Context) -> Items:
    """The finite sets, which an index can run over."""
    objects = model_of(snapshot).objects
    for item in objects_offered(snapshot, place):
        held = objects.get(item.label)
        if held is None or all(isinstance(factor, Finite) for factor in factors_of(held.space.space)):
            yield item


def indexed_name(place: Context, bracket: Bracket) -> Token | None:
    """The name in front of the brackets of an index; None where the brackets are no index."""
    before = bracket.before
    written = before is not None and before.kind == "NAME" and bracket.kind == "LSQB"
    behind = any(token.kind in ("EQUAL", "DRAW") for token in place.tokens[: bracket.start])
    return before if written and behind else None


def indices_offered(snapshot: Snapshot, place: Context, bracket: Bracket) -> Items:
    """Indices of the axis's set first, then values that are its elements, then its labels."""
    name = indexed_name(place, bracket)
    program = _program(snapshot, place)
    known = {} if program is None else _axes_of(program)
    axes = known.get(name.text, ((), "", None))[0] if name is not None else ()
    wanted = axes[bracket.position] if bracket.position < len(axes) else None
    running = tuple(_running(place))
    for index, over in running:
        rank = BEST if wanted is None or over == wanted else PLAIN
        yield Completion(index, "parameter", f"an index of {over}", rank=rank)
    if wanted is None:
        return
    for value, (over, text, element) in known.items():
        if element == wanted and len(over) == 1:
            for index in (index for index, own in running if own == over[0]):
                yield Completion(f"{value}[{index}]", "data", text, rank=GOOD)
    yield from _labels(snapshot, wanted)


def _labels(snapshot: Snapshot, wanted: str) -> Items:
    """The elements of an enumeration; those that are no names are written in quotes."""
    held = model_of(snapshot).objects.get(wanted)
    space = held.space.space if held is not None else None
    for label in (space.labels or ()) if isinstance(space, Finite) else ():
        written = label if label.isidentifier() else f'"{label}"'
        yield Completion(written, "enum", f"an element of {wanted}", rank=GOOD)


def _program(snapshot: Snapshot, place: Context) -> m.Program | None:
    names = place.statement.header.unit.declares if place.statement is not None else ()
    return model_of(snapshot).programs.get(names[0].text) if names else None


# ---------------------------------------------------------------- the axes of names


def _axes_of(program: m.Program) -> dict[str, tuple[Axes, str, str | None]]:
    """For each name of a program: its axes, its type as text, and the set that its elements are of."""
    found = {item.name: _of_type(item.type) for item in program.data}
    for step in all_steps(program.steps):
        match step:
            case m.LetModel(names=(name,), value=value):
                found[name] = _of_type(value.type)
            case m.LetModel(names=names, indexed=m.IndexedValue(values=values)):
                found |= {name: _of_type(value.type) for name, value in zip(names, values, strict=False)}
            case (
                m.SampleModel(site=site) | m.ObserveModel(site=site) | m.PredictModel(site=site)
                | m.MarginalizeModel(site=site)
            ):  # fmt: skip
                found |= {name: _of_site(site, name) for name, _ in site.bound}
            case _:
                pass
    return found


def _of_type(kind: m.ValueType) -> tuple[Axes, str, str | None]:
    names = (*kind.indexed, *((kind.event,) if kind.event is not None else ()))
    axes = tuple(None if name is None else set_of(name) for name in names)
    return axes, type_text(kind), kind.space.nominal if isinstance(kind.space, Finite) else None


def _of_site(site: m.Site, name: str) -> tuple[Axes, str, str | None]:
    plate = plate_of(site)
    spaces = (
        *(factors_of(plate.space) if plate is not None else ()),
        *(() if site.over is None else (site.over.space,)),
    )
    axes = tuple(space.nominal if isinstance(space, Finite) else None for space in spaces)
    element = next((space.space for bound, space in site.bound if bound == name), None)
    return axes, site_type(site, name), element.nominal if isinstance(element, Finite) else None


# ---------------------------------------------------------------- the indices in sight


def _running(place: Context) -> Iterator[tuple[str, str]]:
    """The indices that are in sight at a cursor, each with its set: those of the step, then of comprehensions."""
    seen: dict[str, str] = dict(_binders(place.tokens))
    if place.placed is not None:
        # A comprehension names its indices behind its body: the line as it stands knows them.
        bound = {name.text for name in names_of(place.placed.unit) if name.part == "local-bind"}
        later = dict(_binders(_tokens(place)))
        seen |= {name: over for name, over in later.items() if name in bound or name not in seen}
    yield from seen.items()


def _tokens(place: Context) -> Sequence[Token]:
    assert place.placed is not None
    return tokenize(place.placed.unit.text, place.start)[0]


def _binders(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """`i : I` in brackets or behind `for`."""
    for name, colon, over in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if name.kind == over.kind == "NAME" and colon.kind == "COLON":
            yield name.text, over.text
