"""Declarations of Stan: what holds a value of some sizes, and where parameters live."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.export.data_arrays import DataArray
from qvr_core.export.reading import ends_of
from qvr_core.export.stan.shapes import Shapes
from qvr_core.semantics.types.model.steps import Site
from qvr_core.semantics.types.spaces import Constrained

_KINDS = {
    "Simplex": "simplex[{0}]", "Ordered": "ordered[{0}]", "CholeskyFactor": "cholesky_factor_corr[{0}]",
    "Correlation": "corr_matrix[{0}]", "Covariance": "cov_matrix[{0}]",
}  # fmt: skip


def declared(name: str, sizes: Sequence[str], limits: str = "", *, whole: bool = False) -> str:
    """`array[n] matrix[a, b] name`"""
    if whole:
        return f"array[{', '.join(sizes)}] int{limits} {name}" if sizes else f"int{limits} {name}"
    match sizes:
        case []:
            return f"real{limits} {name}"
        case [size]:
            return f"vector{limits}[{size}] {name}"
        case [*outer, rows, columns]:
            array = f"array[{', '.join(outer)}] " if outer else ""
            return f"{array}matrix{limits}[{rows}, {columns}] {name}"
        case _:
            raise AssertionError(sizes)


def data_line(item: DataArray, name: str, shapes: Shapes) -> str:
    """A data name with what its values may be."""
    sizes = shapes.texts(item.sizes)
    match item.kind:
        case "index":
            upper = f", upper={shapes.size(item.values.size)}" if item.values is not None else ""
            return declared(name, sizes, f"<lower=1{upper}>", whole=True)
        case "bool":
            return declared(name, sizes, "<lower=0, upper=1>", whole=True)
        case "count":
            return declared(name, sizes, "<lower=0>", whole=True)
        case _:
            return declared(name, sizes, "" if item.missing else _limits(item.low, item.high))


def parameter(site: Site, name: str, plates: Sequence[str], event: Sequence[str]) -> str:
    """A parameter with its support."""
    space = site.bound[0][1].space
    if isinstance(space, Constrained):
        kind = _KINDS[space.kind].format(event[-1])
        return f"array[{', '.join(plates)}] {kind} {name}" if plates else f"{kind} {name}"
    return declared(name, (*plates, *event), bounds(site))


def bounds(site: Site) -> str:
    """`<lower=0>`; '' for all numbers."""
    return _limits(*ends_of(site))


def _limits(low: float | None, high: float | None) -> str:
    found = [f"{word}={value:.17g}" for word, value in (("lower", low), ("upper", high)) if value is not None]
    return f"<{', '.join(found)}>" if found else ""
