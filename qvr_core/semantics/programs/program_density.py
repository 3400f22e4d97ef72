"""A program as an arrow: how the density of what it returns is computed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qvr_core.semantics.programs.step_results import Block
from qvr_core.semantics.types.density import DETERMINISTIC
from qvr_core.semantics.types.model.arrows import Density
from qvr_core.semantics.types.model.steps import ObserveModel, SampleModel


def program_density(blocks: Sequence[Block], returned: Sequence[str]) -> Density:
    """The density of the returned value given the noise of all other draws."""
    draws = sum(block.density.draws for block in blocks)
    if not draws:
        return DETERMINISTIC if not any(block.sampled for block in blocks) else Density("none")
    kinds = {block.density.kind for block in blocks}
    final: dict[int, Density] = {}
    for name in returned:
        density = _drawn(blocks, name)
        if density is None:
            return Density("none", draws, 1, draws)
        final[id(density)] = density
    if not final or "none" in kinds:
        return Density("none", draws, 1, draws)
    draws -= _observed(blocks, returned)
    innovations = draws - sum(max(density.draws, 1) - density.innovations for density in final.values())
    if "score" in kinds:
        return Density("score", innovations, 1, draws)
    summed = math.prod(block.density.summed for block in blocks)
    kind = "summed" if summed > 1 else "conditional" if innovations else "exact"
    return Density(kind, innovations, summed, draws)


def _observed(blocks: Sequence[Block], returned: Sequence[str]) -> int:
    """The draws of steps that are observed and not returned: where the program is an arrow they have their data."""
    models = (model for block in blocks for model in block.models if isinstance(model, ObserveModel))
    sites = (model.site for model in models if model.site.name not in returned)
    return sum(max(site.density.draws, 1) for site in sites if site.density.kind != "deterministic")


def _drawn(blocks: Sequence[Block], name: str) -> Density | None:
    """The density of the site that binds `name`; None where it is computed."""
    for block in reversed(blocks):
        if name in block.binds:
            for result in block.results:
                model = result.model
                if name in result.binds and isinstance(model, SampleModel | ObserveModel):
                    return model.site.density if model.site.density.kind != "deterministic" else None
            return None
    return None
