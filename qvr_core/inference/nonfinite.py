"""Where a density, a loss or a gradient stopped being finite."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.container_types import is_tuple
from qvr_core.inference.guides.base import Guide
from qvr_core.inference.objectives import weigh
from qvr_core.runtime.families.soundness import counted, sound_arguments
from qvr_core.runtime.programs.execution import Execution, SiteRecord
from qvr_core.runtime.programs.frame import as_tensor
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.arrow import Value
from qvr_core.runtime.values.errors import NonFinite
from qvr_core.runtime.values.first_cause import row_words
from qvr_core.runtime.values.layout import parts
from qvr_core.semantics.types.data_text import missing_advice
from qvr_core.semantics.types.model.expressions import Data
from qvr_core.semantics.types.model.steps import ObserveModel
from qvr_core.semantics.types.walk import sites

NO_DENSITY = "an observed value lies outside the support, or the arguments leave it no chance (a mean or a scale of 0)"


def first_non_finite(
    model: ProgramModule, guide: Guide, x: object, observations: Mapping[str, Any] | None
) -> NonFinite:
    """Run once more and name the first quantity that is NaN or infinite, in program order: parameters, values,
    densities, then gradients."""
    named = named_parameters(model, guide)
    if (lost := lost_parameter(model, named)) is not None:
        return lost
    value = model.input(x)
    rows = 1 if value is None else parts(value)[0].shape[0]
    found = blamed_data(model, value, observations or {})
    if found is not None:
        return found
    try:
        with arrays.enable_grad(), sound_arguments():
            run, log_weights = weigh(model, guide, value, observations or {}, rows)
            found = blamed(model.name, run) or _blamed_gradient(model.name, run, log_weights, named)
    except NonFinite as wrong:
        return wrong
    return found or NonFinite(f"`{model.name}`: the loss or its gradient is not finite")


def named_parameters(model: ProgramModule, guide: Guide) -> dict[str, Tensor]:
    """Those of both, as they are called in what is said of them."""
    return {**dict(model.named_parameters()), **{f"guide.{n}": p for n, p in guide.named_parameters()}}


def lost_parameter(model: ProgramModule, named: Mapping[str, Tensor]) -> NonFinite | None:
    """The first parameter that is not finite."""
    for name, parameter in named.items():
        if not finite(parameter):
            return NonFinite(f"`{model.name}`: the parameter `{name}` is no longer finite; lower the learning rate")
    return None


def blamed_data(model: ProgramModule, x: Value | None, observations: Mapping[str, Any]) -> NonFinite | None:
    """The first of the input, the data and the observed values that is not finite."""
    given: dict[str, Any] = {**model.data, **observations}
    named = [("the input", None, x)] if x is not None else []
    named += [
        (f"site `{n}`: the observed value" if n in model.sites else f"data `{n}`", n, v) for n, v in given.items()
    ]
    gapped = {site.name for site in (*model.gapped, *model.unequal.sites)}
    observed = {name for name, site in model.sites.items() if site.kind == "observe"}
    endless = _interval_ends(model)
    for what, site, value in named:
        for part in _tensors(as_tensor(value)):
            if site in endless:
                part = part[part != math.inf]
            left_out = arrays.isnan(part) if site in gapped and part.is_floating_point() else None
            if part.is_floating_point() and not finite(part if left_out is None else part[~left_out]):
                first = tuple(map(int, (~arrays.isfinite(part)).nonzero()[0]))
                where = f", the first in {row_words(first[0])}" if first else ""
                advice = f"; {missing_advice(site)}" if site in observed and bool(arrays.isnan(part).any()) else ""
                return NonFinite(f"`{model.name}`: {what} {counted(part)}{where}{advice}", site=site)
    return None


def _interval_ends(model: ProgramModule) -> set[str]:
    """The data that may be ∞: upper ends of intervals."""
    limits = [limit for site in sites(model.program.steps, ObserveModel) for limit in site.limits]
    return {end.name for key, end in limits if key == "interval" and isinstance(end, Data)}


def blamed(program: str, run: Execution) -> NonFinite | None:
    """The first value or log density of an execution that is not finite."""
    for name, site in run.sites.items():
        given = "observed value" if site.observed else "value"
        for part in _tensors(site.value):
            if part.is_floating_point() and not finite(part if site.absent is None else site.existing(part)):
                return NonFinite(f"`{program}`: site `{name}`: the {given} {counted(part)}", site=name)
        if site.log_prob is not None and not finite(site.log_prob):
            advice = f"; {NO_DENSITY}{_without_density(name, site)}" if site.observed else ""
            return NonFinite(f"`{program}`: site `{name}`: its log density {counted(site.log_prob)}{advice}", site=name)
    return None


def _without_density(name: str, site: SiteRecord) -> str:
    """`: `time[3]` is 0`, the first observed element without a finite density; '' where elements have none."""
    each, value = site.pointwise, site.value
    if each is None or not isinstance(value, Tensor):
        return ""
    if value.shape[: each.dim() - 1] == each.shape[1:]:
        value = value.expand(each.shape[0], *value.shape)
    if value.shape[: each.dim()] != each.shape:
        return ""
    found = arrays.isinf(each).nonzero()
    if not len(found):
        return ""
    place = tuple(map(int, found[0]))
    shown = ", ".join(map(str, place[1:] if each.shape[0] == 1 else place))
    element = value[place]
    number = f" is {element.item():g}" if element.dim() == 0 else ""
    return f": `{name}[{shown}]`{number}, counted from 0"


def _blamed_gradient(
    program: str, run: Execution, log_weights: Tensor, named: Mapping[str, Tensor]
) -> NonFinite | None:
    """The first site whose log density has a gradient that is not finite, and the parameter."""
    free = {name: p for name, p in named.items() if p.requires_grad}
    for site in (*run.sites.values(), None):
        term = log_weights if site is None else site.log_prob
        if term is None or not term.requires_grad:
            continue
        gradients = arrays.autograd.grad(
            term.sum(), list(free.values()), retain_graph=True, allow_unused=True, materialize_grads=True
        )
        for name, gradient in zip(free, gradients, strict=True):
            if not finite(gradient):
                words = f"the gradient of `{name}` {counted(gradient)}"
                if site is None:
                    return NonFinite(f"`{program}`: {words}")
                return NonFinite(
                    f"`{program}`: site `{site.name}`: its log density is finite, but {words}", site=site.name
                )
    return None


def finite(tensor: Tensor) -> bool:
    """True where no element is NaN or infinite."""
    return bool(arrays.isfinite(tensor).all())


def _tensors(value: Any) -> tuple[Tensor, ...]:
    if isinstance(value, Tensor):
        return (value,)
    return tuple(part for part in value if isinstance(part, Tensor)) if is_tuple(value) else ()
