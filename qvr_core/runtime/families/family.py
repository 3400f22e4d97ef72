"""A family at run time: one object with everything that is computed of it, declared in one of the files beside this."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runtime.families.bijectors import Standardised, Support
from qvr_core.runtime.families.cumulative.tails import Tails, log_between
from qvr_core.runtime.families.links import Drawing, Link, OfParameters, OfTails, OfValue, Params, elementwise
from qvr_core.runtime.families.parametrisations import Conversion, canonical
from qvr_core.runtime.families.random_draws import Shape, standard_noise
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.language.family import Family

NoiseEvent = Callable[[Params, Shape | None], Shape | None]

_SUPPORTS: Mapping[str, str] = {
    "Simplex": "simplex",
    "CholeskyFactor": "correlation",
    "Correlation": "correlation matrix",
    "Covariance": "covariance",
}


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

    `tails(value, *parameters)` are log P(X ≤ value) and log P(X > value), in double precision, for values strictly
    inside the support (whole ones of a discrete family, the last left out): what `log_cdf` and its like are made of.
    None for a family without a cdf that can be computed; the facts say so.

    `quantile(lower, upper, *parameters)` is the x whose tails have these logarithms, both in double precision and with
    all their digits (`tails.from_smaller`); of a discrete family the least whole number up to which so much lies.
    None where it has no closed form.

    `conversions` make a parameter of what may be given in its place under another name, or of its `logarithm`, beyond
    probabilities and covariances.  The parameter `twice` has two forms, which stand beside each other.
    """

    facts: Family
    log_prob: OfValue[Tensor]
    transform: OfValue[Tensor] | None = None
    draw: Drawing | None = None
    reparameterised: bool = True
    affine: bool = False
    link: Link = elementwise
    noise_event: NoiseEvent = scalar
    categories: OfParameters[int] | None = None
    log_table: OfParameters[Tensor] | None = None
    tails: OfValue[Tails] | None = None
    quantile: OfTails[Tensor] | None = None
    bijector: str | None = None
    """The kind of support whose bijector moves a draw, where the facts do not say it."""
    conversions: Mapping[str, Conversion] = field(default_factory=dict[str, Conversion])
    twice: str | None = None
    standardised: Standardised | None = None
    """How a draw comes from a standardised one, for `[noncentred]`; None where it cannot."""
    mean: OfParameters[Tensor] | None = None
    """The mean from the parameters, (…, d) of a vector; None where there is none, or none in closed form."""
    between: OfTails[Tensor] | None = None
    """log P(lower < X ≤ upper) of a mixture: of what lies between two components the difference of tails has nothing
    left.  None where tails suffice."""

    def __post_init__(self) -> None:
        facts = replace(self.facts, cdf=self.tails is not None, noncentred=self.standardised is not None)
        object.__setattr__(self, "facts", facts)

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def event(self) -> int:
        return self.facts.event

    @property
    def noise(self) -> str:
        return self.facts.noise

    @property
    def ranks(self) -> tuple[int, ...]:
        """Those of the runtime's parameters."""
        own = [parameter for parameter in self.facts.parameters if not parameter.sizes]
        return tuple(one.rank for one in own for _ in range(1 + (one.name == self.twice)))

    def canonical(self, arguments: Mapping[str, Tensor]) -> Params:
        """Arguments by the names of their parameters, or of other parametrisations, in the runtime's form."""
        return canonical(self.facts, arguments, self.conversions)

    def fresh_noise(self, shape: Shape, generator: Generator | None, parameters: Params) -> Tensor:
        """Noise of `shape`; for a family without parameter-free noise a draw itself."""
        if self.draw is not None:
            return self.draw(shape, generator, *map(_at_least_float, parameters))
        return standard_noise(self.facts.noise, shape, _like(parameters), generator)

    def value_of(self, noise: Tensor, parameters: Params) -> Tensor:
        """The draw that the noise makes."""
        return noise if self.transform is None else self.transform(noise, *parameters)

    def cdf(self, value: Tensor, *parameters: Tensor) -> Tensor:
        """P(X ≤ value), elementwise; ±∞ are values too."""
        return self.log_cdf(value, *parameters).exp()

    def log_cdf(self, value: Tensor, *parameters: Tensor) -> Tensor:
        """log P(X ≤ value), as precise in the lower tail as elsewhere."""
        return self.log_tails(value, *parameters)[0].to(_dtype(value, parameters))

    def log_survival(self, value: Tensor, *parameters: Tensor) -> Tensor:
        """log P(X > value), as precise in the upper tail as elsewhere."""
        return self.log_tails(value, *parameters)[1].to(_dtype(value, parameters))

    def log_tails(self, value: Tensor, *parameters: Tensor) -> Tails:
        """Both of them, in double precision."""
        assert self.tails is not None, f"{self.name} has no cdf"
        exact = tuple(parameter.double() for parameter in parameters)
        low, high = self._ends(exact)
        x = value.double().floor() if self.facts.discrete else value.double()
        below = (x < low) if self.facts.discrete else (x <= low)
        edge = below | (x >= high)
        lower, upper = self.tails(arrays.where(edge, _middle(low, high, self.facts.discrete), x), *exact)
        impossible, certain = (arrays.full_like(lower, end) for end in (-math.inf, 0.0))
        return (
            arrays.where(edge, arrays.where(below, impossible, certain), lower),
            arrays.where(edge, arrays.where(below, certain, impossible), upper),
        )

    def log_between(self, lower: Tensor, upper: Tensor, *parameters: Tensor) -> Tensor:
        """log P(lower < X ≤ upper), in double precision; −∞ and ∞ leave a side open."""
        if self.between is not None:
            return self.between(lower.double(), upper.double(), *(parameter.double() for parameter in parameters))
        mass, gap = log_between(self.log_tails(lower, *parameters), self.log_tails(upper, *parameters))
        if self.facts.discrete:
            return mass
        # of an interval so narrow the difference of two tails has few digits, and the density at its middle all
        narrow = (gap > -1e-6) & (upper > lower)
        left, right = (arrays.where(narrow, end.double(), end_of) for end, end_of in ((lower, 0.0), (upper, 1.0)))
        inside = arrays.where(narrow, 0.5 * (left + right), _middle(*self._ends(parameters), False))
        own = self.moving(narrow, tuple(parameter.double() for parameter in parameters))
        return arrays.where(narrow, self.log_prob(inside, *own) + (right - left).log(), mass)

    def moving(self, counted: Tensor, parameters: Params) -> Params:
        """Location and scale without a gradient where a density is not `counted`: where it overflows there it has none,
        and 0 times that is no number.  The parameters of other families as they are."""
        if self.standardised is None:
            return parameters
        return tuple(arrays.where(counted, one, one.detach()) for one in parameters)

    def _ends(self, parameters: Params) -> tuple[Tensor, Tensor]:
        """The least and the greatest value."""
        facts = self.facts
        names = [parameter.name for parameter in facts.parameters if not parameter.sizes]
        low, high = facts.support.low, facts.support.high
        if facts.bounded_by is not None:
            low, high = (parameters[names.index(name)] for name in facts.bounded_by)
        elif facts.above is not None:
            low = parameters[names.index(facts.above)]
        elif facts.counts_to is not None:
            high = parameters[names.index(facts.counts_to)]
        elif facts.support.categories and self.categories is not None:
            low, high = 0.0, self.categories(*parameters) - 1.0
        like = _like(parameters).double()
        return (
            arrays.as_tensor(-math.inf if low is None else low, dtype=like.dtype, device=like.device),
            arrays.as_tensor(math.inf if high is None else high, dtype=like.dtype, device=like.device),
        )

    def support(self, parameters: Params) -> Support:
        """Where draws live, given the parameters (none: only the kind is right)."""
        facts = self.facts
        names = [parameter.name for parameter in facts.parameters]
        if facts.discrete:
            return Support("discrete")
        if self.bijector is not None:
            return Support(self.bijector)
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


def _middle(low: Tensor, high: Tensor, discrete: bool) -> Tensor:
    """A value strictly inside: where it stands the result is not looked at."""
    left, right = arrays.isinf(low), arrays.isinf(high)
    start, end = arrays.where(left, 0.0, low.detach()), arrays.where(right, 0.0, high.detach())
    if discrete:
        return start
    return arrays.where(
        left, arrays.where(right, 0.0, end - 1.0), arrays.where(right, start + 1.0, 0.5 * (start + end))
    )


def _dtype(value: Tensor, parameters: Params) -> arrays.dtype:
    return value.dtype if value.is_floating_point() else _like(parameters).dtype


def _like(parameters: Params) -> Tensor:
    return next((p for p in parameters if p.is_floating_point()), arrays.zeros((), dtype=precision()))


def _at_least_float(parameter: Tensor) -> Tensor:
    return parameter if parameter.is_floating_point() else parameter.to(precision())
