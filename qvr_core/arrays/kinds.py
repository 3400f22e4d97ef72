"""Kinds of numbers, and arrays like others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qvr_core.arrays import operations as g
from qvr_core.arrays.graph import Array, Unsupported
from qvr_core.arrays.listing import arrays, in_graph, listed
from qvr_core.arrays.operations import pointwise as p


@listed("to", "type")
def to(x: Array, *args: Any, **keywords: Any) -> Array:
    """In another kind of numbers; devices and memory layouts change nothing."""
    for given in (*args, *keywords.values()):
        word = str(given.dtype if hasattr(given, "dtype") else given)
        if isinstance(given, Array):
            return p(given.kind, x)
        if "float" in word or "double" in word:
            return p("real", x)
        if "int" in word or "long" in word:
            return long(x)
        if "bool" in word:
            return p("truth", x)
    return x


@listed("double", "float")
def double(x: Array) -> Array:
    """As real numbers: a graph has but one precision."""
    return p("real", x)


@listed("long", "int")
def long(x: Array) -> Array:
    """As whole numbers."""
    if x.kind == "real" and not x.constant:
        raise Unsupported("a whole number of a latent")
    return p("whole", x)


@listed("bool")
def boolean(x: Array) -> Array:
    """Whether numbers are other than 0."""
    return p("truth", x)


@listed("type_as")
def type_as(x: Array, other: Any) -> Array:
    """In the kind of numbers of another."""
    return p(arrays(x, other)[1].kind, x)


@listed("is_floating_point")
def is_floating_point(x: Array) -> bool:
    """Whether these are real numbers."""
    return x.kind == "real"


@listed("is_complex")
def is_complex(x: Array) -> bool:
    """Never."""
    return False


@listed("detach")
def detach(x: Array) -> Array:
    """The array, which derivatives take for a constant."""
    return x if x.kind != "real" or x.constant else p("stop", x)


@listed("clone", "contiguous", "requires_grad_", "cpu", "conj", "resolve_conj", "resolve_neg")
def same(x: Array, *args: Any, **keywords: Any) -> Array:
    """The array itself: nothing is done in place."""
    return x


@listed("is_contiguous")
def is_contiguous(x: Array, *args: Any) -> bool:
    """As far as anybody can tell."""
    return True


@listed("dim", "ndimension")
def dim(x: Array) -> int:
    """Number of axes."""
    return x.rank


@listed("numel", "nelement")
def numel(x: Array) -> int:
    """How many numbers there are."""
    return x.size


@listed("size")
def size(x: Array, dim: int | None = None) -> Any:
    """The shape, or the length of one axis."""
    return x.shape if dim is None else x.shape[dim]


@listed("zeros_like", "new_zeros")
def zeros_like(x: Array, *shape: Any, **keywords: Any) -> Array:
    """Zeros of a shape."""
    return full(x, 0.0, shape)


@listed("ones_like", "new_ones")
def ones_like(x: Array, *shape: Any, **keywords: Any) -> Array:
    """Ones of a shape."""
    return full(x, 1.0, shape)


@listed("full_like")
def full_like(x: Array, value: Any, **keywords: Any) -> Array:
    """One number everywhere, in the shape of x."""
    return g.expand(p("real", in_graph(value, x.graph)), x.shape)


@listed("new_full")
def new_full(x: Array, shape: Sequence[int], value: Any, **keywords: Any) -> Array:
    """One number everywhere."""
    return g.expand(p("real", in_graph(value, x.graph)), tuple(shape))


@listed("new_tensor")
def new_tensor(x: Array, value: Any, **keywords: Any) -> Array:
    """Numbers in the kind of x."""
    return p(x.kind, in_graph(value, x.graph))


def full(x: Array, value: float, shape: tuple[Any, ...]) -> Array:
    """One number everywhere: in a shape, or in that of x."""
    sizes = x.shape if not shape else tuple(shape[0]) if not isinstance(shape[0], int) else shape
    return g.expand(x.graph.constant(value if x.kind == "real" else int(value)), sizes)
