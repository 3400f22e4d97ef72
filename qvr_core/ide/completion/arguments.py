"""Which values may be the argument of a family as they are: a scale is above 0, a location any number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.axes import let_type
from qvr_core.ide.completion.context import Bracket, Context
from qvr_core.ide.completion.likely import program_at
from qvr_core.ide.completion.offers import BEST
from qvr_core.ide.view import declared_facts
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.family import Family
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, MarginalizeModel, SampleModel
from qvr_core.semantics.types.spaces import Constrained, Real, Space, item_of
from qvr_core.semantics.types.walk import all_steps

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

SPACES = {"simplex": "Simplex", "ordered": "Ordered", "lower triangular": "CholeskyFactor"}


def fitting_first(
    snapshot: Snapshot, place: Context, bracket: Bracket, items: Iterable[Completion]
) -> Iterator[Completion]:
    """What is offered as an argument of a family: first the values that it may be as they are."""
    program, constraint = program_at(snapshot, place), _constraint(snapshot, bracket)
    known = _spaces(program) if program is not None and constraint else {}
    for item in items:
        space = known.get(item.label.partition("[")[0])
        fits = item.rank == BEST and space is not None and _may_be(space, constraint)
        yield replace(item, order=item.order - 2) if fits else item


def _constraint(snapshot: Snapshot, bracket: Bracket) -> str:
    """That of the argument which begins at a cursor; '' in the midst of one."""
    name, since = "" if bracket.before is None else bracket.before.text, bracket.since
    family: Family | None = FAMILIES.get(name) or declared_facts(snapshot, name)
    if family is None or (since and not (len(since) == 2 and since[1].kind == "EQUAL")):
        return ""
    if since:
        key = since[0].text
        return next((one.constraint for one in family.parameters if key in (one.name, *one.aliases)), "")
    own = family.parameters[bracket.position : bracket.position + 1]
    return own[0].constraint if own else ""


def _may_be(space: Space, constraint: str) -> bool:
    match item_of(space):
        case Real(low=low, high=high):
            above = low is not None and low >= 0
            match constraint:
                case "positive":
                    return above
                case "unit":
                    return above and high is not None and high <= 1
                case "real":
                    return low is None and high is None
                case _:
                    return False
        case Constrained(kind=kind):
            return SPACES.get(constraint) == kind
        case _:
            return False


def _spaces(program: Program) -> dict[str, Space]:
    """What the elements of the values of a program are."""
    found: dict[str, Space] = {item.name: item.type.space for item in program.data if item.type.space is not None}
    for step in all_steps(program.steps):
        match step:
            case LetModel(names=names):
                types = ((name, let_type(step, name).space) for name in names)
                found |= {name: space for name, space in types if space is not None}
            case SampleModel(site=site) | MarginalizeModel(site=site):
                found |= {name: named.space for name, named in site.bound}
            case _:
                pass
    return found
