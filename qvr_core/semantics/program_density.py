"""A program as an arrow: is it sampled, and how is the density of what it returns computed?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from qvr_core.semantics.density import DETERMINISTIC
from qvr_core.semantics.model import (
    Density,
    LetModel,
    MarginalizeModel,
    ObserveModel,
    SampleModel,
    ScoreModel,
    Sort,
    StepModel,
)


def program_sort(steps: Iterable[StepModel]) -> Sort:
    """Deterministic where no step draws, scores or sums out."""
    for step in steps:
        if isinstance(step, MarginalizeModel | ScoreModel):
            return Sort.SAMPLED
        if isinstance(step, SampleModel | ObserveModel) and step.site.density.kind != "deterministic":
            return Sort.SAMPLED
    return Sort.DETERMINISTIC


def program_density(steps: Sequence[StepModel], returned: Sequence[str]) -> Density:
    """The density of the returned value given the noise of all other draws."""
    sites = [step.site for step in steps if isinstance(step, SampleModel | ObserveModel)]
    drawn = [site for site in sites if site.density.kind != "deterministic"]
    draws = sum(max(site.density.draws, 1) for site in drawn)
    names = set(returned)
    final = [site for site in drawn if any(name in names for name, _ in site.bound)]
    lets = {name for step in steps if isinstance(step, LetModel) for name in step.names}
    if not drawn:
        return DETERMINISTIC
    if not final or names & lets or any(site.density.kind == "none" for site in drawn):
        return Density("none", draws, 1, draws)
    innovations = draws - sum(max(site.density.draws, 1) - site.density.innovations for site in final)
    if any(site.density.kind == "score" for site in drawn):
        return Density("score", innovations, 1, draws)
    summed = math.prod(site.density.summed for site in drawn)
    kind = "summed" if summed > 1 else "conditional" if innovations else "exact"
    return Density(kind, innovations, summed, draws)
