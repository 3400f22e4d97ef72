"""Names for a `data` line, or for the formulas of a program without one: the columns of the files that qvr.toml names
for the program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.completion.offers import BEST
from qvr_core.ide.view import statement_before
from qvr_lsp.uris import path_of

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_core.syntax.source import Cursor
    from qvr_lsp.documents import View
    from qvr_lsp.language_server import QvrLanguageServer

NAMES = re.compile(r"\s+data\s+(?:\w+\s*,\s*)*(?:[A-Za-z_]\w*)?$")
"""A `data` line whose names are still being written."""


def columns_offered(ls: QvrLanguageServer, document: View, cursor: Cursor) -> list[Completion]:
    """The columns that no step of the program names yet; [] where the cursor is not behind `data`."""
    snapshot = document.snapshot
    if NAMES.match(snapshot.lines[cursor.line][: cursor.column]) is None:
        return []
    model = snapshot.model.programs.get(_program(snapshot, cursor) or "")
    taken = {item.name for item in model.data if item.declared} if model is not None else set[str]()
    return [
        Completion(column, "data", f"a column of {file}", rank=BEST)
        for column, file in _columns(ls, document, cursor).items()
        if column not in taken and column not in snapshot.model.objects
    ]


STEP = re.compile(r"\s+(?:sample|observe|marginalize|predict|let|score)\b")


def columns_of_undeclared(ls: QvrLanguageServer, document: View, cursor: Cursor) -> Mapping[str, str]:
    """The columns that a formula may read, each with its file, of a program that declares no data."""
    snapshot = document.snapshot
    if STEP.match(snapshot.lines[cursor.line][: cursor.column]) is None:
        return {}
    model = snapshot.model.programs.get(_program(snapshot, cursor) or "")
    if model is not None and (model.uses_input or any(item.declared for item in model.data)):
        return {}
    return _columns(ls, document, cursor)


def _columns(ls: QvrLanguageServer, document: View, cursor: Cursor) -> Mapping[str, str]:
    path, name = path_of(document.uri), _program(document.snapshot, cursor)
    held = ls.workspace.settings_text(path) if path is not None else None
    if held is None or name is None:
        return {}
    from qvr_core.runs.record.data_checks import columns_named
    from qvr_core.runs.record.settings import UsageProblem, resolve

    try:
        config = resolve(name, held[1], {}).config
    except UsageProblem:
        return {}
    return columns_named(config, held[0].parent)


def _program(snapshot: Snapshot, cursor: Cursor) -> str | None:
    statement = statement_before(snapshot, cursor)
    declares = statement.header.unit.declares if statement is not None else ()
    return declares[0].text if declares else None
