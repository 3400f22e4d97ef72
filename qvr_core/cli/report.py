"""Diagnostics as JSON, and as a compiler shows them: the line, its marked part, where it stems from, what fixes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from qvr_core.analysis import LocatedDiagnostic
from qvr_core.cli.console import PlainConsole
from qvr_core.runs.record.ranges import utf16
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


def as_json(finding: Finding) -> dict[str, Any]:
    """One diagnostic as `qvr check --json` gives it."""
    found = finding.diagnostic
    return {
        "file": finding.path,
        "code": found.code.name,
        "severity": found.severity.name.lower(),
        "message": found.message,
        "range": utf16(found.range, finding.lines),
        "related": [
            {
                "message": related.message,
                "file": finding.path,
                "range": utf16(related.range, finding.lines),
            }
            for related in found.related
        ],
        "fixes": [fix.title for fix in found.fixes],
    }


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
    yield from _excerpt(finding, found.range, style, width, "-->", "")
    for related in found.related:
        yield from _excerpt(finding, related.range, GUTTER, width, ":::", related.message)
    for number, fix in enumerate(found.fixes):
        label = " = fix: " if number == 0 else "        "
        yield Text.assemble((" " * width + label, "bold green"), fix.title)


def _excerpt(finding: Finding, range: Range, style: str, width: int, arrow: str, label: str) -> Iterator[Text]:
    """`--> file:line:column`, the source line, and the marked part under it."""
    line, column = range.start
    yield Text.assemble((f"{' ' * width}{arrow} ", GUTTER), f"{finding.path}:{line + 1}:{column + 1}")
    source = finding.lines[line] if line < len(finding.lines) else ""
    end = range.end.column if range.end.line == line else len(source)
    before, marked = _plain(source[:column]), _plain(source[column : max(end, column + 1)])
    yield Text.assemble((f"{line + 1:>{width}} | ", GUTTER), _plain(source))
    mark = ("^" if arrow == "-->" else "-") * max(cell_len(marked), 1)
    yield Text.assemble((f"{' ' * width} | ", GUTTER), " " * cell_len(before), (f"{mark} {label}".rstrip(), style))


def _plain(text: str) -> str:
    """A tab as four columns; other control characters as what a terminal can show."""
    return "".join("    " if c == "\t" else c if c.isprintable() else "·" for c in text)
