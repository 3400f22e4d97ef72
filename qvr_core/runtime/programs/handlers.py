"""What one execution is asked for, as handlers that compose: `model.execute(x, condition(data), substitute(latents))`.

A handler writes what it knows into the request; of two that speak of the same site the later one holds.  Anything that
takes a request is a handler: a guide's proposal is one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from qvr_core.arrays.engine import Generator, Tensor
from qvr_core.arrays.engine import device as Device
from qvr_core.runtime.programs.execution import Request, SiteNoise, Wanted
from qvr_core.runtime.values.arrow import Value

Handler = Callable[[Request], None]


def condition(observations: Mapping[str, Any] | None) -> Handler:
    """Observed values and data by name; a `sample` site named here is conditioned on the value."""

    def handle(request: Request) -> None:
        request.observations = {**request.observations, **(observations or {})}

    return handle


def substitute(values: Mapping[str, Value]) -> Handler:
    """Latents by site, with the row axis (or without it, then the same in every row)."""

    def handle(request: Request) -> None:
        request.values = {**request.values, **values}

    return handle


def replay(noise: SiteNoise | None) -> Handler:
    """Standardised noise by site and path, final draws included; what is missing is drawn."""

    def handle(request: Request) -> None:
        request.noise = {**request.noise, **(noise or {})}

    return handle


def unconstrained(numbers: Mapping[str, Tensor]) -> Handler:
    """Latents of family steps by unconstrained numbers, mapped through the family's bijector."""

    def handle(request: Request) -> None:
        request.unconstrained = {**request.unconstrained, **numbers}

    return handle


def seed(generator: Generator | None) -> Handler:
    """Where everything random comes from; None is torch's global generator."""

    def handle(request: Request) -> None:
        request.generator = generator

    return handle


def densities(wanted: Wanted, of: Collection[str] = ()) -> Handler:
    """Which log densities are computed: all (True), none (False), or 'observed' (latents cost nothing then), and in any
    case those of the latents `of`."""

    def handle(request: Request) -> None:
        request.wanted, request.scored = wanted, of

    return handle


def tables(request: Request) -> None:
    """Leave the log-probabilities of all values of observed finite sites in their records."""
    request.tables = True


def pointwise(request: Request) -> None:
    """Leave the log density of each element of an observed step in its record."""
    request.pointwise = True


def predicting(request: Request) -> None:
    """Draw the `predict` steps too, and compute the lets that read them."""
    request.predicting = True


def redraw(request: Request) -> None:
    """Draw observed steps anew: what reads them sees the given values, their records hold the draws."""
    request.redraw = True


def drawn_anew(names: Collection[str], begun: Mapping[str, Any] | None = None) -> Handler:
    """Draw these observed steps, whatever data the program was loaded with; first elements that nothing draws are those
    of `begun`, the whole data by name."""

    def handle(request: Request) -> None:
        request.anew, request.begun = frozenset(names), begun or {}

    return handle


def of_the_fit(numbers: Mapping[str, Tensor]) -> Handler:
    """What lets compute from all of their data is this, by the names of `data_lets.statistics`, whatever the data are:
    new rows are scaled by the mean and the standard deviation of the fit."""

    def handle(request: Request) -> None:
        request.statistics = {**request.statistics, **numbers}

    return handle


def on_device(device: Device) -> Handler:
    """What the program makes itself, draws among them, lies there, where neither parameters nor data say it."""

    def handle(request: Request) -> None:
        request.device = device

    return handle


def states(request: Request) -> None:
    """Leave the posterior of hidden states in their records: the probability of each."""
    request.states = True


def paths(request: Request) -> None:
    """Leave a path drawn from the posterior of hidden states in their records as well."""
    request.states = request.paths = True


def argument_of(site: str) -> Handler:
    """Stop in front of this site drawn from an arrow: what its arrow would be applied to is the output."""

    def handle(request: Request) -> None:
        request.argument_of = site

    return handle


def keep(names: Collection[str]) -> Handler:
    """Leave the values of these lets, (B, …)."""

    def handle(request: Request) -> None:
        request.keep = names

    return handle


def by_rows(count: int | None) -> Handler:
    """The number of rows of a program that does not use its input (particles, chains)."""

    def handle(request: Request) -> None:
        request.rows = count

    return handle


def scale(factors: Mapping[str, float]) -> Handler:
    """The log densities of these observed and scored sites, times a factor."""

    def handle(request: Request) -> None:
        request.scales = {**request.scales, **factors}

    return handle


@dataclass(frozen=True)
class Subsample:
    """What `subsample` asks for, as objectives see it; `checked` where these sites are known to be the right ones."""

    count: int
    sites: Collection[str]
    checked: bool = False

    def __call__(self, request: Request) -> None:
        part = len(next(iter(request.observations.values())))  # pyright: ignore[reportArgumentType]
        scale(dict.fromkeys(self.sites, self.count / part))(request)


def subsample(count: int, sites: Collection[str], *, checked: bool = False) -> Subsample:
    """The observations are a part of `count` rows, and each term of `sites` stands for all (Hoffman et al. 2013).

    An objective looks once whether these are the terms that add up over the rows, unless that is `checked`.
    """
    return Subsample(count, sites, checked)
