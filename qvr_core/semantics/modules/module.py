"""A file as those that import it see it: what it declared at one moment, whatever is edited meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qvr_core.semantics.file.declarations import COMPOSITION
from qvr_core.semantics.file.references import References
from qvr_core.semantics.types.diagnostics import Diagnostic
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.statements import Layout
from qvr_core.syntax.tree import ImportDecl, Statement

if TYPE_CHECKING:
    from qvr_core.semantics.file.checker import FileChecker


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
    """One state of a file.  Immutable; two states are the same file where their locations are."""

    def __init__(
        self, location: str, text: str, layout: Layout, checker: FileChecker, table: Table, failure: str | None
    ) -> None:
        """`failure` is the first error of the file, with its line, in words."""
        self.location = location
        self.text = text
        self.layout = layout
        self.table = table
        self.failure = failure
        own = {name: uids[0] for name, uids in checker.owners.items() if not checker.imports.is_foreign(uids[0])}
        self._owners = own
        self.declared: dict[int, Declared] = {}
        for uid in dict.fromkeys(own.values()):
            record = checker.records[uid]
            holes = {variable: checker.solved(variable) for variable in record.checked.holes}
            algebra = checker.algebras.at(uid)
            self.declared[uid] = Declared(record.statement, record.references, record.names, holes, algebra)
        self.public = _public(own, layout)

    def own(self, name: str) -> int | None:
        """The statement of the file that declares a name; None where none does."""
        return self._owners.get(name)

    def declares_algebra(self, name: str) -> bool:
        """Whether the file itself defines the operations of a composition."""
        uid = self.own(f"{COMPOSITION}{name}")
        return uid is not None and bool(self.declared[uid].statement.header.children)

    def written_name(self, name: str) -> str:
        """The name that is written where `name` is declared: the same, but for a copy of a replicated arrow."""
        uid = self.own(name)
        written = [] if uid is None else self.declared[uid].written()
        copied = (each for each in written if name.startswith(f"{each}_") and name[len(each) + 1 :].isdigit())
        return name if name in written else next(copied, name)

    def line(self, uid: int) -> int:
        """Where a statement stands."""
        at = self.layout.find_statement(uid)
        return 0 if at is None else at[1]


def _public(own: Mapping[str, int], layout: Layout) -> list[str]:
    """What a file has for others, in the order of its text."""
    names = [name for name in own if name[0] != "_" and not name.startswith(COMPOSITION)]
    return sorted(names, key=lambda name: layout.start_line(own[name]))


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
        yield from (name for name in self.offered if "." not in name)
        yield from self.failed
        yield from self.clashed
        yield from self.prefixes
        yield from (path.split(".")[0] for path in self.paths.values())


NO_TABLE = Table()
