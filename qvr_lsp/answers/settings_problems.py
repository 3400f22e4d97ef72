"""qvr.toml in the editor: its diagnostics, and the fixes of those that have one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_core.runs.record.settings import check_settings
from qvr_core.semantics.language.spelling import closest
from qvr_core.syntax.source import Cursor, Range
from qvr_lsp.answers.fixes import kind_requested
from qvr_lsp.answers.settings_file import programs
from qvr_lsp.workspace import SettingsDocument

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_lsp.language_server import QvrLanguageServer

DATA_TABLE = re.compile(r"^\s*\[data\.([A-Za-z_]\w*)[\].]")
RUN_TABLE = re.compile(r"^\s*\[run\.([A-Za-z_]\w*)[\].]")


@dataclass(frozen=True, slots=True)
class Problem:
    """A diagnostic of a qvr.toml, where it is, and what its range should say instead where that is plain."""

    diagnostic: types.Diagnostic
    range: Range
    replacement: str | None


def problems(ls: QvrLanguageServer, document: SettingsDocument) -> Iterator[Problem]:
    """What is wrong with the keys and values, then tables of programs that the workspace does not have."""
    text = document.source
    _, found = check_settings(text.text.replace("\r\n", "\n"))
    for item in found:
        stretch = Range(text.clamp(Cursor(*item.start)), text.clamp(Cursor(*item.end)))
        yield _problem(ls, document, stretch, types.DiagnosticSeverity.Error, item.message, item.replacement)
    known = programs(ls)
    read = _read(snapshot for _, snapshot in known.values())
    for number, line in enumerate(text.lines):
        for pattern, names, what in (
            (RUN_TABLE, known, "no program of this workspace is called"),
            (DATA_TABLE, read, "no program of this workspace reads data called"),
        ):
            match = pattern.match(line)
            if match and known and match[1] not in names:
                near = closest(match[1], names)
                more = f"; did you mean `{near}`?" if near else ""
                stretch = Range(Cursor(number, match.start(1)), Cursor(number, match.end(1)))
                yield _problem(
                    ls, document, stretch, types.DiagnosticSeverity.Warning, f"{what} `{match[1]}`{more}", near
                )


def _read(snapshots: Iterable[Snapshot]) -> set[str]:
    """The names that the programs of some files take from data."""
    from qvr_core.data.needs import names_of, needs_of

    every = {id(snapshot): snapshot for snapshot in snapshots}.values()
    return {name for one in every for program in one.model.programs.values() for name in names_of(needs_of(program))}


def _problem(
    ls: QvrLanguageServer,
    document: SettingsDocument,
    stretch: Range,
    severity: types.DiagnosticSeverity,
    message: str,
    replacement: str | None,
) -> Problem:
    where = ls.codec.range(document.source.lines, stretch)
    content = types.Diagnostic(where, message, severity, "settings", source="qvr")
    return Problem(content, stretch, replacement)


def fixes(ls: QvrLanguageServer, params: types.CodeActionParams) -> list[types.CodeAction]:
    """The spelling that was meant."""
    document = ls.workspace.settings_document(params.text_document.uri)
    if document is None or not kind_requested(params.context.only, "quickfix"):
        return []
    asked = ls.codec.stretch(document.source.lines, params.range)
    return [
        types.CodeAction(
            f"Change to `{problem.replacement}`",
            types.CodeActionKind.QuickFix,
            [problem.diagnostic],
            is_preferred=True,
            edit=types.WorkspaceEdit(
                changes={document.uri: [types.TextEdit(problem.diagnostic.range, problem.replacement)]}
            ),
        )
        for problem in problems(ls, document)
        if problem.replacement is not None and problem.range.start <= asked.end and asked.start <= problem.range.end
    ]
