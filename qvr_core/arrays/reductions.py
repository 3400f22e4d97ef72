"""Sums, means, extremes and what goes along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from qvr_core.arrays import operations as g
from qvr_core.arrays.graph import Array, Unsupported
from qvr_core.arrays.listing import FUNCTIONS, Function, arrays, listed
from qvr_core.arrays.numbers import clamp, isnan, where
from qvr_core.arrays.operations import pointwise as p
from qvr_core.arrays.views import unsqueeze


class Extremes(tuple[Any, ...]):
    """What `max` along an axis gives: the values; their places are not known."""

    @property
    def values(self) -> Array:
        """The largest or smallest numbers."""
        return self[0]

    @property
    def indices(self) -> Array:
        """Unknown: they depend on the position."""
        raise Unsupported("the place of a largest number of latents")


def _reduction(op: str) -> Function:
    def apply(x: Array, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
        return g.reduce(op, x, dim, keep=keepdim)

    return apply


for _name in ("sum", "prod", "amax", "amin", "logsumexp"):
    FUNCTIONS[_name] = FUNCTIONS[f"special_{_name}"] = _reduction(_name)


def _largest(op: str, of_two: str) -> Function:
    def apply(x: Array, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return g.reduce(op, x)
        if not isinstance(dim, int):
            return p(of_two, *arrays(x, dim))
        return Extremes((g.reduce(op, x, dim, keep=keepdim), None))

    return apply


FUNCTIONS["max"], FUNCTIONS["min"] = _largest("amax", "maximum"), _largest("amin", "minimum")


@listed("mean")
def mean(x: Array, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """The mean along axes."""
    count = math.prod(x.shape[axis] for axis in g.axes_of(x, dim))
    return p("div", g.reduce("sum", x, dim, keep=keepdim), x.graph.constant(float(count)))


@listed("var")
def var(x: Array, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: float = 1) -> Array:
    """The variance along axes, over `correction` fewer than there are numbers."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    less = correction if unbiased is None else int(unbiased)
    count = math.prod(x.shape[axis] for axis in g.axes_of(x, dim))
    squares = p("square", p("sub", x, mean(x, dim, True)))
    return p("div", g.reduce("sum", squares, dim, keep=keepdim), x.graph.constant(float(count - less)))


@listed("std")
def std(x: Array, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: float = 1) -> Array:
    """The standard deviation along axes."""
    return p("sqrt", var(x, dim, unbiased, keepdim, correction=correction))


@listed("linalg_vector_norm", "norm")
def norm(x: Array, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """The Euclidean norm along axes."""
    if ord != 2:
        raise Unsupported("a norm other than the Euclidean one")
    total = g.reduce("sum", p("square", x), dim, keep=keepdim)
    zero = p("eq", total, x.graph.constant(0.0))
    # at the origin the slope is 0, as torch has it
    return where(zero, 0.0, p("sqrt", where(zero, 1.0, total)))


@listed("any")
def any_(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    """Whether one holds."""
    return p("truth", g.reduce("amax", p("real", p("truth", x)), dim, keep=keepdim))


@listed("all")
def all_(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    """Whether all hold."""
    return p("truth", g.reduce("amin", p("real", p("truth", x)), dim, keep=keepdim))


@listed("nansum")
def nansum(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    """The sum of what is no NaN."""
    return g.reduce("sum", where(isnan(x), 0.0, x), dim, keep=keepdim)


@listed("log_softmax", "special_log_softmax")
def log_softmax(x: Array, dim: int = -1, _stacklevel: int = 3, dtype: Any = None) -> Array:
    """x less its logsumexp along an axis."""
    return g.log_softmax(x, dim)


@listed("cross_entropy")
def cross_entropy(x: Any, target: Any, *, reduction: str = "mean", **keywords: Any) -> Array:
    """−log of the share of each row's class, (rows,) of (rows, classes)."""
    logits, classes = arrays(x, target)
    if reduction != "none" or logits.rank != 2 or keywords.get("weight") is not None:
        raise Unsupported("a loss by classes that is not row by row")
    return p("neg", g.reshape(g.take_along(g.log_softmax(logits, 1), 1, unsqueeze(classes, 1)), classes.shape))


@listed("softmax", "special_softmax")
def softmax(x: Array, dim: int = -1, _stacklevel: int = 3, dtype: Any = None) -> Array:
    """Shares that add up to 1 along an axis."""
    return p("exp", g.log_softmax(x, dim))


@listed("softmin")
def softmin(x: Array, dim: int = -1, _stacklevel: int = 3, dtype: Any = None) -> Array:
    """The softmax of −x."""
    return softmax(p("neg", x), dim)


@listed("normalize")
def normalize(x: Array, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None) -> Array:
    """x by its norm along an axis."""
    return g.pointwise("div", x, clamp(norm(x, p, dim, True), eps))


@listed("cumsum")
def cumsum(x: Array, dim: int, *, dtype: Any = None) -> Array:
    """Running sums."""
    return g.running("cumsum", x, dim)


@listed("cumprod")
def cumprod(x: Array, dim: int, *, dtype: Any = None) -> Array:
    """Running products."""
    return g.running("cumprod", x, dim)


@listed("diff")
def diff(x: Array, n: int = 1, dim: int = -1) -> Array:
    """Differences of neighbours along an axis."""
    for _ in range(n):
        count = x.shape[dim]
        x = p("sub", g.cut(x, dim, 1, count), g.cut(x, dim, 0, count - 1))
    return x


@listed("layer_norm")
def layer_norm(x: Array, shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Array:
    """The last axes with mean 0 and variance 1."""
    over = tuple(range(x.rank - len(shape), x.rank))
    centred = p("sub", x, mean(x, over, True))
    variance = mean(p("square", centred), over, True)
    found = p("div", centred, p("sqrt", p("add", variance, x.graph.constant(eps))))
    found = found if weight is None else p("mul", *arrays(found, weight))
    return found if bias is None else p("add", *arrays(found, bias))
