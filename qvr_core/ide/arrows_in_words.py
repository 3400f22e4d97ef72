"""Words for arrows of the typed model: memory, shapes, density."""

from __future__ import annotations

from qvr_core.semantics.types.model.arrows import Compose, Density, Sort
from qvr_core.semantics.types.spaces import (
    Constrained,
    Dim,
    Finite,
    Linear,
    Named,
    Product,
    Seq,
    Space,
    factors_of,
    item_of,
    width,
)

BYTES_PER_PARAMETER = 4


def memory_text(count: int) -> str:
    """'132,352 parameters (517 kB)', in single precision."""
    size = float(count * BYTES_PER_PARAMETER)
    unit = "B"
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    figure = f"{size:.0f}" if unit == "B" or size >= 100 else f"{size:.1f}"
    return f"{count:,} parameter{'' if count == 1 else 's'} ({figure} {unit})"


def shape_text(space: Space) -> str:
    """The tensors that a value of a space is: '(B, L)', '(B, 64), (B, 128)'."""
    if isinstance(space, Product):
        shapes = ", ".join(shape_text(factor) for _, factor in space.head)
        return shapes if len(space.head) == space.count else f"{shapes}, … ({space.count:,} tensors)"
    length = ", L" if isinstance(space, Seq) else ""
    inner = item_of(space)
    if isinstance(inner, Product):
        return ", ".join(shape_text(Seq(factor)) for factor in inner.factors)
    if isinstance(inner, Finite):
        return f"(B{length})" if length else "(B,)"
    size = width(inner)
    return f"(B{length}, {'?' if isinstance(size, Linear) else int(size)})"


def shapes_text(domain: Space, codomain: Space) -> str:
    """The tensors on both sides of an arrow, and what their letters stand for."""
    shapes = f"{shape_text(domain)} -> {shape_text(codomain)}"
    letters = "`B`: rows of a batch" + (", `L`: positions of a sequence" if ", L" in shapes else "")
    return f"Shapes: `{shapes}` ({letters})"


def plate_shape(plate: Named | None, element: Named | None, *, rows: bool = True, over: Named | None = None) -> str:
    """The tensor that the draws of a plate are: '(B, 8)' for scalars, '(B, 20, 3)' for vectors.

    Without `rows` there is no batch: '(8,)', '(20, 3)', '()'.  A set whose size the data say stands by its name; so
    does one that an element runs `over`.
    """
    if plate is None and element is not None and rows:
        return shape_text(element.space)
    axes = ["B"] if rows else []
    for factor in factors_of(plate.space) if plate is not None else ():
        size = factor.size if isinstance(factor, Finite) else width(factor)
        axes.append(_size(size, factor.nominal if isinstance(factor, Finite) else None))
    if element is not None and not isinstance(element.space, Finite) and width(element.space) != 1:
        axes += _axes_of_element(element.space, over)
    return f"({axes[0]},)" if len(axes) == 1 and not rows else f"({', '.join(axes)})"


def _axes_of_element(space: Space, over: Named | None) -> list[str]:
    side = over.space if over is not None else None
    sides = [] if side is None else [_size(side.size, side.nominal) if isinstance(side, Finite) else "?"]
    if isinstance(space, Constrained) and space.kind in MATRICES:
        return 2 * (sides or [_size(space.size, None)])
    return sides or [_size(width(space), None)]


MATRICES = ("CholeskyFactor", "Covariance", "Correlation")


def _size(size: Dim, name: str | None) -> str:
    return (name or "?") if isinstance(size, Linear) else str(int(size))


def innovations_text(density: Density) -> str:
    """How many innovations a density is given, and what these are."""
    s = "" if density.innovations == 1 else "s"
    return f"{density.innovations} innovation{s}: the standardised noise of the draw{s} inside"


def density_text(density: Density) -> str:
    """How a density is computed, in words; '' for what has none because it is deterministic."""
    match density.kind:
        case "exact":
            return "exact density"
        case "conditional":
            return f"exact density, given {innovations_text(density)}"
        case "summed":
            return f"exact density, summed over {density.summed:,} intermediate values"
        case "score":
            return "score-function gradient: a finite intermediate is too large to be summed out"
        case "none":
            return "no density: a deterministic arrow follows the last draw"
        case _:
            return ""


def sort_word(sort: Sort) -> str:
    return {Sort.DETERMINISTIC: "deterministic", Sort.SAMPLED: "sampled", Sort.TENSOR: "tensor"}[sort]


def stages_text(arrow: Compose) -> str:
    """A pipeline with the space between each two stages: 'Seq Token → Seq Embedded → Hidden'."""
    spaces = [arrow.stages[0].domain, *(stage.codomain for stage in arrow.stages)]
    return " → ".join(space.written for space in spaces)
