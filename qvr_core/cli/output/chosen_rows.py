"""Which numbers of a posterior a table or a report shows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from qvr_core.runs.record.protocol import PosteriorRow


def site_of(name: str) -> str:
    """`b` of `b[x, y]`."""
    return name.partition("[")[0]


def patterns_of(text: str) -> list[str]:
    """What stands between commas or blanks, those within brackets apart: `b_*`, `mu`, `u[north, 2]`."""
    return [one for one in re.split(r"[,\s]+(?![^\[]*\])", text) if one]


def chosen(rows: Iterable[PosteriorRow], patterns: str | None, helpers: Collection[str]) -> list[PosteriorRow]:
    """The rows that patterns name (`b_*`, `mu`, `u[north]`), in the order of the patterns; without
    them all but what is fixed (the corner of a Cholesky factor; but for a fit that is a point) and the sites
    `helpers`."""
    every = list(rows)
    if patterns is None:
        shown = [row for row in every if site_of(row.name) not in helpers]
        return [row for row in shown if row.sd != 0.0] or shown
    found: dict[str, PosteriorRow] = {}
    for pattern in patterns_of(patterns):
        found |= {row.name: row for row in every if _fits(row.name, pattern)}
    return list(found.values())


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(site_of(name), pattern)
