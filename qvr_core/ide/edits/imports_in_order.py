"""Organise imports: sorted, one statement for the names of a file, without what nothing uses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qvr_core.ide.answers import TextEdit
from qvr_core.ide.imports.homes import local_name
from qvr_core.ide.names import names_of
from qvr_core.ide.symbols import symbol_of
from qvr_core.ide.view import first_line
from qvr_core.semantics.modules.module import Import
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Cursor, Range
from qvr_core.syntax.tree.declarations import ImportDecl, ImportItem
from qvr_core.syntax.tree.units import Statement

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass
class _Line:
    """An import as it is to be written; `comment` are the lines above it."""

    path: str
    form: int
    text: str
    comment: str = ""

    def key(self) -> tuple[bool, str, int, str]:
        return not self.path.startswith("std/"), self.path, self.form, self.text


def organise_imports(snapshot: Snapshot) -> tuple[TextEdit, ...]:
    """The edits that put the imports of a file in order; none where they are, or where one cannot be read."""
    statements = [each for each in snapshot.statements if each.header.unit.keyword in ("import", "from")]
    layout = snapshot.layout
    imports = {each.uid: each for each in snapshot.table.imports}
    if not statements or any(each.uid not in imports or _odd(snapshot, each) for each in statements):
        return ()
    used = _used(snapshot)
    lines: list[_Line] = []
    for number, statement in enumerate(statements):
        comment = "" if number == 0 else _comment(snapshot, statement)
        line = _line(imports[statement.uid], used, comment)
        if line is not None and all(line.text != known.text for known in lines):
            lines.append(line)
    lines = _joined(lines)
    block = [text for line in sorted(lines, key=_Line.key) for text in (*line.comment.splitlines(), line.text)]
    start = layout.start_line(statements[0].uid)
    between = snapshot.statements[snapshot.statements.index(statements[0]) :][: len(statements)]
    if list(between) == statements:
        end = layout.end_line(statements[-1].uid)
        if list(snapshot.lines[start:end]) == block:
            return ()
        return (_replaced(snapshot, start, end, block),)
    gone = [
        _replaced(snapshot, first_line(snapshot, Cursor(layout.start_line(each.uid), 0)), layout.end_line(each.uid), [])
        for each in statements[1:]
    ]
    return (_replaced(snapshot, start, layout.end_line(statements[0].uid), block), *gone)


def _odd(snapshot: Snapshot, statement: Statement) -> bool:
    """Whether an import is damaged, has a comment in its line or goes over several: nothing may be lost."""
    if statement.problems or statement.header.unit.problems:
        return True
    start, end = snapshot.layout.start_line(statement.uid), snapshot.layout.end_line(statement.uid)
    return end != start + 1 or snapshot.lines[start].strip() != statement.header.unit.text.strip()


def _comment(snapshot: Snapshot, statement: Statement) -> str:
    start = snapshot.layout.start_line(statement.uid)
    return "\n".join(snapshot.lines[first_line(snapshot, Cursor(start, 0)) : start])


def _replaced(snapshot: Snapshot, start: int, end: int, lines: list[str]) -> TextEdit:
    """Whole lines, the last end of a line included where there is one."""
    text = "".join(f"{line}\n" for line in lines)
    if end < len(snapshot.lines):
        return TextEdit(Range(Cursor(start, 0), Cursor(end, 0)), text)
    return TextEdit(Range(Cursor(start, 0), Cursor(end - 1, len(snapshot.lines[end - 1]))), text.removesuffix("\n"))


# ---------------------------------------------------------------- what is used


@dataclass
class _Used:
    names: set[str]
    prefixes: set[str]


def _used(snapshot: Snapshot) -> _Used:
    """The names of other files, and the prefixes, that something here mentions."""
    used = _Used(set(), set())
    for statement in snapshot.statements:
        if isinstance(statement.header.unit.node, ImportDecl):
            continue
        for placed in units_of(statement):
            if placed.unit.node is None:
                # what cannot be read may use any of its words
                words = WORD.findall(placed.unit.text)
                used.names.update(words)
                used.prefixes.update(words)
            for occurrence in names_of(placed.unit):
                symbol = symbol_of(snapshot, statement, placed, occurrence)
                if symbol.kind == "prefix":
                    used.prefixes.add(symbol.name)
                elif symbol.target is not None and not symbol.of:
                    used.names.add(local_name(occurrence))
                elif symbol.kind in ("unknown", "data"):
                    used.names.add(occurrence.text)
    return used


# ---------------------------------------------------------------- what is written


def _line(each: Import, used: _Used, comment: str) -> _Line | None:
    """An import without what nothing uses; None where nothing is left of it."""
    decl, module, path = each.decl, each.module, each.decl.path.value
    if decl.prefix is not None:
        kept = module is None or decl.prefix.text in used.prefixes
        return _Line(path, 1, f"import {decl.path.text} as {decl.prefix.text}", comment) if kept else None
    if decl.items is None:
        kept = module is None or any(name in used.names for name in module.public)
        return _Line(path, 0, f"import {decl.path.text}", comment) if kept else None
    items = [item for item in decl.items if module is None or (item.alias or item.name).text in used.names]
    if not items:
        return None
    return _Line(path, 2, f"from {decl.path.text} import {_items(items)}", comment)


def _items(items: list[ImportItem]) -> str:
    written = {item.name.text if item.alias is None else f"{item.name.text} as {item.alias.text}" for item in items}
    return ", ".join(sorted(written, key=str.lower))


def _joined(lines: list[_Line]) -> list[_Line]:
    """One statement for the names of each file."""
    made: list[_Line] = []
    of_names: dict[str, _Line] = {}
    for line in lines:
        known = of_names.get(line.path) if line.form == 2 else None
        if known is None:
            made.append(line)
            if line.form == 2:
                of_names[line.path] = line
            continue
        head, _, names = known.text.partition(" import ")
        more = line.text.partition(" import ")[2]
        together = sorted({*names.split(", "), *more.split(", ")}, key=str.lower)
        known.text = f"{head} import {', '.join(together)}"
        known.comment = "\n".join(filter(None, (known.comment, line.comment)))
    return made
