"""qvr.toml in the editor: completion, hover, definition, links, renaming."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from lsprotocol import types
from pydantic import BaseModel
from pygls.exceptions import JsonRpcInvalidParams

from qvr_core.ide.prose import Heading, Prose, prose
from qvr_core.ide.symbols import Symbol, declarations, place_of
from qvr_core.ide.view import statement_named
from qvr_core.runs.record.config import DataSettings, RunConfig, Settings
from qvr_core.runs.record.toml_ranges import locate
from qvr_core.semantics.types.model.steps import ObserveModel
from qvr_core.syntax.printable import printable
from qvr_core.syntax.source import Cursor, Range, SourceText
from qvr_lsp.answers.markup import COMPLETION, HOVER, markup
from qvr_lsp.json_values import Json
from qvr_lsp.uris import path_of, uri_of
from qvr_lsp.workspace import SettingsDocument

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_lsp.language_server import QvrLanguageServer

Placed = types.HoverParams | types.CompletionParams | types.DefinitionParams | types.DeclarationParams
TABLE = re.compile(r"^\s*\[\s*([^\]\s]*)\s*\]?")
KEY = re.compile(r"^\s*([A-Za-z_][\w-]*)\s*=")
DATA = re.compile(r'^\s*data\s*=\s*"[a-z]+:([^"\\]+)"')
COLUMNS = re.compile(r"^\s*columns\s*=\s*\{(?:[^}\"]|\"[^\"]*\")*[{,]\s*\w*$|^\s*columns\s*=\s*\{\s*\w*$")
WORD = re.compile(r"[A-Za-z_][\w-]*")


def programs(ls: QvrLanguageServer) -> dict[str, tuple[str, Snapshot]]:
    """Every program of the workspace with its file."""
    found: dict[str, tuple[str, Snapshot]] = {}
    for uri, snapshot in snapshots(ls):
        for name in snapshot.model.programs:
            found.setdefault(name, (uri, snapshot))
    return found


def snapshots(ls: QvrLanguageServer) -> Iterator[tuple[str, Snapshot]]:
    for document in ls.documents:
        if (snapshot := document.last_snapshot) is not None:
            yield document.uri, snapshot
    for path in ls.workspace.closed_files():
        snapshot = ls.workspace.closed_snapshot(path)
        if snapshot is not None:
            yield uri_of(path), snapshot


def _range(ls: QvrLanguageServer, lines: Any, stretch: Range) -> types.Range:
    clamp = SourceText("")
    clamp.lines = list(lines)
    return ls.codec.range(lines, Range(clamp.clamp(stretch.start), clamp.clamp(stretch.end)))


def _place(ls: QvrLanguageServer, params: Placed) -> tuple[SettingsDocument, Cursor, str]:
    """The document, the cursor, and the name of the table that it is in."""
    document = ls.workspace.settings_document(params.text_document.uri)
    if document is None:
        raise JsonRpcInvalidParams(f"{params.text_document.uri} is not open")
    cursor = ls.codec.cursor(document.source.lines, params.position)
    for line in reversed(document.source.lines[: cursor.line + 1]):
        match = TABLE.match(line)
        if match:
            return document, cursor, match[1]
    return document, cursor, ""


def hover(ls: QvrLanguageServer, params: types.HoverParams) -> types.Hover | None:
    """What a key means: description, type, default."""
    document, cursor, table = _place(ls, params)
    line = document.source.lines[cursor.line]
    word = next((match for match in WORD.finditer(line) if match.start() <= cursor.column <= match.end()), None)
    if word is None:
        return None
    stretch = _range(
        ls, document.source.lines, Range(Cursor(cursor.line, word.start()), Cursor(cursor.line, word.end()))
    )
    match = KEY.match(line)
    keys = _keys(table)
    if match and match[1] == word[0] and word[0] in keys.model_fields:
        return types.Hover(markup(ls, HOVER, key_text(word[0], keys)), stretch)
    if TABLE.match(line) and word[0] in (held := programs(ls)):
        uri, _ = held[word[0]]
        text = f"Settings of the runs of `{word[0]}` ({uri.rpartition('/')[2]})"
        return types.Hover(markup(ls, HOVER, prose(printable(text))), stretch)
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


def completion(ls: QvrLanguageServer, params: types.CompletionParams) -> Json:
    """Tables, keys, columns, and the values of keys that take one of a few."""
    document, cursor, table = _place(ls, params)
    line = document.source.lines[cursor.line]
    before = line[: cursor.column]
    if before.lstrip().startswith("["):
        start = Cursor(cursor.line, len(before) - len(before.lstrip().lstrip("[ ")))
        stretch = _range(ls, document.source.lines, Range(start, cursor))
        items = list(_tables(ls, stretch, closed="]" in line[cursor.column :]))
    else:
        items = list(_items(ls, document, table, before, cursor.line))
    return {"isIncomplete": False, "items": items}


def _tables(ls: QvrLanguageServer, stretch: types.Range, *, closed: bool) -> Iterator[Json]:
    """The names of tables, which replace what is written behind the bracket: editors end a word at a dot."""
    for name in (
        *(f"run.{name}" for name in programs(ls)),
        *(key for key in Settings.model_fields if key not in ("run", "data")),
        *(f"data.{name}" for name in _data_of(ls)),
    ):
        yield {"label": name, "kind": 9, "textEdit": {"range": stretch, "newText": name if closed else f"{name}]"}}


def _data_of(ls: QvrLanguageServer) -> list[str]:
    """The data names of all programs, each once."""
    held = programs(ls)
    return sorted({each.name for name, (_, one) in held.items() for each in one.model.programs[name].data})


def _columns(ls: QvrLanguageServer, table: str) -> Iterator[Json]:
    """What a program may be given from the columns of a file."""
    held = programs(ls).get(table.split(".")[1])
    if held is None:
        return
    program = held[1].model.programs[table.split(".")[1]]
    observed = [step.site.name for step in program.steps if isinstance(step, ObserveModel)]
    given = {each.name: "input" for each in program.inputs if each.name is not None}
    given |= {each.name: "data" for each in program.data} | dict.fromkeys(observed, "observed site")
    snippets = ls.has("text_document.completion.completion_item.snippet_support")
    for name, kind in given.items():
        text = f'{name} = "${{1:column}}"' if snippets else f'{name} = ""'
        yield {"label": name, "kind": 10, "detail": kind, "insertText": text, "insertTextFormat": 2 if snippets else 1}


def _items(ls: QvrLanguageServer, document: SettingsDocument, table: str, before: str, line: int) -> Iterator[Json]:
    match = KEY.match(before)
    if COLUMNS.match(before) or (table.endswith(".columns") and not match):
        yield from _columns(ls, table)
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
                    "documentation": markup(ls, COMPLETION, key_text(key, keys)),
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


def definition(ls: QvrLanguageServer, params: types.DefinitionParams | types.DeclarationParams) -> list[types.Location]:
    """From a table to its program, from a column to the data name or site that it fills."""
    document, cursor, table = _place(ls, params)
    line = document.source.lines[cursor.line]
    word = next((match[0] for match in WORD.finditer(line) if match.start() <= cursor.column <= match.end()), "")
    held = programs(ls)
    names = table.split(".")
    owner = names[1] if len(names) > 1 and names[0] == "run" else ""
    if TABLE.match(line) and word in held:
        uri, snapshot = held[word]
        return _locations(ls, uri, snapshot, Symbol("program", word))
    if owner in held and "columns" in (names[-1], line.partition("=")[0].strip()):
        uri, snapshot = held[owner]
        statement = statement_named(snapshot, owner)
        site = Symbol("site", word, statement.uid) if statement is not None else Symbol("data", word)
        return _locations(ls, uri, snapshot, site) or _locations(ls, uri, snapshot, Symbol("data", word))
    return []


def _locations(ls: QvrLanguageServer, uri: str, snapshot: Snapshot, symbol: Symbol) -> list[types.Location]:
    return [
        types.Location(uri, ls.codec.range(snapshot.lines, place_of(snapshot, found)))
        for found in declarations(snapshot, symbol)
    ]


def rename_table(ls: QvrLanguageServer, path: Path, old: str, new: str) -> dict[str, list[types.TextEdit]]:
    """The edits of qvr.toml that rename a program's table, and the tables inside it."""
    held = ls.workspace.settings_text(path)
    if held is None:
        return {}
    found, text = held
    named = re.compile(rf"^\s*\[*\s*run\s*\.\s*\"?({re.escape(old)})\"?(?=[\s.\]=])")
    lines = SourceText(text).lines
    spans = [(number, match.span(1)) for number, line in enumerate(lines) if (match := named.match(line))]
    return _renamed(ls, found, lines, spans, new)


