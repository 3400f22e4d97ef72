"""Which parts of a composite are chains of tanh-network Normal kernels, and running them as one function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runtime.arrows.kernel import KernelArrow
from qvr_core.runtime.arrows.kernel_networks import Network
from qvr_core.runtime.families.densities import LOG_SQRT_2PI
from qvr_core.runtime.loops.chain_shapes import ChainShape, StageShape
from qvr_core.runtime.values.arrow import ArrowModule, Noise


@dataclass(frozen=True, slots=True)
class NormalStage:
    """The networks of a stage, which all read the same input, and the outer names of their draws."""

    shape: StageShape
    nets: tuple[Network, ...]
    paths: tuple[str, ...]


def chained_kernel(arrow: ArrowModule) -> StageShape | None:
    """The shape of a kernel that can be part of a chain: tanh network, Normal head, real domain and codomain."""
    if not isinstance(arrow, KernelArrow) or arrow.fixed is not None or not arrow.head.family.affine:
        return None
    if not arrow.net.tanh or arrow.net.mixed:
        return None
    net = arrow.net
    return StageShape(1, net.input.in_features, net.hidden.out_features, arrow.head.event_shape[0], arrow.head.scale)


def normal_stage(kernels: Sequence[ArrowModule], paths: Sequence[str]) -> NormalStage | None:
    """The stage that kernels on one input make, where they are all of one shape."""
    shapes = {chained_kernel(kernel) for kernel in kernels}
    shape = next(iter(shapes))
    if len(shapes) != 1 or shape is None:
        return None
    whole = StageShape(len(kernels), shape.inside, shape.hidden, shape.size, shape.scale)
    return NormalStage(whole, tuple(k.net for k in kernels if isinstance(k, KernelArrow)), tuple(paths))


def draw_chain(
    lanes: Sequence[Sequence[NormalStage]],
    inputs: Sequence[Tensor],
    noises: Sequence[Noise | None],
    generator: Generator | None,
) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Values (B, Q · S) of each lane on its input (B, w), and the noise of all draws.

    All lanes have stages of the same shapes.  Given noise is used, the rest is drawn at once.
    """
    from qvr_core.runtime.loops.chain import run_chain

    shape = ChainShape(len(lanes), tuple(stage.shape for stage in lanes[0]))
    rows = inputs[0].shape[0]
    like = lanes[0][0].nets[0].weights()[0]
    groups = [shape.groups(stage) * stage.size for stage in shape.stages]
    given = any(noise is not None and path in noise for lane, noise in zip(lanes, noises, strict=True)
                for stage in lane for path in stage.paths)  # fmt: skip
    made: dict[str, Tensor] = {}
    stages: list[Tensor] = []
    fresh = None
    if not given:
        fresh = arrays.randn(rows * sum(groups), generator=generator, dtype=like.dtype, device=like.device)
    offset = 0
    for index, stage in enumerate(shape.stages):
        paths = [path for lane in lanes for path in lane[index].paths]
        if fresh is not None:
            count = rows * groups[index]
            stacked = fresh[offset : offset + count].view(len(paths), rows, stage.size)
            offset += count
            made.update(zip(paths, stacked.unbind(0), strict=True))
        else:
            sources = [noise for lane, noise in zip(lanes, noises, strict=True) for _ in lane[index].paths]
            each = [
                _noise(path, noise, rows, stage.size, like, generator)
                for path, noise in zip(paths, sources, strict=True)
            ]
            stacked = each[0].unsqueeze(0) if len(each) == 1 else arrays.stack(each)
            made.update(zip(paths, each, strict=True))
        stages.append(stacked)
    weights: list[Tensor] = []
    for stage in zip(*lanes, strict=True):
        for table in (table for lane in stage for net in lane.nets for table in net.tables):
            weights += table.values()
    x = inputs[0].unsqueeze(0) if len(inputs) == 1 else arrays.stack(list(inputs))
    return list(run_chain(shape, x, stages, weights).unbind(0)), made


def _noise(path: str, noise: Noise | None, rows: int, size: int, like: Tensor, generator: Generator | None) -> Tensor:
    if noise is not None and path in noise:
        return noise[path]
    return arrays.randn(rows, size, generator=generator, dtype=like.dtype, device=like.device)


def standard_density(noise: dict[str, Tensor]) -> Tensor | None:
    """log density (B,) of standard normal noise."""
    if not noise:
        return None
    flat = arrays.cat([u.reshape(len(u), -1) for u in noise.values()], dim=1)
    return -0.5 * flat.square().sum(1) - flat.shape[1] * LOG_SQRT_2PI
