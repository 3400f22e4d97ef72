"""What is computed for draws of the latents, after sampling: the pointwise log likelihood, and deterministic sites."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from qvr_core.inference.lifting import LiftedModel, parameters_set
from qvr_core.runtime.programs.execution import Execution
from qvr_core.runtime.programs.handlers import (
    by_rows,
    condition,
    densities,
    keep,
    pointwise,
    predicting,
    replay,
    substitute,
)
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.arrow import repeat_rows
from qvr_core.runtime.values.layout import parts
from qvr_core.semantics.types.deterministic import deterministic

AT_ONCE = 2_000
"""Rows of one execution: draws times rows of the input."""
MOST_KEPT = 10_000
"""A let of more numbers a draw is kept only where the program says so."""


def log_likelihood(run: Execution, model: ProgramModule) -> dict[str, Tensor]:
    """{step: (B, …)} of an execution that was asked for it.

    An element that a mask or padding leaves out is NaN.  A `marginalize` has one number for each element of its plates,
    under the name of the step that it observes, or its own where it observes several.
    """
    return {_name(name, model): record.pointwise for name, record in run.sites.items() if record.pointwise is not None}


def _name(name: str, model: ProgramModule) -> str:
    block = model.marginals.get(name)
    observed = [] if block is None else [site.name for site in block.observed() if site.kind == "observe"]
    return observed[0] if len(observed) == 1 else name


@dataclass(frozen=True)
class Given:
    """What draws were made of: a model with its input and observations."""

    model: ProgramModule | LiftedModel
    x: object
    observations: Mapping[str, Any]

    def log_likelihood(self, samples: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """{step: (draws, …)} for latents {site: (draws, …)}, with an axis of rows where the program reads its input.

        Noise inside arrows is among the latents, as `site/path`; parameters are, by name, where they were lifted.
        """
        return self._each(samples)

    @torch.no_grad()
    def _each(self, samples: Mapping[str, Tensor], lets: Collection[str] = ()) -> dict[str, Tensor]:
        """Of executions on parts of the draws: the values of `lets`, else the log likelihood."""
        model = self.model.model if isinstance(self.model, LiftedModel) else self.model
        count = len(next(iter(samples.values())))
        names = {name for name, _ in model.named_parameters()}
        lifted = {name: draws for name, draws in samples.items() if name in names}
        rest = {name: draws for name, draws in samples.items() if name not in names}
        value = model.input(self.x)
        rows = 1 if value is None else parts(value)[0].shape[0]
        step = 1 if lifted else max(1, AT_ONCE // rows)
        found: dict[str, list[Tensor]] = {}
        for start in range(0, count, step):
            part = {name: draws[start : start + step] for name, draws in rest.items()}
            with parameters_set(model, {name: draws[start] for name, draws in lifted.items()}):
                made = self._part(model, value, part, min(step, count - start), rows, lets)
            for name, numbers in made.items():
                found.setdefault(name, []).append(numbers)
        return {name: torch.cat(pieces) for name, pieces in found.items()}

    def deterministic(self, samples: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """{let: (draws, …)} for latents {site: (draws, …)}: what `keep` names, else every let that depends on a latent,
        while it has at most `MOST_KEPT` numbers a draw."""
        model = self.model.model if isinstance(self.model, LiftedModel) else self.model
        names = deterministic(model.program) if model.program.keep is None else model.program.keep
        return self._each(samples, names) if names else {}

    def predictions(self, samples: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """{name: (draws, …)} for latents {site: (draws, …)}: `predict` steps and the lets that read them, drawn given
        the data; the same draws each time.  With an axis of rows where the program reads its input."""
        model = self.model.model if isinstance(self.model, LiftedModel) else self.model
        if not model.predicted:
            return {}
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return self._each(samples, model.predicted)

    def _part(
        self,
        model: ProgramModule,
        value: Any,
        samples: Mapping[str, Tensor],
        count: int,
        rows: int,
        lets: Collection[str],
    ) -> dict[str, Tensor]:
        given = dict(self.observations)
        if value is not None:
            given = model.repeat_data(given, rows, count)
            value = repeat_rows(value, count)
        flat = {name: spread(draws, rows) for name, draws in samples.items()}
        noise: dict[str, dict[str, Tensor]] = {}
        for name, draws in flat.items():
            site, slash, path = name.partition("/")
            if slash:
                noise.setdefault(site, {})[path] = draws
        latents = {name: draws for name, draws in flat.items() if name in model.sites}
        known = (condition(given), substitute(latents), replay(noise))
        wanted = (densities(False), keep(lets)) if lets else (densities(True), pointwise)
        after = (predicting,) if any(name in model.predicted for name in lets) else ()
        run = model.run(value, *known, *wanted, *after, by_rows(count * rows))
        shape = (count,) if value is None else (count, rows)
        if after:
            return {name: v.reshape(*shape, *v.shape[1:]) for name, v in run.kept.items()}
        if lets:
            most = MOST_KEPT if model.program.keep is None else math.inf
            return {name: v for name, v in run.kept.items() if v[0].numel() <= most}
        made = log_likelihood(run, model)
        return {name: numbers.reshape(*shape, *numbers.shape[1:]) for name, numbers in made.items()}

    def observed_data(self) -> dict[str, Tensor]:
        """The values of observed steps, as they were given."""
        model = self.model.model if isinstance(self.model, LiftedModel) else self.model
        inside = [site for block in model.marginals.values() for site in block.observed()]
        steps = {site.name for site in (*model.sites.values(), *inside) if site.kind == "observe"}
        return {name: torch.as_tensor(value) for name, value in self.observations.items() if name in steps}


def spread(draws: Tensor, rows: int) -> Tensor:
    """A draw per row: (draws · B, …) of (draws, B, …), or of (draws, …), the same draw in each row."""
    if rows > 1 and draws.ndim > 1 and draws.shape[1] == rows:
        return draws.flatten(0, 1)
    return draws if rows == 1 else draws.repeat_interleave(rows, 0)
