"""qvr.toml in the editor: its diagnostics, and the fixes of those that have one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qvr_core.runs.record.settings import check_settings
from qvr_core.semantics.language.spelling import closest
from qvr_core.syntax.source import Cursor, Range
from qvr_lsp import positions
from qvr_lsp.features.code_actions import kind_requested
from qvr_lsp.features.settings_file import programs
from qvr_lsp.rpc import Json
from qvr_lsp.workspace import SettingsDocument

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_lsp.session import Session

DATA_TABLE = re.compile(r"^\s*\[data\.([A-Za-z_]\w*)[\].]")
RUN_TABLE = re.compile(r"^\s*\[run\.([A-Za-z_]\w*)[\].]")


@dataclass(frozen=True, slots=True)
class Problem:
    """A diagnostic of a qvr.toml, where it is, and what its range should say instead where that is plain."""

    diagnostic: Json
    range: Range
    replacement: str | None


def problems(session: Session, document: SettingsDocument) -> Iterator[Problem]:
    """What is wrong with the keys and values, then tables of programs that the workspace does not have."""
    text = document.source
    _, found = check_settings(text.text.replace("\r\n", "\n"))
    for item in found:
        stretch = Range(text.clamp(Cursor(*item.start)), text.clamp(Cursor(*item.end)))
        yield _problem(session, document, stretch, 1, item.message, item.replacement)
    known = programs(session)
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
                yield _problem(session, document, stretch, 2, f"{what} `{match[1]}`{more}", near)


def _read(snapshots: Iterable[Snapshot]) -> set[str]:
    """The names that the programs of some files take from data."""
    from qvr_core.data.needs import names_of, needs_of

    every = {id(snapshot): snapshot for snapshot in snapshots}.values()
    return {name for one in every for program in one.model.programs.values() for name in names_of(needs_of(program))}


def _problem(
    session: Session, document: SettingsDocument, stretch: Range, severity: int, message: str, replacement: str | None
) -> Problem:
    where = positions.to_range(document.source.lines, stretch, session.client.encoding)
    content: Json = {
        "range": where, "severity": severity, "code": "settings", "source": "qvr", "message": message
    }  # fmt: skip
    return Problem(content, stretch, replacement)


def publish(session: Session, document: SettingsDocument) -> None:
    """The problems of an open qvr.toml."""
    params: Json = {
        "uri": document.uri,
        "diagnostics": [problem.diagnostic for problem in problems(session, document)],
    }
    if document.version is not None:
        params["version"] = document.version
    session.client.notify("textDocument/publishDiagnostics", params)


def code_actions(session: Session, params: Json) -> list[Json]:
    """Quick fixes: the spelling that was meant."""
    document = session.workspace.settings_document(params["textDocument"]["uri"])
    only = (params.get("context") or {}).get("only")
    if document is None or not kind_requested(only, "quickfix"):
        return []
    asked = positions.from_range(document.source.lines, params["range"], session.client.encoding)
    return [
        {
            "title": f"Change to `{problem.replacement}`",
            "kind": "quickfix",
            "diagnostics": [problem.diagnostic],
            "isPreferred": True,
            "edit": {
                "changes": {
                    document.uri: [{"range": problem.diagnostic["range"], "newText": problem.replacement}],
                }
            },
        }
        for problem in problems(session, document)
        if problem.replacement is not None and problem.range.start <= asked.end and asked.start <= problem.range.end
    ]
