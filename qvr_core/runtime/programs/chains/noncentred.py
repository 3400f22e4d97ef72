"""Chains that a sampler moves by their standardised innovations: `sample h[t : Time] <- Normal(…h[t - 1]…, s) from …
[noncentred]`.

h[t] = shift(h before t) + scale · z[t].  Where the shift is affine in what it reads, all elements are solved at once;
else they are made in order, as one loop where shift and scale are made of its functions.  The density of all elements
is then that of z, evaluated at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from qvr_core.arrays.engine import TORCH, Tensor, arrays
from qvr_core.arrays.graph import current
from qvr_core.runtime.families.bijectors import Restored, Standardised, restored
from qvr_core.runtime.programs.arithmetic import Parts
from qvr_core.runtime.programs.chain_site import ChainSite, Draws, Elements, StartDraw
from qvr_core.runtime.programs.chains.linear_recursion import LinearRecursion, affine_in
from qvr_core.runtime.programs.chains.turns import Element, element_of
from qvr_core.runtime.programs.execution import SiteKind, SiteRecord
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.programs.site_terms import Terms
from qvr_core.runtime.values.cells import Cell
from qvr_core.semantics.types.axes import axis_of
from qvr_core.semantics.types.model.expressions import Bound, Builtin, Expr, ValueType, Window
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import Chain, Site
from qvr_core.semantics.types.walk import operands, walk

if TYPE_CHECKING:
    from qvr_core.runtime.programs.chains.taped_recursion import TapedRecursion


class NoncentredChain(ChainSite):
    """A chain whose unconstrained numbers are its standardised innovations, (B, *sizes)."""

    def __init__(self, site: Site, kind: SiteKind, program: str, parts: Parts) -> None:
        super().__init__(site, kind, program, parts)
        how = self.family.standardised
        assert how is not None and site.chain is not None and isinstance(site.draw, FamilyDraw)
        self.how: Standardised = how
        self.linear = _affine(site.draw, how, site.chain, self.name, parts)
        self.taped = None if self.linear else _taped(site.draw, how, site.chain, self.name, parts)

    def elements(self, frame: Frame) -> Elements:
        free = frame.request.unconstrained.get(self.name)
        return Draws(self, frame) if free is None else Innovations(self, free)

    def given_value(self, frame: Frame) -> Tensor | None:
        given = self._given(frame)
        return None if given is None else self._fit(given, frame)

    def moved(self, free: Tensor, frame: Frame) -> SiteRecord:
        if tuple(free.shape[1 : 1 + len(self.sizes)]) != self.sizes:
            raise self.where.misfit(f"standardised values {self.sizes}", f"shape {tuple(free.shape[1:])}")
        made = Innovations(self, free)
        value = self._solved(made, frame)
        return made.record(self.grown(made, frame) if value is None else value, frame)

    def _solved(self, made: Innovations, frame: Frame) -> Tensor | None:
        """All elements together; None where nothing does that, or they overflow on the way."""

        def constant(frame: Frame) -> Cell:
            return Cell(made.restored(frame, made.later_free, len(self.sizes)).value, True)

        together = replace(self.linear, constants=[constant]) if self.linear else self.taped
        if together is None or current() is not None:
            return None  # a recorded loop is a loop
        frame.bound[_innovation(self.name)] = Cell(made.later_free, True)
        found = together.solve(frame, [[Cell(value, True) for value in made.first(frame)]], self.sizes)
        return None if found is None else found[0].value


@dataclass(slots=True)
class Innovations:
    """The elements of a chain by their standardised innovations `free`, (B, *sizes)."""

    site: NoncentredChain
    free: Tensor

    @property
    def later_free(self) -> Tensor:
        """The innovations of all elements but the first."""
        return self.site.split(self.free)[1]

    def first(self, frame: Frame) -> Sequence[Tensor]:
        value = self._first(frame).value
        axis = self.site.axis + 1
        return [value.narrow(axis, at, 1) for at in range(self.site.lag)]

    def later(self, frame: Frame, element: Element) -> Tensor:
        free = element_of(self.free, self.site.axis + 1, element)
        return self.restored(frame, free, len(self.site.sizes)).value

    def restored(self, frame: Frame, free: Tensor, rank: int) -> Restored:
        """The elements that the frame's windows are on, given what they read."""
        site = self.site
        parameters = site.arguments.canonical(site.arguments.align(frame, site.event, None), rank)
        return restored(free, site.how, site.family.log_prob, parameters)

    def _first(self, frame: Frame) -> Restored:
        """The first elements, (B, *sizes) with an axis for them; given ones have no density."""
        site = self.site
        free, _ = site.split(self.free)
        axis = site.axis + 1
        if not site.starts:
            value = arrays.cat(site.first_values(frame), axis) if site.lag else free
            nothing = free.new_zeros(free.shape[: len(site.sizes) + 1])
            return Restored(value, nothing, nothing)
        made: list[Restored] = []

        def of_start(start: StartDraw, part: Tensor) -> Tensor:
            how = start.family.standardised
            assert how is not None
            made.append(restored(part, how, start.family.log_prob, site.start_parameters(start, frame)))
            return made[-1].value

        value = site.by_start(free, of_start)
        densities = (arrays.cat([site.in_place(part) for part in parts], axis) for parts in _densities(made, site))
        return Restored(value, *densities)

    def record(self, value: Tensor, frame: Frame) -> SiteRecord:
        site = self.site
        value = site.with_stand_ins(value, frame)
        frame.bound[site.name] = Cell(value, True)
        first, later = self._first(frame), self.restored(frame, self.later_free, len(site.sizes))
        record = SiteRecord(site.name, site.kind, False, value, None, None, {}, site.site.density)
        batch = later.value.shape[: len(site.sizes) + 1]
        each = arrays.cat([first.log_jacobian, later.log_jacobian.expand(batch)], site.axis + 1)
        record.log_jacobian = site.moving(each, self.free, frame)
        if frame.request.wants(site.name) or frame.request.wanted:
            density = arrays.cat([first.log_density, later.log_density.expand(batch)], site.axis + 1)
            record.log_prob = site.weighted(Terms(density, True), frame, None).per_row(frame.rows)
        return record


