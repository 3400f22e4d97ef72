"""qvr.toml in the editor: completion, hover, definition, links, renaming."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from qvr_core.ide.prose import Heading, Prose, prose
from qvr_core.ide.symbols import Symbol, declarations, place_of
from qvr_core.ide.view import statement_named
from qvr_core.runs.record.config import DataSettings, RunConfig, Settings
from qvr_core.runs.record.toml_ranges import locate
from qvr_core.semantics.types.model import ObserveModel
from qvr_core.syntax.printable import printable
from qvr_core.syntax.source import Cursor, Range, SourceText
from qvr_lsp import positions
from qvr_lsp.markup import COMPLETION, HOVER, markup
from qvr_lsp.rpc import INVALID_PARAMS, Json, RpcError
from qvr_lsp.uris import path_of, uri_of
from qvr_lsp.workspace import SettingsDocument

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_lsp.session import Session

TABLE = re.compile(r"^\s*\[\s*([^\]\s]*)\s*\]?")
KEY = re.compile(r"^\s*([A-Za-z_][\w-]*)\s*=")
DATA = re.compile(r'^\s*data\s*=\s*"[a-z]+:([^"\\]+)"')
COLUMNS = re.compile(r"^\s*columns\s*=\s*\{(?:[^}\"]|\"[^\"]*\")*[{,]\s*\w*$|^\s*columns\s*=\s*\{\s*\w*$")
WORD = re.compile(r"[A-Za-z_][\w-]*")


def programs(session: Session) -> dict[str, tuple[str, Snapshot]]:
    """Every program of the workspace with its file."""
    found: dict[str, tuple[str, Snapshot]] = {}
    for uri, snapshot in snapshots(session):
        for name in snapshot.model.programs:
            found.setdefault(name, (uri, snapshot))
    return found


def snapshots(session: Session) -> Iterator[tuple[str, Snapshot]]:
    for document in session.documents:
        if (snapshot := document.last_snapshot) is not None:
            yield document.uri, snapshot
    for path in session.workspace.closed_files():
        snapshot = session.workspace.closed_snapshot(path)
        if snapshot is not None:
            yield uri_of(path), snapshot


def _range(session: Session, lines: Any, stretch: Range) -> Json:
    clamp = SourceText("")
    clamp.lines = list(lines)
    return positions.to_range(
        lines, Range(clamp.clamp(stretch.start), clamp.clamp(stretch.end)), session.client.encoding
    )


def _place(session: Session, params: Json) -> tuple[SettingsDocument, Cursor, str]:
    """The document, the cursor, and the name of the table that it is in."""
    document = session.workspace.settings_document(params["textDocument"]["uri"])
    if document is None:
        raise RpcError(INVALID_PARAMS, f"{params['textDocument']['uri']} is not open")
    cursor = positions.to_cursor(document.source.lines, params["position"], session.client.encoding)
    for line in reversed(document.source.lines[: cursor.line + 1]):
        match = TABLE.match(line)
        if match:
            return document, cursor, match[1]
    return document, cursor, ""


def hover(session: Session, params: Json) -> Json | None:
    """What a key means: description, type, default."""
    document, cursor, table = _place(session, params)
    line = document.source.lines[cursor.line]
    word = next((match for match in WORD.finditer(line) if match.start() <= cursor.column <= match.end()), None)
    if word is None:
        return None
    stretch = _range(
        session, document.source.lines, Range(Cursor(cursor.line, word.start()), Cursor(cursor.line, word.end()))
    )
    match = KEY.match(line)
    keys = _keys(table)
    if match and match[1] == word[0] and word[0] in keys.model_fields:
        return {"contents": markup(session.client, HOVER, key_text(word[0], keys)), "range": stretch}
    if TABLE.match(line) and word[0] in (held := programs(session)):
        uri, _ = held[word[0]]
        text = f"Settings of the runs of `{word[0]}` ({uri.rpartition('/')[2]})"
        return {"contents": markup(session.client, HOVER, prose(printable(text))), "range": stretch}
    return None


def _keys(table: str) -> type[BaseModel]:
    """What a table of qvr.toml takes."""
    return DataSettings if table.startswith("data.") else RunConfig


def key_text(key: str, table: type[BaseModel] = RunConfig) -> Prose:
    field = table.model_fields[key]
    default = "none" if field.default is None else json.dumps(field.default, default=str, ensure_ascii=False)
    choices = ", ".join(f"`{value}`" for value in values_of(key))
    listed = f"One of {choices}." if choices else ""
    return prose(Heading(key, f": {field.description}"), f"Default: `{default}`", listed)


def values_of(key: str) -> tuple[str, ...]:
    """The words that a key takes, where it takes words only from a list."""
    found: list[str] = []

    def collect(annotation: Any) -> None:
        for item in get_args(annotation):
            if isinstance(item, str):
                found.append(item)
            elif item is not type(None):
                collect(item)

    annotation = RunConfig.model_fields[key].annotation
    if annotation is bool:
        return ("true", "false")
    collect(annotation)
    return tuple(dict.fromkeys(found))


def completion(session: Session, params: Json) -> Json:
    """Tables, keys, columns, and the values of keys that take one of a few."""
    document, cursor, table = _place(session, params)
    line = document.source.lines[cursor.line]
    before = line[: cursor.column]
    if before.lstrip().startswith("["):
        start = Cursor(cursor.line, len(before) - len(before.lstrip().lstrip("[ ")))
        stretch = _range(session, document.source.lines, Range(start, cursor))
        items = list(_tables(session, stretch, closed="]" in line[cursor.column :]))
    else:
        items = list(_items(session, document, table, before, cursor.line))
    return {"isIncomplete": False, "items": items}


def _tables(session: Session, stretch: Json, *, closed: bool) -> Iterator[Json]:
    """The names of tables, which replace what is written behind the bracket: editors end a word at a dot."""
    for name in (
        *(f"run.{name}" for name in programs(session)),
        *(key for key in Settings.model_fields if key not in ("run", "data")),
        *(f"data.{name}" for name in _data_of(session)),
    ):
        yield {"label": name, "kind": 9, "textEdit": {"range": stretch, "newText": name if closed else f"{name}]"}}


def _data_of(session: Session) -> list[str]:
    """The data names of all programs, each once."""
    held = programs(session)
    return sorted({each.name for name, (_, one) in held.items() for each in one.model.programs[name].data})


def _columns(session: Session, table: str) -> Iterator[Json]:
    """What a program may be given from the columns of a file."""
    held = programs(session).get(table.split(".")[1])
    if held is None:
        return
    program = held[1].model.programs[table.split(".")[1]]
    observed = [step.site.name for step in program.steps if isinstance(step, ObserveModel)]
    given = {each.name: "input" for each in program.inputs if each.name is not None}
    given |= {each.name: "data" for each in program.data} | dict.fromkeys(observed, "observed site")
    snippets = session.client.has("textDocument.completion.completionItem.snippetSupport")
    for name, kind in given.items():
        text = f'{name} = "${{1:column}}"' if snippets else f'{name} = ""'
        yield {"label": name, "kind": 10, "detail": kind, "insertText": text, "insertTextFormat": 2 if snippets else 1}


def _items(session: Session, document: SettingsDocument, table: str, before: str, line: int) -> Iterator[Json]:
    match = KEY.match(before)
    if COLUMNS.match(before) or (table.endswith(".columns") and not match):
        yield from _columns(session, table)
        return
    if match and match[1] in RunConfig.model_fields:
        for value in values_of(match[1]):
            quoted = value if value in ("true", "false") else json.dumps(value)
            yield {"label": value, "kind": 12, "insertText": quoted if '"' not in before else value}
        return
    if not match and re.fullmatch(r"run\.[^.]+|data\.[^.]+|defaults", table):
        given, keys = set(_keys_of_table(document.source.lines, line)), _keys(table)
        for key, field in keys.model_fields.items():
            if key not in given:
                default = json.dumps(field.default, default=str) if field.default is not None else ""
                yield {
                    "label": key,
                    "kind": 10,
                    "detail": f"default {default}" if default else "",
                    "documentation": markup(session.client, COMPLETION, key_text(key, keys)),
                    "insertText": f"{key} = ",
                }
    elif not table:
        yield {"label": "[run.…]", "kind": 15, "insertText": "[run."}


def _keys_of_table(lines: list[str], line: int) -> Iterator[str]:
    """The keys that the table at a line has already."""
    first = next((number for number in range(line, -1, -1) if TABLE.match(lines[number])), -1)
    for text in lines[first + 1 :]:
        if TABLE.match(text):
            return
        match = KEY.match(text)
        if match:
            yield match[1]


def definition(session: Session, params: Json) -> list[Json]:
    """From a table to its program, from a column to the data name or site that it fills."""
    document, cursor, table = _place(session, params)
    line = document.source.lines[cursor.line]
    word = next((match[0] for match in WORD.finditer(line) if match.start() <= cursor.column <= match.end()), "")
    held = programs(session)
    names = table.split(".")
    owner = names[1] if len(names) > 1 and names[0] == "run" else ""
    if TABLE.match(line) and word in held:
        uri, snapshot = held[word]
        return _locations(session, uri, snapshot, Symbol("program", word))
    if owner in held and "columns" in (names[-1], line.partition("=")[0].strip()):
        uri, snapshot = held[owner]
        statement = statement_named(snapshot, owner)
        site = Symbol("site", word, statement.uid) if statement is not None else Symbol("data", word)
        return _locations(session, uri, snapshot, site) or _locations(session, uri, snapshot, Symbol("data", word))
    return []


def _locations(session: Session, uri: str, snapshot: Snapshot, symbol: Symbol) -> list[Json]:
    return [
        {"uri": uri, "range": positions.to_range(snapshot.lines, place_of(snapshot, found), session.client.encoding)}
        for found in declarations(snapshot, symbol)
    ]


def rename_table(session: Session, path: Path, old: str, new: str) -> dict[str, list[Json]]:
    """The edits of qvr.toml that rename a program's table, and the tables inside it."""
    held = session.workspace.settings_text(path)
    if held is None:
        return {}
    found, text = held
    named = re.compile(rf"^\s*\[*\s*run\s*\.\s*\"?({re.escape(old)})\"?(?=[\s.\]=])")
    lines = SourceText(text).lines
    spans = [(number, match.span(1)) for number, line in enumerate(lines) if (match := named.match(line))]
    return _renamed(session, found, lines, spans, new)


