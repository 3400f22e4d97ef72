"""Shapes of what operations give."""

from __future__ import annotations

import math
from collections.abc import Sequence

Shape = tuple[int, ...]


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape that arrays have together: sizes meet from the last axis, and one element is repeated."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return tuple(first)
    rank = max(len(shape) for shape in shapes)
    joint = [1] * rank
    for shape in shapes:
        lead = rank - len(shape)
        for at, size in enumerate(shape):
            if size != 1:
                if joint[lead + at] not in (1, size):
                    raise ValueError(f"shapes {' and '.join(str(tuple(s)) for s in shapes)} do not fit each other")
                joint[lead + at] = size
    return tuple(joint)


def reshaped(old: Shape, new: Shape) -> Shape:
    """`new` with its −1 worked out."""
    if -1 in new:
        rest = math.prod(size for size in new if size != -1)
        new = tuple(math.prod(old) // rest if size == -1 and rest else max(size, 0) for size in new)
    if math.prod(new) != math.prod(old):
        raise ValueError(f"{math.prod(old)} numbers of shape {old} cannot have shape {new}")
    return new


def contracted(left: Shape, right: Shape) -> tuple[Shape, Shape]:
    """The axes in front of a matrix product, and its shape."""
    if left[-1] != right[-2]:
        raise ValueError(f"matrices of shape {left} and {right} cannot be multiplied")
    lead = broadcast([left[:-2], right[:-2]])
    return lead, (*lead, left[-2], right[-1])
