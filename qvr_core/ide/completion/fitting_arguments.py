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
from qvr_core.ide.completion.order_of_values import STEP
from qvr_core.ide.view import declared_facts
from qvr_core.semantics.language.family import Family, Parameter
from qvr_core.semantics.language.prelude import EVERY_FAMILY
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, MarginalizeModel, SampleModel
from qvr_core.semantics.types.spaces import REAL_LINE, Constrained, Real, Space, item_of, width
from qvr_core.semantics.types.walk import all_steps

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

SPACES = {"simplex": "Simplex", "ordered": "Ordered", "lower triangular": "CholeskyFactor"}


def fitting_first(
    snapshot: Snapshot, place: Context, bracket: Bracket, items: Iterable[Completion]
) -> Iterator[Completion]:
    """What is offered as an argument of a family: first the values that it may be as they are."""
    program, parameter = program_at(snapshot, place), parameter_at(snapshot, bracket)
    constraint = parameter.constraint if parameter is not None else ""
    known = _spaces(program) if program is not None and constraint else {}
    for item in items:
        space = known.get(item.label.partition("[")[0])
        fits = item.rank == BEST and space is not None and _may_be(space, constraint)
        yield replace(item, order=item.order - 2 * STEP) if fits else item


def parameter_at(snapshot: Snapshot, bracket: Bracket) -> Parameter | None:
    """The parameter of a family whose argument begins at a cursor; None in the midst of one."""
    name, since = "" if bracket.before is None else bracket.before.text, bracket.since
    family: Family | None = declared_facts(snapshot, name) or EVERY_FAMILY.get(name)
    if family is None or (since and not (len(since) == 2 and since[1].kind == "EQUAL")):
        return None
    if since:
        return next((found for one in family.parameters if (found := _named(one, since[0].text)) is not None), None)
    own = family.parameters[bracket.position : bracket.position + 1]
    return own[0] if own else None


def _named(parameter: Parameter, key: str) -> Parameter | None:
    """A parameter under one of its names; `logits` for `probs` has a constraint of its own."""
    if key in (parameter.name, *parameter.aliases):
        return parameter
    constraint = dict(parameter.alternatives).get(key)
    return None if constraint is None else replace(parameter, name=key, constraint=constraint)


def lets_of_unknown_shape(snapshot: Snapshot, place: Context) -> frozenset[str]:
    """What is computed and may be a vector: its data say so."""
    program = program_at(snapshot, place)
    steps = all_steps(program.steps) if program is not None else ()
    lets = ((step, name) for step in steps if isinstance(step, LetModel) for name in step.names)
    return frozenset(name for step, name in lets if (kind := let_type(step, name)).space is None and not kind.indexed)


def _may_be(space: Space, constraint: str) -> bool:
    match item_of(space):
        case Real() as real if width(real) != 1:
            return constraint in ("ordered", "simplex", "positive vector")
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
                # what comes with the data is some number
                found |= {name: let_type(step, name).space or REAL_LINE for name in names}
            case SampleModel(site=site) | MarginalizeModel(site=site):
                found |= {name: named.space for name, named in site.bound}
            case _:
                pass
    return found
