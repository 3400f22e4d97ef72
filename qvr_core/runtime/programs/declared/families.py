"""Families that a file declares, at run time: their formulas evaluated element by element.

Shapes: a value is (*batch, *event), a parameter (*batch, *own), and whatever has another batch shape broadcasts from
the last axis, as for any family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from qvr_core.arrays.engine import Generator, Tensor, arrays, broadcasting
from qvr_core.runtime.families import RUNTIME_FAMILIES, RuntimeFamily
from qvr_core.runtime.families.bijectors import Standardised
from qvr_core.runtime.families.cumulative.tails import Tails, log1mexp, upper_first
from qvr_core.runtime.families.gated import gated_family
from qvr_core.runtime.families.links import Params, by_constraint
from qvr_core.runtime.families.mixtures import mixed_family
from qvr_core.runtime.families.on_spaces.outcomes import outcome_family
from qvr_core.runtime.families.on_spaces.truncated import truncated_family
from qvr_core.runtime.families.random_draws import Shape
from qvr_core.runtime.families.soundness import TOLERANCE, beyond
from qvr_core.runtime.programs.arithmetic import Parts
from qvr_core.runtime.programs.declared.formulas import Formulas, Values
from qvr_core.runtime.values.errors import InputProblem, NoDraws
from qvr_core.runtime.values.indices import in_transform, recording
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.language.declared_families import facts_of
from qvr_core.semantics.language.family import Family, Parameter, bounds_of
from qvr_core.semantics.language.gates import gated_name
from qvr_core.semantics.language.mixtures import component_names
from qvr_core.semantics.language.outcomes import computed_name
from qvr_core.semantics.language.truncated import truncated_name
from qvr_core.semantics.types.model.expressions import Bound, Expr
from qvr_core.semantics.types.model.families import DeclaredFamily, FamilyDraw, Standard


def runtime_family(draw: FamilyDraw, parts: Parts) -> RuntimeFamily:
    """The family, or mixture, that is drawn from."""
    if not draw.declared:
        return RUNTIME_FAMILIES[draw.family]
    return _named(draw.family, {one.name: declared_family(one, parts) for one in draw.declared})


def _named(name: str, own: Mapping[str, RuntimeFamily]) -> RuntimeFamily:
    if (inner := truncated_name(name)) is not None:
        return truncated_family(_named(inner, own))
    if (outcome := computed_name(name)) is not None:
        return outcome_family(_named(outcome[1], own), outcome[0])
    if (gate := gated_name(name)) is not None:
        return gated_family(gate[0], _named(gate[1], own))
    components = component_names(name)
    if components is None:
        return own[name] if name in own else RUNTIME_FAMILIES[name]
    return mixed_family([_named(one, own) for one in components])


@dataclass(frozen=True, slots=True)
class OwnFamily(RuntimeFamily):
    """A declared family; its parameters are its arguments as they are given."""

    def canonical(self, arguments: Mapping[str, Tensor]) -> Params:
        """The arguments in the order of the parameters, those that are left out by their defaults."""
        like = next(iter(arguments.values()), None)
        dtype = precision() if like is None or not like.is_floating_point() else like.dtype
        return tuple(_argument(one, arguments.get(one.name), dtype) for one in self.facts.parameters)


def _argument(parameter: Parameter, given: Tensor | None, dtype: arrays.dtype) -> Tensor:
    if given is None:
        assert parameter.default is not None, f"{parameter.name} is not given"
        return arrays.as_tensor(parameter.default, dtype=dtype)
    value = given if given.is_floating_point() else given.to(dtype)
    if parameter.rank == 1 and value.ndim == 0 and isinstance(parameter.length, int):
        return value.expand(parameter.length)
    return value


def declared_family(declared: DeclaredFamily, parts: Parts) -> RuntimeFamily:
    """A declared family, compiled."""
    facts = facts_of(declared)
    made = _Compiled(declared, facts, Formulas(declared, parts, lambda inner: runtime_family(inner, parts)))
    return OwnFamily(
        facts,
        made.log_prob,
        draw=_undrawn(facts) if declared.draw is None else made.draw,
        reparameterised=made.formulas.smooth,
        link=by_constraint,
        noise_event=made.event,
        categories=made.categories if facts.support.kind == "finite" else None,
        log_table=made.log_table if facts.support.kind == "finite" else None,
        tails=made.tails if facts.cdf else None,
        standardised=None if declared.standard is None else _standardised(declared.standard, facts, made),
    )


def _standardised(standard: Standard, facts: Family, made: _Compiled) -> Standardised:
    """By the form that the family gives.  The density stays that of the value: nothing checks that the family is one of
    location and scale, and it need not be."""
    above = facts.support.low is not None
    shift, factor = (one.name if isinstance(one, Bound) else None for one in (standard.shift, standard.factor))

    def affine(*parameters: Tensor) -> tuple[Tensor, Tensor]:
        by = made.part(standard.factor, parameters)
        if above:  # the logarithm of an element is that of its standardised one and of the factor
            return by.log(), arrays.ones_like(by)
        return arrays.zeros_like(by) if standard.shift is None else made.part(standard.shift, parameters), by

    known = shift is not None and factor == "scale" and shift in {one.name for one in facts.parameters}
    return Standardised(affine, None, positive=above, shift=shift if known else None)


def _undrawn(facts: Family) -> Callable[..., NoReturn]:
    def draw(*_: object) -> NoReturn:
        raise NoDraws(
            f"`{facts.name}` does not say how it is drawn: add a line `draw = …` to it; without one it can be "
            "observed, and its latents sampled by NUTS"
        )

    return draw


@dataclass(frozen=True, slots=True)
class _Compiled:
    declared: DeclaredFamily
    facts: Family
    formulas: Formulas

    def _values(self, parameters: Params, **more: Tensor) -> Values:
        named = zip(self.facts.parameters, parameters, strict=True)
        return {one.name: (value, one.rank) for one, value in named} | {
            name: (value, self.facts.event) for name, value in more.items()
        }

    def log_prob(self, value: Tensor, *parameters: Tensor) -> Tensor:
        """−∞ outside the support; NaN where a parameter lies outside of its bounds."""
        value = self._numbers(value, parameters)
        ok, inside = self._inside(value, parameters)
        formula = self.declared.density
        found = self.formulas.value(formula.value, self._values(parameters, **{formula.argument: inside}))
        density = found if ok is None else arrays.where(ok, found, -math.inf)
        for parameter, given in zip(self.facts.parameters, parameters, strict=True):
            if (wrong := _outside(parameter, given)) is not None:
                density = arrays.where(wrong, math.nan, density)
        # a formula that does not read the element is that of each
        elements = broadcasting.broadcast_shapes(density.shape, value.shape[: value.ndim - self.facts.event])
        return density if density.shape == elements else density.expand(elements)

    def part(self, formula: Expr, parameters: Params) -> Tensor:
        """A formula of the parameters alone, for each element of their batch."""
        return self.formulas.value(formula, self._values(parameters))

    def _numbers(self, value: Tensor, parameters: Params) -> Tensor:
        """A value as the formulas take it: an index of a finite set, else a real number."""
        if self.facts.support.kind == "finite":
            return value
        like = next((one.dtype for one in parameters if one.is_floating_point()), precision())
        return value if value.is_floating_point() else value.to(like)

    def _inside(self, value: Tensor, parameters: Params) -> tuple[Tensor | None, Tensor]:
        """Where a value is possible (None: everywhere), and the value with a possible one where it is not."""
        support = self.facts.support
        if support.kind == "Simplex":
            ok = (value >= -TOLERANCE).all(-1) & ((value.sum(-1) - 1.0).abs() < 1e-3)
            return ok, arrays.where(ok.unsqueeze(-1), value, 1.0 / value.shape[-1])
        low, high = support.low, support.high
        if support.kind == "finite":
            high = self.categories(*parameters) - 1.0
            low = 0.0
        if low is None and high is None:
            return None, value
        ok = ~beyond(value, low, high)
        if support.kind != "real":
            ok = ok & (value == value.round() if value.is_floating_point() else True)
        end = low if low is not None else high
        assert end is not None
        middle = 0.5 * (low + high) if low is not None and high is not None else end + (1.0 if high is None else -1.0)
        possible = arrays.where(ok, value, end if self.facts.discrete else middle)
        if support.kind == "finite":
            possible = possible.long()
        return (ok.all(-1), possible) if self.facts.event else (ok, possible)

    def draw(self, shape: Shape, generator: Generator | None, *parameters: Tensor) -> Tensor:
        batch = shape[: len(shape) - self.facts.event]
        drawn = self.formulas.drawn(self._values(parameters), batch, generator)
        drawn = drawn.expand(shape) if drawn.shape != shape else drawn
        if not (recording() or in_transform()):
            self._check_drawn(drawn, parameters)
        return drawn

    def _check_drawn(self, drawn: Tensor, parameters: Params) -> None:
        ok, _ = self._inside(drawn, parameters)
        if ok is None or bool(ok.all()):
            return
        found = drawn[~ok].flatten()[: (self.facts.event and drawn.shape[-1]) or 1]
        what = ", ".join(f"{float(one):g}" for one in found)
        raise InputProblem(f"`draw` of `{self.facts.name}` gives {what}, which is no `{self.declared.space.written}`")

    def event(self, parameters: Params, event: Shape | None) -> Shape | None:
        """The shape of one draw."""
        if not self.facts.event:
            return ()
        length = self._length(parameters)
        return event if length is None else (length,)

    def _length(self, parameters: Params) -> int | None:
        wanted = self.facts.length
        if wanted is None or isinstance(wanted, int):
            return wanted
        sized = zip(self.facts.parameters, parameters, strict=False)
        return next((value.shape[-1] for one, value in sized if one.length == wanted and value.ndim), None)

    def categories(self, *parameters: Tensor) -> int:
        """How many values there are of a finite set."""
        length = self._length(parameters) if self.facts.support.size is None else self.facts.support.size
        if length is None:
            raise InputProblem(f"nothing says how many values `{self.facts.name}` has")
        return length

    def log_table(self, *parameters: Tensor) -> Tensor:
        """The log-probabilities of all values, on a last axis."""
        values = arrays.arange(self.categories(*parameters))
        return arrays.stack(
            broadcasting.broadcast_tensors(*(self.log_prob(value, *parameters) for value in values)), -1
        )

    def tails(self, value: Tensor, *parameters: Tensor) -> Tails:
        """log P(Y ≤ value) and log P(Y > value), of the shape that value and parameters broadcast to."""
        cdf, survival = self.declared.cdf, self.declared.log_survival
        upper = None
        if survival is not None:
            upper = self.formulas.value(survival.value, self._values(parameters, **{survival.argument: value}))
        if cdf is None:
            assert upper is not None
            return upper_first(upper)
        below = self.formulas.value(cdf.value, self._values(parameters, **{cdf.argument: value}))
        return _both(below, upper)


def _both(below: Tensor, upper: Tensor | None) -> Tails:
    """Both tails from P(X ≤ x), and from the upper one where it is known; each from what has its digits."""
    below = arrays.where((below < -TOLERANCE) | (below > 1.0 + TOLERANCE), math.nan, below.clamp(0.0, 1.0))
    possible, certain = below > 0.0, below >= 1.0
    lower = arrays.where(possible, arrays.where(possible, below, 1.0).log(), -math.inf)
    if upper is None:
        rest = arrays.log1p(-arrays.where(certain, 0.0, below))
        return lower, arrays.where(certain, -math.inf, rest)
    return arrays.where(below > 0.5, log1mexp(upper), lower), upper


def _outside(parameter: Parameter, value: Tensor) -> Tensor | None:
    """Where an argument lies outside of what its parameter takes; None where it can be anything."""
    match parameter.constraint:
        case "positive":
            return value <= 0
        case "positive vector":
            return (value <= 0).any(-1)
        case "unit":
            wrong = beyond(value, -TOLERANCE, 1.0 + TOLERANCE)
        case "simplex":
            return (value < -TOLERANCE).any(-1) | ((value.sum(-1) - 1.0).abs() > 1e-3)
        case "ordered":
            return (value[..., 1:] <= value[..., :-1]).any(-1)
        case "natural":
            return (value < 0) | (value != value.round())
        case constraint:
            ends = bounds_of(constraint)
            if ends is None:
                return None
            wrong = beyond(value, *ends)
    return wrong.any(-1) if parameter.rank else wrong
