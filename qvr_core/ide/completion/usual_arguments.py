"""Numbers that a prior usually begins with, offered where it lacks its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.axes import axes_of_type
from qvr_core.ide.completion.context import Bracket, Context
from qvr_core.ide.completion.fitting_arguments import parameter_at
from qvr_core.ide.completion.likely import data_at
from qvr_core.ide.completion.offers import BEST, Items
from qvr_core.semantics.language.prelude import EVERY_FAMILY
from qvr_core.semantics.language.usual_priors import USUAL

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot


def usual_offered(snapshot: Snapshot, place: Context, bracket: Bracket) -> Items:
    """`0.0, 1.0` behind `sample mu <- Normal(`: what is left of the usual arguments of a prior; `zeros(Day)` for a
    vector of means."""
    parameter = parameter_at(snapshot, bracket)
    if parameter is not None and parameter.rank == 1 and parameter.constraint == "real":
        for over in _own_sets(snapshot, place):
            yield Completion(f"zeros({over})", "value", f"0 for each element of {over}", rank=BEST, order=-VALUES_ORDER)
    name = bracket.before.text if bracket.before is not None else ""
    numbers = USUAL.get(name, ())[bracket.position :]
    if place.keyword != "sample" or bracket.since or not numbers or place.tokens[bracket.start - 2].kind != "DRAW":
        return
    family = EVERY_FAMILY[name]
    named = [parameter.name for parameter in family.parameters[bracket.position :]][: len(numbers)]
    says = f"{' and '.join(named)} of a usual prior, for a quantity of about one unit"
    many = any(token.kind in ("COLON", "LSQB") for token in place.tokens[: bracket.start])
    yield Completion(", ".join(numbers), "value", says, rank=BEST, order=0 if many else -VALUES_ORDER)


VALUES_ORDER = 10**5


def _own_sets(snapshot: Snapshot, place: Context) -> list[str]:
    """The last set of the data that the line at a cursor observes."""
    data = data_at(snapshot, place)
    axes = axes_of_type(data.type)[0] if data is not None else ()
    return [axes[-1]] if axes and axes[-1] is not None else []
