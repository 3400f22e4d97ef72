"""The bound that a run's settings ask for."""

from __future__ import annotations

import warnings

from qvr_core import inference
from qvr_core.data.records import Records
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.parts_of_rows import Parts
from qvr_core.runs.prepare.prepare import Prepared
from qvr_core.runs.prepare.row_terms import part_of_rows
from qvr_core.runs.record.config import RunConfig
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import OtherLength


def objective_of(
    config: RunConfig, prepared: Prepared, model: ProgramModule, train: object
) -> inference.ELBO | inference.RenyiBound:
    """The objective of a fit of `model` to `train`, which may be a part of its rows in each step.  Raises `Refused`."""
    particles, stl = config.particles, config.gradient == "sticking"
    if stl and config.objective != "elbo":
        other = f"that of {config.objective} would point elsewhere"
        instead = f"gradient = doubly is its like for {config.objective}"
        raise Refused("objective", f"gradient = sticking is right for the elbo alone; {other}: {instead}")
    doubly = config.gradient == "doubly"
    if doubly and config.objective == "elbo":
        raise Refused("objective", "gradient = doubly is one of iwae and renyi; for the elbo it is sticking")
    if particles == 1 and config.objective != "elbo":
        raise Refused("objective", f"{config.objective} of one particle is the elbo: particles = 8, or more")
    if config.objective != "renyi" and config.alpha != RunConfig.model_fields["alpha"].default:
        raise Refused("objective", f"alpha is the order of renyi, and the objective is {config.objective}")
    if config.guide == "dais" and config.gradient != "full":
        message = f"gradient = {config.gradient} takes log q of one draw, and dais has that of a way"
        raise Refused("objective", f"{message}: leave gradient out")
    if isinstance(train, Records | Parts) and prepared.needs.statistical:
        if model.imputed:
            name = model.imputed[0]
            message = f"`{name}` fills in missing cells, each a latent of all rows: leave batch_size out"
            raise Refused("batch", message, site=name)
        if config.objective != "elbo":
            raise Refused("objective", f"{config.objective} needs all rows in each step: leave batch_size out")
        warnings.filterwarnings("ignore", category=OtherLength)  # a part of the rows is what is meant here
        whole = train.scaled if isinstance(train, Parts) else part_of_rows(prepared)
        return inference.ELBO(particles, stl=stl, handlers=(whole,))
    match config.objective:
        case "elbo":
            return inference.ELBO(particles, stl=stl)
        case "iwae":
            return inference.IWAEBound(particles, doubly=doubly)
        case "renyi":
            return inference.RenyiBound(particles, alpha=config.alpha, doubly=doubly)
