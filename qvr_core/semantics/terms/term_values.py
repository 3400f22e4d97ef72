"""Which values of a program are terms."""

from __future__ import annotations

from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.model.steps import ArrowDraw, ObserveModel, PredictModel, SampleModel
from qvr_core.semantics.types.spaces import Terms
from qvr_core.semantics.types.walk import sites


def term_steps(program: Program) -> dict[str, Terms]:
    """{step: the type} of the steps that draw a term."""
    found: dict[str, Terms] = {}
    for site in sites(program.steps, SampleModel, ObserveModel, PredictModel):
        if isinstance(site.draw, ArrowDraw) and isinstance(site.draw.arrow.codomain.space, Terms):
            found[site.name] = site.draw.arrow.codomain.space
    return found