def _densities(made: Sequence[Restored], site: NoncentredChain) -> tuple[list[Tensor], list[Tensor]]:
    """The densities and the Jacobians of first elements, (B, …), each as wide as its value."""
    shapes = [one.value.shape[: len(site.sizes) + 1] for one in made]
    densities = [one.log_density.expand(shape) for one, shape in zip(made, shapes, strict=True)]
    return densities, [one.log_jacobian.expand(shape) for one, shape in zip(made, shapes, strict=True)]


def _affine(draw: FamilyDraw, how: Standardised, chain: Chain, name: str, parts: Parts) -> LinearRecursion | None:
    """The recursion of a chain whose only argument that reads its own elements is an affine shift."""
    if how.positive or how.matrix:
        return None
    own = [key for key, value in draw.args if any(_reads(part, name) for part in walk(value, operands))]
    if own != [how.shift]:
        return None
    shift = _inside(dict(draw.args)[own[0]], chain)
    return affine_in((name,), [shift], chain.indices, chain.at, parts, chain.indices[chain.at].lag)


def _taped(draw: FamilyDraw, how: Standardised, chain: Chain, name: str, parts: Parts) -> TapedRecursion | None:
    """The loop of a chain whose elements, or their logarithms, are shift + scale · z."""
    if not TORCH:
        return None  # tapes are torch's
    given = {key: _inside(value, chain) for key, value in draw.args}
    if how.shift is None or how.matrix or not {how.shift, "scale"} <= given.keys():
        return None
    shift, scale = given[how.shift], given["scale"]
    axes = tuple(axis_of(getattr(index.space, "nominal", None), index.name) for index in chain.indices)
    kind = replace(shift.type, indexed=axes)
    z = Bound(type=kind, origin=draw.origin, name=_innovation(name))
    value = _call("add", shift, _call("mul", scale, z, kind=kind), kind=kind)
    value = _call("exp", value, kind=kind) if how.positive else value
    from qvr_core.runtime.programs.chains.taped_recursion import taped

    return taped((name,), [value], chain.indices, chain.at, parts, chain.indices[chain.at].lag)


def _call(function: str, *args: Expr, kind: ValueType) -> Builtin:
    return Builtin(type=kind, origin=args[0].origin, function=function, args=args)


def _innovation(name: str) -> str:
    """What the innovations of a chain are bound to; no name of a program has a sign in it."""
    return f"{name}~"


def _inside(argument: Expr, chain: Chain) -> Expr:
    """An argument, which has the axes of the step in their order, with their names inside of the step."""
    axes = tuple(axis_of(getattr(index.space, "nominal", None), index.name) for index in chain.indices)
    if not isinstance(argument, Window | Builtin) or len(argument.type.indexed) != len(axes):
        return argument
    return replace(argument, type=replace(argument.type, indexed=axes))


def _reads(expr: Expr, name: str) -> bool:
    return isinstance(expr, Bound) and expr.name == name
