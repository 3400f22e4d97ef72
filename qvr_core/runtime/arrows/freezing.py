"""`f.freeze` of a kernel or function: the same arrow, without gradients to its parameters."""

from __future__ import annotations

from typing import Any

from qvr_core.arrays.engine import Generator, Tensor, nn
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Value
from qvr_core.runtime.values.leaves import adopt


class _Dispatch(nn.Module):
    """Lets `functional_call` reach any method of `body`."""

    def __init__(self, body: ArrowModule) -> None:
        super().__init__()
        self.body = body

    def forward(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.body, method)(*args, **kwargs)


class FrozenArrow(ArrowModule):
    """Calls `body` with its parameters detached; gradients to its input stay."""

    def __init__(self, body: ArrowModule) -> None:
        super().__init__()
        self.domain, self.codomain = body.domain, body.codomain
        self.dispatch = (_Dispatch(body),)
        self.sampled, self.pointwise, self.paths = body.sampled, body.pointwise, body.paths
        self.has_density, self.tabular, self.terms = body.has_density, body.tabular, body.terms
        adopt(self, [body])

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        from torch.func import functional_call

        dispatch = self.dispatch[0]
        still = {name: parameter.detach() for name, parameter in dispatch.named_parameters()}
        return functional_call(dispatch, still, (method, *args), kwargs)

    def forward(self, x: Value) -> Value:
        return self._call("forward", x)

    def output_like(self, x: Value) -> Value:
        return self.dispatch[0].body.output_like(x)

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        return self.dispatch[0].body.noise_specs(x)

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        return self._call("draw", x, noise, generator=generator, want_log_prob=want_log_prob)

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        return self._call("densities", x, y, innovations)

    def _conditioned(self, x: Value, y: Value, innovations: Noise | None = None) -> Drawn:
        return self._call("conditioned", x, y, innovations)

    def log_table(self, x: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        return self._call("log_table", x, innovations)
