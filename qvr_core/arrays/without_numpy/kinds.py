"""Kinds of numbers, and where the numbers of a shape lie in a list."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

KINDS: dict[str, Callable[[Any], Any]] = {"b": bool, "i": int, "f": float, "O": lambda value: value}
ORDER = "bifO"
NAMES = {"b": "bool", "i": "int64", "f": "float64", "O": "object"}


class dtype:
    """What the numbers of an array are: truths, whole or real numbers, or anything."""

    def __init__(self, of: Any) -> None:
        self.kind = kind_of(of)
        self.name = NAMES[self.kind]
        self.itemsize = 1 if self.kind == "b" else 8

    def __eq__(self, other: object) -> bool:
        return other is not None and kind_of(other) == self.kind

    def __hash__(self) -> int:
        return hash(self.kind)

    def __repr__(self) -> str:
        return self.name

    @classmethod
    def __class_getitem__(cls, item: Any) -> Any:
        return cls


def kind_of(of: Any) -> str:
    """The kind that a dtype, one of Python's types, or a name stands for."""
    if isinstance(of, dtype):
        return of.kind
    if isinstance(of, type):
        return "b" if issubclass(of, bool) or of.__name__ == "bool_" else (
            "i" if issubclass(of, int) else "f" if issubclass(of, float) else "O"
        )  # fmt: skip
    name = str(of)
    return "b" if "bool" in name else "i" if "int" in name else "f" if "float" in name or name == "d" else "O"


def contiguous(shape: Sequence[int]) -> list[int]:
    """How far apart the numbers of each axis lie."""
    steps, step = [0] * len(shape), 1
    for at in range(len(shape) - 1, -1, -1):
        steps[at], step = step, step * shape[at]
    return steps


def size_of(shape: Sequence[int]) -> int:
    """How many numbers a shape has."""
    return math.prod(shape)


def places(shape: Sequence[int], steps: Sequence[int], start: int) -> Iterable[int]:
    """Where the numbers of a shape lie, row by row."""
    found: Sequence[int] = [start]
    for size, step in zip(shape, steps, strict=True):
        along = range(0, size * step, step) if step else [0] * size
        found = [at + further for at in found for further in along]
    return found
