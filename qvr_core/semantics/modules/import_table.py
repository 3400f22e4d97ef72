"""What the imports of a file bring: which names, from where, and what is wrong with them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Protocol

from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.prelude import PRELUDE, hidden_kind
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.modules.module import Import, Module, Table, Target
from qvr_core.semantics.modules.paths import STD, WrongPath, location_of, shown, stem
from qvr_core.semantics.types.codes import (
    HIDDEN_BUILTIN,
    IMPORT_CLASH,
    IMPORT_CYCLE,
    IMPORT_ERROR,
    IMPORT_MISSING,
    IMPORT_PATH,
    UNKNOWN_IMPORT,
)
from qvr_core.semantics.types.diagnostics import Code, DeclarationSite, Diagnostic, Edit, Fix, Origin, Related
from qvr_core.syntax.tree.declarations import ImportDecl, ImportItem
from qvr_core.syntax.tree.names import Name, Span


class Library(Protocol):
    """Where the files are that imports name."""

    def refusal(self, location: str, importer: str, written: str) -> str | None:
        """Why an import may not be followed, in words."""
        ...

    def near(self, location: str, written: str) -> str | None:
        """The path that was meant where there is no file; None where nothing is like it."""
        ...

    def find(self, location: str, importer: str, written: str) -> Module | str:
        """The file at a location that is not refused, or why it cannot be had."""
        ...

    def waiting(self, location: str) -> int:
        """How much is to be read before a file can be had, in characters."""
        ...

    def cycle(self, location: str, importer: str) -> Sequence[str] | None:
        """The files by which `location` leads back to `importer`."""
        ...


class NoLibrary:
    """For texts that have no place: there is nothing to import."""

    def refusal(self, location: str, importer: str, written: str) -> str | None:
        return f"there is no folder here in which {shown(location)} could be: check or load the file, not its text"

    def near(self, location: str, written: str) -> str | None:
        return None

    def find(self, location: str, importer: str, written: str) -> Module | str:
        return f"there is no {shown(location)}"

    def waiting(self, location: str) -> int:
        return 0

    def cycle(self, location: str, importer: str) -> Sequence[str] | None:
        return None


def table_of(
    decls: Sequence[tuple[int, ImportDecl]], own: Set[str], location: str, library: Library, known: Iterable[str] = ()
) -> Table:
    """Follow the imports of a file at `location` that declares the names `own` itself, and uses the names `known` of
    the library, which it has from there unless an import brings them."""
    table = Table(own)
    for uid, decl in decls:
        reading = _Reading(table, uid, decl, location)
        module = reading.found(library)
        table.imports.append(Import(uid, decl, module))
        if module is None:
            reading.promise()
        else:
            reading.bring(module)
    _know(table, known, location, library)
    _follow(table)
    return table


def _know(table: Table, names: Iterable[str], location: str, library: Library) -> None:
    """Bring names of the library that nothing else of the file means."""
    if table.promises:
        return  # they may be those of a file that cannot be had
    for name in names:
        if name in table.offered or name in table.failed or name in table.clashed or name in table.prefixes:
            continue
        file = PRELUDE[name].file
        module = library.find(f"{STD}{file}", location, f"std/{file}")
        if not isinstance(module, str) and module.own(name) is not None:
            table.prelude[module.location] = module
            table.offered[name] = table.known[name] = (module.location, name)


class _Reading:
    """One import statement on its way into the table."""

    def __init__(self, table: Table, uid: int, decl: ImportDecl, location: str) -> None:
        self.table, self.uid, self.decl, self.location = table, uid, decl, location

    def report(
        self, code: Code, message: str, span: Span, fixes: Iterable[Fix] = (), related: Iterable[Related] = ()
    ) -> None:
        self.table.problems.append(Diagnostic(code, message, self._origin(span), tuple(related), tuple(fixes)))

    def _origin(self, span: Span) -> Origin:
        return Origin(self.uid, span)

    # ---------------------------------------------------------------- the file

    def found(self, library: Library) -> Module | None:
        """The file that the statement names; None, reported, where it cannot be had."""
        path = self.decl.path
        location = location_of(path.value, self.location)
        if isinstance(location, WrongPath):
            edits = (Edit(self._origin(path.span), f'"{location.meant}"'),)
            fixes = () if location.meant is None else (Fix(f'Change to "{location.meant}"', edits, True),)
            self.report(IMPORT_PATH, location.message, path.span, fixes)
            return None
        refused = None if location == self.location else library.refusal(location, self.location, path.value)
        if refused is not None:
            self._lost(refused, location, library)
            return None
        ring = (location,) if location == self.location else library.cycle(location, self.location)
        if ring is not None:
            files = " → ".join(shown(each) for each in (self.location, *ring))
            if location != self.location:
                files += f" → {shown(self.location)}"
            self.report(IMPORT_CYCLE, f"{shown(self.location)} imports itself: {files}", path.span, self._removal())
            return None
        found = library.find(location, self.location, path.value)
        if isinstance(found, str):
            self._lost(found, location, library)
            return None
        if (wrong := found.failure) is not None:
            self.report(IMPORT_ERROR, f"{shown(location)} has errors: {wrong}", path.span)
        return found

    def _lost(self, why: str, location: str, library: Library) -> None:
        path = self.decl.path
        near, fixes = library.near(location, path.value), self._removal()
        if near is not None:
            edit = Edit(self._origin(path.span), f'"{near}"')
            fixes = (Fix(f'Change to "{near}"', (edit,), True), *fixes)
        self.report(IMPORT_MISSING, why if near is None else f"{why}; did you mean {near}?", path.span, fixes)

    def _removal(self) -> tuple[Fix, ...]:
        return (Fix("Remove the import", (Edit(self._origin(self.decl.span), "", "line"),)),)

    # ---------------------------------------------------------------- names

    def promise(self) -> None:
        """The file cannot be had: what would have come from it says nothing more."""
        decl, table = self.decl, self.table
        if decl.prefix is not None:
            table.prefixes.setdefault(decl.prefix.text, None)
        elif decl.items is None:
            table.promises = True
        else:
            table.failed.update((item.alias or item.name).text for item in decl.items)

    def bring(self, module: Module) -> None:
        decl, table = self.decl, self.table
        if decl.items is not None:
            names = set(module.public)
            for item in decl.items:
                self._item(item, module, names)
        elif decl.prefix is None:
            for name in module.public:
                self._note_hidden(Name(name, decl.path.span), module)
                self._offer(name, (module.location, name), decl.path.span, self._behind_prefix(module))
        elif self._new_prefix(decl.prefix, module):
            self._note_hidden(decl.prefix, module)
            table.prefixes[decl.prefix.text] = module
            for name in module.public:
                table.offered[f"{decl.prefix.text}.{name}"] = (module.location, name)

    def _behind_prefix(self, module: Module) -> tuple[Fix, ...]:
        prefix = stem(module.location)
        if prefix in self.table.own or prefix in self.table.prefixes:
            return ()
        edit = Edit(self._origin(self.decl.path.span), f" as {prefix}", "after")
        return (Fix(f"Import it behind the prefix `{prefix}`", (edit,)),)

    def _new_prefix(self, prefix: Name, module: Module) -> bool:
        """Whether a prefix stands for one file; reported where it does not."""
        table = self.table
        if prefix.text in table.own:
            table.clashed.add(prefix.text)
            self._clash(f"`{prefix.text}` is declared in this file too", prefix, prefix.text)
            return False
        known = table.prefixes.get(prefix.text, module)
        if known is None or known.location != module.location:
            what = "a file that cannot be had" if known is None else shown(known.location)
            # which of the two files was meant cannot be said
            table.failed.update(f"{prefix.text}.{name}" for name in module.public)
            other = stem(module.location)
            taken = other in table.own or other in table.prefixes
            fixes = () if taken else (Fix(f"Call it `{other}`", (Edit(self._origin(prefix.span), other),)),)
            self.report(IMPORT_CLASH, f"`{prefix.text}` is the prefix of {what} already", prefix.span, fixes)
            return False
        return True

    def _clash(self, message: str, name: Name, declared: str, fixes: Iterable[Fix] = ()) -> None:
        related = (Related(f"`{declared}` is declared here", DeclarationSite(declared)),)
        self.report(IMPORT_CLASH, message, name.span, fixes, related)

    def _item(self, item: ImportItem, module: Module, names: Set[str]) -> None:
        local, name = item.alias or item.name, item.name.text
        if name not in names:
            self.table.failed.add(local.text)
            self._missing(item.name, module, names)
        else:
            self._note_hidden(local, module)
            edit = Edit(self._origin(local.span), f"{stem(module.location)}_{name}")
            if item.alias is None:
                edit = Edit(edit.place, f" as {edit.text}", "after")
            fix = Fix(f"Import it as `{stem(module.location)}_{name}`", (edit,))
            self._offer(local.text, (module.location, name), local.span, (fix,))

    def _missing(self, name: Name, module: Module, names: Set[str]) -> None:
        file = shown(module.location)
        if (elsewhere := module.table.offered.get(name.text)) is not None:
            message = f"{file} has `{name.text}` from {shown(elsewhere[0])}: import it from there"
            self.report(UNKNOWN_IMPORT, message, name.span)
            return
        message, fixes = missing_name(name.text, module, names, self._origin(name.span))
        self.report(UNKNOWN_IMPORT, message, name.span, fixes)

    def _note_hidden(self, name: Name, module: Module) -> None:
        """A hint where an imported name is also the language's."""
        builtin = BUILTINS.get(name.text)
        hidden = None if module.location.startswith(STD) else hidden_kind(name.text)
        if hidden is not None:
            self.report(HIDDEN_BUILTIN, f"`{name.text}` hides the language's {hidden} of that name", name.span)
        elif name.text in FAMILIES:
            self.report(HIDDEN_BUILTIN, f"`{name.text}` hides the language's family of that name", name.span)
        elif builtin is not None and builtin.reserved:
            self.report(HIDDEN_BUILTIN, f"`{name.text}` hides the language's function of that name", name.span)

    def _offer(self, local: str, target: Target, span: Span, fixes: Iterable[Fix]) -> None:
        table = self.table
        if local in table.own:
            table.clashed.add(local)
            related = (Related(f"`{local}` is declared here", DeclarationSite(local)),)
            message = f"`{local}` of {shown(target[0])} is declared in this file too"
            self.report(IMPORT_CLASH, message, span, fixes, related)
            return
        known = table.offered.setdefault(local, target)
        if known != target:
            message = f"`{local}` comes from {shown(known[0])} already"
            self.report(IMPORT_CLASH, message, span, fixes)


