"""What a window sees as it moves over an image or a sequence: convolution and pooling, torch's own."""

from __future__ import annotations

from math import prod, sqrt

from qvr_core.arrays.engine import Tensor, arrays, is_tensor, nn
from qvr_core.arrays.engine import functional as F
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule, Value
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.padding import valid_positions
from qvr_core.semantics.arrows.parameters import parameter_shapes
from qvr_core.semantics.types.model.arrows import Conv, Pool
from qvr_core.semantics.types.spaces import Named, Real, has_seq, item_of


def sizes_of(space: Named) -> tuple[int, ...]:
    """Channels and sizes (c, l) or (c, h, w) of a space that has several; its width alone (d,) of another."""
    item = item_of(space.space)
    if isinstance(item, Real) and len(item.shape) > 1:
        return tuple(int(size) for size in item.shape if isinstance(size, int))
    return (layout.width(item),)


class _Window(ArrowModule):
    """An arrow from (…, c · h · w) to (…, c' · h' · w'), or from (…, c · l); the leading axes are rows."""

    pointwise = True

    def __init__(self, node: Conv | Pool) -> None:
        super().__init__()
        self.domain, self.codomain, self.name = node.domain, node.codomain, node.name
        self.kernel, self.stride, self.padding = node.kernel, node.stride, node.padding

    def forward(self, x: Value) -> Value:
        assert is_tensor(x)
        sizes = sizes_of(self.domain)
        if x.shape[-1] != prod(sizes):
            raise InputProblem(
                f"`{self.name}` reads {prod(sizes)} numbers along the last axis, of shape {sizes}, and is given "
                f"{tuple(x.shape)}",
                site=self.name,
            )
        return self.moved(x.reshape(-1, *sizes)).reshape(*x.shape[:-1], -1)

    def moved(self, x: Tensor) -> Tensor:
        """The windows of (N, c, h, w) or (N, c, l)."""
        raise NotImplementedError

    def output_like(self, x: Value) -> Value:
        return layout.dummy(self.codomain.space, layout.lead_shape(x, self.domain.space), layout.parts(x)[0])


class ConvArrow(_Window):
    """`weight` (c', c, k, k) or (c', c, k), and `bias` (c',), as in `torch.nn.Conv2d` and `Conv1d`.

    Between sequences, (B, L, d) to (B, L, d'), the window is centred, an even one reaches one further ahead, and what
    lies beyond either end is 0; inside `padding.padded(lengths)` so is what lies beyond the length of a row.
    """

    def __init__(self, node: Conv) -> None:
        super().__init__(node)
        shapes = parameter_shapes(node)
        bound = 1.0 / sqrt(prod(shapes["weight"][1:]))
        self.weight = nn.Parameter(arrays.empty(shapes["weight"]).uniform_(-bound, bound))
        self.bias = nn.Parameter(arrays.empty(shapes["bias"]).uniform_(-bound, bound)) if node.bias else None
        self._over_sequence = has_seq(node.domain.space)
        self.pointwise = not self._over_sequence

    def forward(self, x: Value) -> Value:
        if not self._over_sequence:
            return super().forward(x)
        assert is_tensor(x)
        mask = valid_positions(x.shape[0], x.shape[-2])
        if mask is not None:
            x = x * mask.unsqueeze(-1)
        *lead, length, width = x.shape
        seen = x.reshape(-1, length, width).transpose(1, 2)
        if self.kernel % 2 == 0:
            seen = F.pad(seen, (0, 1))
        made = F.conv1d(seen, self.weight, self.bias, padding=(self.kernel - 1) // 2)
        return made.transpose(1, 2).reshape(*lead, length, -1)

    def moved(self, x: Tensor) -> Tensor:
        made = F.conv2d if x.ndim == 4 else F.conv1d
        return made(x, self.weight, self.bias, stride=self.stride, padding=self.padding)


class PoolArrow(_Window):
    """The maximum or the mean of each window, as `torch.nn.MaxPool2d` and `AvgPool2d`: the zeros of the padding count
    in a mean, and in no maximum."""

    def __init__(self, node: Pool) -> None:
        super().__init__(node)
        self.reduce = node.reduce

    def moved(self, x: Tensor) -> Tensor:
        if self.reduce == "max":
            made = F.max_pool2d if x.ndim == 4 else F.max_pool1d
        else:
            made = F.avg_pool2d if x.ndim == 4 else F.avg_pool1d
        return made(x, self.kernel, self.stride, self.padding)
