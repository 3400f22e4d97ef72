"""The engine of this process, under torch's names: torch itself, or arrays of our own where that is not wanted.

Typed as torch, whose names and arguments `own` has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import TypeIs

from qvr_core.arrays.engine_choice import torch_wanted
from qvr_core.arrays.evaluate import evaluate
from qvr_core.arrays.graph import Graph
from qvr_core.arrays.tensor_like import TYPES, TensorLike, read
from qvr_core.arrays.torch_signatures import Broadcasting, LinearAlgebra, SpecialFunctions

if TYPE_CHECKING:
    import torch as arrays
    from torch import Generator, Tensor, device, dtype, nn
    from torch.nn import functional

    TORCH = True
else:
    TORCH = torch_wanted()
    if TORCH:
        import torch as arrays
    else:
        from qvr_core.arrays import without_torch as arrays
    Generator, Tensor, device, dtype, nn = arrays.Generator, arrays.Tensor, arrays.device, arrays.dtype, arrays.nn
    functional = arrays.nn.functional


def new_graph() -> Graph:
    """A graph whose arrays stand for those of the engine."""
    return Graph(evaluate, read, arrays.Size, TensorLike)


linalg: LinearAlgebra = arrays.linalg
special: SpecialFunctions = arrays.special
broadcasting: Broadcasting = arrays

_ARRAYS = (Tensor, TensorLike)
TYPES.dtypes = {"real": arrays.float64, "whole": arrays.int64, "truth": arrays.bool}
TYPES.shape, TYPES.device = arrays.Size, arrays.device("cpu")


def is_tensor(value: object) -> TypeIs[Tensor]:
    """Whether a value is a tensor, or an array in its place."""
    return isinstance(value, _ARRAYS)


__all__ = [
    "TORCH", "Generator", "Tensor", "arrays", "broadcasting", "device", "dtype", "functional", "is_tensor", "linalg",
    "new_graph", "nn", "special",
]  # fmt: skip
