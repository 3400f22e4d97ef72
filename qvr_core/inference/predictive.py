"""Predictive draws: from the prior, a guide, or posterior samples."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.inference.guides.base import Guide, Inputs
from qvr_core.inference.lifting import LiftedModel, parameters_set
from qvr_core.inference.pointwise import Given, noise_by_site, spread
from qvr_core.runtime.programs.execution import Execution
from qvr_core.runtime.programs.handlers import (
    Handler,
    by_rows,
    condition,
    densities,
    drawn_anew,
    keep,
    predicting,
    redraw,
    replay,
    seed,
    substitute,
)
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.arrow import repeat_rows
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.layout import parts
from qvr_core.runtime.values.term_tables import of_one_size
from qvr_core.semantics.types.deterministic import reads_of_observed


class Predictive:
    """Draws every site of `model` (of a lifted one: of its program).

    Latents come from `guide`, from `posterior_samples`, or from the model itself.

    `posterior_samples` {site: (draws, …)}, as `MCMCResult.samples` with chains and draws joined, sets the number of
    draws; otherwise `num_samples` does.  `idata.posterior` goes in as it is, its lets left out.  Names in
    `return_sites` are kept (all by default).
    """

    def __init__(
        self,
        model: ProgramModule | LiftedModel,
        guide: Guide | None = None,
        posterior_samples: Mapping[str, Any] | None = None,
        num_samples: int | None = None,
        return_sites: Collection[str] | None = None,
    ) -> None:
        if not posterior_samples and num_samples is None:
            raise InputProblem("Predictive needs num_samples, or posterior_samples to take the latents from")
        self.model = model.model if isinstance(model, LiftedModel) else model
        self.guide = guide
        self.samples = drawn_latents(self.model, posterior_samples)
        self.return_sites = return_sites
        drawn = self._check()
        self.num_samples = drawn if num_samples is None else num_samples
        if drawn and self.num_samples > drawn:
            raise InputProblem(f"num_samples is {num_samples}, but posterior_samples has {drawn} draws")

    def _check(self) -> int:
        """The number of posterior draws.  Raises `InputProblem` for names that the model does not have."""
        model = self.model
        parameters = {name for name, _ in model.named_parameters()}
        for what, names, known in (
            ("posterior_samples", [name.partition("/")[0] for name in self.samples], {*model.in_draws, *parameters}),
            (
                "return_sites",
                self.return_sites or (),
                {*model.sites, *model.marginals, *model.priors, *model.predicted},
            ),
        ):
            for name in names:
                if name not in known:
                    raise model.unknown(f"{what}: `{model.name}` has no", name, sorted(known))
        counts = {name: len(sample) for name, sample in self.samples.items()}
        if len(set(counts.values())) > 1:
            words = ", ".join(f"`{name}` {count}" for name, count in counts.items())
            raise InputProblem(f"posterior_samples: every latent needs as many draws, but there are {words}")
        return next(iter(counts.values()), 0)

    @arrays.no_grad()
    def __call__(
        self,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
        *,
        guide_observations: Mapping[str, Any] | None = None,
        generator: Generator | None = None,
    ) -> dict[str, Tensor]:
        """{site: (num_samples, B, …)}; (num_samples, …) for a program that does not use its input.

        What is in `observations` is not drawn; a guide that reads what shall be drawn anew has it from
        `guide_observations`.
        """
        model, count = self.model, self.num_samples
        value = model.input(x)
        rows = 1 if value is None else parts(value)[0].shape[0]
        given = model.taken(observations)
        model.check_names(given, "observations")
        self._check_read(given)
        read = {**model.taken(guide_observations), **given}
        if value is not None:
            given, read = (model.repeat_data(each, rows, count) for each in (given, read))
            value = repeat_rows(value, count)
        each = rows * count
        parameters = {n: s for n, s in self.samples.items() if n.partition("/")[0] not in model.in_draws}
        if parameters:
            return self._per_draw(x, given, parameters, generator)
        flat = {n: spread(s[:count], rows) for n, s in self.samples.items()}
        latents = {n: s for n, s in flat.items() if n in model.in_draws}
        inputs = Inputs(model, value, read)
        proposal = [] if self.guide is None else [self.guide.propose(each, generator, inputs=inputs)]
        asked = (
            condition(given),
            substitute(latents),
            replay(noise_by_site(flat)),
            *proposal,
            by_rows(each),
            seed(generator),
        )
        run = model.run(value, *asked, *self._handlers(), drawn_anew(*self._loaded(given)))
        kept = {n: v for n, v in _values(run).items() if self.return_sites is None or n in self.return_sites}
        shape = (count,) if value is None else (count, rows)
        return {
            # a view of a parameter (a point's) asks for gradients even where none are made
            name: v.detach().reshape(*shape, *v.shape[1:])
            for name, v in kept.items()
            if isinstance(v, Tensor) and v.shape[:1] == (each,)
        }

    def _later(self) -> list[str]:
        """What is wanted of what is only known after the fit."""
        return [name for name in self.model.predicted if self.return_sites is None or name in self.return_sites]

    def _check_read(self, given: Collection[str]) -> None:
        """Raises `InputProblem` where a prediction from a posterior would read draws in place of the data."""
        if not self.samples and self.guide is None:
            return
        reads = reads_of_observed(self.model.program) if self._later() else dict[str, frozenset[str]]()
        for name in self._later():
            lacking = sorted(reads[name].difference(given, self.model.data))
            if lacking:
                message = f"`{self.model.name}`: `{name}` is predicted from `{lacking[0]}`: give its observed values"
                raise self.model.placed(InputProblem(message, site=name))

    def _loaded(self, given: Collection[str]) -> tuple[list[str], dict[str, Tensor]]:
        """The observed steps whose data the program was loaded with, of which a draw from the prior is told only those
        first elements that nothing draws; and these data."""
        if self.samples or self.guide is not None:
            return [], {}
        loaded = {n: v for n, v in Given(self.model, None, {}).observed_data().items() if n not in given}
        return list(loaded), {} if self.model.program.uses_input else loaded

    def _handlers(self) -> list[Handler]:
        """What an execution is asked for; `predict` steps cost nothing where nobody wants them."""
        asked: list[Handler] = [densities(False)]
        later = self._later()
        if later:
            asked += [predicting, keep(later)]
        if self.samples or self.guide is not None:
            asked.append(redraw)
        return asked

    def log_likelihood(
        self,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
        *,
        generator: Generator | None = None,
    ) -> dict[str, Tensor]:
        """{observed step: (num_samples, B, …)}: log p of each element given a draw of the latents; without the axis B
        for a program that does not use its input.  NaN where an element is masked."""
        given, samples = self._latents(x, observations, generator)
        return given.log_likelihood(samples)

    def states(
        self,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
        *,
        generator: Generator | None = None,
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """What `marginalize` sums out, given the observations, for draws of the latents: the probability of each state
        of a hidden chain, or of each component of a mixture, {name: (num_samples, …, K)}, and states drawn from their
        posterior, whole paths of a chain, {name: (num_samples, …)}."""
        given, samples = self._latents(x, observations, generator)
        found, drawn = given.hidden_paths(samples)
        return dict(found), dict(drawn)

    def deterministic(
        self,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
        *,
        generator: Generator | None = None,
    ) -> dict[str, Tensor]:
        """{let: (num_samples, …)}: the lets of a program without input that depend on a latent, or that its `keep`
        names, for draws of the latents."""
        given, samples = self._latents(x, observations, generator)
        return given.deterministic(samples)

    def _latents(
        self, x: object, observations: Mapping[str, Any] | None, generator: Generator | None
    ) -> tuple[Given, Mapping[str, Tensor]]:
        model = self.model
        observations = model.taken(observations)
        model.check_names(observations, "observations")
        samples = {name: draws[: self.num_samples] for name, draws in self.samples.items()}
        if not samples:
            latent = {n for n, site in model.sites.items() if site.kind == "sample" and n not in observations}
            drawn = Predictive(model, self.guide, None, self.num_samples, latent)
            samples = drawn(x, observations, generator=generator)
        return Given(model, x, observations), samples

    def _per_draw(
        self,
        x: object,
        observations: Mapping[str, Any] | None,
        parameters: Mapping[str, Tensor],
        generator: Generator | None,
    ) -> dict[str, Tensor]:
        """Lifted parameters differ from draw to draw: one execution each."""
        kept: dict[str, list[Tensor]] = {}
        known = {name for name, _ in self.model.named_parameters()}
        drawn = *self._handlers(), seed(generator)
        for index in range(self.num_samples):
            one = {name: sample[index] for name, sample in self.samples.items() if name not in parameters}
            values = {name: value for name, value in one.items() if name in self.model.in_draws}
            own = {name: sample[index] for name, sample in parameters.items() if name in known}
            with parameters_set(self.model, own):
                run = self.model.execute(
                    x, condition(observations), substitute(values), replay(noise_by_site(one)), *drawn
                )
            for name, drawn_value in _values(run).items():
                if isinstance(drawn_value, Tensor) and (self.return_sites is None or name in self.return_sites):
                    kept.setdefault(name, []).append(drawn_value)
        return {name: arrays.stack(of_one_size(values)) for name, values in kept.items()}


def drawn_latents(model: ProgramModule, given: Any) -> dict[str, Tensor]:
    """{latent: (draws, …)} of tensors, or of the group `posterior` of an InferenceData: what a program computes from
    its latents is left out."""
    if given is None:
        return {}
    given = given.to_dataset() if hasattr(given, "to_dataset") and hasattr(given, "children") else given
    if hasattr(given, "data_vars"):
        parameters = {name for name, _ in model.named_parameters()}
        names = [str(name) for name in given.data_vars]
        given = {n: given[n] for n in names if n.partition("/")[0] in model.in_draws or n in parameters}
        if not given:
            raise model.unknown(f"posterior_samples: `{model.name}` has no", names[0] if names else "", [*model.sites])
    return {name: arrays.as_tensor(value) for name, value in model.taken(given).items()}


def _values(run: Execution) -> dict[str, object]:
    """The values of all sites, and of the lets that were kept."""
    return {**{name: site.reported for name, site in run.sites.items()}, **run.kept}
