"""Comments: which of them document a statement."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.syntax.layout import shape


def comment_run(lines: Sequence[str], line: int, above: int) -> str:
    """The comment that documents the statement at `line`: the run of `#` lines directly over it, or the nearest run of
    `#!` lines, in the statement's column.  No line before `above` is looked at.  A run of `#` lines that opens the text
    is about the whole of it."""
    i = line - 1
    while i >= above and not lines[i].strip():
        i -= 1
    if i < above or not _documents(lines, i, line):
        return ""
    documented = _text(lines[i]).startswith("#!")
    if not documented and i != line - 1:
        return ""
    marker = "#!" if documented else "#"
    run: list[str] = []
    while i >= above and _documents(lines, i, line):
        text = _text(lines[i])
        if text.startswith("#!") != documented:
            break
        run.append(text[len(marker) :].removeprefix(" ").rstrip())
        i -= 1
    if i < 0 and not documented:
        return ""
    return "\n".join(reversed(run)).strip("\n")


def _documents(lines: Sequence[str], i: int, line: int) -> bool:
    comment = shape(lines[i])
    return comment.comment and comment.width == shape(lines[line]).width


def _text(line: str) -> str:
    return line[shape(line).column :]
