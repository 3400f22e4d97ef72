"""In which order the values of a program are offered within a formula, and which of them never."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.axes import axes_of
from qvr_core.ide.completion.context import Context
from qvr_core.ide.completion.likely import program_at
from qvr_core.ide.completion.offers import LAST
from qvr_core.ide.completion.uses_of_names import dependents, lagged, lines_of, own_names, unread
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.types.model.steps import ObserveModel
from qvr_core.semantics.types.walk import sites

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

STEP = 1000
"""Between two orders of the same rank, so that many names have a place between them."""
VALUES = frozenset(("binding", "site", "data", "input", "template", "parameter"))


def in_a_formula(
    snapshot: Snapshot, place: Context, items: Iterable[Completion], rank: int = 0
) -> Iterator[Completion]:
    """What is offered in a formula: what nothing reads yet before what is read already, and that before what the line
    itself has read; nothing that is made of the line's own name; outcomes last, but where earlier ones are read."""
    lines, own = lines_of(place), own_names(place)
    program = program_at(snapshot, place)
    declared = {item.name for item in program.data if item.declared} if program is not None else set[str]()
    outcomes = {line.binds[0] for line in lines if line.word == "observe" and line.binds}
    if program is not None:
        outcomes |= {site.name for site in sites(program.steps, ObserveModel)}
    circular = dependents(lines, own) - declared
    past = lagged(lines, place)
    fresh = unread(lines)
    here = {token.text for token in place.tokens[1:] if token.kind == "NAME"}
    lets = {name for line in lines if line.word == "let" and line.before for name in line.binds}
    keyed = {place.tokens[-2].text: STEP} if place.last is not None and place.last.kind == "EQUAL" else {}
    after = {name for line in lines if not line.before for name in line.binds}
    places = {name: at for at, name in enumerate(name for line in lines for name in line.binds)}
    vectors = _vectors(snapshot, place, rank)
    for item in items:
        name = item.label.partition("[")[0]
        if item.kind not in VALUES or (name not in places and name not in outcomes and name not in own):
            column = name in place.columns and name not in here  # nothing reads it yet
            yield replace(item, order=-100 if column else item.order * STEP)
            continue
        lag = " - " in item.label
        if (name in own and not lag) or name in circular or (name in outcomes and name not in declared):
            continue
        # a let that nothing reads yet was written for this line, or for one below
        late = 500 * (name in after) + 400 * (name in here) + 200 * (name not in fresh)
        if name in lets and name not in here:
            late -= 300  # what is computed is read rather than what it is made of
        late = late - keyed.get(name, 0) if not lag else min(late, 0)
        order = item.order * STEP + late + min(places.get(name, 0), 190)
        outcome = name in outcomes and name not in past and place.keyword != "score"
        if outcome or item.label in vectors:
            yield replace(item, rank=LAST, order=LATEST)
        else:
            yield replace(item, order=order)


LATEST = 1000 * STEP


def _vectors(snapshot: Snapshot, place: Context, rank: int) -> frozenset[str]:
    """The values with axes that stand without an index in a draw of one number: they would be an error there."""
    program = program_at(snapshot, place)
    call = next((one for one in reversed(place.brackets) if one.kind == "LPAR"), None)
    function = BUILTINS.get(call.before.text) if call is not None and call.before is not None else None
    computing = function is not None and function.rule != "pointwise"
    drawn = place.keyword in ("sample", "observe", "predict", "marginalize")
    indexed = any(token.kind == "LSQB" for token in place.tokens[1:3])
    if program is None or computing or not (drawn or indexed):
        return frozenset()
    plates = any(token.kind == "COLON" for token in place.tokens) and place.tokens[2].kind != "LSQB"
    if plates or not any(item.declared for item in program.data):
        return frozenset()
    return frozenset(name for name, (axes, _, _) in axes_of(program).items() if len(axes) not in (0, rank))
