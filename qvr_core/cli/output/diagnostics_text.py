"""Diagnostics as a compiler shows them: the line, its marked part, where it stems from, what fixes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rich.cells import cell_len
from rich.text import Text

from qvr_core.analysis import LocatedDiagnostic
from qvr_core.cli.console import PlainConsole
from qvr_core.disk import path_at
from qvr_core.semantics.file.placed_diagnostics import LocatedRelated
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.syntax.source import Range, split_lines

STYLES = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFORMATION: "bold blue",
    Severity.HINT: "bold cyan",
}
GUTTER = "blue"
MOST_SHOWN = 100
"""Findings that are printed for people; of the others their number is told."""
WIDEST = 200
"""Characters of a source line that are printed, those around what is marked."""


@dataclass(frozen=True)
class Finding:
    """A diagnostic of a file."""

    path: str
    text: str
    diagnostic: LocatedDiagnostic

    @property
    def lines(self) -> Sequence[str]:
        return _lines(self.text)


@lru_cache(maxsize=8)
def _lines(text: str) -> Sequence[str]:
    """The lines of a text, once for all findings in it."""
    return split_lines(text)[0]


def file_of(finding: Finding, related: LocatedRelated) -> str:
    """The file that a related place stands in."""
    path = path_at(related.location) if related.location else None
    return finding.path if not related.location else str(path or related.location)


def lines_of(finding: Finding, related: LocatedRelated) -> Mapping[int, str] | Sequence[str]:
    """The lines of a related place, by their numbers."""
    if related.location:
        return {related.range.end.line: related.lines[1], related.range.start.line: related.lines[0]}
    return finding.lines


def show(findings: Sequence[Finding]) -> None:
    """Print the first `MOST_SHOWN` diagnostics, how many more there are, and a last line that counts them all."""
    console = PlainConsole(highlight=False, soft_wrap=True)
    for finding in findings[:MOST_SHOWN]:
        for line in rendered(finding):
            console.print(line)
        console.print()
    if (more := len(findings) - MOST_SHOWN) > 0:
        console.print(f"{more:,} more are not shown; --output-format json has them all")
    console.print(_count(findings))


def _count(findings: Sequence[Finding]) -> Text:
    counts = [(severity, sum(f.diagnostic.severity is severity for f in findings)) for severity in Severity]
    parts = [
        Text(f"{number:,} {severity.name.lower()}{'s' if number > 1 else ''}", STYLES[severity])
        for severity, number in counts
        if number
    ]
    return Text(", ").join(parts) if parts else Text("no problems", "bold green")


def rendered(finding: Finding) -> Iterator[Text]:
    """The lines that show one diagnostic."""
    found = finding.diagnostic
    style = STYLES[found.severity]
    yield Text.assemble(
        (f"{found.severity.name.lower()}[{found.code.name}]", style), (": ", "bold"), (found.message, "bold")
    )
    width = len(str(max([found.range.end.line, *(r.range.end.line for r in found.related)]) + 1))
    yield from _excerpt(finding.path, finding.lines, found.range, style, width, "-->", "")
    for related in found.related:
        place, lines = file_of(finding, related), lines_of(finding, related)
        yield from _excerpt(place, lines, related.range, GUTTER, width, ":::", related.message)
    for number, fix in enumerate(found.fixes):
        label = " = fix: " if number == 0 else "        "
        yield Text.assemble((" " * width + label, "bold green"), fix.title)


def _excerpt(
    path: str,
    lines: Mapping[int, str] | Sequence[str],
    range: Range,
    style: str,
    width: int,
    arrow: str,
    label: str,
) -> Iterator[Text]:
    """`--> file:line:column`, the source line, and the marked part under it."""
    line, column = range.start
    yield Text.assemble((f"{' ' * width}{arrow} ", GUTTER), f"{path}:{line + 1}:{column + 1}")
    source = _line(lines, line)
    end = max(range.end.column if range.end.line == line else len(source), column + 1)
    left, right = _window(len(source), column, end)
    before, marked = _plain(source[left:column]), _plain(source[column : min(end, right)])
    before = "… " * (left > 0) + before
    shown = "… " * (left > 0) + _plain(source[left:right]) + " …" * (right < len(source))
    yield Text.assemble((f"{line + 1:>{width}} | ", GUTTER), shown)
    mark = ("^" if arrow == "-->" else "-") * max(cell_len(marked), 1)
    yield Text.assemble((f"{' ' * width} | ", GUTTER), " " * cell_len(before), (f"{mark} {label}".rstrip(), style))


def _line(lines: Mapping[int, str] | Sequence[str], number: int) -> str:
    if isinstance(lines, Mapping):
        return lines.get(number, "")
    return lines[number] if number < len(lines) else ""


def _window(length: int, start: int, end: int) -> tuple[int, int]:
    """Where the stretch of a line of `length` characters that is printed begins and ends: all of it, or `WIDEST`
    around what stands from `start` to `end`, and of that its beginning."""
    if length <= WIDEST:
        return 0, max(length, end)
    left = max(min(start - (WIDEST - min(end - start, WIDEST)) // 2, length - WIDEST), 0)
    return left, left + WIDEST


def _plain(text: str) -> str:
    """A tab as four columns; other control characters as what a terminal can show."""
    return "".join("    " if c == "\t" else c if c.isprintable() else "·" for c in text)
