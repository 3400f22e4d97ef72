"""Which numbers of a posterior a table or a report shows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from qvr_core.runs.record.protocol import PosteriorRow

_STANDARD = re.compile(
    r"^\s*sample\s+(\w+)\s*(?:\[[^\]]*\]\s*)?(?::[^<]*)?<-\s*Normal\(\s*0(?:\.0*)?\s*,\s*1(?:\.0*)?\s*\)"
)


def site_of(name: str) -> str:
    """`b` of `b[x, y]`."""
    return name.partition("[")[0]


def helpers(text: str) -> frozenset[str]:
    """Plates of standardised draws, `sample z[g : Group] <- Normal(0, 1)`, that a `let` below gives their scale."""
    lines = text.splitlines()
    drawn = {match[1] for line in lines if (match := _STANDARD.match(line)) and "[" in line.partition("<-")[0]}
    computed = [line.partition("=")[2] for line in lines if line.lstrip().startswith("let ")]
    return frozenset(name for name in drawn if any(re.search(rf"\b{name}\s*\[", line) for line in computed))


def chosen(rows: Iterable[PosteriorRow], patterns: str | None, text: str) -> list[PosteriorRow]:
    """The rows that patterns between commas name (`b_*`, `mu`, `u[north]`), in the order of the patterns; without
    them all but what is fixed (the corner of a Cholesky factor) and standardised helpers."""
    every = list(rows)
    if patterns is None:
        left_out = helpers(text)
        return [row for row in every if row.sd != 0.0 and site_of(row.name) not in left_out]
    wanted = [one.strip() for one in re.split(r",(?![^\[]*\])", patterns) if one.strip()]
    found: dict[str, PosteriorRow] = {}
    for pattern in wanted:
        found |= {row.name: row for row in every if _fits(row.name, pattern)}
    return list(found.values())


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(site_of(name), pattern)