def rename_column(session: Session, path: Path, programs: Iterable[str], old: str, new: str) -> dict[str, list[Json]]:
    """The edits of qvr.toml that rename a site or a data name among the columns of programs."""
    places = column_places(session, path, programs, old)
    return {places[0]["uri"]: [{"range": place["range"], "newText": new} for place in places]} if places else {}


def column_places(session: Session, path: Path, programs: Iterable[str], name: str) -> list[Json]:
    """Where qvr.toml says which column of a file is a site or a data name."""
    held = session.workspace.settings_text(path)
    if held is None:
        return []
    found, text = held
    try:
        places = locate(text)
    except (ValueError, IndexError):
        return []  # it is damaged, and says so itself
    tables = [("data", name), *(("run", program, "columns", name) for program in programs)]
    keys = [places[at].key for at in tables if at in places]
    lines = SourceText(text).lines
    return [
        {"uri": uri_of(found), "range": _range(session, lines, Range(_cursor(text, key.start), _cursor(text, key.end)))}
        for key in keys
    ]


def _cursor(text: str, offset: int) -> Cursor:
    start = text.rfind("\n", 0, offset) + 1
    return Cursor(text.count("\n", 0, offset), offset - start)


def links(session: Session, params: Json) -> list[Json]:
    """textDocument/documentLink: the data files that `data = "text:…"` names."""
    uri = params["textDocument"]["uri"]
    document, path = session.workspace.settings_document(uri), path_of(uri)
    if document is None or path is None:
        return []
    lines = document.source.lines
    return [
        {
            "range": _range(session, lines, Range(Cursor(number, match.start(1)), Cursor(number, match.end(1)))),
            "target": uri_of(_named(path.parent, match[1])),
        }
        for number, line in enumerate(lines)
        if (match := DATA.match(line))
    ]


def _named(folder: Path, data: str) -> Path:
    """The file that `data` names; of a pattern the folder that all its files lie in."""
    plain = next((i for i, part in enumerate(Path(data).parts) if has_magic(part)), None)
    return folder / data if plain is None else folder.joinpath(*Path(data).parts[:plain])


def _renamed(
    session: Session, found: Path, lines: list[str], spans: list[tuple[int, tuple[int, int]]], new: str
) -> dict[str, list[Json]]:
    edits = [
        {"range": _range(session, lines, Range(Cursor(number, start), Cursor(number, end))), "newText": new}
        for number, (start, end) in spans
    ]
    return {uri_of(found): edits} if edits else {}
