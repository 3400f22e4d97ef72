"""What is computed for draws of the latents, after sampling: the pointwise log likelihood, and deterministic sites."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor, arrays, is_tensor
from qvr_core.arrays.random_state import random_state_kept
from qvr_core.inference.lifting import LiftedModel, parameters_set
from qvr_core.runtime.families.soundness import sound_arguments
from qvr_core.runtime.programs.execution import Execution
from qvr_core.runtime.programs.forward_algorithm import HiddenChain
from qvr_core.runtime.programs.handlers import (
    Handler,
    by_rows,
    condition,
    densities,
    drawn_anew,
    keep,
    of_the_fit,
    on_device,
    paths,
    pointwise,
    predicting,
    redraw,
    replay,
    seed,
    states,
    substitute,
)
from qvr_core.runtime.programs.indexed import size_of
from qvr_core.runtime.programs.observed.data_lets import observed_values
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.arrow import repeat_rows
from qvr_core.runtime.values.errors import NonFinite
from qvr_core.runtime.values.layout import parts
from qvr_core.runtime.values.term_tables import of_one_size
from qvr_core.semantics.terms.term_values import term_steps
from qvr_core.semantics.types.deterministic import deterministic, filled_in_predictors
from qvr_core.semantics.types.model.steps import LetModel
from qvr_core.semantics.types.walk import all_steps

AT_ONCE = 500
"""Rows of one execution: draws times rows of the input."""
NUMBERS_AT_ONCE = 200_000
"""Numbers observed times draws of one execution."""
LARGEST = 50_000
"""Elements of the largest let times draws of one execution, which holds several arrays of its size."""
CPU = arrays.device("cpu")
LATER = 0x9E3779B9
"""The seed of predictions, which nobody types: data drawn anew by the same one would be the same draws."""
MOST_KEPT = 10_000
"""A let of more numbers a draw is kept only where the program says so."""


def log_likelihood(run: Execution, model: ProgramModule) -> dict[str, Tensor]:
    """{step: (B, …)} of an execution that was asked for it.

    An element that a mask or padding leaves out is NaN.  A `marginalize` has one number for each element of its plates,
    under the name of the step that it observes, or its own where it observes several.  One with indices gives each
    observed element its own number where each reads another place, else one for each place, under its own name.
    """
    return {
        name_of(name, model): record.pointwise for name, record in run.sites.items() if record.pointwise is not None
    }


def name_of(name: str, model: ProgramModule) -> str:
    """What the log likelihood of a record is called."""
    block = model.marginals.get(name)
    if block is None or isinstance(block, HiddenChain):
        return name
    observed = [site.name for site in block.observed() if site.kind == "observe"]
    return observed[0] if len(observed) == 1 else name


Made = Mapping[str, Tensor]


def _states_of(names: Collection[str]) -> Callable[[Execution], Made]:
    def read(run: Execution) -> Made:
        found = {name: run.sites[name].states for name in names}
        return {name: value for name, value in found.items() if value is not None}

    return read


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What executions are asked for, and which values (draws · B, …) are read off each."""

    handlers: tuple[Handler, ...]
    read: Callable[[Execution], Made]
    by_draw: bool = False
    """Whether the values have no axis of rows."""
    anew: frozenset[str] = frozenset()
    """The observed steps that are not told their data."""


