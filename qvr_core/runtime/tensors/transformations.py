"""Changes of base: maps of weights from one algebra to another (docs/reference.md#changes-of-base)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.values.errors import InputProblem

Map = Callable[[Tensor], Tensor]


def _log(weights: Tensor) -> Tensor:
    """log of weights from 0 on, −∞ at 0 with gradient 0.  Raises `InputProblem` at one below 0."""
    least = float(weights.detach().min())
    if least < 0.0:
        raise InputProblem(f"`change_base(log)`: the weight {least:g} has no logarithm; `log` maps weights from 0 on")
    positive = weights > 0.0
    found = arrays.where(positive, weights, arrays.ones_like(weights)).log()
    return arrays.where(positive, found, arrays.full_like(found, -math.inf))


def _support(weights: Tensor) -> Tensor:
    return (weights > 0.0).to(weights.dtype)


def _exp(weights: Tensor) -> Tensor:
    return weights.exp()


def _negate(weights: Tensor) -> Tensor:
    return -weights


def _same(weights: Tensor) -> Tensor:
    return weights


MAPS: Mapping[str, Map] = {
    "log": _log, "exp": _exp, "support": _support, "best": _same, "negate": _negate,
}  # fmt: skip
"""The builtin transformations by name (`semantics/language/transformations.py` says between which algebras)."""
