"""Heads of kernels: into which spaces a family can draw, and how many raw numbers a network must give for it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from qvr_core.semantics.language.family import Family, Parameter, Support, interval, support_words
from qvr_core.semantics.types.spaces import Constrained, Finite, Product, Real, Space, Unknown

CONSTRAINED = ("Simplex", "CholeskyFactor", "Correlation", "Covariance")
"""Supports that are spaces of their own."""


def head_problem(family: Family, codomain: Space) -> str | None:
    """Why a kernel head of `family` cannot land in `codomain`, in words, or None where it can."""
    if family.step_only and not isinstance(codomain, Unknown):
        why = family.no_head or "a network cannot give its parameters"
        return f"{family.name} stands behind `<-` only: {why}"
    return landing_problem(family, codomain) or _length_problem(family, codomain)


def landing_problem(family: Family, codomain: Space) -> str | None:
    """Why draws of `family` cannot be values of `codomain`, in words, or None where they can."""
    if isinstance(codomain, Unknown):
        return None
    factors = codomain.factors if isinstance(codomain, Product) else (codomain,)
    for factor in factors:
        if not isinstance(factor, Unknown) and (problem := _factor_problem(family, factor)) is not None:
            return problem
    if len(factors) > 1 and family.support.kind in CONSTRAINED:
        return f"{family.name} draws one {family.support.kind}, not a product"
    return None


def _length_problem(family: Family, codomain: Space) -> str | None:
    """Why a vector of the family's own length is no value of a space."""
    known = isinstance(codomain, Real) and all(isinstance(size, int) for size in codomain.shape)
    known = known or (isinstance(codomain, Constrained) and isinstance(codomain.size, int))
    if not known or not isinstance(family.length, int) or family.support.kind == "finite":
        return None
    wide = event_width(codomain)
    return None if wide == family.length else f"{family.name} draws {family.length} numbers, not {wide}"


def _factor_problem(family: Family, space: Space) -> str | None:
    kind = family.support.kind
    if isinstance(space, Finite):
        return _finite_problem(family, space)
    if isinstance(space, Real):
        if family.support.categories:
            return f"{family.name} draws from a finite set, but the codomain is real"
        if kind in CONSTRAINED:
            return f"{family.name} draws from `{kind}`, but the codomain is plain `Real`"
        return None if family.bounded_by or within(family.support, space) else _bounds_problem(family, space)
    if isinstance(space, Constrained):
        return None if space.kind == kind else f"{family.name} draws {support_words(family)}, not from `{space.kind}`"
    return f"{family.name} cannot draw a sequence"


def _finite_problem(family: Family, space: Finite) -> str | None:
    own = family.support.size
    if own is not None and isinstance(space.size, int) and space.size != own:
        values = " or ".join(map(str, range(own)))
        return f"{family.name} draws {values}, but the codomain has {space.size} elements"
    if family.support.of is not None and space.nominal is not None and family.support.of != space.nominal:
        return f"{family.name} draws from `{family.support.of}`, but the codomain is `{space.nominal}`"
    if family.support.kind == "finite" or family.counts_to is not None:
        return None
    return f"{family.name} draws {support_words(family)}, but the codomain is a finite set"


def _bounds_problem(family: Family, space: Real) -> str:
    return (
        f"{family.name} draws {support_words(family)}, but the codomain is bounded ({interval(space.low, space.high)})"
    )


def within(support: Support, space: Real) -> bool:
    """True where every draw with this support lies inside the bounds of `space`."""
    low_fits = space.low is None or (support.low is not None and support.low >= space.low)
    # a bound of π is written with a few digits, and a Binomial's total is not known to the table
    high_fits = (
        space.high is None
        or support.kind == "count"
        or (support.high is not None and support.high <= space.high + 1e-3)
    )
    return low_fits and high_fits


def raw_blocks(family: Family, codomain: Space, options: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
    """How a head's raw network output is cut: (parameter, width) in order, all sizes of `codomain` known.

    A finite product is one joint Categorical (for Bernoulli: one probability per factor).
    """
    wanted = [parameter for parameter in family.parameters if parameter.raw != "none"]
    return tuple((parameter.name, _raw(parameter, family, codomain, options)) for parameter in wanted)


def _raw(parameter: Parameter, family: Family, codomain: Space, options: Mapping[str, object]) -> int:
    match parameter.raw:
        case "one":
            return 1
        case "width":
            whole = cardinality(codomain) if family.support.categories else event_width(codomain)
            return whole - parameter.fewer
        case "triangle":
            constrained = isinstance(codomain, Constrained)
            return triangle(_known(codomain.size) if constrained else event_width(codomain))
        case "row triangle":
            return triangle(matrix_shape(codomain)[0])
        case "column triangle":
            return triangle(matrix_shape(codomain)[1])
        case option if option not in family.head_options:
            own = parameter.length if parameter.rank and isinstance(parameter.length, int) else 1
            return own if family.event or family.support.categories else own * event_width(codomain)
        case option:
            return event_width(codomain) * _whole(options, family, option)


def raw_width(family: Family, codomain: Space, options: Mapping[str, object]) -> int:
    """Number P of raw parameters that a head of `family` into `codomain` needs; all sizes known."""
    return sum(width for _, width in raw_blocks(family, codomain, options))


def _whole(options: Mapping[str, object], family: Family, key: str) -> int:
    value = options.get(key, family.head_options[key])
    return value if isinstance(value, int) else family.head_options[key]


def triangle(size: int) -> int:
    """Entries of a lower triangular matrix."""
    return size * (size + 1) // 2


def event_width(space: Space) -> int:
    """Numbers in one draw: |A| for a real space, k for a simplex, d · d for a matrix, 1 per finite factor."""
    if isinstance(space, Real):
        return math.prod(_known(size) for size in space.shape)
    if isinstance(space, Constrained):
        size = _known(space.size)
        return size if space.vector else size * size
    if isinstance(space, Product):
        return sum(event_width(factor) for factor in space.factors)
    return 1


def cardinality(space: Space) -> int:
    """Elements of a finite space, or of a product of finite spaces."""
    if isinstance(space, Finite):
        return _known(space.size)
    if isinstance(space, Product):
        return math.prod(cardinality(factor) for factor in space.factors)
    raise TypeError(f"not finite: {space}")


def matrix_shape(space: Space) -> tuple[int, int]:
    """Rows and columns of a `Real n m`; a space with one size is a column."""
    if isinstance(space, Real) and len(space.shape) == 2:
        return _known(space.shape[0]), _known(space.shape[1])
    return event_width(space), 1


def _known(size: object) -> int:
    if not isinstance(size, int):
        raise TypeError(f"size is not known yet: {size}")
    return size
