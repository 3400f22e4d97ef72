"""Arrays that are numbers: operations on them are done at once, on numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from qvr_core.arrays import evaluate
from qvr_core.arrays.graph import Array, Graph, Kind
from qvr_core.arrays.shapes import Shape
from qvr_core.arrays.tensor_like import TYPES, TensorLike


class Eager(Graph):
    """A graph that keeps nothing: every array of it is a constant, made when it is asked for."""

    kept = False

    def constant(self, value: Any) -> Array:
        data, shape, kind = self.read(value)
        return self._constant(data, shape, kind)

    def _constant(self, data: Any, shape: Shape, kind: Kind) -> Array:
        node = self.array_type(self, "constant", (), (), shape, kind)
        node.data = data
        return node

    def make(self, op: str, args: tuple[Array, ...], params: tuple[Any, ...], shape: Shape, kind: Kind) -> Array:
        data = self.evaluate(op, [arg.data for arg in args], params, shape)
        return self._constant(data, shape, kind)

    def register(self, node: Array) -> int:
        return -1


def read(value: Any) -> tuple[Any, Shape, Kind]:
    """Numbers, arrays and what numpy reads."""
    return evaluate.read(value.data if isinstance(value, Array) else value)


def _shape(shape: Shape) -> Shape:
    return TYPES.shape(shape)


NUMBERS = Eager(evaluate.evaluate, read, _shape, TensorLike)
"""The one graph of arrays that are numbers."""


def array(value: Any) -> Any:
    """An array of numbers; it shares them with a numpy array of the same kind."""
    return value if isinstance(value, Array) else NUMBERS.constant(value)


def _reduced(x: TensorLike) -> Any:
    return array, (np.asarray(x.data),)


TensorLike.__reduce__ = _reduced  # type: ignore[method-assign]


def shaped(x: Array) -> Shape:
    """The shape as numpy wants it."""
    return tuple(np.shape(x.data))
