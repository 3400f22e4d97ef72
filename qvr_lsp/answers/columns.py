"""Names for a `data` line: the columns of the files that qvr.toml names for the program."""

from __future__ import annotations

import re
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
    snapshot, path = document.snapshot, path_of(document.uri)
    if path is None or NAMES.match(snapshot.lines[cursor.line][: cursor.column]) is None:
        return []
    held = ls.workspace.settings_text(path)
    name = _program(snapshot, cursor)
    if held is None or name is None:
        return []
    from qvr_core.runs.record.data_checks import columns_named
    from qvr_core.runs.record.settings import UsageProblem, resolve

    try:
        config = resolve(name, held[1], {}).config
    except UsageProblem:
        return []
    model = snapshot.model.programs.get(name)
    taken = {item.name for item in model.data if item.declared} if model is not None else set[str]()
    columns = columns_named(config, held[0].parent)
    return [
        Completion(column, "data", f"a column of {file}", rank=BEST)
        for column, file in columns.items()
        if column not in taken and column not in snapshot.model.objects
    ]


def _program(snapshot: Snapshot, cursor: Cursor) -> str | None:
    statement = statement_before(snapshot, cursor)
    declares = statement.header.unit.declares if statement is not None else ()
    return declares[0].text if declares else None
