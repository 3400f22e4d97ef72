"""Which composition is in force where: the last one above a statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from qvr_core.semantics.file.declarations import Checked
from qvr_core.semantics.file.file_rules import FileRules
from qvr_core.semantics.file.imported import Imports, Statements
from qvr_core.semantics.language.compositions import DEFAULT
from qvr_core.syntax.tree.units import Statement

if TYPE_CHECKING:

    class Node(Protocol):
        statement: Statement
        checked: Checked

    class Compositions(Protocol):
        layout: Statements
        rules: FileRules
        imports: Imports

        @property
        def records(self) -> Mapping[int, Node]: ...


class Algebras:
    """The compositions of a file, by the lines where they begin."""

    def __init__(self, file: Compositions) -> None:
        self.file = file
        self.starts: Sequence[tuple[int, str]] = ()
        """The first line of each, with its name; another sequence after each change."""

    def update(self) -> set[int]:
        """Take over an edit; the statements that see another composition above them than when they were checked."""
        file = self.file
        known = [uid for uid in file.rules.compositions if uid in file.records]
        headers = [(uid, file.records[uid].statement.header.unit) for uid in known]
        found = sorted((file.layout.start_line(uid), unit.declares[0].text) for uid, unit in headers if unit.declares)
        if not found and not self.starts:
            return set()
        self.starts = found
        return {
            uid
            for uid, record in file.records.items()
            if record.checked.algebra and record.checked.algebra != self.at(uid)
        }

    def at(self, uid: int) -> str:
        """The composition in force at a statement."""
        if self.file.imports.is_foreign(uid):
            return self.file.imports.algebra(uid)
        return algebra_above(self.starts, self.file.layout.start_line(uid)) if self.starts else DEFAULT


def algebra_above(starts: Sequence[tuple[int, str]], line: int) -> str:
    """The last composition that begins above a line."""
    return next((name for start, name in reversed(starts) if start < line), DEFAULT)
