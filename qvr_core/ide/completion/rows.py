"""What a formula reads at places that its brackets do not name in full: rows of tables, earlier elements, columns that
look a value up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.axes import Known
from qvr_core.ide.completion.context import Context
from qvr_core.ide.completion.indexing import NO_AXES, axes_at, binders, index_of, last_binder, running
from qvr_core.ide.completion.likely import program_at
from qvr_core.ide.completion.offers import BEST, Items
from qvr_core.ide.completion.uses_of_names import in_order, lagged, lines_of, own_names
from qvr_core.semantics.language.family import Parameter
from qvr_core.semantics.types.model.steps import SampleModel
from qvr_core.semantics.types.spaces import Finite
from qvr_core.semantics.types.walk import sites
from qvr_core.syntax.lexer import tokenize

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def looked_up_offered(snapshot: Snapshot, place: Context) -> Items:
    """`ability[student]` where no data are declared: a value of a set, at the column that names its elements."""
    columns = {column.lower(): column for column in place.columns}
    program = program_at(snapshot, place)
    rows = program.declared_domain.written if program is not None else ""
    read = [token.text for token in place.tokens[2:] if token.kind == "NAME"]
    order = -1 if not read or any(name in place.columns for name in read) else 1
    for name, (axes, text, _) in axes_at(snapshot, place).items() if columns else ():
        over = axes[0] if len(axes) == 1 else None
        if over is not None and over != rows and over.lower() in columns:
            yield Completion(f"{name}[{columns[over.lower()]}]", "binding", text, rank=BEST, order=order)


def earlier_offered(snapshot: Snapshot, place: Context) -> Items:
    """In a line that already reads earlier elements: `level[t - 1]` of its own names, and of others so read."""
    own, last = own_names(place), last_binder(place)
    if not last or not in_order(place):
        return
    over = dict(running(place)).get(last)
    past = lagged(lines_of(place), place)
    known = axes_at(snapshot, place)
    if place.keyword == "observe":
        own = tuple(name for name in own if name in lagged((), place))
    for name in dict.fromkeys((*own, *past)):
        axes, text, element = known.get(name, NO_AXES)
        if element is None and (axes == (over,) or (not axes and name in own)):
            yield Completion(f"{name}[{last} - 1]", "binding", text, rank=BEST, order=-2)


def rows_offered(snapshot: Snapshot, place: Context, parameter: Parameter) -> Items:
    """For an argument that is a vector or a matrix: values at the indices in sight but for their last axes, which are
    the argument's: `phi[z[i]]`, and `P[z[t - 1]]` of the line's own z."""
    everything = axes_at(snapshot, place)
    own = own_names(place)
    known = {name: held for name, held in everything.items() if name not in own}
    element = _element_of(snapshot, place, own, everything)
    indices = tuple(running(place))
    numbers = _drawn_one_by_one(snapshot, place)
    chained = _own_before(place, everything) if place.keyword in ("marginalize", "sample") else {}
    for name, (axes, text, inside) in known.items():
        split = len(axes) - parameter.rank
        if split < 0 or inside is not None or None in axes:
            continue
        if parameter.rank == 1 and element is not None and axes[-1] != element:
            continue
        if parameter.constraint in ("simplex", "ordered") and name in numbers:
            continue
        chosen = [chained.get(over or "") or index_of(known, indices, over) for over in axes[:split]]
        if all(chosen):
            written = f"{name}[{', '.join(filter(None, chosen))}]" if chosen else name
            yield Completion(written, "binding", text, rank=BEST, order=-5)


def _drawn_one_by_one(snapshot: Snapshot, place: Context) -> frozenset[str]:
    """The latents that are a number for each element of a set: no row of them is one draw."""
    program = program_at(snapshot, place)
    draws = sites(program.steps, SampleModel) if program is not None else ()
    return frozenset(site.name for site in draws if site.over is None)


def _element_of(snapshot: Snapshot, place: Context, own: Sequence[str], known: Mapping[str, Known]) -> str | None:
    """The set that what the line at a cursor draws is an element of."""
    program = program_at(snapshot, place)
    for item in program.data if program is not None else ():
        if item.name in own and isinstance(item.type.space, Finite):
            return item.type.space.nominal
    return next((known[name][2] for name in own if name in known), None)


def _own_before(place: Context, known: Mapping[str, Known]) -> dict[str, str]:
    """`z[t - 1]` by the set that its elements are of, of the names that the line at a cursor draws in order."""
    opened = next((at for at, token in enumerate(place.tokens) if token.kind == "DRAW"), 0)
    named = [name for name, _ in binders(place.tokens[:opened])]
    if not named:
        return {}
    at = ", ".join([*named[:-1], f"{named[-1]} - 1"])
    held = {name: known.get(name, NO_AXES)[2] for name in own_names(place)}
    return {over: f"{name}[{at}]" for name, over in held.items() if over is not None}


def products_offered(snapshot: Snapshot, place: Context) -> Items:
    """`sum(beta[f] * x[i, f] for f : Feature)`: what has a number for each element of a set that no index here has,
    times data that have one for each of them and for an index."""
    indices, own = tuple(running(place)), own_names(place)
    known = {name: held for name, held in axes_at(snapshot, place).items() if name not in own}
    program = program_at(snapshot, place)
    data = {item.name for item in program.data} if program is not None else set[str]()
    taken, read = {index for index, _ in indices}, {token.text for token in place.tokens}
    for weights, (axes, text, element) in known.items():
        over = axes[0] if len(axes) == 1 else None
        if weights in data or weights in read or element is not None or over is None:
            continue
        if index_of(known, indices, over) is not None:
            continue
        letters = (*(name for name, of in _letters_of(place).items() if of == over), over[0].lower(), "j", "k")
        letter = next((one for one in letters if one not in taken), None)
        for values, (sides, _, inside) in known.items():
            row = index_of(known, indices, sides[0]) if len(sides) == 2 and sides[1] == over else None
            if values in data and inside is None and row is not None and letter is not None:
                written = f"sum({weights}[{letter}] * {values}[{row}, {letter}] for {letter} : {over})"
                yield Completion(written, "function", text, insert=written, rank=BEST, order=-6)


def _letters_of(place: Context) -> dict[str, str]:
    """The indices that other lines of the program have, each with its set."""
    return {name: over for line in lines_of(place) for name, over in binders(tokenize(line.text, "step")[0])}
