"""What the checker asks of a file's imports: statements of other files stand among its own, under other names."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from qvr_core.semantics.scope.scope import Argument, Entry, Globals, Scope
from qvr_core.semantics.types.diagnostics import Diagnostic
from qvr_core.semantics.types.model.programs import Program
from qvr_core.syntax.source import Range
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import Statement


class Statements(Protocol):
    """The statements of a text, and where they stand (`syntax.statements.Layout`)."""

    @property
    def statements(self) -> Sequence[Statement]: ...
    def statement_of(self, uid: int) -> Statement: ...
    def start_line(self, uid: int) -> int: ...
    def range(self, uid: int, span: Span) -> Range: ...


class Imports(Protocol):
    """The statements of other files that a file uses, each with a uid of its own in this file."""

    def is_foreign(self, uid: int) -> bool:
        """Whether a statement is one of another file."""
        ...

    def visible(self, uid: int) -> Container[str]:
        """The names that a statement of another file may look up."""
        ...

    def algebra(self, uid: int) -> str:
        """The composition in force where a statement of another file stands."""
        ...

    def value(self, variable: str) -> int | None:
        """The size that a hole of another file has there."""
        ...

    def entry(self, name: str) -> Entry | None:
        """What a name means that is no declaration here, but was to come from elsewhere."""
        ...

    def promises(self, name: str) -> bool:
        """Whether an unknown name may come from a file that could not be read."""
        ...

    def diagnostics(self) -> Iterator[Diagnostic]:
        """What is wrong with the imports."""
        ...


class NoImports:
    """A file that imports nothing."""

    def is_foreign(self, uid: int) -> bool:
        return False

    def visible(self, uid: int) -> Container[str]:
        return ()

    def algebra(self, uid: int) -> str:
        raise KeyError(uid)

    def value(self, variable: str) -> int | None:
        return None

    def entry(self, name: str) -> Entry | None:
        return None

    def promises(self, name: str) -> bool:
        return False

    def diagnostics(self) -> Iterator[Diagnostic]:
        return iter(())


@dataclass(eq=False)
class Within:
    """A file as a statement of another one sees it: the names that its own stand for here, and no others."""

    file: Globals
    names: Container[str]

    def entry(self, name: str) -> Entry | None:
        return self.file.entry(name) if name in self.names else None

    def solved(self, variable: str) -> int | None:
        return self.file.solved(variable)

    def labels(self, name: str) -> tuple[str, ...] | None:
        return self.file.labels(name)

    def check_program(self, statement: Statement, scope: Scope, arguments: Mapping[str, Argument]) -> Program:
        return self.file.check_program(statement, scope, arguments)
