"""Names that nobody declares: the error at each, or one at the declaration that is misspelt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from qvr_core.semantics.file.declarations import Checked
from qvr_core.semantics.file.imported import Imports, Statements
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.combinators import COMBINATORS
from qvr_core.semantics.language.family_spelling import likely_family
from qvr_core.semantics.language.spelling import SpellingIndex, closest, distance
from qvr_core.semantics.scope.scope import DamagedEntry, Entry, UnknownName
from qvr_core.semantics.types.codes import UNKNOWN_NAME
from qvr_core.semantics.types.diagnostics import DeclarationSite, Diagnostic, Edit, Fix, Origin, Place, Related
from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.units import Statement

if TYPE_CHECKING:

    class Record(Protocol):
        statement: Statement
        checked: Checked

    class File(Protocol):
        layout: Statements
        imports: Imports
        owners: dict[str, list[int]]

        @property
        def entries(self) -> Mapping[str, Entry]: ...
        @property
        def records(self) -> Mapping[int, Record]: ...


MOST_COMPARED = 400_000
"""Pairs of an unknown and a declared name; a file with more gets no spellings, only that the names are unknown."""

_ARROWS = ("morphism", "let", "define", "program")
_KINDS = {
    **{"object": ("object",), "arrow": _ARROWS, "function": (*_ARROWS, "def")},
    **{"arrow or family": (*_ARROWS, "family")},
}
"""What declares a name that may stand where an object, an arrow or a function is wanted."""

_NUMBERS = {
    "Nat": "`Nat` is no object: it stands alone, behind `->` of a data line or behind `:` of a step that draws counts",
    "Bool": "`Bool` is no object: it stands alone behind `->` of a data line; elsewhere two values are `FinSet 2`",
}
"""Words for numbers, which no object is called."""

MOST_RELATED = 20
"""Uses of a misspelt declaration that its error names."""


@immutable
class Misspelt:
    """The errors at unknown names, and the declarations that are told instead of their uses."""

    diagnostics: Sequence[Diagnostic]
    declarations: Set[str]


@immutable
class _Unknown:
    """An unknown name with the likely spelling and the error at it."""

    name: UnknownName
    near: str | None
    error: Diagnostic


class UnknownNames:
    """Finds the likely spellings of unknown names; remembers what was said of each statement."""

    def __init__(self, file: File) -> None:
        self.file = file
        self._cached: dict[int, tuple[Sequence[UnknownName], int, list[_Unknown]]] = {}
        """By statement: the names, the version of the spellings, what was said."""
        self._renamed: dict[str, tuple[str, tuple[Place, ...], Diagnostic]] = {}
        """The error at each misspelt declaration: what it is called elsewhere, and where."""
        self._spellings = {kind: SpellingIndex() for kind in _KINDS}
        self._idle = {kind: SpellingIndex() for kind in _KINDS}
        """Of the declared names those that nothing uses."""

    def put(self, name: str, keyword: str, unused: bool) -> None:
        """A name is declared by this keyword now; '' where it is not."""
        for kind, keywords in _KINDS.items():
            self._spellings[kind].put(name, keyword in keywords)
            self._idle[kind].put(name, unused and keyword in keywords)

    def forget(self, uid: int) -> None:
        self._cached.pop(uid, None)

    def find(self, flagged: Iterable[int], unused: Set[str], broken: str) -> Misspelt:
        """What there is to say of the unknown names in `flagged` statements; `unused` are declared names, `broken` the
        text of all lines with a syntax error, which may declare anything."""
        wrong = [(uid, names) for uid in flagged if (names := self.file.records[uid].checked.unknown_names)]
        distinct = len({one.name for _, names in wrong for one in names})
        spelled = distinct * len(self.file.entries) <= MOST_COMPARED
        unknown = [one for uid, names in wrong for one in self._unknown_names(uid, names, spelled)]
        unknown_ones = [one for one in unknown if one.name.name not in broken and not self._is_copy(one.name.name)]
        unknown_ones = [one for one in unknown_ones if not self.file.imports.promises(one.name.name)]
        renamed = _renamed(unknown_ones, unused)
        covered = {name for name, _ in renamed.values()}
        found = [one.error for one in unknown_ones if one.name.name not in covered]
        found += [self._at_declaration(declared, *meant) for declared, meant in renamed.items()]
        return Misspelt(found, renamed.keys())

    def _unknown_names(self, uid: int, names: Sequence[UnknownName], spelled: bool) -> list[_Unknown]:
        indices = chain(self._spellings.values(), self._idle.values())
        version = sum(index.version for index in indices) if spelled else -1
        known = self._cached.get(uid)
        if known is None or known[0] is not names or known[1] != version:
            near = [self._near(one) if spelled else None for one in names]
            made = [_Unknown(one, at, self._error(one, at)) for one, at in zip(names, near, strict=True)]
            known = self._cached[uid] = (names, version, made)
        return known[2]

    def _near(self, unknown: UnknownName) -> str | None:
        families = unknown.wanted == "arrow or family"
        local = (likely_family if families else closest)(unknown.name, unknown.candidates)
        if local is not None:
            return local
        kind = unknown.wanted if unknown.wanted in _KINDS else "arrow"
        near, idle = self._spellings[kind].closest(unknown.name), self._idle[kind].closest(unknown.name)
        # of two names as near, the one that nothing else uses
        return idle if idle and near and _edits(unknown.name, idle) <= _edits(unknown.name, near) else near

    def _is_copy(self, name: str) -> bool:
        """True for what may be a copy of a declaration of which it is not known how many there are."""
        base, _, copy = name.rpartition("_")
        return copy.isdecimal() and isinstance(self.file.entries.get(base), DamagedEntry)

    # ---------------------------------------------------------------- what is said

    def _error(self, unknown: UnknownName, near: str | None) -> Diagnostic:
        if unknown.wanted == "object" and unknown.name in _NUMBERS:
            instead = (Fix("Change to `FinSet 2`", (Edit(unknown.place, "FinSet 2"),), True),)
            fixes = instead if unknown.name == "Bool" else ()
            return Diagnostic(UNKNOWN_NAME, _NUMBERS[unknown.name], unknown.place, fixes=fixes)
        if (elsewhere := _elsewhere(unknown)) is not None:
            return Diagnostic(UNKNOWN_NAME, elsewhere, unknown.place)
        message = f"there is no {unknown.wanted} `{unknown.name}`" + (f"; did you mean `{near}`?" if near else "")
        fixes: tuple[Fix, ...] = ()
        related: tuple[Related, ...] = ()
        if near is not None:
            fixes = (Fix(f"Change to `{near}`", (Edit(unknown.place, near),), True),)
            if near in self.file.entries and near not in unknown.candidates:
                related = (Related(f"`{near}` is declared here", DeclarationSite(near)),)
        if unknown.wanted == "object" and "." not in unknown.name:
            line = f"object {unknown.name} : Real _"
            fixes = (*fixes, Fix(f"Declare `object {unknown.name}`", (Edit(unknown.place, line, "line-before"),)))
        return Diagnostic(UNKNOWN_NAME, message, unknown.place, related, fixes)

    def _at_declaration(self, declared: str, name: str, uses: Sequence[UnknownName]) -> Diagnostic:
        places = tuple(sorted((one.place for one in uses), key=self._position))
        known = self._renamed.get(declared)
        if known is not None and known[:2] == (name, places):
            return known[2]
        message = f"nothing uses `{declared}`, but `{name}`, which nobody declares, is used {len(places)} times"
        message += f"; did you mean `{name}`?"
        fixes = (
            Fix(f"Change to `{name}`", (Edit(DeclarationSite(declared), name),), True),
            Fix(f"Change each `{name}` to `{declared}`", tuple(Edit(place, declared) for place in places)),
        )
        related = tuple(Related(f"`{name}` is used here", place) for place in places[:MOST_RELATED])
        error = Diagnostic(UNKNOWN_NAME, message, DeclarationSite(declared), related, fixes)
        self._renamed[declared] = (name, places, error)
        return error

    def _position(self, place: Origin) -> tuple[int, int]:
        return self.file.layout.range(place.unit, place.span).start


def _elsewhere(unknown: UnknownName) -> str | None:
    """Of a function among arrows, or a combinator among functions: where it is written."""
    name = unknown.name
    if unknown.wanted in ("arrow", "arrow or family") and name in BUILTINS:
        return f"`{name}` is a function of numbers and no arrow: apply it in a step, `let h = {name}(x)`"
    combinator = COMBINATORS.get(name) if unknown.wanted == "function" else None
    if combinator is not None:
        made = f"f >> {name}" if combinator.bare else combinator.call
        return f"`{name}` stands among arrows: write `let g = {made}` above the program, and `g(x)` here"
    return None


def _edits(name: str, other: str) -> int:
    return distance(name.lower(), other.lower(), len(name))


def _renamed(unknown_ones: Sequence[_Unknown], unused: Set[str]) -> dict[str, tuple[str, list[UnknownName]]]:
    """Unused declarations that are meant by several uses of one unknown name, with those uses."""
    uses: defaultdict[tuple[str, str], list[UnknownName]] = defaultdict(list)
    for one in unknown_ones:
        if one.near is not None and one.near in unused and one.near not in one.name.candidates:
            uses[one.near, one.name.name].append(one.name)
    found: dict[str, tuple[str, list[UnknownName]]] = {}
    for (declared, name), places in sorted(uses.items(), key=lambda item: (-len(item[1]), item[0])):
        if len(places) > 1:
            found.setdefault(declared, (name, places))
    return found
