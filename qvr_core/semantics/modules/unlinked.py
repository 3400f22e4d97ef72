"""A file whose imports, or whose analysis as a whole, failed: it is checked alone, and says so once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qvr_core.semantics.modules.import_table import Library
from qvr_core.semantics.modules.linking import Changes, Links
from qvr_core.semantics.types.diagnostics import Diagnostic, Origin
from qvr_core.semantics.types.internal_error import NOWHERE, failure
from qvr_core.syntax.statements import Layout
from qvr_core.syntax.tree.declarations import ImportDecl


class Unlinked(Links):
    """Stands in the place of the links of a file; what its own statements do not declare may be anything."""

    def __init__(self, own: Layout, location: str, library: Library, error: Exception) -> None:
        super().__init__(own, location, library)
        nodes = ((one.uid, one.header.unit.node) for one in own.statements)
        imports = (Origin(uid, node.path.span) for uid, node in nodes if isinstance(node, ImportDecl))
        self._failure = failure(error, next(imports, NOWHERE))

    def promises(self, name: str) -> bool:
        return True

    def diagnostics(self) -> Iterator[Diagnostic]:
        yield self._failure

    def taking(self, removed: Iterable[int], added: Iterable[int], changed: Iterable[int]) -> Changes:
        return tuple(removed), tuple(added), tuple(changed), ()

    def settle(self) -> Changes | None:
        return None

    def refresh(self) -> Changes | None:
        return None
