"""One recorded execution of a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qvr_core.arrays.engine import Generator, Tensor
from qvr_core.inference.pointwise import log_likelihood
from qvr_core.runtime.programs.execution import SiteRecord
from qvr_core.runtime.programs.handlers import condition, pointwise, seed
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.arrow import Value


@dataclass(frozen=True, slots=True)
class Trace:
    """`sites` in program order; `innovations` by site and path, as `log_joint` takes them; `output` what the program
    returns; `log_joint` (B,) the density of all values given the innovations."""

    sites: dict[str, SiteRecord]
    innovations: dict[str, dict[str, Tensor]]
    output: Value
    log_joint: Tensor
    log_likelihood: dict[str, Tensor]
    """By observed step the log density of each of its elements, (B, …)."""


def trace(
    model: ProgramModule,
    x: object = None,
    observations: Mapping[str, Any] | None = None,
    *,
    generator: Generator | None = None,
) -> Trace:
    """Run `model` on `x` once, conditioned on `observations`, and keep every site."""
    run = model.execute(x, condition(model.taken(observations)), seed(generator), pointwise)
    joint = run.log_joint()
    likelihood = log_likelihood(run, model)
    return Trace(run.sites, run.innovations(model.final_paths), run.output, joint.expand(run.rows), likelihood)
