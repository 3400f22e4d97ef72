"""Which composition is in force where: the last one above a statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from qvr_core.semantics.file.declarations import Checked
from qvr_core.semantics.file.file_rules import FileRules
from qvr_core.semantics.file.imported import Imports, Statements
from qvr_core.syntax.tree import Statement

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


DEFAULT = "product_fuzzy"


class Algebras:
    """The compositions of a file, by the lines where they begin."""

    def __init__(self, file: Compositions) -> None:
        self.file = file
        self._starts: list[tuple[int, str]] = []

    def update(self) -> set[int]:
        """Take over an edit; the statements that see another composition above them than when they were checked."""
        file = self.file
        known = [uid for uid in file.rules.compositions if uid in file.records]
        headers = [(uid, file.records[uid].statement.header.unit) for uid in known]
        found = sorted((file.layout.start_line(uid), unit.declares[0].text) for uid, unit in headers if unit.declares)
        if not found and not self._starts:
            return set()
        self._starts = found
        return {
            uid
            for uid, record in file.records.items()
            if record.checked.algebra and record.checked.algebra != self.at(uid)
        }

    def at(self, uid: int) -> str:
        """The composition in force at a statement."""
        if self.file.imports.is_foreign(uid):
            return self.file.imports.algebra(uid)
        if not self._starts:
            return DEFAULT
        line = self.file.layout.start_line(uid)
        above = [name for start, name in self._starts if start < line]
        return above[-1] if above else DEFAULT
