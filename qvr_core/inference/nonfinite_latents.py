"""Where a density that is machine code stopped being finite: its program is run once more, at the same latents."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from qvr_core.arrays.engine import arrays
from qvr_core.inference.guides.base import Guide
from qvr_core.inference.machine.tracing import site_slopes
from qvr_core.inference.mcmc.potential import ProgramPotential
from qvr_core.inference.nonfinite import finite, lost_parameter, named_parameters
from qvr_core.runtime.families.soundness import counted
from qvr_core.runtime.values.errors import NonFinite

Array = NDArray[Any]


def first_not_finite_at(potential: ProgramPotential, guide: Guide, positions: Array) -> NonFinite:
    """The first quantity that is NaN or infinite at latents (K, D) that a guide has drawn: parameters, values,
    densities, then slopes."""
    model = potential.model
    lost = lost_parameter(model, named_parameters(model, guide))
    if lost is not None:
        return lost
    for position in positions:
        found = potential.blame(arrays.from_numpy(position)) or _blamed_slope(potential, position)
        if found is not None:
            return found
    return NonFinite(f"`{model.name}`: the loss or its gradient is not finite")


def _blamed_slope(potential: ProgramPotential, position: Array) -> NonFinite | None:
    """The first site whose log density is finite and has a slope that is not, and the latent that it goes along."""
    program = potential.model.name
    for name, slope in site_slopes(potential, position).items():
        for block in potential.blocks:
            part = arrays.from_numpy(slope[block.start : block.stop])
            if not finite(part):
                words = f"its log density is finite, but its gradient by `{block.coordinate.site}` {counted(part)}"
                return potential.model.placed(NonFinite(f"`{program}`: site `{name}`: {words}", site=name))
    return None
