"""Kinds of numbers, shapes and devices, named as torch names them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "Size", "bool", "device", "double", "dtype", "finfo", "float", "float32", "float64", "iinfo", "int", "int32",
    "int64", "long", "promote_types", "result_type",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class dtype:
    """A kind of numbers."""

    name: str
    is_floating_point: Any
    is_complex: Any = False

    def __repr__(self) -> str:
        return f"torch.{self.name}"


float64 = double = dtype("float64", True)
float32 = float = float64
"""There is but one precision."""
int64 = long = dtype("int64", False)
int32 = int = int64
bool = dtype("bool", False)
_ORDER = [bool, int64, float64]


def promote_types(one: dtype, two: dtype) -> dtype:
    """The kind that holds the numbers of both."""
    return max(one, two, key=_ORDER.index)


def result_type(one: Any, two: Any) -> dtype:
    """The kind of numbers of an operation on two arrays."""
    return promote_types(one.dtype, two.dtype)


class finfo:
    """Limits of real numbers."""

    def __init__(self, kind: dtype | None = None) -> None:
        limits = np.finfo(np.float64)
        self.eps, self.tiny, self.smallest_normal = limits.eps.item(), limits.tiny.item(), limits.tiny.item()
        self.max, self.min, self.resolution = limits.max.item(), limits.min.item(), limits.resolution.item()


class iinfo:
    """Limits of whole numbers."""

    def __init__(self, kind: dtype | None = None) -> None:
        self.min, self.max = -(2**63), 2**63 - 1


class Size(tuple[Any, ...]):
    """A shape."""

    def numel(self) -> Any:
        """How many numbers an array of this shape has."""
        return math.prod(self)

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        return Size(part) if isinstance(key, slice) else part

    def __add__(self, other: Any) -> Size:
        return Size((*self, *other))

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


@dataclass(frozen=True, slots=True)
class device:
    """Where numbers lie: always here."""

    type: str = "cpu"
    index: Any = None

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __enter__(self) -> device:
        return self

    def __exit__(self, *what: object) -> None:
        return None
