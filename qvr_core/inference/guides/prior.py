"""The model itself as guide."""

from __future__ import annotations

from qvr_core.arrays.engine import Generator
from qvr_core.inference.guides.base import Gradient, Guide, Inputs, Proposal


class AutoPriorGuide(Guide):
    """Latents drawn from the model: log p − log q is zero, so a step costs one forward pass and no density of a latent.

    The default for programs whose latents are local to a row.  Discrete latents get the score function's gradient.
    """

    def propose(
        self,
        rows: int,
        generator: Generator | None = None,
        *,
        gradient: Gradient = "sampled",
        inputs: Inputs | None = None,
    ) -> Proposal:
        """Nothing: every latent is drawn by the model."""
        return Proposal()
