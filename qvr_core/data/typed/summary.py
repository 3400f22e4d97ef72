"""What the files hold under each data name, in a few words: how many values, what is missing, their range or the
commonest labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from qvr_core.data.needs import Need
from qvr_core.data.problems import DataProblem
from qvr_core.data.typed.labels import missing, word
from qvr_core.data.typed.layout import Layout
from qvr_core.data.typed.sources import Arrays, Source, Sources, Table

COMMONEST = 4
"""Labels that are listed."""


def summaries(needs: Sequence[Need], sources: Sources) -> Mapping[str, str]:
    """A sentence for each name that a file holds."""
    layout = Layout(needs, sources)
    found: dict[str, str] = {}
    for need in needs:
        try:
            source, cells = _cells(need, layout, sources)
        except DataProblem:
            continue
        if source is not None and (text := _summary(need, cells, source)):
            found[need.name] = text
    return found


def columns_of(need: Need, layout: Layout, sources: Sources) -> tuple[Source | None, tuple[str, ...]]:
    """Where a name is read from, and in which columns there.  Raises `DataProblem`."""
    if need.axes is not None:
        return layout.source_of(need), layout.columns(need).names
    return sources.named.get(need.name, sources.main), (sources.column(need.name),)


def _cells(need: Need, layout: Layout, sources: Sources) -> tuple[Source | None, list[Any]]:
    """All entries of a name, in the order of the file."""
    source, names = columns_of(need, layout, sources)
    held: Mapping[str, Any] = {}
    if source is not None:
        held = source.columns if isinstance(source, Table) else source.arrays
    if any(name not in held for name in names):
        return None, []
    columns: Iterator[Sequence[Any]] = (
        source.arrays[name].flat if isinstance(source, Arrays) else held[name] for name in names
    )
    return source, [cell for column in columns for entry in column for cell in _plain(entry)]  # pyright: ignore


def _plain(entry: Any) -> Iterator[Any]:
    if isinstance(entry, list | tuple):
        for one in entry:  # pyright: ignore[reportUnknownVariableType]
            yield from _plain(one)
    else:
        yield entry


def _summary(need: Need, cells: Sequence[Any], source: Source) -> str:
    there = [cell for cell in cells if not missing(cell)]
    if need.lexicon is not None:
        there = [word for cell in there for word in (cell.split() if isinstance(cell, str) else [cell])]
    part = "" if not isinstance(source, Table) or source.whole else f" in the first {source.rows:,} rows"
    unit = "value" if need.lexicon is None else "word"
    counted = f"{len(there):,} {unit}{'' if len(there) == 1 else 's'}"
    gone = f" and {len(cells) - len(there):,} missing" if len(there) < len(cells) else ""
    said = _labels(there) if _is_labels(need, there) else _range(there)
    return f"`{source.path}`: {counted}{gone}{part}" + (f"; {said}" if said else "")


def _is_labels(need: Need, cells: Sequence[Any]) -> bool:
    finite = need.kind == "finite" or need.values is not None or need.labels is not None
    return finite or any(isinstance(cell, str | bool) for cell in cells)


def _labels(cells: Sequence[Any]) -> str:
    """`anoka` 12, `becker` 3; of 9"""
    counts = Counter(label for cell in cells if (label := word(cell)) is not None)
    shown = ", ".join(f"`{label}` {count:,}" for label, count in counts.most_common(COMMONEST))
    return f"{shown} and {len(counts) - COMMONEST:,} more" if len(counts) > COMMONEST else shown


def _range(cells: Sequence[Any]) -> str:
    numbers = [float(cell) for cell in cells if isinstance(cell, int | float) and isfinite(cell)]
    if not numbers:
        return ""
    mean = sum(numbers) / len(numbers)
    return f"{min(numbers):.4g} to {max(numbers):.4g}, mean {mean:.4g}"
