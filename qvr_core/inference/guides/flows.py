"""Guides by normalising flows: independent standard Normals, bent into whatever the posterior is.

The flows are zuko's (Rozet and others).  They run from the noise to the latents, the way a guide is drawn from: one
pass of a masked network (MADE, Germain and others 2015) whatever the number of latents, with log |∂z/∂ε| beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from qvr_core.arrays.engine import Generator, Tensor, arrays, nn
from qvr_core.inference.coordinates import standard_normal
from qvr_core.inference.guides.base import default_tensor
from qvr_core.inference.guides.full_rank_and_laplace import JointGuide
from qvr_core.inference.guides.normal import FAMILY_SCALE
from qvr_core.runtime.programs.program import ProgramModule

TRANSFORMS = 3
"""Bends, one behind the other; each sees the latents in the other order."""
NARROWEST, WIDEST = 32, 512
"""Units of a hidden layer: twice the latents within these."""
BINS = 8
"""Pieces of a spline, over noise from −5 to 5."""


class FlowGuide(JointGuide):
    """z = loc + scale · T(ε): T begins as the identity, so a fit begins where that of a mean-field Normal does."""

    def __init__(
        self,
        model: ProgramModule,
        observed_names: Collection[str] = (),
        *,
        x: object = None,
        observations: Mapping[str, Any] | None = None,
        transforms: int = TRANSFORMS,
        hidden: int | None = None,
        init_scale: float = FAMILY_SCALE,
    ) -> None:
        """`hidden` units in each of two hidden layers of each of the `transforms`; twice the latents by default."""
        super().__init__(model, observed_names, x=x, observations=observations, init_scale=init_scale)
        self.log_scale = nn.Parameter(self.start.log())
        units = hidden if hidden is not None else min(max(2 * self.width, NARROWEST), WIDEST)
        orders = [arrays.arange(self.width), arrays.arange(self.width).flip(0)]
        made = [self.bend(units, orders[at % 2]) for at in range(transforms if self.width else 0)]
        for bend in made:
            # without a condition there is no network: one latent has numbers of its own
            last: Any = bend.hyper[-1] if hasattr(bend, "hyper") else bend
            with arrays.no_grad():
                for parameter in last.parameters():
                    parameter.zero_()
        self.bends = nn.ModuleList(made).to(default_tensor(model).dtype)

    def bend(self, units: int, order: Any) -> Any:
        """One transform of `self.width` numbers, each by those before it in an order: a module of zuko's."""
        raise NotImplementedError

    def draw_joint(self, rows: int, generator: Generator | None) -> tuple[Tensor, Tensor]:
        """Latents (rows, width), and log q (rows,): that of the noise, less log |∂z/∂ε|.

        Without the score of log q the noise is found again from the latents, one pass for each of them.
        """
        loc, log_scale = self.loc, self.log_scale
        noise = arrays.randn(rows, self.width, generator=generator, dtype=loc.dtype, device=loc.device)
        moved, log_jacobian = noise, log_scale.sum()
        for bend in self.bends:
            moved, one = bend().call_and_ladj(moved)
            log_jacobian = log_jacobian + one
        z = loc + log_scale.exp() * moved
        if self.gradient == "sticking":
            noise, log_jacobian = self._found_again(z)
        return z, standard_normal(noise) - log_jacobian

    def _found_again(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The noise of latents and log |∂z/∂ε| there, as functions of the latents alone."""
        log_scale = self.log_scale.detach()
        moved, log_jacobian = (z - self.loc.detach()) * (-log_scale).exp(), log_scale.sum()
        moving = [parameter for parameter in self.bends.parameters() if parameter.requires_grad]
        # a bend asks its networks when it is gone through, so copies that a call was given would be forgotten by then
        for parameter in moving:
            parameter.requires_grad_(False)
        try:
            for bend in reversed(self.bends):
                before, one = bend().inv.call_and_ladj(moved)
                moved, log_jacobian = before, log_jacobian - one
        finally:
            for parameter in moving:
                parameter.requires_grad_(True)
        return moved, log_jacobian


class AutoIAFGuide(FlowGuide):
    """An inverse autoregressive flow: each number is moved and scaled by those before it (Kingma and others 2016)."""

    def bend(self, units: int, order: Any) -> Any:
        from zuko.flows.autoregressive import MaskedAutoregressiveTransform  # pyright: ignore[reportMissingTypeStubs]

        return MaskedAutoregressiveTransform(self.width, order=order, hidden_features=(units, units))


class AutoSplineGuide(FlowGuide):
    """A neural spline flow: each number goes through a monotonic spline of rational quadratic pieces, made by those
    before it (Durkan and others 2019), so that it may have several modes."""

    def bend(self, units: int, order: Any) -> Any:
        from zuko.flows.autoregressive import MaskedAutoregressiveTransform  # pyright: ignore[reportMissingTypeStubs]
        from zuko.transforms import MonotonicRQSTransform  # pyright: ignore[reportMissingTypeStubs]

        shapes: Any = ((BINS,), (BINS,), (BINS - 1,))
        return MaskedAutoregressiveTransform(
            self.width,
            order=order,
            univariate=MonotonicRQSTransform,
            shapes=shapes,
            hidden_features=(units, units),
        )
