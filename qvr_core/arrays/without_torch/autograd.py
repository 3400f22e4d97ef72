"""torch.autograd, as far as figures use it: derivatives of a function that is written down as a graph."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.arrays import operations as g
from qvr_core.arrays.derivatives import gradient
from qvr_core.arrays.eager import NUMBERS, array
from qvr_core.arrays.engine_choice import NotListed
from qvr_core.arrays.evaluate import evaluate, evaluated
from qvr_core.arrays.graph import Array, Graph, Unsupported, recording_into
from qvr_core.arrays.tensor_like import TensorLike, read

Numbers = NDArray[Any]


def _slope(function: Callable[[Any], Any], size: int, *, twice: bool) -> Array:
    """The gradient of a function of (size,); `twice`: at (2 · size,), of its derivative along the second half."""
    graph = Graph(evaluate, read, NUMBERS.shape_type, TensorLike)
    position = graph.position(2 * size if twice else size)
    with recording_into(graph):
        here = g.cut(position, 0, 0, size) if twice else position
        first = gradient(g.reduce("sum", function(here)), here)
        if not twice:
            return first
        along = g.cut(position, 0, size, 2 * size)
        return gradient(g.reduce("sum", g.pointwise("mul", first, along)), here)


def jacobian(function: Callable[[Any], Any], x: Array) -> Any:
    """The gradient (size,) of a function that gives a single number, at x (size,)."""
    return array(evaluated(_slope(function, x.size, twice=False), x.data))


def hessian(function: Callable[[Any], Any], x: Array) -> Any:
    """The second derivatives (size, size) of a function that gives a single number, at x (size,)."""
    try:
        slope = _slope(function, x.size, twice=True)
    except Unsupported:
        return array(_differences(_slope(function, x.size, twice=False), x.data))
    return array(np.stack([evaluated(slope, np.concatenate([x.data, along])) for along in np.eye(x.size)]))


def _differences(slope: Array, here: Numbers) -> Numbers:
    """The same from a gradient, by the fifth-order rule with steps of a hundredth of what the curvature says is far."""

    def along(number: int, step: float) -> Numbers:
        by = step * np.eye(len(here))[number]
        near = evaluated(slope, here + by) - evaluated(slope, here - by)
        far = evaluated(slope, here + 2.0 * by) - evaluated(slope, here - 2.0 * by)
        return (8.0 * near - far) / (12.0 * step)

    first = [abs(float(along(number, 1e-4)[number])) for number in range(len(here))]
    steps = [1e-2 / math.sqrt(max(curvature, 1.0)) for curvature in first]
    rows = np.stack([along(number, step) for number, step in enumerate(steps)])
    return 0.5 * (rows + rows.T)


functional = SimpleNamespace(jacobian=jacobian, hessian=hessian)


def __getattr__(name: str) -> Any:
    raise NotListed(f"`autograd.{name}` is not among the functions of arrays; torch has it: pip install 'qvr-lsp[run]'")
