"""Kernels: a network from the domain to the parameters of a family, then one draw."""

from __future__ import annotations

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runtime.arrows.kernel_networks import Matrix, Network
from qvr_core.runtime.arrows.layers import EmbedArrow, LinearArrow
from qvr_core.runtime.families.family import RuntimeFamily
from qvr_core.runtime.families.heads import Head
from qvr_core.runtime.families.links import Params
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Value
from qvr_core.semantics.arrows.parameters import parameter_shapes
from qvr_core.semantics.language.families import TABULAR
from qvr_core.semantics.types.model.arrows import Kernel


def rows_sum(each: Tensor) -> Tensor:
    """Sum over every axis after the rows."""
    return each if each.dim() == 1 else each.flatten(1).sum(1)


class KernelArrow(ArrowModule):
    """A Markov kernel; its parameters carry the names of `Network`."""

    sampled = True
    pointwise = True

    def __init__(
        self,
        node: Kernel,
        path: str,
        tied: EmbedArrow | LinearArrow | None = None,
        family: RuntimeFamily | None = None,
    ) -> None:
        """`tied` is the arrow whose matrix `node.tie` names, `family` the one that the file declares."""
        super().__init__()
        self.domain, self.codomain = node.domain, node.codomain
        self.path = path
        self.paths = (path,)
        self.head = Head(family or node.family or TABULAR, node.codomain.space, node.scale, dict(node.options))
        self.tabular = all(block.finite for block in layout.blocks(node.codomain.space))
        self.fixed = dict(node.fixed) if node.fixed is not None else None
        if self.fixed is None:
            matrix = None
            if tied is not None and node.tie is not None:
                matrix = Matrix(tied, node.tie.transposed)
            net = Network(node.domain.space, parameter_shapes(node), self.head.zero_rows(), matrix)
            # the layers are registered here, so that a weight is called `cell.hidden.weight`
            self._net = (net,)
            for name, layer in net.named_children():
                self.add_module(name, layer)

    @property
    def net(self) -> Network:
        """The network from an input to the unconstrained parameters of the head."""
        return self._net[0]

    def params(self, x: Value) -> Params:
        """The parameters of the distribution at `x`, with the leading axes of `x`."""
        if self.fixed is None:
            return self.head.link(self.net(x))
        lead = layout.lead_shape(x, self.domain.space)
        part = layout.parts(x)[0]
        like = part if part.is_floating_point() else arrays.empty((), device=part.device)
        return self.head.fixed(self.fixed, lead, like)

    def output_like(self, x: Value) -> Value:
        lead = layout.lead_shape(x, self.domain.space)
        return layout.dummy(self.codomain.space, lead, layout.parts(x)[0])

    def noise_specs(self, x: Value) -> list[NoiseSpec]:
        lead = layout.lead_shape(x, self.domain.space)
        return [NoiseSpec(self.path, (*lead, *self.head.noise_shape), self.head.noise, final=True)]

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        head = self.head
        params = self.params(x)
        given = noise.get(self.path) if noise is not None else None
        if given is None:
            given = head.make_noise(layout.lead_shape(x, self.domain.space), params, generator)
        value = head.to_value(given, params)
        drawn = Drawn(value, {self.path: given}, None, None)
        if want_log_prob:
            drawn.log_prob = rows_sum(head.log_prob_of_draw(given, value, params))
            drawn.log_noise = rows_sum(head.log_prob_of_noise(given, params))
        if not head.family.reparameterised and arrays.is_grad_enabled():
            drawn.score_log_prob = rows_sum(head.log_prob_of_noise(given.detach(), params))
        return drawn

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        return rows_sum(self.head.log_prob(y, self.params(x))), None

    def log_table(self, x: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        return self.head.log_table(self.params(x)), None
