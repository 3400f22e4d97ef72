"""A file as those that import it see it: what it declared at one moment, whatever is edited meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from qvr_core.semantics.file.composition_in_force import algebra_above
from qvr_core.semantics.file.placed_diagnostics import LocatedDiagnostic
from qvr_core.semantics.file.references import References
from qvr_core.semantics.language.compositions import COMPOSITION
from qvr_core.semantics.types.diagnostics import Diagnostic, Severity
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.statements import Layout
from qvr_core.syntax.tree.declarations import ImportDecl
from qvr_core.syntax.tree.units import Statement

if TYPE_CHECKING:
    from qvr_core.semantics.file.checker import FileChecker


Findings = Sequence[LocatedDiagnostic]

Target = tuple[str, str]
"""A declaration of another file: its location, and its name there."""


@immutable
class Declared:
    """One statement of the file, as its own checker reads it."""

    statement: Statement
    references: References
    names: tuple[str, ...]
    """What it declares, copies included."""
    holes: Mapping[str, int | None]
    """The sizes that it leaves open, with what they are solved to."""
    algebra: str
    """The composition in force where it stands."""

    def written(self) -> list[str]:
        """The names that it writes where it declares them."""
        return [name.text for name in self.statement.header.unit.declares]


class Module:
    """One state of a file.  Immutable; two states are the same file where their locations are.

    Most are never asked for anything, so what they say is worked out once it is.
    """

    def __init__(
        self, location: str, text: str, layout: Layout, checker: FileChecker, table: Table, found: Findings
    ) -> None:
        """`found` are the diagnostics of the file."""
        self.location = location
        self.text = text
        self.layout = layout
        self.table = table
        self._found = found
        self._state = checker.state()
        self._is_foreign = checker.imports.is_foreign
        self._compositions = checker.algebras.starts
        self._sizes = {name: one.size for name, one in checker.known.items()}
        self._declared: dict[int, Declared] = {}

    @cached_property
    def failure(self) -> str | None:
        """The first error of the file, with its line, in words."""
        errors = (one for one in self._found if one.severity is Severity.ERROR)
        return next((f"line {one.range.start.line + 1}: {one.message}" for one in errors), None)

    @cached_property
    def public(self) -> list[str]:
        """What the file has for others, in the order of its text."""
        owners = {name: uid for name in self._state.owners if (uid := self.own(name)) is not None}
        names = [name for name in owners if name[0] != "_" and not name.startswith(COMPOSITION)]
        return sorted(names, key=lambda name: self.layout.start_line(owners[name]))

    def own(self, name: str) -> int | None:
        """The statement of the file that declares a name; None where none does."""
        uid = self._state.owners.get(name)
        return None if uid is None or self._is_foreign(uid) else uid

    def declared(self, uid: int) -> Declared:
        """What a statement of the file declares."""
        if uid not in self._declared:
            record = self._state.records[uid]
            holes = {variable: self._solved(variable) for variable in self._state.checked[uid].holes}
            algebra = algebra_above(self._compositions, self.layout.start_line(uid))
            self._declared[uid] = Declared(record.statement, record.references, record.names, holes, algebra)
        return self._declared[uid]

    def _solved(self, variable: str) -> int | None:
        size = self._sizes.get(variable.removesuffix(".0"))
        return self._state.holes.get(variable) if size is None else size

    def declares_algebra(self, name: str) -> bool:
        """Whether the file itself defines the operations of a composition."""
        uid = self.own(f"{COMPOSITION}{name}")
        return uid is not None and bool(self.declared(uid).statement.header.children)

    def written_name(self, name: str) -> str:
        """The name that is written where `name` is declared: the same, but for a copy of a replicated arrow."""
        uid = self.own(name)
        written = [] if uid is None else self.declared(uid).written()
        copied = (each for each in written if name.startswith(f"{each}_") and name[len(each) + 1 :].isdigit())
        return name if name in written else next(copied, name)

    def line(self, uid: int) -> int:
        """Where a statement stands."""
        at = self.layout.find_statement(uid)
        return 0 if at is None else at[1]


@immutable
class Import:
    """An import statement, with the file that it found."""

    uid: int
    decl: ImportDecl
    module: Module | None


@dataclass(slots=True)
class Table:
    """What a file may write, and what that stands for."""

    own: Set[str] = frozenset()
    """The names that the file declares itself."""
    imports: list[Import] = field(default_factory=list[Import])
    offered: dict[str, Target] = field(default_factory=dict[str, Target])
    prefixes: dict[str, Module | None] = field(default_factory=dict[str, "Module | None"])
    failed: set[str] = field(default_factory=set[str])
    """Names that were to come from a file that cannot be had, or that it does not declare."""
    clashed: set[str] = field(default_factory=set[str])
    """Names that are not brought, since the file declares them itself."""
    promises: bool = False
    """True where any unknown name may come from a file that cannot be had."""
    modules: dict[str, Module] = field(default_factory=dict[str, Module])
    """All files that the imports lead to, nearest first."""
    paths: dict[str, str] = field(default_factory=dict[str, str])
    """What stands in front of the names of each file that have no name here."""
    called: dict[Target, str] = field(default_factory=dict[Target, str])
    """What a declaration is called here: by the first import that names it."""
    problems: list[Diagnostic] = field(default_factory=list[Diagnostic])
    prelude: dict[str, Module] = field(default_factory=dict[str, "Module"])
    """The files of the library that it uses without an import, by location."""
    known: dict[str, Target] = field(default_factory=dict[str, Target])
    """The names of theirs that it uses so; all are `offered`, too."""

    reached: dict[str, Target] = field(default_factory=dict[str, Target])
    """What the names stand for that the file's statements hold, each declaration under the one that it has here."""

    def name_of(self, target: Target) -> str:
        """What a declaration of another file is called in this one; a copy of a replicated arrow, by its number."""
        location, name = target
        base = self.modules[location].written_name(name)
        found = self.called.get((location, base))
        return (f"{self.paths[location]}.{base}" if found is None else found) + name[len(base) :]

    def watched(self) -> Iterable[str]:
        """Names that the file had better not declare itself."""
        yield from (name for name in self.offered if "." not in name and name not in self.known)
        yield from self.failed
        yield from self.clashed
        yield from self.prefixes
        yield from (path.split(".")[0] for path in self.paths.values())


NO_TABLE = Table()
