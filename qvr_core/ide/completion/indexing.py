"""What completion offers in index notation: the sets behind `[i :` and `for f :`, and what stands inside `x[…]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.axes import Axes, Known, axes_of, axes_of_type
from qvr_core.ide.completion.context import Bracket, Context
from qvr_core.ide.completion.likely import program_at
from qvr_core.ide.completion.offers import BEST, GOOD, OTHER, PLAIN, Items, objects_offered
from qvr_core.ide.completion.sets import in_this_order, likely_sets
from qvr_core.ide.completion.uses_of_names import SUMS, own_names, pending_indices
from qvr_core.ide.names import names_of
from qvr_core.ide.view import model_of
from qvr_core.semantics.types.model.steps import ObserveModel, SampleModel
from qvr_core.semantics.types.spaces import Constrained, Finite, Real, factors_of, width
from qvr_core.semantics.types.walk import sites
from qvr_core.syntax.lexer import CLOSERS, OPENERS, tokenize
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.tokens import Token

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def sets_offered(snapshot: Snapshot, place: Context) -> Items:
    """The finite sets, which an index can run over."""
    objects = model_of(snapshot).objects
    for item in objects_offered(snapshot, place):
        held = objects.get(item.label)
        if held is None or all(isinstance(factor, Finite) for factor in factors_of(held.space.space)):
            yield item


def binders_offered(snapshot: Snapshot, place: Context, bracket: Bracket) -> Items:
    """`i : House` behind `observe y[`: for each axis of declared data that the brackets still lack, else for each set,
    with the letter that other steps have for it."""
    program = program_at(snapshot, place)
    if program is None or bracket.before is None:
        return
    held = next((item for item in program.data if item.declared and item.name == bracket.before.text), None)
    axes = () if held is None else axes_of_type(held.type)[0]
    if axes and None not in axes:
        missing = [axis for axis in axes[bracket.position :] if axis is not None]
        if missing:
            yield Completion(_binders_of(missing, _letters(place)), "parameter", "an index for each axis", rank=BEST)
        return
    yield from set_binders_offered(snapshot, place)


def set_binders_offered(snapshot: Snapshot, place: Context) -> Items:
    """`i : House` for each set, with the letter that other steps have for it; in the call of a sum first the indices
    that its formula has."""
    pending = pending_at(snapshot, place) if place.last is not None and place.last.kind == "FOR" else {}
    letters = _letters(place) | {over: name for name, over in pending.items() if over is not None}
    letter = next(iter(pending), "")
    first = [*(over for over in pending.values() if over is not None)]
    for item in in_this_order(
        sets_offered(snapshot, place), first or likely_sets(snapshot, place, letter, axes_at(snapshot, place))
    ):
        yield replace(item, label=_binders_of([item.label], letters), kind="parameter")


def sets_of_index(snapshot: Snapshot, place: Context, letter: str) -> Items:
    """Behind `[i :` or `for i :` the sets, first the one that the formula, other lines and the letter speak for."""
    over = pending_at(snapshot, place).get(letter)
    known = axes_at(snapshot, place)
    first = [*filter(None, (over,)), *likely_sets(snapshot, place, letter, known)]
    yield from in_this_order(sets_offered(snapshot, place), first)


def pending_at(snapshot: Snapshot, place: Context) -> dict[str, str | None]:
    """The indices of the innermost call that no `for` has named yet."""
    axes = {name: axes for name, (axes, _, _) in axes_at(snapshot, place).items()}
    objects = model_of(snapshot).objects
    labels = [label for held in objects.values() if isinstance(held.space.space, Finite)
              for label in held.space.space.labels or ()]  # fmt: skip
    return pending_indices(place, axes, [*dict(running(place)), *labels])


def _letters(place: Context) -> dict[str, str]:
    """The letters that the steps of the program at a cursor have for sets."""
    lines = () if place.statement is None else units_of(place.statement)
    steps = (line.unit for line in lines if line.unit.keyword not in ("program", "data"))
    return {over: name for step in steps for name, over in binders(_lexed(step.text))}


def _binders_of(sets: Sequence[str], letters: Mapping[str, str]) -> str:
    """`p : Pond, v : Visit`, no letter twice."""
    chosen: dict[str, str] = {}
    for at, over in enumerate(sets):
        letter = letters.get(over, over[0].lower())
        spare = next(one for one in (letter, over.lower(), f"{letter}{at}") if one not in chosen)
        chosen[spare] = over
    return ", ".join(f"{name} : {over}" for name, over in chosen.items())


def indexed_name(place: Context, bracket: Bracket) -> Token | None:
    """The name in front of the brackets of an index; None where the brackets are no index."""
    before = bracket.before
    written = before is not None and before.kind == "NAME" and bracket.kind == "LSQB"
    behind = any(token.kind in ("EQUAL", "DRAW") for token in place.tokens[: bracket.start])
    return before if written and behind else None


def last_binder(place: Context) -> str:
    """The last index of the line at a cursor: the one that a step recurs along; '' for none."""
    opened = next((at for at, token in enumerate(place.tokens) if token.kind in ("DRAW", "EQUAL")), len(place.tokens))
    named = list(binders(place.tokens[:opened]))
    return named[-1][0] if named else ""


def axis_of(snapshot: Snapshot, place: Context, bracket: Bracket) -> str | None:
    """The set of the axis that an index in brackets is of, where it is known."""
    name = indexed_name(place, bracket)
    if name is not None and name.text in own_names(place):
        opened = next((at for at, token in enumerate(place.tokens) if token.kind in ("DRAW", "EQUAL")), 0)
        own = [over for _, over in binders(place.tokens[:opened])]
        return own[bracket.position] if bracket.position < len(own) else None
    axes = axes_at(snapshot, place).get(name.text, NO_AXES)[0] if name is not None else ()
    return axes[bracket.position] if bracket.position < len(axes) else None


def indices_offered(snapshot: Snapshot, place: Context, bracket: Bracket) -> Items:
    """Indices of the axis's set first, then values that are its elements, then its labels; all indices where the set
    is not known."""
    wanted = axis_of(snapshot, place, bracket)
    indices = tuple(running(place))
    for index, over in pending_at(snapshot, place).items():
        moved = bool(bracket.since) and bracket.since[-1].text in ("+", "-")
        if moved or wanted is None or over in (None, wanted):
            of = f", of {over}" if over is not None else ""
            yield Completion(index, "parameter", f"an index of this sum{of}", rank=BEST, order=-4)
    name = indexed_name(place, bracket)
    own = name is not None and name.text in own_names(place)
    if wanted is not None and not any(over == wanted for _, over in indices):
        yield from _fresh_index(place, wanted, [index for index, _ in indices])
    for index, over in indices:
        recurs = own and index == last_binder(place) and over == wanted
        if recurs:
            yield Completion(f"{index} - 1", "parameter", f"the element of {over} before it", rank=BEST, order=-3)
        if recurs and len(own_names(place)) == 1:
            continue  # of itself a line reads earlier elements, of the others of its group this one, too
        if (wanted is None or over == wanted) and index not in {token.text for token in bracket.since}:
            yield Completion(index, "parameter", f"an index of {over}", rank=BEST)
    known = axes_at(snapshot, place)
    if wanted is not None and not indices:
        for column, file in place.columns.items():
            if column.lower() == wanted.lower():
                yield Completion(column, "data", f"a column of {file}", rank=BEST, order=-1)
    if wanted is None:
        return
    for looked_up, text in gathers(known, indices, wanted):
        yield Completion(looked_up, "data", text, rank=GOOD)
    for value, (over, text, element) in known.items():
        if element == wanted and not over:
            yield Completion(value, "binding", text, rank=GOOD)
    yield from _labels(snapshot, wanted)


def _fresh_index(place: Context, wanted: str, taken: Sequence[str]) -> Items:
    """Within a sum: the letter of an index that its `for` will name."""
    calls = (one.before.text for one in place.brackets if one.kind == "LPAR" and one.before is not None)
    letter = _letters(place).get(wanted, wanted[0].lower())
    if letter not in taken and any(name in SUMS for name in calls):
        detail = f"an index of this sum: `for {letter} : {wanted}` names it"
        yield Completion(letter, "parameter", detail, rank=BEST, order=-1)


def places_offered(snapshot: Snapshot, place: Context, bracket: Bracket) -> Items:
    """Indices of a vector whose places no set names, `cuts : Ordered 3`: elements of sets of as many."""
    indexed = indexed_name(place, bracket)
    if indexed is None or bracket.since or axis_of(snapshot, place, bracket) is not None:
        return
    name, known, indices = indexed.text, axes_at(snapshot, place), tuple(running(place))
    program = program_at(snapshot, place)
    draws = [site for site in sites(program.steps, SampleModel)] if program is not None else []
    space = next((space.space for site in draws for bound, space in site.bound if bound == name), None)
    count = width(space) if isinstance(space, Constrained | Real) else None
    for over, held in model_of(snapshot).objects.items() if count not in (None, 1) else ():
        if not isinstance(held.space.space, Finite) or held.space.space.size != count:
            continue
        for index, own in indices:
            if own == over:
                yield Completion(index, "parameter", f"an index of {over}", rank=BEST, order=-3)
        for written, text in gathers(known, indices, over):
            yield Completion(written, "parameter", text, rank=BEST, order=-2)
        for value, (axes, text, element) in known.items():
            if element == over and not axes:
                yield Completion(value, "parameter", text, rank=BEST, order=-2)


def compared_offered(snapshot: Snapshot, place: Context) -> Items:
    """Behind `cell_state[c] ==`, or an index: the indices of the set that the value is of, then its labels."""
    if place.last is None or place.last.kind != "COMPARISON":
        return
    before = place.tokens[:-1]
    if before and before[-1].kind == "RSQB":
        opening = next((at for at in range(len(before) - 1, 0, -1) if before[at].kind == "LSQB"), 0)
        before = before[:opening]
    compared = before[-1].text if before and before[-1].kind == "NAME" else ""
    indices = dict(running(place))
    wanted = indices.get(compared) or axes_at(snapshot, place).get(compared, NO_AXES)[2]
    if wanted is None:
        return
    for index, over in indices.items():
        if over == wanted and index != compared:
            yield Completion(index, "parameter", f"an index of {over}", rank=BEST, order=-4)
    for item in _labels(snapshot, wanted):
        yield replace(item, rank=BEST, order=-3)


def gathers(
    known: Mapping[str, Known], indices: Sequence[tuple[str, str]], wanted: str | None
) -> Iterator[tuple[str, str]]:
    """`county[i]` and its type: values that are elements of a set, at the indices in sight; of several axes at the
    first index of each."""
    for value, (over, text, element) in known.items():
        if element is None or element != wanted or not over:
            continue
        if len(over) == 1:
            yield from ((f"{value}[{index}]", text) for index, own in indices if own == over[0])
            continue
        chosen = [next((index for index, own in indices if own == axis), None) for axis in over]
        if all(chosen):
            yield f"{value}[{', '.join(filter(None, chosen))}]", text


def indexed_offered(snapshot: Snapshot, place: Context) -> Items:
    """`floor[i]`, `level[county[i]]`: values with axes, at the indices in sight, where each of their axes has one."""
    indices = tuple(running(place))
    if not indices:
        return
    everything = axes_at(snapshot, place)
    own = own_names(place)
    known = {name: held for name, held in everything.items() if name not in own}
    observed = observed_names(snapshot, place)
    written = _labels_here(snapshot, place)
    for name, (axes, text, element) in known.items():
        chosen = [index_of(known, indices, over) or written.get(over or "") for over in axes]
        # one index for two axes reads the diagonal, which is seldom meant
        moving = [one for one in chosen if one not in written.values()]
        if chosen and all(chosen) and len(set(moving)) == len(moving):
            label = f"{name}[{', '.join(filter(None, chosen))}]"
            # what is observed is seldom read, and what is an element of a set is no number
            rank = OTHER if name in observed or element is not None else BEST
            yield Completion(label, "data" if name in observed else "binding", text, rank=rank, order=-1)


def _labels_here(snapshot: Snapshot, place: Context) -> dict[str, str]:
    """For each set with labels the last one at which the line at a cursor has read something."""
    used = [token.text.strip('"') for token in place.tokens[1:] if token.kind in ("NAME", "STRING")]
    found: dict[str, str] = {}
    for name, held in model_of(snapshot).objects.items():
        labels = (held.space.space.labels or ()) if isinstance(held.space.space, Finite) else ()
        last = next((one for one in reversed(used) if one in labels), None)
        if last is not None:
            found[name] = last if last.isidentifier() else f'"{last}"'
    return found


def summed_offered(snapshot: Snapshot, place: Context) -> Items:
    """Behind `sum(`: `L[k, j] for j : Kilometre`, values at the indices in sight but for their last axis, which is what
    the sum runs over."""
    bracket = place.brackets[-1] if place.brackets else None
    begins = bracket is not None and bracket.kind == "LPAR" and not bracket.since and not bracket.position
    call = bracket.before.text if begins and bracket is not None and bracket.before is not None else ""
    if call not in SUMS:
        return
    indices, letters = tuple(running(place)), _letters(place)
    known, observed = axes_at(snapshot, place), observed_names(snapshot, place)
    own = own_names(place)
    for name, (axes, text, element) in known.items():
        if name in (*own, *observed) or element is not None or not axes or None in axes:
            continue
        chosen = [index_of(known, indices, over) for over in axes[:-1]]
        if not all(chosen):
            continue
        taken = {index for index, _ in indices}
        over = axes[-1] or ""
        wished = (letters.get(over, over[0].lower()), "j", "k", "l", "m", over.lower())
        fresh = next((one for one in wished if one not in taken), None)
        if fresh is not None:
            read = f"{name}[{', '.join(filter(None, (*chosen, fresh)))}]"
            ending = f" for {fresh} : {over}"
            order = -3 if len(axes) > 1 else -2
            yield Completion(
                read + ending, "binding", text, insert=f"{read}$0{ending}", snippet=True, rank=BEST, order=order
            )


def index_of(known: Mapping[str, Known], indices: Sequence[tuple[str, str]], over: str | None) -> str | None:
    """What stands for an element of a set: an index that runs over it, else a value that is one of its elements."""
    own = next((index for index, of in indices if of == over), None)
    return own or next((value for value, _ in gathers(known, indices, over)), None)


def observed_names(snapshot: Snapshot, place: Context) -> frozenset[str]:
    program = program_at(snapshot, place)
    found = () if program is None else sites(program.steps, ObserveModel)
    return frozenset(site.name for site in found)


def _labels(snapshot: Snapshot, wanted: str) -> Items:
    """The elements of an enumeration; those that are no names are written in quotes."""
    held = model_of(snapshot).objects.get(wanted)
    space = held.space.space if held is not None else None
    for label in (space.labels or ()) if isinstance(space, Finite) else ():
        written = label if label.isidentifier() else f'"{label}"'
        yield Completion(written, "enum", f"an element of {wanted}", rank=GOOD)


def over_offered(snapshot: Snapshot, place: Context, bracket: Bracket) -> Items | None:
    """What may stand behind `over=` in a call: the sets of the first argument, where it is a name, before others; None
    elsewhere."""
    since = bracket.since
    if len(since) < 2 or since[0].text != "over" or since[1].kind != "EQUAL":
        return None
    return _over_offered(snapshot, place, axes_of_first(snapshot, place, bracket))


def _over_offered(snapshot: Snapshot, place: Context, own: Axes) -> Items:
    for name in own:
        if name is not None:
            yield Completion(name, "class", "a set of the first argument", rank=BEST)
    yield from (replace(item, rank=max(item.rank, PLAIN)) for item in sets_offered(snapshot, place))


def axes_of_first(snapshot: Snapshot, place: Context, bracket: Bracket) -> Axes:
    """The sets that the first argument of a call runs over; () where it is more than a name, or still to be written."""
    first = place.tokens[bracket.start + 1 : bracket.start + 3]
    alone = len(first) == 2 and first[0].kind == "NAME" and first[1].kind == "COMMA"
    return axes_at(snapshot, place).get(first[0].text, NO_AXES)[0] if alone else ()


NO_AXES: Known = ((), "", None)


def axes_at(snapshot: Snapshot, place: Context) -> dict[str, Known]:
    """For each name of the program at a cursor: its axes, its type as text, and the set that its elements are of."""
    program = program_at(snapshot, place)
    return {} if program is None else axes_of(program)


# ---------------------------------------------------------------- the indices in sight


def running(place: Context) -> Iterator[tuple[str, str]]:
    """The indices that are in sight at a cursor, each with its set: those of the step, then of comprehensions."""
    seen: dict[str, str] = dict(binders(place.tokens))
    if place.placed is not None:
        # A comprehension names its indices behind its body: the line as it stands knows them.
        bound = {name.text for name in names_of(place.placed.unit) if name.part == "local-bind"}
        later = dict(binders(_tokens(place)))
        seen |= {name: over for name, over in later.items() if name in bound or name not in seen}
    yield from seen.items()


def _tokens(place: Context) -> Sequence[Token]:
    assert place.placed is not None
    return tokenize(place.placed.unit.text, place.start)[0]


def _lexed(text: str) -> Sequence[Token]:
    return tokenize(text, "step")[0]


def binders(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """`i : I` in brackets or behind `for`."""
    depth = 0
    for name, colon, over in zip(tokens, tokens[1:], tokens[2:], strict=False):
        depth += (name.kind in OPENERS) - (name.kind in CLOSERS.values())
        if depth and name.kind == over.kind == "NAME" and colon.kind == "COLON":
            yield name.text, over.text
