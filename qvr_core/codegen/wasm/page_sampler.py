"""What a page samples with: a density, the sampler on it, and what is said of its draws, in one module."""

from __future__ import annotations

from qvr_core.codegen.kernels import nuts_and_hmc, rhat_and_ess
from qvr_core.codegen.kinds import REAL, WHOLE, Array
from qvr_core.codegen.source import Text
from qvr_core.codegen.wasm.module import Module

ADVANCE = (
    WHOLE, Array(REAL, 1), Array(REAL, 1), Array(WHOLE, 1), *(Array(REAL, 1),) * 3, *(Array(REAL, 2),) * 2,
    Array(REAL, 1), *(Array(REAL, 2),) * 2, Array(WHOLE, 1), *(WHOLE,) * 5, Array(WHOLE, 1), *(WHOLE,) * 4, REAL, REAL,
    WHOLE, WHOLE, *(Array(REAL, 2),) * 2,
)  # fmt: skip
"""The arguments of `nuts_and_hmc.advance`."""
MIXING = (Array(REAL, 2), *(Array(REAL, 1),) * 5)
"""Those of `rhat_and_ess.mixing`."""
REPORT = "report"


def sampler(density: Text, report: Text) -> bytes:
    """The module of a density with its sampler; `report` turns a position into the values of latents."""
    module = Module()
    module.take_loops(density)
    module.take_loops(report, REPORT)
    module.take(nuts_and_hmc.advance, ADVANCE)
    module.take(rhat_and_ess.mixing, MIXING)
    return module.encoded()
