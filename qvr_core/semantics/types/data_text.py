"""The type of a data name as a `data` line writes it."""

from __future__ import annotations

from qvr_core.semantics.types.axes import set_of
from qvr_core.semantics.types.model.expressions import ValueType
from qvr_core.semantics.types.spaces import Dim, Finite, Real, Seq, Space
from qvr_core.semantics.types.type_text import dim_text, structure

NUMBERS = {"count": "Nat", "bool": "Bool"}


def data_text(kind: ValueType, numbers: str = "", lengths: str = "") -> str:
    """`House -> County`, `House` for numbers, `Nat` for a single one, `Person * Visit [lengths=n]` where they are
    ragged; '' where the type is not known."""
    if kind.space is None:
        return ""
    if lengths:
        return f"{data_text(kind, numbers)} [lengths={lengths}]"
    axes = " * ".join(_axis(size, name) for size, name in zip(kind.sizes, kind.indexed, strict=True))
    value = NUMBERS.get(numbers) or element_text(kind.space)
    if not axes:
        return value
    return axes if value == "Real 1" else f"{axes} -> {value}"


def missing_advice(name: str) -> str:
    """What may be done with missing values of an observed name."""
    step = f"`observe {name} … [missing="
    return f"{step}impute]` makes each a latent, {step}drop]` leaves the cells out"


def _axis(size: Dim | None, name: str | None) -> str:
    if name is not None:
        return set_of(name)
    return "?" if size is None else f"FinSet {dim_text(size)}"


def element_text(space: Space) -> str:
    """One element: a set by its name, any other space spelt out."""
    match space:
        case Finite(nominal=str() as name):
            return name
        case Real(shape=shape) if len(shape) == 1:
            return structure(space)
        case Seq(item=item):
            return f"Seq {element_text(item)}"
        case _:
            return structure(space)
