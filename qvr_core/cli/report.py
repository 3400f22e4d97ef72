"""Diagnostics as a compiler shows them: the line, its marked part, where it stems from, what fixes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

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


@dataclass(frozen=True)
class Finding:
    """A diagnostic of a file."""

    path: str
    text: str
    diagnostic: LocatedDiagnostic

    @cached_property
    def lines(self) -> list[str]:
        return split_lines(self.text)[0]


def file_of(finding: Finding, related: LocatedRelated) -> str:
    """The file that a related place stands in."""
    path = path_at(related.location) if related.location else None
    return finding.path if not related.location else str(path or related.location)


def lines_of(finding: Finding, related: LocatedRelated) -> Mapping[int, str]:
    """The lines of a related place, by their numbers."""
    if related.location:
        return {related.range.end.line: related.lines[1], related.range.start.line: related.lines[0]}
    return dict(enumerate(finding.lines))


def show(findings: Sequence[Finding]) -> None:
    """Print diagnostics and a last line that counts them."""
    console = PlainConsole(highlight=False, soft_wrap=True)
    for finding in findings:
        for line in rendered(finding):
            console.print(line)
        console.print()
    console.print(_count(findings))


def _count(findings: Sequence[Finding]) -> Text:
    counts = [(severity, sum(f.diagnostic.severity is severity for f in findings)) for severity in Severity]
    parts = [
        Text(f"{number} {severity.name.lower()}{'s' if number > 1 else ''}", STYLES[severity])
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
    yield from _excerpt(finding.path, dict(enumerate(finding.lines)), found.range, style, width, "-->", "")
    for related in found.related:
        place, lines = file_of(finding, related), lines_of(finding, related)
        yield from _excerpt(place, lines, related.range, GUTTER, width, ":::", related.message)
    for number, fix in enumerate(found.fixes):
        label = " = fix: " if number == 0 else "        "
        yield Text.assemble((" " * width + label, "bold green"), fix.title)


def _excerpt(
    path: str, lines: Mapping[int, str], range: Range, style: str, width: int, arrow: str, label: str
) -> Iterator[Text]:
    """`--> file:line:column`, the source line, and the marked part under it."""
    line, column = range.start
    yield Text.assemble((f"{' ' * width}{arrow} ", GUTTER), f"{path}:{line + 1}:{column + 1}")
    source = lines.get(line, "")
    end = range.end.column if range.end.line == line else len(source)
    before, marked = _plain(source[:column]), _plain(source[column : max(end, column + 1)])
    yield Text.assemble((f"{line + 1:>{width}} | ", GUTTER), _plain(source))
    mark = ("^" if arrow == "-->" else "-") * max(cell_len(marked), 1)
    yield Text.assemble((f"{' ' * width} | ", GUTTER), " " * cell_len(before), (f"{mark} {label}".rstrip(), style))


def _plain(text: str) -> str:
    """A tab as four columns; other control characters as what a terminal can show."""
    return "".join("    " if c == "\t" else c if c.isprintable() else "·" for c in text)
