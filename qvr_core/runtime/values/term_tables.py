"""Terms as tensors: int64 (B, nodes, columns), a table for each row of the batch (`semantics/terms/written.py`).

Trees of different sizes are filled up with nodes of −1, so that rows are taken, repeated and moved as any others.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.semantics.terms.written import (
    CONSTRUCTOR,
    DEPTH,
    NOTHING,
    PLACES,
    Table,
    TermProblem,
    place_width,
    table_width,
    term_table,
)
from qvr_core.semantics.types.spaces import Finite, Space, Terms

MOST_CELLS = 2**27
"""Numbers in the tables of all rows, 1 GB."""


def columns(places: Sequence[Space | None]) -> list[tuple[int, int]]:
    """The first column of each place, and the one behind its last."""
    ends = list(accumulate(map(place_width, places), initial=PLACES))
    return list(pairwise(ends))


def smallest_term(space: Terms) -> Tensor:
    """One node that ends a term, int64 (1, columns): its numbers mean nothing."""
    row = arrays.zeros((1, table_width(space)), dtype=arrays.int64)
    row[0, CONSTRUCTOR] = next(at for at, (_, places) in enumerate(space.constructors) if None not in places)
    return row


def tables(terms: Sequence[object], space: Terms) -> Tensor:
    """Written terms, one a row.  Raises `TermProblem` that names the row."""
    found: list[Table] = []
    for number, term in enumerate(terms, 1):
        try:
            found.append(term_table(term, space))
        except TermProblem as problem:
            raise TermProblem(f"row {number}: {problem.message}", problem.remedy) from None
    return table_tensor(found, space)


def table_tensor(found: Sequence[Table], space: Terms) -> Tensor:
    """The tables of all rows in one tensor.  Raises `TermProblem` where they do not fit one together."""
    nodes, width = max(map(len, found), default=1), table_width(space)
    if len(found) * nodes * width > MOST_CELLS:
        row = max(range(len(found)), key=lambda at: len(found[at])) + 1
        message = f"row {row} has {nodes:,} nodes, and the tables of {len(found):,} rows as long do not fit in memory"
        raise TermProblem(message, "Leave the largest terms out")
    whole = arrays.full((len(found), nodes, width), NOTHING, dtype=arrays.int64)
    for at, table in enumerate(found):
        whole[at, : len(table)] = arrays.as_tensor(table, dtype=arrays.int64)
    return whole


def of_one_size(values: Sequence[Tensor]) -> list[Tensor]:
    """Values of several draws, of which tables of terms, (…, nodes, columns), are filled up to the nodes of the
    largest; others are as they were."""
    shapes = {value.shape for value in values}
    if len(shapes) < 2 or any(value.dtype != arrays.int64 or value.ndim < 3 for value in values):
        return list(values)
    most = max(value.shape[-2] for value in values)
    return [with_nodes(value, most) for value in values]


def with_nodes(table: Tensor, count: int) -> Tensor:
    """Tables (…, nodes, columns) with so many nodes, those of −1 at the end."""
    lacking = (*table.shape[:-2], count - table.shape[-2], table.shape[-1])
    return arrays.cat([table, arrays.full(lacking, NOTHING, dtype=arrays.int64, device=table.device)], -2)


def unsound(table: Tensor, space: Terms) -> str | None:
    """What is wrong with a tensor as tables of terms, in words."""
    width = table_width(space)
    if table.ndim != 3 or table.dtype != arrays.int64 or table.shape[-1] != width or not table.shape[1]:
        return f"{str(table.dtype).removeprefix('torch.')} {tuple(table.shape)}"
    kind, depth = table[..., CONSTRUCTOR], table[..., DEPTH]
    known = (kind >= NOTHING) & (kind < len(space.constructors)) & ((kind == NOTHING) | (depth >= 0))
    root = arrays.arange(table.shape[1], device=table.device) == 0
    sound = known & ((kind == NOTHING) | ((depth == 0) == root))
    sound[:, 0] &= kind[:, 0] != NOTHING
    if space.depth is not None:
        sound &= (kind == NOTHING) | (depth < space.depth)
    # how often a node stands below another: once, but for the root
    stands = arrays.zeros(kind.shape, dtype=arrays.int64, device=table.device)
    for at, (_, places) in enumerate(space.constructors):
        own = kind == at
        for (first, _), place in zip(columns(places), places, strict=True):
            held = table[..., first]
            if place is None:
                below = held.clamp(0, table.shape[1] - 1)
                fits = (held == below) & (depth.gather(1, below) == depth + 1) & (kind.gather(1, below) != NOTHING)
            elif isinstance(place, Finite) and isinstance(place.size, int):
                fits = (held >= 0) & (held < place.size)
            else:
                continue
            sound &= fits | ~own
            if place is None:
                stands.scatter_add_(1, held.clamp(0, table.shape[1] - 1), own.long())
    sound &= stands == ((kind != NOTHING) & ~root).long()
    return None if bool(sound.all()) else "numbers that are no such tables"
