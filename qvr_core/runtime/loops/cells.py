"""The cell of a scan that is a tanh-network kernel with a Normal head, as a tape.

    a = tanh(x W_xᵀ + h W_hᵀ + c₁),  b = tanh(a W₂ᵀ + c₂),  (m, r) = b W₃ᵀ + c₃,
    h' = m + s (softplus(r + k) + f) ε

Sizes: M width of an item, H hidden, S state.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from qvr_core.runtime.families.links import FLOOR, SOFTPLUS_SHIFT
from qvr_core.runtime.loops.loop import Loop
from qvr_core.runtime.loops.tape import ChunkOp, MulAddOp, Tape, UnaryOp


class NormalKernel(NamedTuple):
    """Widths of a kernel's input, hidden layers and value, and the scale of its noise."""

    inside: int
    hidden: int
    size: int
    scale: float


@cache
def normal_cell(kernel: NormalKernel, item: int) -> Loop:
    """A scan of a kernel whose input is an item (M) and its last value; given are the items and the noise.

    Weights are W (H, M + S), c₁ (H,), W₂ (H, H), c₂ (H,), W₃ (2S, H), c₃ (2S,).
    """
    tape, size = Tape(), kernel.size
    x, noise, before = (tape.slot(width) for width in (item, size, size))
    value = (x, before)
    for _ in range(2):
        layer = UnaryOp(tape.slot(kernel.hidden), "tanh", tape.linear(value, kernel.hidden, True))
        tape.ops.append(layer)
        value = (layer.out,)
    # the number inside the softplus is part of the bias
    raw = tape.linear(value, 2 * size, True, ((size, 2 * size, SOFTPLUS_SHIFT),))
    mean, inner, spread, after = (tape.slot(size) for _ in range(4))
    tape.ops.append(ChunkOp((mean, inner), raw, size))
    tape.ops.append(UnaryOp(spread, "softplus", inner, FLOOR))
    tape.ops.append(MulAddOp(after, mean, spread, noise, kernel.scale))
    tape.states, tape.returns = [before], [after]
    return Loop(tape, tuple(tape.ops), (x, noise))
