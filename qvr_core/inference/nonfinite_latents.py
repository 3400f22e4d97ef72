"""Where a density that is machine code stopped being finite: its program is run once more, at the same latents."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from qvr_core.arrays.engine import arrays
from qvr_core.inference.guides.base import Guide
from qvr_core.inference.mcmc.potential import ProgramPotential
from qvr_core.inference.nonfinite import lost_parameter, named_parameters
from qvr_core.inference.nonfinite_slopes import blamed_slope
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
        found = potential.blame(arrays.from_numpy(position)) or blamed_slope(potential, position)
        if found is not None:
            return found
    return NonFinite(f"`{model.name}`: the loss or its gradient is not finite")
