"""Tables of numbers as notebooks show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import islice

MOST_ROWS = 60
"""More are counted, not shown."""


def html_table(columns: Mapping[str, Sequence[object]], notes: Sequence[str] = (), count: int | None = None) -> str:
    """Columns as a table, numbers to four digits, and lines below it.  `count` is how many rows there are in all."""
    rows = list(islice(zip(*columns.values(), strict=True), MOST_ROWS))
    count = len(next(iter(columns.values()), ())) if count is None else count
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(_cell(value))}</td>' for value in row)}</tr>" for row in rows)
    more = [f"and {count - len(rows):,} more numbers"] if count > len(rows) else []
    below = "".join(f"<p>{escape(line)}</p>" for line in (*more, *notes))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
