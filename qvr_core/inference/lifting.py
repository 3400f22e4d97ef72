"""Parameters as latents: a Normal prior on every parameter of a program, for Markov chains."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, SupportsFloat

from qvr_core.arrays.engine import Tensor, arrays, nn
from qvr_core.inference.coordinates import HALF_LOG_2PI, coordinates
from qvr_core.runtime.arrows.layers import EmbedArrow
from qvr_core.runtime.programs.execution import SiteNoise
from qvr_core.runtime.programs.handlers import condition, densities, replay, substitute
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.layout import parts

PriorScale = float | Literal["fan_in"]
EMBEDDING_SCALE = 0.5
BIAS_SCALE = 0.1

Owner = tuple[nn.Module, str]


def owners_of(model: nn.Module) -> dict[str, Owner]:
    """Where every parameter lives, by its name."""
    found: dict[str, Owner] = {}
    for name, _ in model.named_parameters():
        path, _, last = name.rpartition(".")
        found[name] = (model.get_submodule(path), last)
    return found


@contextmanager
def parameters_set(
    model: nn.Module, values: Mapping[str, Tensor], owners: Mapping[str, Owner] | None = None
) -> Generator[None]:
    """Within the block the module computes with `values` in place of its parameters of these names."""
    homes = owners if owners is not None else owners_of(model)
    kept: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for name, value in values.items():
            module, last = homes[name]
            table: dict[str, Any] = vars(module)["_parameters"]
            kept.append((table, last, table[last]))
            table[last] = value
        yield
    finally:
        for table, last, original in kept:
            table[last] = original


class LiftedModel:
    """A program whose parameters are latents with priors Normal(0, scale²), and whose inner noise is latent too.

    `scales` holds each parameter's prior standard deviation.  Markov chains move parameters in units of that, lifted
    sites and innovations by their own standardised noise; densities and reported values are those of the values.
    """

    def __init__(
        self, model: ProgramModule, x: object, observations: Mapping[str, Any], prior_scale: PriorScale
    ) -> None:
        self.model = model
        self.x = x
        self.observations = dict(observations)
        self.owners = owners_of(model)
        self.scales = {
            name: prior_deviation(self.owners[name], parameter, prior_scale)
            for name, parameter in model.named_parameters()
        }

    @property
    def name(self) -> str:
        """The program's name."""
        return self.model.name

    def initial(self) -> dict[str, Tensor]:
        """The module's current parameters."""
        return {name: parameter.detach().clone() for name, parameter in self.model.named_parameters()}

    def log_prior(self, values: Mapping[str, Tensor]) -> Tensor:
        """log p(θ), a scalar."""
        total = arrays.zeros(())
        for name, scale in self.scales.items():
            value = values[name]
            total = total - 0.5 * (value / scale).square().sum() - value.numel() * (math.log(scale) + HALF_LOG_2PI)
        return total

    def log_joint(self, x: object, values: Mapping[str, Any], innovations: SiteNoise | None = None) -> Tensor:
        """log p(θ) + log p(u) + log p(h, y | x, θ, u), a scalar.

        `values` holds every parameter by name, every lifted site and every observed site; `innovations` all u, by site
        and path as `ProgramModule.innovations` gives them.  The same arguments give the same number, bit by bit.
        """
        model = self.model
        missing = [name for name in self.scales if name not in values]
        if missing:
            raise InputProblem(f"`{model.name}`: no value for the lifted parameter `{missing[0]}`")
        given = {**self.observations, **{name: v for name, v in values.items() if name not in self.scales}}
        theta = {name: values[name] for name in self.scales}
        with parameters_set(model, theta, self.owners):
            inner = model.log_joint(x, {n: v for n, v in given.items() if n in model.sites}, innovations)
            latents = {n: v for n, v in given.items() if n in model.sites and model.sites[n].kind == "sample"}
            data = {n: v for n, v in given.items() if n not in latents}
            run = model.execute(x, condition(data), substitute(latents), replay(innovations))
        return self.log_prior(theta) + inner.sum() + run.log_innovations().sum()


def bayesian_lift_parameters(
    model: ProgramModule,
    x: object = None,
    observations: Mapping[str, Any] | None = None,
    *,
    prior_scale: PriorScale = 1.0,
    additional_latents: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[LiftedModel, object, dict[str, Any]]:
    """(lifted, x, observations) for `MCMC.run`.

    Every parameter gets Normal(0, prior_scale²); 'fan_in' means 1/√fan_in for weights, 0.5 for embeddings and 0.1 for
    biases.  `additional_latents` names the sample sites that become latents, with their shapes, rows included; sites
    that are neither there nor observed are latents all the same.

    Raises `DiscreteLatent` for a discrete latent, `NoDensity` for a site without a density, `InputProblem` where a
    shape or name does not fit.
    """
    given = model.taken(observations)
    model.check_names(given, "observations")
    check_scale(prior_scale)
    if next(model.parameters(), None) is None:
        raise InputProblem(
            f"`{model.name}` has no parameters to lift; give the program itself to `MCMC.run(model, x, observations)`"
        )
    model.input(x)
    coordinates(model, frozenset(given), innovations=True, purpose="NUTS")
    lifted = LiftedModel(model, x, given, prior_scale)
    if additional_latents:
        _check_latents(model, x, given, additional_latents)
    return lifted, x, given


def _check_latents(
    model: ProgramModule, x: object, observations: Mapping[str, Any], latents: Mapping[str, tuple[int, ...]]
) -> None:
    with arrays.no_grad():
        run = model.execute(x, condition(observations), densities(False))
    for name, shape in latents.items():
        site = run.sites.get(name)
        if site is None or site.kind != "sample":
            known = ", ".join(f"`{n}`" for n, s in run.sites.items() if s.kind == "sample")
            message = f"`{model.name}` has no sample site `{name}` to lift; it has {known}"
            raise model.placed(InputProblem(message, site=name))
        if name in observations:
            raise model.placed(InputProblem(f"`{name}` is observed, so it cannot be lifted too", site=name))
        assert site.value is not None
        found = tuple(parts(site.value)[0].shape)
        if tuple(shape) != found:
            given = f"`{model.name}`: additional_latents gives `{name}` the shape {tuple(shape)}"
            raise model.placed(InputProblem(f"{given}, but on this input it has {found}", site=name))


def check_scale(prior_scale: object) -> None:
    """Raises `InputProblem` for anything but 'fan_in' or a positive finite number."""
    number = float(prior_scale) if isinstance(prior_scale, SupportsFloat) else math.nan
    if prior_scale != "fan_in" and not 0 < number < math.inf:
        raise InputProblem(f"prior_scale must be a positive number or 'fan_in', not {prior_scale!r}")


def prior_deviation(owner: Owner, parameter: Tensor, prior_scale: PriorScale) -> float:
    """The prior's standard deviation of a parameter."""
    if prior_scale != "fan_in":
        return float(prior_scale)
    module, name = owner
    if isinstance(module, EmbedArrow):
        return EMBEDDING_SCALE
    if parameter.ndim < 2 or "bias" in name:
        return BIAS_SCALE
    return 1.0 / math.sqrt(parameter.shape[-1])