def rename_column(
    ls: QvrLanguageServer, path: Path, programs: Iterable[str], old: str, new: str
) -> dict[str, list[types.TextEdit]]:
    """The edits of qvr.toml that rename a site or a data name among the columns of programs."""
    places = column_places(ls, path, programs, old)
    return {places[0].uri: [types.TextEdit(place.range, new) for place in places]} if places else {}


def column_places(ls: QvrLanguageServer, path: Path, programs: Iterable[str], name: str) -> list[types.Location]:
    """Where qvr.toml says which column of a file is a site or a data name."""
    held = ls.workspace.settings_text(path)
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
    stretches = (Range(_cursor(text, key.start), _cursor(text, key.end)) for key in keys)
    return [types.Location(uri_of(found), _range(ls, lines, stretch)) for stretch in stretches]


def _cursor(text: str, offset: int) -> Cursor:
    start = text.rfind("\n", 0, offset) + 1
    return Cursor(text.count("\n", 0, offset), offset - start)


def links(ls: QvrLanguageServer, params: types.DocumentLinkParams) -> list[types.DocumentLink]:
    """textDocument/documentLink: the data files that `data = "text:…"` names."""
    uri = params.text_document.uri
    document, path = ls.workspace.settings_document(uri), path_of(uri)
    if document is None or path is None:
        return []
    lines = document.source.lines
    return [
        types.DocumentLink(
            _range(ls, lines, Range(Cursor(number, match.start(1)), Cursor(number, match.end(1)))),
            uri_of(_named(path.parent, match[1])),
        )
        for number, line in enumerate(lines)
        if (match := DATA.match(line))
    ]


def _named(folder: Path, data: str) -> Path:
    """The file that `data` names; of a pattern the folder that all its files lie in."""
    plain = next((i for i, part in enumerate(Path(data).parts) if has_magic(part)), None)
    return folder / data if plain is None else folder.joinpath(*Path(data).parts[:plain])


def _renamed(
    ls: QvrLanguageServer, found: Path, lines: list[str], spans: list[tuple[int, tuple[int, int]]], new: str
) -> dict[str, list[types.TextEdit]]:
    edits = [
        types.TextEdit(_range(ls, lines, Range(Cursor(number, start), Cursor(number, end))), new)
        for number, (start, end) in spans
    ]
    return {uri_of(found): edits} if edits else {}
