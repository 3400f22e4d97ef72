"""The sets that one draw of vectors or matrices runs over: its arguments say, or `over`, or the type beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qvr_core.semantics.arithmetic.broadcasting import Axis, axes
from qvr_core.semantics.arithmetic.elementwise import words
from qvr_core.semantics.language.family import Family, Parameter
from qvr_core.semantics.scope.environment import StepContext
from qvr_core.semantics.scope.scope import ObjectEntry
from qvr_core.semantics.types.axes import indexed, set_of
from qvr_core.semantics.types.codes import FAMILY_ARGUMENTS
from qvr_core.semantics.types.model.expressions import Constant, Expr
from qvr_core.semantics.types.program_codes import AXES_MISMATCH
from qvr_core.semantics.types.spaces import Dim, Finite, Named
from qvr_core.syntax.tree.arithmetic import Arith

Argument = tuple[Parameter, Expr]

MOST_SETS = 2
"""A draw is a number, a vector or a matrix."""


def event_sets(family: Family, arguments: Sequence[Argument], over: Named | None) -> tuple[str | None, ...]:
    """One set of a vector or a square matrix, two of another matrix; none where nothing says."""
    if over is not None:
        return (over.space.nominal,) if isinstance(over.space, Finite) else ()
    return next((sets for _, sets in _own_sets(family, arguments)), ())


def event_set(family: Family, arguments: Sequence[Argument], ctx: StepContext) -> Named | None:
    """The set that one draw runs over as its arguments say, as `over` would name it."""
    sets = event_sets(family, arguments, None) if family.event else ()
    entry = ctx.scope.lookup(set_of(sets[0])) if len(sets) == 1 and sets[0] is not None else None
    return entry.space if isinstance(entry, ObjectEntry) and isinstance(entry.space.space, Finite) else None


def _own_sets(family: Family, arguments: Sequence[Argument]) -> Iterator[tuple[int, tuple[str | None, ...]]]:
    """The sets that each vector and matrix argument, vectors first, says a draw runs over, behind its place."""
    wanted = ("vector", "matrix") if family.event else ("vector",)
    for shape in wanted:
        for at, (own, value) in enumerate(arguments):
            if own.shape != shape or own.apart or own.raw == "components" or own.fewer:
                continue  # cut points run over a set of their own
            # an index says plates, whatever an axis of its own says
            found = [axis for axis in axes(value.type) or [] if axis[1] is None or not indexed(axis[1])]
            if len(found) < own.rank:
                continue
            names = tuple(name for _, name in found[-own.rank :])
            # of a vector's own matrix, the first axis is the vector's
            yield at, names if family.event == MOST_SETS and not _is_square(family) else names[:1]


def _is_square(family: Family) -> bool:
    return family.support.kind != "real"


def own_factors(
    family: Family, arguments: Sequence[Argument], over: Named | None, plates: Sequence[Axis], *, sized: bool
) -> int:
    """How many sets at the end of a type beside the draw are those that one draw runs over, and no plates.

    They are where it runs over them already, or where nothing else says how long it is (`sized` is false).
    """
    if family.event == 0 or not plates:
        return 0
    sets, names = event_sets(family, arguments, over), [name for _, name in plates]
    if any(name is not None for name in sets):
        return len(sets) if tuple(names[-len(sets) :]) == sets else 0
    if sized or names[-1] is None or (family.event == MOST_SETS and not _is_square(family)):
        return 0
    shapes = [axes(value.type) for own, value in arguments if not own.apart]
    return int(all(shape is not None and all(name in names[:-1] for _, name in shape) for shape in shapes))


def check_over(
    family: Family, arguments: Sequence[tuple[Parameter, Expr, Arith]], over: Named | None, ctx: StepContext
) -> None:
    """A vector whose own axis is another set than `over` names, or has another length."""
    wanted = event_sets(family, (), over)
    if over is None or not wanted or wanted[0] is None:
        return
    if isinstance(over.space, Finite) and _is_otherwise_long(family, arguments, wanted[0], over.space.size, ctx):
        return
    for at, (name, *_) in _own_sets(family, [(own, value) for own, value, _ in arguments]):
        if name is not None and set_of(name) != wanted[0]:
            tree = arguments[at][2]
            message = f"{words(tree, 'this')} runs over {set_of(name)}, but the draw over {wanted[0]}"
            ctx.scope.report(AXES_MISMATCH, message, tree.span)
            return


def _is_otherwise_long(
    family: Family, arguments: Sequence[tuple[Parameter, Expr, Arith]], over: str, size: Dim, ctx: StepContext
) -> bool:
    """Whether an argument says another length than the set has, which is reported."""
    if family.event == MOST_SETS and not _is_square(family):
        return False
    for own, value, tree in arguments:
        found = _length(own, value)
        if isinstance(size, int) and found is not None and found + own.fewer != size:
            wanted = f"{size - own.fewer}" + (f", {own.fewer} fewer than `{over}` has elements" if own.fewer else "")
            message = f"{words(tree, 'this')} has {found} entries, but the draw over `{over}` wants {wanted}"
            if own.sizes:
                message = f"a draw over `{over}` has {size} rows and columns, not {found}"
            ctx.scope.report(FAMILY_ARGUMENTS, message, tree.span)
            return True
    return False


def _length(own: Parameter, value: Expr) -> int | None:
    """How many elements an argument says that one draw has; None where it says no number."""
    if own.sizes:
        return value.value if isinstance(value, Constant) and isinstance(value.value, int) else None
    shape = axes(value.type) or []
    if own.shape == "element" or own.apart or own.raw == "components" or not 0 < own.rank <= len(shape):
        return None
    last, name = shape[-1]
    # of a vector over a set that set is told
    return last if name is None and isinstance(last, int) else None
