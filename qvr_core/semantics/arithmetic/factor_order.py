"""Factors in another order than they are declared in: real ones of the same widths fit all the same."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.semantics.scope.scope import Scope
from qvr_core.semantics.types.diagnostics import Edit, Fix, Related
from qvr_core.semantics.types.program_codes import SWAPPED_FACTORS
from qvr_core.semantics.types.spaces import Named, Product, item_of
from qvr_core.syntax.tree.names import Span


def factor_names(space: Named) -> list[str]:
    """The names of a product's factors; [] where one has none."""
    inner = item_of(space.space)
    names = inner.names if isinstance(inner, Product) else ()
    return [name for name in names if name] if all(names) else []


def check_order(
    given: Sequence[str],
    wanted: Sequence[str],
    places: Sequence[tuple[Span, str]],
    message: str,
    scope: Scope,
    related: Sequence[Related] = (),
) -> None:
    """Warn where the objects of the texts at `places` are those that are wanted, in another order, which a fix mends.

    `message` ends where the orders are told.
    """
    if list(given) == list(wanted) or sorted(given) != sorted(wanted):
        return
    ordered = [places[index][1] for index in _taken(given, wanted)]
    moved = [(place, new) for (place, old), new in zip(places, ordered, strict=True) if new != old]
    whole = Span(places[0][0].start, places[-1][0].end)
    told = f"{message} `{' * '.join(wanted)}`, and this is `{' * '.join(given)}`"
    fix = Fix(f"Change to `{', '.join(ordered)}`", tuple(Edit(scope.origin(place), new) for place, new in moved))
    scope.report(SWAPPED_FACTORS, told, whole, related, (fix,) if moved else ())


def _taken(given: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """For each wanted object the place of its value: its own where it is right, else the first that is left."""
    left = [index for index, name in enumerate(given) if name != wanted[index]]
    order: list[int] = []
    for index, name in enumerate(wanted):
        taken = index if given[index] == name else next(place for place in left if given[place] == name)
        if taken != index:
            left.remove(taken)
        order.append(taken)
    return order
