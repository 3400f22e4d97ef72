"""Where the gradient of a density that is finite stopped being so."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from qvr_core.arrays.engine import arrays
from qvr_core.inference.machine.tracing import site_slopes
from qvr_core.inference.mcmc.potential import ProgramPotential
from qvr_core.inference.nonfinite import finite
from qvr_core.runtime.families.soundness import counted
from qvr_core.runtime.values.errors import NonFinite

Array = NDArray[Any]

BOTH_BRANCHES = (
    "of a `where` both branches are computed, and the slope of the one that is not taken must be finite, too: put the "
    "condition inside, `log(where(x == 0, 1.0, x))`"
)


def blamed_slope(potential: ProgramPotential, position: Array) -> NonFinite | None:
    """The first site whose log density is finite and has a slope that is not, and the latent that it goes along."""
    program = potential.model.name
    for name, slope in site_slopes(potential, position).items():
        for block in potential.blocks:
            part = arrays.from_numpy(slope[block.start : block.stop])
            if not finite(part):
                words = f"its log density is finite, but its gradient by `{block.coordinate.site}` {counted(part)}"
                words += f"; {BOTH_BRANCHES}"
                return potential.model.placed(NonFinite(f"`{program}`: site `{name}`: {words}", site=name))
    return None
