"""Where the statements of other files stand, as a snapshot keeps it."""

from __future__ import annotations

from collections.abc import Mapping

from qvr_core.semantics.file.declaration_sites import placed_site
from qvr_core.semantics.modules.linked_statement import LOW, Linked
from qvr_core.semantics.modules.linking import Links
from qvr_core.semantics.types.diagnostics import Origin, Place
from qvr_core.syntax.placing import statement_uid
from qvr_core.syntax.source import Range
from qvr_core.syntax.statements import Layout


class Elsewhere:
    """Places in other files at one moment.  Immutable."""

    def __init__(self, links: Links, owners: Mapping[str, int]) -> None:
        self._linked: Mapping[int, Linked] = links.linked
        self._layouts: dict[str, Layout] = {}
        self._owners = owners
        self._came = {uid: links.import_of(uid) for uid in self._linked}
        self._broken: dict[str, bool] = {}
        for one in self._linked.values():
            module = one.module
            if module.location not in self._layouts:
                self._layouts[module.location] = module.layout
                self._broken[module.location] = module.failure is not None

    @property
    def uids(self) -> tuple[int, ...]:
        """The statements of other files that this one uses, those of the nearest file first."""
        return tuple(self._linked)

    def home(self, uid: int) -> str | None:
        """The location of the file that a statement comes from; None for an own one."""
        found = self._linked.get(statement_uid(uid))
        return None if found is None else found.module.location

    def names(self) -> frozenset[str]:
        """What the declarations of other files are called here."""
        return frozenset(name for name, uid in self._owners.items() if uid in self._linked)

    def find(self, place: Place) -> tuple[str, Range] | None:
        """The file and the stretch of its text that a place names; None where it is no place of another file."""
        if isinstance(place, Origin):
            return self._range(place)
        uid = self._owners.get(place.name)
        one = None if uid is None else self._linked.get(uid)
        if one is None:
            return None
        found = placed_site(one.statement, place)
        return None if found is None else self._range(Origin(*found))

    def lines(self, location: str, where: Range) -> tuple[str, str]:
        """The lines of a file in which a stretch starts and ends."""
        lines = self._layouts[location].lines
        return lines[where.start.line], lines[where.end.line]

    def _range(self, origin: Origin) -> tuple[str, Range] | None:
        one = self._linked.get(statement_uid(origin.unit))
        if one is None:
            return None
        location = one.module.location
        try:
            return location, self._layouts[location].range(one.source | (origin.unit & LOW), origin.span)
        except KeyError:
            return None

    def import_of(self, place: Place) -> Origin | None:
        """The import by which the statement of a place came here; None where it has errors at home."""
        uid = statement_uid(place.unit) if isinstance(place, Origin) else self._owners.get(place.name, -1)
        one = self._linked.get(uid)
        return None if one is None or self._broken[one.module.location] else self._came[uid]
