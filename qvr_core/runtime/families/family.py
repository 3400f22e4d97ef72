"""A family at run time: one object with everything that is computed of it, declared in one of the files beside this."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from qvr_core.runtime.families.bijectors import Support
from qvr_core.runtime.families.links import Link, Params, elementwise
from qvr_core.runtime.families.noise import Shape, standard_noise
from qvr_core.runtime.families.parametrisations import canonical
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.language.family import Family

NoiseEvent = Callable[[Params, Shape | None], Shape | None]

_SUPPORTS: Mapping[str, str] = {"Simplex": "simplex", "CholeskyFactor": "correlation", "Covariance": "covariance"}


def scalar(parameters: Params, event: Shape | None) -> Shape:
    """The noise of a number."""
    return ()


@dataclass(frozen=True, slots=True)
class RuntimeFamily:
    """A family at run time; `facts` are what the checker and the editor know of it.

    `log_prob(value, *parameters)` is elementwise, an event of rank `event` giving one number.  With noise 'normal' or
    'uniform' there is `transform(noise, *parameters)`; otherwise `draw(shape, generator, *parameters)`, whose `shape`
    includes the event.  `parameters` are those of `canonical`.  `reparameterised` says that draws carry gradients, and
    `affine` that a draw is loc + scale · noise, loc and scale the two halves of a head's raw output.

    `link` gives a head's parameters; `noise_event` the shape of one draw's noise from the parameters and the declared
    shape of a draw (None where both leave it open); `categories` how many values there are to sum over, None where
    they have no end, and `log_table` the log-probabilities of all on a last axis, for a finite set as large as the
    parameters say.
    """

    facts: Family
    log_prob: Callable[..., Tensor]
    transform: Callable[..., Tensor] | None = None
    draw: Callable[..., Tensor] | None = None
    reparameterised: bool = True
    affine: bool = False
    link: Link = elementwise
    noise_event: NoiseEvent = scalar
    categories: Callable[..., int] | None = None
    log_table: Callable[..., Tensor] | None = None

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def event(self) -> int:
        return self.facts.event

    @property
    def noise(self) -> str:
        return self.facts.noise

    def canonical(self, arguments: Mapping[str, Tensor]) -> Params:
        """Arguments by the names of their parameters, or of other parametrisations, in the runtime's form."""
        return canonical(self.facts, arguments)

    def fresh_noise(self, shape: Shape, generator: Generator | None, parameters: Params) -> Tensor:
        """Noise of `shape`; for a family without parameter-free noise a draw itself."""
        if self.draw is not None:
            return self.draw(shape, generator, *map(_at_least_float, parameters))
        return standard_noise(self.facts.noise, shape, _like(parameters), generator)

    def value_of(self, noise: Tensor, parameters: Params) -> Tensor:
        """The draw that the noise makes."""
        return noise if self.transform is None else self.transform(noise, *parameters)

    def support(self, parameters: Params) -> Support:
        """Where draws live, given the parameters (none: only the kind is right)."""
        facts = self.facts
        names = [parameter.name for parameter in facts.parameters]
        if facts.bounded_by is not None:
            low, high = (parameters[names.index(name)] if parameters else None for name in facts.bounded_by)
            return Support("bounded", low, high)
        if facts.above is not None and parameters:
            return Support("bounded", parameters[names.index(facts.above)], None)
        support = facts.support
        if support.kind == "real":
            bounded = support.low is not None or support.high is not None
            return Support("bounded", support.low, support.high) if bounded else Support("real")
        return Support(_SUPPORTS.get(support.kind, "discrete"))


def _like(parameters: Params) -> Tensor:
    return next((p for p in parameters if p.is_floating_point()), torch.zeros((), dtype=precision()))


def _at_least_float(parameter: Tensor) -> Tensor:
    return parameter if parameter.is_floating_point() else parameter.to(precision())
