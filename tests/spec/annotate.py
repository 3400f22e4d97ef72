"""Writes what the checker says into Markdown cases: `python -m tests.spec.annotate FILE…`.

Blocks that are opened with ```` ```qvr ? ```` get their marks; all others stay as they are.  Read what it wrote: a mark
is a promise, not a record.
"""

from __future__ import annotations

import sys
from pathlib import Path

from qvr_core.analysis import LocatedDiagnostic, analyse
from tests.spec.cases import UNUSED


def marked(source: str, *, unused: bool = False) -> str:
    """The source of a block with a mark line below each line that a diagnostic starts in."""
    lines = source.split("\n")
    below: dict[int, list[str]] = {}
    for diagnostic in analyse(source).diagnostics():
        if unused or diagnostic.code.name not in UNUSED:
            below.setdefault(diagnostic.range.start.line, []).append(_mark(diagnostic, lines))
    return "\n".join(part for i, line in enumerate(lines) for part in (line, *below.get(i, ())))


def _mark(diagnostic: LocatedDiagnostic, lines: list[str]) -> str:
    start, end = diagnostic.range
    stop = end.column if end.line == start.line else len(lines[start.line])
    width = max(1, stop - start.column)
    what = f"{diagnostic.severity.name.lower()}[{diagnostic.code.name}]: {diagnostic.message}"
    return f"#@0-{width} {what}" if start.column == 0 else f"#{' ' * (start.column - 1)}{'^' * width} {what}"


def annotate(path: Path) -> None:
    """Fill in the marks of a file's blocks that ask for it."""
    out: list[str] = []
    lines = iter(path.read_text(encoding="utf-8").split("\n"))
    for line in lines:
        flags = line.removeprefix("```qvr").split() if line.startswith("```qvr") else []
        if "?" not in flags:
            out.append(line)
            continue
        block: list[str] = []
        for inner in lines:
            if inner == "```":
                break
            block.append(inner)
        flags.remove("?")
        out.append(" ".join(["```qvr", *flags]))
        out.append(marked("\n".join(block) + "\n", unused="unused" in flags).removesuffix("\n"))
        out.append("```")
    path.write_text("\n".join(out), encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        annotate(Path(name))
