"""Mixtures: of infinitely many Normals or of some, and of any families on one support."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from qvr_core.arrays.engine import Generator, Tensor, arrays, broadcasting
from qvr_core.runtime.families.cumulative.tails import Tails, mixed, mixed_mass, normal_tails
from qvr_core.runtime.families.densities import LOG_PI, LOG_SQRT_2PI, normal_log_prob
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.links import HeadPlan, Params, positive
from qvr_core.runtime.families.normal import NORMAL
from qvr_core.runtime.families.parameters import CLASS_PROBS, REAL, SCALE
from qvr_core.runtime.families.parametrisations import canonical
from qvr_core.runtime.families.random_draws import Shape, normals, open_uniforms
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.semantics.language.family import Family, Parameter, Support
from qvr_core.semantics.language.mixtures import MIXTURE, WEIGHTS, mixture_of


def horseshoe_draw(shape: Shape, generator: Generator | None, scale: Tensor) -> Tensor:
    local = 1.0 / arrays.tan(0.5 * math.pi * (1.0 - open_uniforms(shape, scale, generator)))
    return scale * local * normals(shape, scale, generator)


def _scaled_e1(x: Tensor) -> Tensor:
    """eˣ E₁(x) for x > 0: the series below 1, Lentz's continued fraction above (Press et al., 6.3)."""
    small = x.clamp(max=1.0)
    total, term = arrays.zeros_like(small), arrays.ones_like(small)
    for k in range(1, 20):
        term = term * (-small / k)
        total = total - term / k
    series = small.exp() * (total - small.log() - 0.57721566490153286)
    large = x.clamp(min=1.0)
    fraction = arrays.zeros_like(large)
    for k in range(40, 0, -1):
        fraction = k / (1.0 + k / (large + fraction))
    return arrays.where(x < 1.0, series, 1.0 / (large + fraction))


def horseshoe_log_prob(value: Tensor, scale: Tensor) -> Tensor:
    """p(x) = eᵏ E₁(k) / (σ √(2π³)), k = x² / 2σ² (Carvalho, Polson & Scott 2010); infinite at 0."""
    k = (0.5 * (value / scale).square()).clamp(min=arrays.finfo(value.dtype).tiny)
    return _scaled_e1(k).log() - scale.log() - LOG_SQRT_2PI - LOG_PI


HORSESHOE = RuntimeFamily(
    Family(
        "Horseshoe", (replace(SCALE, default=1.0),), REAL, "value", "sparse: a Normal with a HalfCauchy local scale"
    ),
    horseshoe_log_prob,
    draw=horseshoe_draw,
)


def mixture_normal_draw(
    shape: Shape, generator: Generator | None, logits: Tensor, locs: Tensor, scales: Tensor
) -> Tensor:
    count = locs.shape[-1]
    noise = open_uniforms((*shape, count), locs, generator)
    choice = (logits.detach() - (-noise.log()).log()).argmax(-1, keepdim=True)
    loc = locs.expand(*shape, count).gather(-1, choice).squeeze(-1)
    scale = scales.expand(*shape, count).gather(-1, choice).squeeze(-1)
    return loc + scale * normals(shape, loc, generator)


def mixture_normal_log_prob(value: Tensor, logits: Tensor, locs: Tensor, scales: Tensor) -> Tensor:
    each = arrays.log_softmax(logits, -1) + normal_log_prob(value.unsqueeze(-1), locs, scales)
    return arrays.logsumexp(each, -1)


def mixture_normal_tails(value: Tensor, logits: Tensor, locs: Tensor, scales: Tensor) -> Tails:
    return mixed(normal_tails((value.unsqueeze(-1) - locs) / scales), arrays.log_softmax(logits, -1))


def mixture_normal_between(lower: Tensor, upper: Tensor, logits: Tensor, locs: Tensor, scales: Tensor) -> Tensor:
    each = NORMAL.log_between(lower.unsqueeze(-1), upper.unsqueeze(-1), locs, scales)
    return mixed_mass(each, arrays.log_softmax(logits, -1))


def _mixture_normal_link(head: HeadPlan, raw: Tensor) -> Params:
    shape = (head.event_shape[0], -1)
    weights, locs, scales = (arrays.unflatten(piece, -1, shape) for piece in head.pieces(raw).values())
    return weights, locs, positive(scales) * head.scale


MIXTURE_NORMAL = RuntimeFamily(
    Family(
        "MixtureNormal",
        (
            replace(CLASS_PROBS, name="weights", aliases=("probs", "w"), raw="components"),
            Parameter("locs", "vector", "real", ("loc", "means", "mu"), raw="components"),
            Parameter("scales", "vector", "positive vector", ("scale", "stds", "sigma"), raw="components"),
        ),
        REAL,
        "value",
        "a mixture of Normals, components along the last axis",
        head_options={"components": 2},
    ),
    mixture_normal_log_prob,
    draw=mixture_normal_draw,
    reparameterised=False,  # a component is chosen
    link=_mixture_normal_link,
    mean=lambda logits, locs, scales: (arrays.log_softmax(logits, -1).exp() * locs).sum(-1),
    tails=mixture_normal_tails,
    between=mixture_normal_between,
)