@dataclass(frozen=True)
class Given:
    """What draws were made of: a model with its input and observations."""

    model: ProgramModule | LiftedModel
    x: object
    observations: Mapping[str, Any]
    statistics: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    """Of new rows: what lets computed from all of the data of the fit."""

    @cached_property
    def _largest(self) -> int:
        """Elements of the largest let with indices."""
        lets = (step.indexed for step in all_steps(self.program.program.steps) if isinstance(step, LetModel))
        return max([1, *(math.prod(size_of(index.space) for index in one.indices) for one in lets if one)])

    @cached_property
    def known(self) -> Mapping[str, Any]:
        """The observations, what the program was loaded with, and the lets of these data that it observes."""
        known = {**self.program.data, **self.observations}
        return {**observed_values(self.program, known, self.statistics), **known}

    def log_likelihood(self, samples: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """{step: (draws, …)} for latents {site: (draws, …)}, with an axis of rows where the program reads its input.

        Noise inside arrows is among the latents, as `site/path`; parameters are, by name, where they were lifted.
        """
        model = self.program
        return self._each(samples, _Wanted((densities(True), pointwise), lambda run: log_likelihood(run, model)))

    def of_outcomes(self, likelihood: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What `log_likelihood` gives of outcomes alone: a predictor whose missing cells are filled in is none."""
        predictors = filled_in_predictors(self.program.program)
        return {name: value for name, value in likelihood.items() if name not in predictors}

    @property
    def program(self) -> ProgramModule:
        """The program itself where its parameters were lifted."""
        return self.model.model if isinstance(self.model, LiftedModel) else self.model

    def deterministic(self, samples: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """{let: (draws, …)} for latents {site: (draws, …)}: what `keep` names, else every let that depends on a latent,
        while it has at most `MOST_KEPT` numbers a draw."""
        names = self._lets()
        return self._each(samples, _Wanted((densities(False), keep(names)), self._small, True)) if names else {}

    def _lets(self) -> Collection[str]:
        program = self.program.program
        return deterministic(program) if program.keep is None else program.keep

    def _small(self, run: Execution) -> Made:
        """The lets of an execution that are kept."""
        most = MOST_KEPT if self.program.program.keep is None else math.inf
        return {name: value for name, value in run.kept.items() if value[0].numel() <= most}

    def predictions(self, samples: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """{name: (draws, …)} for latents {site: (draws, …)}: `predict` steps and the lets that read them, drawn given
        the data; the same draws each time.  With an axis of rows where the program reads its input."""
        names = self.program.predicted
        if not names:
            return {}
        with random_state_kept(self._device()):
            arrays.manual_seed(LATER)
            return self._each(samples, _Wanted((densities(False), keep(names), predicting), lambda run: run.kept))

    def hidden_states(self, samples: Mapping[str, Tensor], names: Collection[str] | None = None) -> Made:
        """What `marginalize` sums out, given the data, for latents {site: (draws, …)}: the probability of each state of
        hidden chains and of each component of mixtures, {name: (draws, …, K)}; of `names`, or of all, with at most
        `MOST_KEPT` places."""
        names = [name for name in self._summed() if names is None or name in names]
        return (
            self._each(samples, _Wanted((densities(False), states), _states_of(names)))
            if names
            else dict[str, Tensor]()
        )

    def hidden_paths(self, samples: Mapping[str, Tensor], number: int = 0) -> tuple[Made, Made]:
        """Those probabilities, and states drawn from their posterior by a generator of that number, whole paths of a
        chain, {name: (draws, …)}."""
        names = self._summed()
        if not names:
            return {}, {}
        generator, probabilities = arrays.Generator(self._device()).manual_seed(number), _states_of(names)

        def read(run: Execution) -> Made:
            return {**probabilities(run), **{f"{name}/path": value for name, value in _values(run, names).items()}}

        made = self._each(samples, _Wanted((densities(False), paths, seed(generator)), read))
        drawn = {name.removesuffix("/path"): value for name, value in made.items() if name.endswith("/path")}
        return {name: value for name, value in made.items() if name in names}, drawn

    def numbers_hidden(self, samples: Mapping[str, Tensor]) -> dict[str, int]:
        """How many numbers `hidden_states` gives of a draw, by name."""
        blocks = {name: self.program.marginals[name] for name in self._summed()}
        known = {n: one.states for n, one in blocks.items() if isinstance(one, HiddenChain)}
        chains = {n: states * math.prod(blocks[n].places_of) for n, states in known.items() if states is not None}
        # how many components a mixture has, and how many values a count, is seen in a draw
        mixtures = [name for name in blocks if name not in chains]
        one = self.hidden_states({name: value[:1] for name, value in samples.items()}, mixtures)
        return {**chains, **{name: value.numel() for name, value in one.items()}}

    def _summed(self) -> list[str]:
        """The names of which there are states."""
        if self.program.program.uses_input:
            return []
        blocks = self.program.marginals.items()
        return [name for name, one in blocks if one.discrete and math.prod(one.places_of) <= MOST_KEPT]

    def replicates(
        self,
        samples: Mapping[str, Tensor],
        number: int = 0,
        steps: Collection[str] | None = None,
        count: int | None = None,
    ) -> dict[str, Tensor]:
        """{step: (draws, …)} for latents {site: (draws, …)}: data drawn anew, the posterior predictive, by a generator
        of that number; of the steps that were observed, or of `steps`: a latent among these is drawn given the others.
        `count` draws where there are no samples.  With an axis of rows where the program reads its input."""
        names = list(self.observed_data() if steps is None else steps)
        generator = arrays.Generator(self._device()).manual_seed(number)
        asked = _Wanted((densities(False), redraw, seed(generator)), lambda run: _values(run, names))
        return self._each(samples, asked, None if samples else count) if names else {}

    def of_new_rows(self, samples: Mapping[str, Tensor], number: int = 0) -> dict[str, Tensor]:
        """{let or step: (draws, …)} for latents {site: (draws, …)}: the lets of `deterministic` and every observed step
        drawn anew, by a generator of that number.  What an observed step lacks that others read is drawn once for all.
        """
        lets, steps = self._lets(), self.observed_steps
        generator = arrays.Generator(self._device()).manual_seed(number)
        asked = (densities(False), redraw, keep(lets), seed(generator))

        def read(run: Execution) -> Made:
            kept = {name: value for name, value in self._small(run).items() if name in lets}
            return {**kept, **_values(run, [name for name in steps if name not in kept])}

        return self._each(samples, _Wanted(asked, read))

    def prior(self, count: int, number: int = 0) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """`count` draws from the prior by a generator of that number: ({latent or let: (count, …)}, {observed or
        `predict` step: (count, …)}), of which the second has an axis of rows where the program reads its input.

        Raises `RuntimeProblem` where a latent has no prior to draw from.
        """
        model, lets, observed = self.program, self._lets(), self.observed_data()
        data = {name: value for name, value in self.known.items() if name not in observed}
        latent = [name for name, site in model.sites.items() if site.kind == "sample" and name not in data]
        later = [*self.observed_steps, *model.predicted]
        generator = arrays.Generator(self._device()).manual_seed(number)
        # the rows of an input stand in the data as often as there are draws
        begun = observed if model.input(self.x) is None else {}
        anew = (drawn_anew(observed, begun), keep([*lets, *model.predicted]), predicting)
        asked = (densities(False), *anew, seed(generator))

        def read(run: Execution) -> Made:
            lets_of = {name: value for name, value in self._small(run).items() if name in lets}
            return {**_values(run, latent), **lets_of, **_values(run, later)}

        found = self._each({}, _Wanted(asked, read, anew=frozenset(observed)), count)
        return {n: v for n, v in found.items() if n not in later}, {n: v for n, v in found.items() if n in later}

    def checked_prior(
        self, count: int, number: int = 0
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], NonFinite | None]:
        """What `prior` gives, and the first argument of a family that is not finite or outside what the family takes;
        None where all are sound."""
        try:
            with sound_arguments():
                return *self.prior(count, number), None
        except NonFinite as wrong:
            return *self.prior(count, number), wrong

    def _device(self) -> arrays.device:
        """Where the data lie, or else the parameters."""
        lying = chain((value for value in self.known.values() if is_tensor(value)), self.program.parameters())
        return next((value.device for value in lying), CPU)

    @arrays.no_grad()
    def _each(self, samples: Mapping[str, Tensor], wanted: _Wanted, count: int | None = None) -> dict[str, Tensor]:
        """What is wanted of executions on parts of the draws; of `count` draws where there are no samples."""
        model = self.program
        count = len(next(iter(samples.values()))) if count is None else count
        names = {name for name, _ in model.named_parameters()}
        lifted = {name: draws for name, draws in samples.items() if name in names}
        rest = {name: draws for name, draws in samples.items() if name not in names}
        value = model.input(self.x)
        rows = 1 if value is None else parts(value)[0].shape[0]
        numbers = max(1, sum(value.numel() for value in self.known.values() if is_tensor(value)))
        step = 1 if lifted else max(1, min(AT_ONCE // rows, NUMBERS_AT_ONCE // numbers, LARGEST // self._largest))
        found: dict[str, NDArray[Any]] = {}
        terms = term_steps(model.program)
        tables: dict[str, list[Tensor]] = {}
        device = self._device()
        for start in range(0, count, step):
            part = {name: draws[start : start + step].to(device) for name, draws in rest.items()}
            with parameters_set(model, {name: draws[start].to(device) for name, draws in lifted.items()}):
                made = self._part(model, value, part, min(step, count - start), rows, wanted)
            for name, some in made.items():
                if name in terms:
                    tables.setdefault(name, []).append(some.detach())
                    continue
                read = some.detach().cpu().numpy()
                if name not in found:
                    found[name] = np.empty((count, *read.shape[1:]), read.dtype)
                found[name][start : start + step] = read
        whole = {name: arrays.cat(of_one_size(values)) for name, values in tables.items()}
        return {**whole, **{name: arrays.from_numpy(values).to(device) for name, values in found.items()}}

    def _part(
        self, model: ProgramModule, value: Any, samples: Mapping[str, Tensor], count: int, rows: int, wanted: _Wanted
    ) -> Made:
        given = {name: self.known[name] for name in self.known if name not in wanted.anew}
        if value is not None:
            given = model.repeat_data(given, rows, count)
            value = repeat_rows(value, count)
        flat = {name: spread(draws, rows) for name, draws in samples.items()}
        noise = noise_by_site(flat)
        latents = {name: draws for name, draws in flat.items() if name in model.in_draws}
        own = of_the_fit(self.statistics), on_device(self._device())
        known = (condition(given), substitute(latents), replay(noise), *own)
        made = wanted.read(model.run(value, *known, *wanted.handlers, by_rows(count * rows)))
        shape = (count,) if value is None else (count, rows)
        return made if wanted.by_draw else {name: v.reshape(*shape, *v.shape[1:]) for name, v in made.items()}

    @property
    def observed_steps(self) -> list[str]:
        """The names of all observed steps."""
        model = self.program
        inside = [site for block in model.marginals.values() for site in block.observed()]
        return list(dict.fromkeys(s.name for s in (*model.sites.values(), *inside) if s.kind == "observe"))

    def observed_data(self) -> dict[str, Tensor]:
        """The values of observed steps, as they were given."""
        steps = self.observed_steps
        return {name: arrays.as_tensor(value) for name, value in self.known.items() if name in steps}


def noise_by_site(draws: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Of draws by name those of the noise inside arrows, `site/path`."""
    noise: dict[str, dict[str, Tensor]] = {}
    for name, value in draws.items():
        site, slash, path = name.partition("/")
        if slash:
            noise.setdefault(site, {})[path] = value
    return noise


def spread(draws: Tensor, rows: int) -> Tensor:
    """A draw per row: (draws · B, …) of (draws, B, …), or of (draws, …), the same draw in each row."""
    if rows > 1 and draws.ndim > 1 and draws.shape[1] == rows:
        return draws.flatten(0, 1)
    return draws if rows == 1 else draws.repeat_interleave(rows, 0)


def _values(run: Execution, names: Collection[str]) -> Made:
    """The values of steps, and of lets that were kept."""
    values = {**{name: site.reported for name, site in run.sites.items()}, **run.kept}
    found = {name: values.get(name) for name in names}
    return {name: value for name, value in found.items() if is_tensor(value)}
