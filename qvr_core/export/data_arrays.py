"""The data that a program reads: kinds, sizes and what is known of their values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qvr_core.export.refusals import Refused
from qvr_core.lowered.axes import event_dims, plate_dims, space_dims
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.expressions import Constant, Data, Index
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import LetModel, ObserveModel, ParamModel, ScoreModel, Site
from qvr_core.semantics.types.spaces import Dim, Finite, Real, Space
from qvr_core.semantics.types.walk import all_steps, operands, until_arrows, values, walk


@dataclass(frozen=True)
class DataArray:
    """A data name: `kind` is 'index' (a code of `values`, from 0), 'bool', 'count' or 'real'."""

    name: str
    kind: str
    sizes: tuple[Dim, ...]
    axes: tuple[str, ...]
    """What its axes run over, in words."""
    values: Finite | None
    origin: Origin
    low: float | None = None
    high: float | None = None
    missing: bool = False
    """Whether cells may be missing, which are parameters then."""
    space: Space | None = None
    """Of one cell."""
    ends: str | int | None = None
    """How long its sequences are, the data name that tells it or a number: cells beyond hold nothing."""
    told: bool = True
    """Whether the program says what it runs over; else `sizes` say nothing of it."""

    @property
    def whole(self) -> bool:
        return self.kind != "real"


def data_of(program: Program, model: Model) -> Iterator[DataArray]:
    """The data of a program, what it observes included.  Raises `Refused` for what no target reads."""
    observed = {site.name: site for site in _observed(program)}
    known: set[str] = set()
    indices = set(_indices(program))
    for item in program.data:
        if item.name in model.objects and item.name not in observed and not item.declared:
            continue
        known.add(item.name)
        site = observed.get(item.name)
        space = item.type.space
        if space is None or None in item.type.sizes:
            kind = "index" if item.name in indices else "real"
            yield DataArray(item.name, kind, (), (), None, item.origin, told=False)
            continue
        if isinstance(space, Real) and len(space.shape) > 1:
            raise Refused(item.origin, f"`{item.name}`: data whose elements are tables are not exported", _OVER_SETS)
        axes = tuple(name or "" for name in item.type.indexed)
        sizes = tuple(size for size in item.type.sizes if size is not None)
        missing = site is not None and site.missing is not None
        kind = _kind(space, item.numbers, site)
        values_of = space if isinstance(space, Finite) and kind == "index" else None
        bounds = (space.low, space.high) if isinstance(space, Real) else (None, None)
        ends = item.lengths or _ends(site)
        dims = (*sizes, *space_dims(space))
        yield DataArray(item.name, kind, dims, axes, values_of, item.origin, *bounds, missing, space, ends)
    for site in observed.values():
        if site.name in known or site.of_let:
            continue
        space = site.bound[0][1].space
        sizes = (*plate_dims(site), *event_dims(site))
        missing = site.missing is not None
        kind = _kind(space, "", site)
        values_of = space if isinstance(space, Finite) and kind == "index" else None
        yield DataArray(site.name, kind, sizes, (), values_of, site.origin, None, None, missing, space, _ends(site))


def _indices(program: Program) -> Iterator[str]:
    """The data that look up elements of something else."""
    for step in all_steps(program.steps):
        draw = None if isinstance(step, LetModel | ScoreModel | ParamModel) else step.site.draw
        if isinstance(draw, FamilyDraw):
            yield from (value.name for key, value in draw.args if key == "edges" and isinstance(value, Data))
        for node in (one for value in values(step) for one in walk(value, until_arrows)):
            if isinstance(node, Index):
                yield from (one.name for part in node.indices for one in walk(part, operands) if isinstance(one, Data))


_OVER_SETS = "let them run over sets: `data x : Row * Place`"


def untold(item: DataArray) -> Refused:
    """Of data without a declaration, where a target must know their sizes."""
    return Refused(item.origin, f"nothing says what `{item.name}` runs over", f"declare it: `data {item.name} : Row`")


def _ends(site: Site | None) -> str | int | None:
    match None if site is None else site.lengths:
        case Data(name=name):
            return name
        case Constant(value=int(number)):
            return number
        case _:
            return None


def _kind(space: Space, numbers: str, site: Site | None) -> str:
    if numbers in ("bool", "count"):
        return numbers
    family = facts_of_draw(site.draw) if site is not None and isinstance(site.draw, FamilyDraw) else None
    if family is not None and family.discrete:
        if family.support.kind == "count":
            return "count"
        return "bool" if family.name == "Bernoulli" else "index"
    return "index" if isinstance(space, Finite) else "real"


def _observed(program: Program) -> Iterator[Site]:
    return (step.site for step in all_steps(program.steps) if isinstance(step, ObserveModel))
