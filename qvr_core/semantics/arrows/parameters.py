"""The parameters of every declared arrow: their names and shapes, said once (docs/reference.md#roles).

The runtime's modules are built from them; hovers, lenses and the estimate of a run's memory count them.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from qvr_core.semantics.language.declared_families import facts_of
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.family_heads import raw_width
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    Attention,
    BatchNorm,
    Conv,
    Embed,
    Kernel,
    Latent,
    LinearMap,
    Norm,
    Position,
    Scan,
)
from qvr_core.semantics.types.model.families import DeclaredFamily
from qvr_core.semantics.types.spaces import Dim, Finite, Linear, Real, Space, factors_of, item_of, width

LOOKUP_WIDTH = 16
"""Width of the table in which a finite factor of a mixed domain is looked up."""

Shape = tuple[int, ...]
Shapes = dict[str, Shape]


class UnknownSize(Exception):
    """A size that a shape needs is not known, or the arrow has an error."""


def parameter_shapes(arrow: Arrow) -> Shapes:
    """The learned tensors of one arrow by name, in the order of its module; none where it has none of its own.

    A layer has `weight` (out, in) and `bias` (out,), a table `weight` (elements, width).  Raises `UnknownSize`.
    """
    match arrow:
        case Embed():
            return {"weight": (_elements(arrow.domain.space), _width(arrow.codomain.space))}
        case LinearMap():
            return _linear_map(arrow)
        case Conv(kernel=kernel, bias=bias):
            inside, out = channels(arrow.domain.space), channels(arrow.codomain.space)
            shapes: Shapes = {"weight": (out, inside, *(kernel,) * _axes(arrow.domain.space))}
            return {**shapes, "bias": (out,)} if bias else shapes
        case BatchNorm():
            size = channels(arrow.domain.space)
            return {"weight": (size,), "bias": (size,)}
        case Norm():
            size = _width(arrow.codomain.space)
            return {"weight": (size,), "bias": (size,)}
        case Attention():
            size = _width(arrow.codomain.space)
            return _layer("in_proj", size, 3 * size) | _layer("out_proj", size, size)
        case Position(max_length=length):
            return {"weight": (length, _width(arrow.codomain.space))}
        case Latent():
            return {"weight": (_elements(arrow.domain.space), _elements(arrow.codomain.space))}
        case Kernel():
            return _network(arrow)
        case Scan(learned_init=True, state=state):
            return {"weight": (sum(_width(part) for part in factors_of(state.space) if not isinstance(part, Finite)),)}
        case _:
            return {}


def own_count(arrow: Arrow) -> int:
    """Learned numbers of one arrow, without those of its parts; weights with a prior are drawn, not learned.  Raises
    `UnknownSize`."""
    if getattr(arrow, "prior", None) is not None and not isinstance(arrow, Latent):
        return 0
    return sum(map(prod, parameter_shapes(arrow).values()))


def _layer(name: str, inside: int, out: int) -> Shapes:
    return {f"{name}.weight": (out, inside), f"{name}.bias": (out,)}


def _linear_map(arrow: LinearMap) -> Shapes:
    inside, out, rank = _width(arrow.domain.space), _width(arrow.codomain.space), arrow.rank
    shapes: Shapes = {"weight": (out, inside)}
    if rank is not None:
        shapes = {"in_factor": (rank, inside), "out_factor": (out, rank)}
    return {**shapes, "bias": (out,)} if arrow.bias else shapes


def _network(kernel: Kernel) -> Shapes:
    """A table over an all-finite domain; else `input`, `hidden` and `output`, or `output` alone, behind a `lookup_0` …
    for each finite factor (docs/reference.md#kernel-networks)."""
    raw = _raw_width(kernel)
    if raw is None:
        return {}
    if kernel.tie is not None:
        return {"output.bias": (raw,)} if kernel.bias else {}
    factors = factors_of(item_of(kernel.domain.space))
    finite = [_size(factor.size) for factor in factors if isinstance(factor, Finite)]
    if len(finite) == len(factors):
        return {"table.weight": (prod(finite), raw)}
    shapes: Shapes = {f"lookup_{i}.weight": (size, LOOKUP_WIDTH) for i, size in enumerate(finite)}
    inside = LOOKUP_WIDTH * len(finite) + sum(_width(f) for f in factors if not isinstance(f, Finite))
    hidden = kernel.hidden_dim
    if kernel.param_source == "mlp":
        shapes |= _layer("input", inside, hidden) | _layer("hidden", hidden, hidden)
        inside = hidden
    return shapes | _layer("output", inside, raw)


def _raw_width(kernel: Kernel) -> int | None:
    """Numbers that the network of a kernel gives; None where it has no network."""
    codomain = item_of(kernel.codomain.space)
    if kernel.fixed is not None:
        return None
    if kernel.family is None:
        return _elements(codomain)
    own = facts_of(kernel.declared) if isinstance(kernel.declared, DeclaredFamily) else None
    if own is None and kernel.family not in FAMILIES:
        return None
    try:
        return raw_width(own or FAMILIES[kernel.family], codomain, dict(kernel.options))
    except (TypeError, ValueError):
        raise UnknownSize from None  # the family does not fit its codomain, which is a diagnostic of its own


def _elements(space: Space) -> int:
    return _product(factor.size for factor in factors_of(item_of(space)) if isinstance(factor, Finite))


def _product(sizes: Iterable[Dim]) -> int:
    return prod(map(_size, sizes))


def _width(space: Space) -> int:
    """Numbers in one element, at one position of a sequence."""
    return _size(width(item_of(space)))


def channels(space: Space) -> int:
    """The first of several sizes, or the width where there is one: what a convolution mixes.  Raises `UnknownSize`."""
    item = item_of(space)
    return _size(item.shape[0]) if isinstance(item, Real) and len(item.shape) > 1 else _width(space)


def _axes(space: Space) -> int:
    """The axes along which a window moves: those behind the channels, or that of a sequence."""
    item = item_of(space)
    return max(len(item.shape) - 1, 1) if isinstance(item, Real) else 1


def _size(dim: Dim) -> int:
    if isinstance(dim, Linear):
        raise UnknownSize
    return int(dim)
