"""What is asked of shapes and of whole arrays."""

from __future__ import annotations

from typing import Any

from qvr_core.arrays.graph import Array
from qvr_core.arrays.shapes import broadcast
from qvr_core.arrays.tensor_like import TensorLike as Tensor
from qvr_core.arrays.without_torch.types import Size

__all__ = ["Tensor", "broadcast_shapes", "equal", "is_tensor", "numel"]


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that arrays of these shapes have together."""
    return Size(broadcast([tuple(shape) for shape in shapes]) if shapes else ())


def numel(x: Array) -> int:
    """How many numbers there are."""
    return x.size


def is_tensor(value: object) -> bool:
    """Whether it is an array."""
    return isinstance(value, Array)


def equal(one: Array, two: Array) -> bool:
    """Whether two arrays are the same, number by number."""
    return one.shape == two.shape and bool((one.data == two.data).all())
