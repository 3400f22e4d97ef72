"""The common reading of a checked program: what every printer needs, said once.

Sizes stay names: `n_county` is the number of elements of `County`, known with the data.  The arithmetic stays that of
the typed model, where every axis already has its place; printers say it in their own functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from qvr_core.analysis import Snapshot
from qvr_core.export.comments import Comments, comments_of
from qvr_core.export.data_arrays import DataArray, data_of
from qvr_core.export.refusals import Refused
from qvr_core.lowered.axes import entry_axes, event_dims, plate_dims
from qvr_core.lowered.declared_families import family_of_file, is_of_numbers
from qvr_core.lowered.factors import untruncated
from qvr_core.lowered.gathers import gathered
from qvr_core.lowered.hidden_rows import with_places
from qvr_core.lowered.left_out import with_presence
from qvr_core.lowered.truncated_normals import with_bounds
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.gates import gated_name
from qvr_core.semantics.language.mixtures import component_names
from qvr_core.semantics.language.outcomes import computed_name
from qvr_core.semantics.language.truncated import FLAT, HIGHEST, LOWEST, family_words, truncated_name
from qvr_core.semantics.programs.families.narrowed import own_ends
from qvr_core.semantics.types.chain_starts import draws_of, values_of
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.hidden_counts import counted, is_counts
from qvr_core.semantics.types.model.expressions import (
    Apply,
    Arrange,
    Bound,
    Builtin,
    Constant,
    Data,
    IndexValue,
    Scatter,
    Window,
)
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import (
    ArrowDraw,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    ParamModel,
    PredictModel,
    SampleModel,
    ScoreModel,
    Site,
    StepModel,
)
from qvr_core.semantics.types.spaces import Constrained, Dim, Finite, Linear, Real
from qvr_core.semantics.types.walk import all_steps, operands, sites, until_arrows, values, walk


@dataclass(frozen=True)
class Reading:
    """A program as its printers see it."""

    snapshot: Snapshot
    program: Program
    data: tuple[DataArray, ...]
    open_sets: tuple[str, ...]
    """The sets whose sizes come with the data, in the order of their use."""
    labels: Mapping[str, tuple[str, ...]]
    """The labels of the sets that the file enumerates."""
    latents: frozenset[str]
    derived: frozenset[str]
    """The lets that depend on a latent."""
    ahead: frozenset[str]
    """What is predicted, and the lets that depend on it."""
    comments: Comments
    counts: Mapping[str, str | int]
    """The bound of each hidden count, by the name of how many values it has: a data name, or a number."""

    def lines(self, origin: Origin) -> int:
        """The line that a place is in, from 0."""
        return self.snapshot.range(origin).start.line

    def about(self, origin: Origin) -> tuple[tuple[str, ...], str]:
        """The comments above a statement, and the one beside it."""
        line = self.lines(origin)
        return self.comments.above.get(line, ()), self.comments.beside.get(line, "")

    @property
    def names(self) -> list[str]:
        """Every name that the program binds or reads, in order."""
        found = [item.name for item in self.data]
        for step in all_steps(self.program.steps):
            found += step.names if isinstance(step, LetModel) else [_name(step)]
        return list(dict.fromkeys(found))


def read(snapshot: Snapshot, name: str) -> Reading:
    """The reading of a program.  Raises `Refused` for what no target can say."""
    program = with_places(gathered(with_bounds(snapshot.model.programs[name])))
    _check(program)
    program = with_presence(program)
    data = tuple(data_of(program, snapshot.model))
    latents = frozenset(step.site.name for step in program.steps if isinstance(step, SampleModel))
    latents |= {site.name for site in filled(program)}
    predicted = frozenset(step.site.name for step in program.steps if isinstance(step, PredictModel))
    starts = [snapshot.range(_origin(step)).start.line for step in all_steps(program.steps)]
    starts += [snapshot.range(item.origin).start.line for item in program.data]
    header = snapshot.range(program.origin).start.line
    sets = {own: item.space.space for own, item in snapshot.model.objects.items()}
    return Reading(
        snapshot,
        program,
        data,
        tuple(dict.fromkeys(_open_sets(program, data))),
        {label: space.labels for label, space in sets.items() if isinstance(space, Finite) and space.labels},
        latents,
        _derived(program, latents),
        predicted | _derived(program, predicted),
        comments_of(snapshot.lines, header, starts),
        dict(_counts(program)),
    )


def size_called(name: str) -> str:
    """What the size of an open set is called, or how many values a hidden count has."""
    hidden = counted(Linear(0, ((name, 1),)))
    return f"n_{name.lower()}" if hidden is None else f"n_{hidden.replace('.', '_').lower()}_values"


def size_words(name: str) -> str:
    """What that is, in words."""
    hidden = counted(Linear(0, ((name, 1),)))
    return f"how many elements {name} has" if hidden is None else f"the largest bound of {hidden}, and 1"


def _counts(program: Program) -> Iterator[tuple[str, str | int]]:
    for step in all_steps(program.steps):
        if not isinstance(step, MarginalizeModel) or not is_counts(step.site.bound[0][1].space):
            continue
        site, draw = step.site, step.site.draw
        assert isinstance(draw, FamilyDraw)
        if draw.family != "DiscreteUniform":
            raise Refused(site.origin, f"`{site.name}`: hidden counts of {draw.family} are not exported")
        bound = dict(draw.args)["high"]
        while isinstance(bound, Arrange | Window):
            bound = bound.base
        space = site.bound[0][1].space
        assert isinstance(space, Finite)
        name = set_of(space.size) or ""
        match bound:
            case Data(name=data):
                yield name, data
            case Constant(value=int(number)):
                yield name, number
            case _:
                remedy = "declare it: `data high : Site -> Nat`"
                raise Refused(site.origin, f"`{site.name}`: a bound that is computed is not exported", remedy)


def ends_of(site: Site) -> tuple[float | None, float | None]:
    """Between which numbers a site draws, as far as that is written down."""
    space, draw = site.bound[0][1].space, site.draw
    low, high = (space.low, space.high) if isinstance(space, Real) else (None, None)
    if not isinstance(draw, FamilyDraw) or draw.declared:
        return low, high
    whole, bounds = untruncated(draw)
    first, last = own_ends(FAMILIES[whole.family], dict(whole.args)) if whole.family in FAMILIES else (None, None)
    given = {key: one.value for key, one in bounds if isinstance(one, Constant) and math.isfinite(float(one.value))}
    lowest, highest = (given.get(key) for key in ("truncate_lower", "truncate_upper"))
    lows, highs = (
        [float(end) for end in ends if end is not None] for ends in ((low, first, lowest), (high, last, highest))
    )
    return max(lows, default=None), min(highs, default=None)


def is_flat(draw: FamilyDraw) -> bool:
    """Whether a draw is from `Flat`, on whatever space."""
    return family_words(draw.family) == FLAT


def set_of(dim: Dim) -> str | None:
    """The set whose open size this is; None for a number."""
    if not isinstance(dim, Linear):
        return None
    if dim.constant == 0 and len(dim.terms) == 1 and dim.terms[0][1] == 1:
        return dim.terms[0][0].rpartition(".")[0] or dim.terms[0][0]
    return ""


def dependencies(step: StepModel) -> set[str]:
    """The bound names that a step reads, and the data."""
    found = {
        node.name for value in values(step) for node in walk(value, until_arrows) if isinstance(node, Bound | Data)
    }
    for value in values(step):
        for node in walk(value, until_arrows):
            if isinstance(node, Apply):
                found.add(getattr(node.arrow, "name", ""))
    return found


def _name(step: StepModel) -> str:
    match step:
        case LetModel(names=names) | ParamModel(names=names):
            return names[0]
        case ScoreModel(name=name):
            return name
        case _:
            return step.site.name


def _origin(step: StepModel) -> Origin:
    return step.origin if isinstance(step, LetModel | ScoreModel | ParamModel) else step.site.origin


def _derived(program: Program, latents: frozenset[str]) -> frozenset[str]:
    found: set[str] = set()
    for step in program.steps:
        if isinstance(step, LetModel) and dependencies(step) & (latents | found):
            found |= set(step.names)
    return frozenset(found)


def _check(program: Program) -> None:
    if program.guidance is not None:
        raise Refused(
            program.origin,
            f"`{program.name}` is the guide of `{program.guidance.model}`: guides fit, and models are exported",
            f"export `{program.guidance.model}`",
        )
    if program.template:
        parameters = ", ".join(one.name for one in program.template)
        verb = "is" if len(program.template) == 1 else "are"
        raise Refused(
            program.origin,
            f"`{program.name}` is a template: nothing says what its {parameters} {verb}",
            f"export a program that calls it: `sample a <- {program.name}(…)`",
        )
    if program.uses_input:
        raise Refused(
            program.origin,
            f"`{program.name}` reads its input row by row, and only programs that read data by name are exported",
            "declare what it reads: `data x : Row`",
        )
    for step in all_steps(program.steps):
        for node in (one for value in values(step) for one in walk(value, operands)):
            if isinstance(node, Builtin) and node.function == "parse":
                raise Refused(node.origin, "the chart of a deduction is not exported", "fit it here: `qvr run`")
        if isinstance(step, LetModel | ScoreModel | ParamModel):
            continue
        _check_site(step.site, predicted=isinstance(step, PredictModel), latent=isinstance(step, SampleModel))


def _check_site(site: Site, *, predicted: bool, latent: bool) -> None:
    def no(what: str, remedy: str = "") -> Refused:
        return Refused(site.origin, f"`{site.name}`: {what} is not exported", remedy)

    if isinstance(site.draw, ArrowDraw):
        raise no("a draw from a network", "draw from a family, whose arguments may call `linear` arrows with priors")
    if computed_name(truncated_name(site.draw.family) or site.draw.family) is not None:
        truncated = truncated_name(site.draw.family) is not None
        beside = {"that is truncated": truncated, "with missing cells that are filled": fills(site)}
        if more := next((words for words, there in beside.items() if there), None):
            raise no(f"a computed outcome {more}", "compute it from the data beforehand, or observe the name itself")
    if gated_name(truncated_name(site.draw.family) or site.draw.family) is not None:
        beside = {"that is censored or truncated": site.limits or truncated_name(site.draw.family) is not None}
        beside |= {"with missing cells": site.missing is not None, "that is predicted": predicted, "as a draw": latent}
        if more := next((words for words, there in beside.items() if there), None):
            raise no(f"a gate {more}")
    if (what := _not_of_file(site)) is not None:
        raise no(what)
    space = site.bound[0][1].space
    ordered = space if isinstance(space, Constrained) and space.kind == "Ordered" else None
    ends = [value for key, value in site.draw.args if key in (LOWEST.name, HIGHEST.name)]
    if latent and truncated_name(site.draw.family) is not None and not all(isinstance(end, Constant) for end in ends):
        raise no("a draw between bounds that are computed")
    if truncated_name(site.draw.family) is not None and (ordered is not None or not is_flat(site.draw)):
        what = "truncation" if site.element is None else f"a draw truncated by `: {site.element.written}`"
        beside = {"in order": ordered is not None, "that is predicted": predicted}
        beside |= {"with lengths": site.lengths is not None, "with missing cells": site.missing is not None}
        more = next((words for words, there in beside.items() if there), None)
        if more is not None:
            raise no(f"{what} {more}")
    for option in ("via", "at"):
        if getattr(site, option) is not None:
            raise no(f"the option `{option}`", "write the index instead: `y[i : Row] <- Normal(mu[group[i]], s)`")
    if site.each_row:
        raise no("draws in each row")
    for option, expr in (("mask", site.mask), ("weight", site.weight), ("lengths", site.lengths)):
        if expr is not None and expr.type.indexed and entry_axes(site):
            raise no(f"the option `{option}` of vectors whose entries are drawn one by one")
    if site.lengths is not None and not isinstance(site.lengths, Data | Constant):
        raise no("the option `lengths` that is computed", "declare it as data: `data n : Group -> Nat`")
    if values_of(None if site.chain is None else site.chain.start):
        raise no("a chain that starts from values")
    if site.missing is not None and site.missing.how == "sum":
        raise no("`[missing=impute]` of a discrete family", "fill in the cells, or leave out the rows")
    if fills(site) and event_dims(site):
        raise no("`[missing=impute]` of vectors", "fill in the cells, or leave out the rows")
    if site.missing is not None and site.missing.how == "drop" and (draws_whole(site) or event_dims(site)):
        whole = "vectors" if event_dims(site) else "whole numbers"
        raise no(f"`[missing=drop]` of {whole}", "fill in the cells, or leave out the rows")


def fills(site: Site) -> bool:
    """Whether a value is made for the missing cells of a step."""
    return site.missing is not None and site.missing.how != "drop"


def filled(program: Program) -> tuple[Site, ...]:
    """The observed steps whose missing cells are latents: their names stand for the completed values, in steps above
    them, too."""
    return tuple(site for site in sites(program.steps, ObserveModel) if fills(site))


def draws_whole(site: Site) -> bool:
    """Whether a site draws whole numbers."""
    return isinstance(site.draw, FamilyDraw) and facts_of_draw(site.draw).discrete


def _not_of_file(site: Site) -> str | None:
    """What cannot be said of a family that the file declares."""
    assert isinstance(site.draw, FamilyDraw)
    for draw in (site.draw, *draws_of(None if site.chain is None else site.chain.start)):
        if not draw.declared:
            continue
        family = family_of_file(draw)
        mixed = component_names(draw.family)
        if mixed and not site.limits and all(is_of_numbers(one) for one in draw.declared if one.name in mixed):
            continue
        if family is None:
            return "a family that the file declares, within another,"
        if site.limits:
            return "censoring and truncation of a family that the file declares"
        if not is_of_numbers(family):
            return "a family of vectors or of codes that the file declares"
    return None


def _open_sets(program: Program, data: Sequence[DataArray]) -> Iterator[str]:
    def named(dims: Sequence[Dim], origin: Origin) -> Iterator[str]:
        for dim in dims:
            name = set_of(dim)
            if name == "":
                raise Refused(origin, f"the size {dim} is a sum, which is not exported", "declare a set of that size")
            if name is not None:
                yield name

    for item in data:
        yield from named(item.sizes, item.origin)
        if item.values is not None:
            yield from named((item.values.size,), item.origin)
    for step in all_steps(program.steps):
        if not isinstance(step, LetModel | ScoreModel | ParamModel):
            yield from named((*plate_dims(step.site), *event_dims(step.site)), step.site.origin)
            chain = step.site.chain
            if isinstance(step, MarginalizeModel) and is_counts(space := step.site.bound[0][1].space):
                yield from named((getattr(space, "size", 0),), step.site.origin)
            if chain is not None:
                indices = chain.indices
                yield from named([i.space.size for i in indices if isinstance(i.space, Finite)], step.site.origin)
        for value in values(step):
            for node in walk(value, until_arrows):
                if isinstance(node, IndexValue | Window | Scatter):
                    yield from named((node.size,), node.origin)