def missing_name(
    name: str, module: Module, names: Iterable[str], place: Origin, prefix: str = ""
) -> tuple[str, tuple[Fix, ...]]:
    """What to say of a name that a file does not have for others."""
    file = shown(module.location)
    if name[0] == "_" and module.own(name) is not None:
        return f"`{name}` stays inside {file}: names that begin with `_` are not imported", ()
    near = closest(name, names)
    if near is None:
        return f"{file} declares no `{name}`", ()
    fixes = (Fix(f"Change to `{prefix}{near}`", (Edit(place, prefix + near),), True),)
    return f"{file} declares no `{name}`; did you mean `{near}`?", fixes


# ---------------------------------------------------------------- what everything is called


def _follow(table: Table) -> None:
    """Name every declaration that the imports lead to: as it may be written, else by the way to its file."""
    for local, target in table.offered.items():
        table.called.setdefault(target, local)
    waiting = deque((one, "") for one in table.imports if one.module is not None)
    while waiting:
        one, before = waiting.popleft()
        module = one.module
        assert module is not None
        if module.location in table.modules:
            continue
        table.modules[module.location] = module
        prefix = one.decl.prefix
        last = _file_name(module.location, table.own) if prefix is None else prefix.text
        path = _unused(f"{before}{last}", table.paths)
        table.paths[module.location] = path
        waiting.extend((each, f"{path}.") for each in module.table.imports if each.module is not None)
        _enter(module.table.prelude.values(), table)
    _enter(table.prelude.values(), table)
    table.reached.update((table.name_of(target), target) for target in table.offered.values())


def _enter(modules: Iterable[Module], table: Table) -> None:
    """Take in files of the library that need no import, and those that they use in turn."""
    for module in modules:
        if module.location not in table.modules:
            table.modules[module.location] = module
            table.paths[module.location] = _unused(_file_name(module.location, table.own), table.paths)
            _enter(module.table.prelude.values(), table)


def _file_name(location: str, own: Set[str]) -> str:
    """Two words with a dot between them: nobody can write that in front of another dot."""
    first = stem(location)
    while first in own:
        first += "_"
    return f"{first}.qvr"


def _unused(path: str, taken: Mapping[str, str]) -> str:
    used = set(taken.values())
    count, found = 1, path
    while found in used:
        count += 1
        found = f"{path}_{count}"
    return found