# ---------------------------------------------------------------- any families

_WEIGHTS_ALONE = Family(MIXTURE, (WEIGHTS,), Support("finite"), "value", "")


@dataclass(frozen=True, slots=True)
class MixtureFamily(RuntimeFamily):
    """A mixture; its parameters are the logits of the weights (…, K), then those of each component in turn."""

    components: tuple[RuntimeFamily, ...] = ()

    @property
    def ranks(self) -> tuple[int, ...]:
        """Those of the runtime's parameters."""
        return (1, *(rank for component in self.components for rank in component.ranks))

    def canonical(self, arguments: Mapping[str, Tensor]) -> Params:
        """Each component's arguments in its own form, behind the logits of the weights."""
        like = next(iter(arguments.values()))
        made: list[Tensor] = list(canonical(_WEIGHTS_ALONE, _named(arguments, None), {}))
        if made[0].shape[-1:] != (len(self.components),):
            found = made[0].shape[-1] if made[0].ndim else 1
            raise InputProblem(f"{self.name} has {len(self.components)} components, and its weights are {found}")
        for at, component in enumerate(self.components, 1):
            own = _named(arguments, at)
            # a component that is left to its defaults takes the precision of the weights
            made += component.canonical(own) if own else (part.to(like.dtype) for part in component.canonical({}))
        return tuple(made)


def _named(arguments: Mapping[str, Tensor], component: int | None) -> dict[str, Tensor]:
    if component is None:
        return {name: value for name, value in arguments.items() if name in ("weights", "logits")}
    end = f"_{component}"
    return {name.removesuffix(end): value for name, value in arguments.items() if name.endswith(end)}


def mixed_family(components: Sequence[RuntimeFamily]) -> RuntimeFamily:
    """The mixture of some families on one support."""
    parts = tuple(components)
    counts = [len(part.ranks) for part in parts]
    facts = mixture_of([part.facts for part in parts])

    def cut(parameters: Params) -> list[Params]:
        found: list[Params] = []
        at = 0
        for count in counts:
            found.append(parameters[at : at + count])
            at += count
        return found

    def log_prob(value: Tensor, logits: Tensor, *parameters: Tensor) -> Tensor:
        each = [part.log_prob(value, *own) for part, own in zip(parts, cut(parameters), strict=True)]
        return arrays.logsumexp(arrays.log_softmax(logits, -1) + _stacked(each), -1)

    def draw(shape: Shape, generator: Generator | None, logits: Tensor, *parameters: Tensor) -> Tensor:
        batch, event = shape[: len(shape) - facts.event], shape[len(shape) - facts.event :]
        each: list[Tensor] = []
        for part, own in zip(parts, cut(parameters), strict=True):
            inner = part.noise_event(own, event) or ()
            each.append(part.value_of(part.fresh_noise((*batch, *inner), generator, own), own))
        uniforms = open_uniforms((*batch, len(parts)), logits, generator)
        choice = (logits.detach() - (-uniforms.log()).log()).argmax(-1)
        choice = choice.reshape(*batch, *(1,) * (facts.event + 1)).expand(*shape, 1)
        return _stacked([one.expand(shape) for one in each]).gather(-1, choice).squeeze(-1)

    def tails(value: Tensor, logits: Tensor, *parameters: Tensor) -> Tails:
        each = [part.log_tails(value, *own) for part, own in zip(parts, cut(parameters), strict=True)]
        lower, upper = (_stacked([one[side] for one in each]) for side in (0, 1))
        return mixed((lower, upper), arrays.log_softmax(logits, -1))

    def between(lower: Tensor, upper: Tensor, logits: Tensor, *parameters: Tensor) -> Tensor:
        each = [part.log_between(lower, upper, *own) for part, own in zip(parts, cut(parameters), strict=True)]
        return mixed_mass(_stacked(each), arrays.log_softmax(logits, -1))

    def log_table(logits: Tensor, *parameters: Tensor) -> Tensor:
        each = [part.log_table(*own) for part, own in zip(parts, cut(parameters), strict=True) if part.log_table]
        return arrays.logsumexp(arrays.log_softmax(logits, -1).unsqueeze(-2) + _stacked(each), -1)

    def categories(logits: Tensor, *parameters: Tensor) -> int:
        found = (part.categories(*own) for part, own in zip(parts, cut(parameters), strict=True) if part.categories)
        return max(found)

    return MixtureFamily(
        facts,
        log_prob,
        draw=draw,
        reparameterised=False,  # a component is chosen
        conversions={
            f"{name}_{at}": convert for at, part in enumerate(parts, 1) for name, convert in part.conversions.items()
        },
        noise_event=lambda parameters, event: parts[0].noise_event(cut(parameters[1:])[0] if parameters else (), event),
        categories=categories if all(part.categories for part in parts) else None,
        log_table=log_table if all(part.log_table for part in parts) else None,
        between=between if all(part.tails for part in parts) else None,
        tails=tails if all(part.tails for part in parts) else None,
        bijector=parts[0].bijector,
        components=parts,
    )


def _stacked(each: Sequence[Tensor]) -> Tensor:
    return arrays.stack(broadcasting.broadcast_tensors(*each), -1)
