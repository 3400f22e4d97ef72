"""Write what is known of the library's names without reading it: `python -m scripts.prelude`.

The texts of `qvr_core/std` are the one source; `prelude.json`, which every front end reads, is a copy of their headers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from qvr_core.analysis import Snapshot, analyse
from qvr_core.disk import LIBRARY, Disk
from qvr_core.runtime.families.table import row
from qvr_core.semantics.language.prelude import FIRST_FILE, TABLE
from qvr_core.semantics.modules.paths import STD
from qvr_core.semantics.scope.scope import DistributionEntry
from qvr_core.syntax.tree.declarations import DefDecl, DefHeader, FamilyHeader, ProgramHeader
from qvr_core.syntax.tree.objects import ObjectExpr, ProductExpr
from qvr_core.syntax.tree.units import Statement
from qvr_core.syntax.tree_to_text import to_text
from qvr_core.workspace import Workspace


def table() -> str:
    """What the file is to hold: one row a name, those of the first file first."""
    files = sorted((path.name for path in LIBRARY.glob("*.qvr")), key=lambda name: (name != FIRST_FILE, name))
    rows = [json.dumps(each, ensure_ascii=False) for name in files for each in _rows(name)]
    return "[\n" + ",\n".join(rows) + "\n]\n"


def _rows(file: str) -> Iterator[dict[str, Any]]:
    text = LIBRARY.joinpath(file).read_text(encoding="utf-8")
    snapshot = analyse(text, None, STD + file, Workspace(Disk()))
    if wrong := [f"{file}:{one.range.start.line + 1}: {one.message}" for one in snapshot.diagnostics()]:
        raise SystemExit("\n".join(wrong))
    for statement in snapshot.statements:
        for name in statement.header.unit.declares:
            if not name.text.startswith("_"):
                yield _row(file, name.text, statement, snapshot)


def _row(file: str, name: str, statement: Statement, snapshot: Snapshot) -> dict[str, Any]:
    unit = statement.header.unit
    declared = next(one for one in unit.declares if one.text == name)
    behind = " ".join(unit.text[declared.span.end :].split())
    found: dict[str, Any] = {
        **{"name": name, "file": file, "keyword": unit.keyword},
        "header": re.sub(r"(?<=\() | (?=\))", "", behind),
        "summary": " ".join(statement.doc.split()),
    }
    match unit.node:
        case DefDecl() | DefHeader() | FamilyHeader():
            parameters = unit.node.parameters
        case ProgramHeader():
            parameters = unit.node.parameters or ()
            found |= {"reads": _factors(unit.node.domain), "gives": _factors(unit.node.codomain)}
        case _:
            parameters = ()
    found["parameters"] = [" ".join(unit.text[one.span.start : one.span.end].split()) for one in parameters]
    entry = snapshot.entries.get(name)
    if isinstance(entry, DistributionEntry):
        found["facts"] = {**row(entry.facts), "summary": _first(found["summary"])}
    return found


def _factors(space: ObjectExpr) -> list[str]:
    return [to_text(part) for part in space.factors] if isinstance(space, ProductExpr) else [to_text(space)]


def _first(summary: str) -> str:
    """The first sentence, as the tables of families have it: without a stop, and without a capital."""
    first = summary.partition(". ")[0].rstrip(".")
    return first[:1].lower() + first[1:] if first[1:2].islower() or first[1:2] == " " else first


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
