"""What running a program once gives: a record per site, the output, and what inference may ask for.

Shapes: B is the number of rows.  Particles and vectorised chains are rows too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.runtime.values.arrow import NoiseSpec, Value
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.types.model.arrows import Density

SiteKind = Literal["sample", "observe", "predict", "score", "marginalize", "prior"]
Wanted = bool | Literal["observed"]
"""Which log densities an execution computes: all, none, or those of observed, scored and discrete sites."""

Noises = Mapping[str, Tensor] | Callable[[Sequence[NoiseSpec]], Mapping[str, Tensor]]
SiteNoise = Mapping[str, Noises]
"""Noise by site and by the path of the draw inside the site's arrow; a family step has the one path ''.

A function gets the site's draws, once their shapes are known, and gives the noise of those that it wants to fix.
"""


def paths_of(noise: Noises | None) -> Collection[str]:
    """The paths of the draws whose noise is given."""
    return () if noise is None or callable(noise) else noise.keys()


@dataclass(slots=True)
class SiteRecord:
    """One site of an execution.

    `log_prob` (B,) is log p(value | everything before it, innovations); `log_innovations` (B,) is that of the
    innovations.  `noise` holds every draw that was made, the final one included.  An observe inside `marginalize` has
    no density of its own: it is part of the record of kind 'marginalize'.  Kind 'prior' is that of a latent tensor, and
    'predict' that of a draw after the fit, which has no density.
    """

    name: str
    kind: SiteKind
    observed: bool
    value: Value | None
    log_prob: Tensor | None
    log_innovations: Tensor | None
    noise: dict[str, Tensor]
    density: Density
    log_noise: Tensor | None = None
    """(B,) log density of all noise of a drawn arrow, final draws included."""
    log_jacobian: Tensor | None = None
    """(B,) log |∂value/∂u| where the value was given by unconstrained numbers u."""
    log_discrete: Tensor | None = None
    """(B,) log density of the draws whose gradient is the score function's, where there are some."""
    log_table: Tensor | None = None
    """(B, n) or (B, L, n) log-probabilities of all values of an observed finite site, where they were asked for."""
    pointwise: Tensor | None = None
    """(B, …) log densities of the elements of an observed step, NaN where one does not count; where they were asked
    for."""
    imputed: Tensor | None = None
    """(B, n, …) the values that fill the missing cells of an observed step, in their order."""
    states: Tensor | None = None
    """(B, …, K) of a hidden chain: the probability of each state at each place, given all that is observed; `value` is
    then a path drawn from the same posterior.  Where they were asked for."""
    counted: Tensor | None = None
    """(B, L) bool: the positions of an observed sequence that mask and lengths let count; None where all do."""
    absent: Tensor | None = None
    """bool (*sizes, 1, …), the elements of a step with lengths that do not exist; their values are stand-ins."""

    @property
    def reported(self) -> Value | None:
        """The value with NaN for elements that do not exist."""
        if self.absent is None or not is_tensor(self.value):
            return self.value
        value = self.value if self.value.is_floating_point() else self.value.to(arrays.get_default_dtype())
        return value.masked_fill(self.absent, math.nan)

    def existing(self, value: Tensor) -> Tensor:
        """A value of this step, with 0 for elements that do not exist."""
        return value if self.absent is None else value.masked_fill(self.absent, 0)


@dataclass(slots=True)
class Execution:
    """All sites in program order, and what the program returns."""

    sites: dict[str, SiteRecord]
    output: Value
    rows: int
    kept: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    """(B, …) values of lets, where they were asked for."""
    ended: tuple[Tensor, ...] = ()
    """bool (B,) or (1,): where a differential equation has no solution up to its last time."""

    def log_joint(self) -> Tensor:
        """log p(values | x, innovations), (B,)."""
        return self.possible(_total(self.rows, [s.log_prob for s in self.sites.values()]))

    def possible(self, total: Tensor) -> Tensor:
        """A log density with −∞ where something that it is computed from does not exist."""
        for each in self.ended:
            total = arrays.where(each, arrays.full_like(total, -math.inf), total)
        return total

    def log_innovations(self) -> Tensor:
        """log p(innovations | x), (B,)."""
        return _total(self.rows, [s.log_innovations for s in self.sites.values()])

    def innovations(self, finals: Mapping[str, frozenset[str]]) -> dict[str, dict[str, Tensor]]:
        """The noise that densities are conditional on, by site and path; `finals` names each site's last draws."""
        kept = {
            name: {path: u for path, u in site.noise.items() if path not in finals.get(name, frozenset())}
            for name, site in self.sites.items()
        }
        return {name: noise for name, noise in kept.items() if noise}


def _total(rows: int, terms: list[Tensor | None]) -> Tensor:
    present = [term for term in terms if term is not None]
    if not present:
        return arrays.zeros(rows, dtype=precision())
    total = present[0]
    for term in present[1:]:
        total = total + term
    return total


@dataclass(frozen=True, slots=True)
class SiteInfo:
    """What a guide or a chain needs to know of a site before it has seen a value.

    For a named arrow `draws` are all its draws; for a family step the one draw '' with the site's own shape.  `event`
    is the site's shape without the row axis (None where only data can tell), `support` the kind of
    `qvr_core.runtime.families.bijectors.Support`, or 'discrete'.
    """

    name: str
    kind: SiteKind
    observed: bool
    arrow: bool
    event: tuple[int, ...] | None
    support: str
    draws: tuple[NoiseSpec, ...]
    discrete: bool
    density: Density
    improper: bool = False
    """True where its density makes no distribution."""
    drawn: bool = True
    """False where its family does not say how to draw."""

    @property
    def undrawn(self) -> bool:
        """True where there is no prior to draw from."""
        return self.improper or not self.drawn

    @property
    def final(self) -> tuple[NoiseSpec, ...]:
        """The last draw of each branch."""
        return tuple(spec for spec in self.draws if spec.final)

    @property
    def innovations(self) -> tuple[NoiseSpec, ...]:
        """Every draw that the density is conditional on."""
        return tuple(spec for spec in self.draws if not spec.final)


@dataclass(slots=True)
class Request:
    """What one execution is asked for: each field is written by the handler of `handlers` that explains it."""

    rows: int | None = None
    observations: Mapping[str, Value] = field(default_factory=dict[str, Value])
    values: Mapping[str, Value] = field(default_factory=dict[str, Value])
    noise: SiteNoise = field(default_factory=dict[str, Noises])
    unconstrained: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    generator: arrays.Generator | None = None
    wanted: Wanted = True
    scored: Collection[str] = ()
    tables: bool = False
    pointwise: bool = False
    keep: Collection[str] = ()
    scales: Mapping[str, float] = field(default_factory=dict[str, float])
    predicting: bool = False
    redraw: bool = False
    anew: frozenset[str] = frozenset()
    begun: Mapping[str, Value] = field(default_factory=dict[str, Value])
    argument_of: str = ""
    states: bool = False
    paths: bool = False
    statistics: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    device: arrays.device | None = None

    def noise_of(self, site: str, specs: Callable[[], Sequence[NoiseSpec]]) -> Mapping[str, Tensor] | None:
        """The noise given for a site; `specs` tells its draws where a function wants to know."""
        given = self.noise.get(site)
        return given(specs()) if callable(given) else given

    def wants(self, site: str) -> bool:
        """True where a latent's own density is wanted."""
        return self.wanted is True or site in self.scored
