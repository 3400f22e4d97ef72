"""Arrays where torch's are expected: they have its methods and operators, and take part in its protocol.

Torch hands them its functions (`__torch_function__`), so a program that is written for tensors runs on them as it
stands, beside tensors or without torch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qvr_core.arrays import evaluate, indices, kinds, numbers, products, reductions, value_dependent, views
from qvr_core.arrays.engine_choice import NotListed
from qvr_core.arrays.graph import Array, Kind, Unsupported
from qvr_core.arrays.listing import FUNCTIONS
from qvr_core.arrays.shapes import Shape


@dataclass(slots=True)
class EngineTypes:
    """What the engine of this process calls kinds of numbers, shapes and devices; it says so when it is loaded."""

    dtypes: Mapping[Kind, Any] = field(default_factory=dict[Kind, Any])
    shape: Callable[[Shape], Shape] = tuple
    device: Any = None


TYPES = EngineTypes()


def read(value: Any) -> tuple[Any, Shape, Kind]:
    """Tensors, arrays and numbers as numpy arrays, without a copy where the numbers are doubles already."""
    if isinstance(value, Array):
        return value.data, tuple(value.shape), value.kind
    if hasattr(value, "detach"):
        if value.is_complex():
            raise Unsupported("complex numbers")
        kind: Kind = "real" if value.is_floating_point() else "truth" if "bool" in str(value.dtype) else "whole"
        return value.detach().cpu().to(TYPES.dtypes[kind]).numpy(), tuple(value.shape), kind
    return evaluate.read(value)


class TensorLike(Array):
    """An array with torch's protocol, methods and operators."""

    __slots__ = ()
    __hash__ = object.__hash__

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Any = (),
        keywords: Mapping[str, Any] | None = None,
    ) -> Any:
        rule = FUNCTIONS.get(function.__name__.strip("_")) or FUNCTIONS.get(function.__name__)
        if rule is None:
            raise Unsupported(f"the function {function.__name__}")
        return rule(*args, **(keywords or {}))

    def __getattr__(self, name: str) -> Any:
        rule = FUNCTIONS.get(name)
        if rule is not None:
            return functools.partial(rule, self)
        match name:
            case "dtype":
                return TYPES.dtypes[self.kind]
            case "ndim":
                return self.rank
            case "device":
                return TYPES.device
            case "mT" | "T" | "mH":
                return FUNCTIONS["t"](self)
            case "requires_grad" | "is_cuda" | "is_sparse":
                return False
            case "_version":
                return 0
            case "grad" | "grad_fn":
                return None
            case _:
                raise NotListed(f"arrays have no `{name}`")

    def __bool__(self) -> bool:
        return bool(FUNCTIONS["item"](self))

    def __float__(self) -> float:
        return float(FUNCTIONS["item"](self))

    def __int__(self) -> int:
        return int(FUNCTIONS["item"](self))

    def __index__(self) -> int:
        return int(FUNCTIONS["item"](self))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(FUNCTIONS["numpy"](self), dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(FUNCTIONS["unbind"](self))

    def __contains__(self, value: Any) -> bool:
        return bool((np.asarray(self.data) == value).any())

    def __repr__(self) -> str:
        return (
            f"tensor({np.array2string(np.asarray(self.data), separator=', ')})" if self.constant else super().__repr__()
        )

    def __format__(self, how: str) -> str:
        return format(FUNCTIONS["item"](self), how) if how else repr(self)

    def __deepcopy__(self, memo: Any) -> Any:
        return self.graph.constant(np.array(FUNCTIONS["numpy"](self)))


ROOMS = (indices, kinds, value_dependent, numbers, products, reductions, views)
"""The modules whose import puts functions on the list."""


def _operator(name: str) -> Callable[..., Any]:
    rule = FUNCTIONS[name]

    def apply(self: TensorLike, *args: Any) -> Any:
        return rule(self, *args)

    return apply


for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow", "matmul", "rmatmul", "neg",
    "abs", "invert", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "getitem", "setitem", "mod", "rand", "ror",
    "floordiv",
):  # fmt: skip
    setattr(TensorLike, f"__{_name}__", _operator(_name))
