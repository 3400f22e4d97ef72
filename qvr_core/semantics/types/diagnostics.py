"""Diagnostics: what the checker says, and the catalogue of its codes."""

from __future__ import annotations

from enum import Enum

from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.names import Span


class Severity(Enum):
    """Severity with LSP's numbers."""

    ERROR = 1
    WARNING = 2
    INFORMATION = 3
    HINT = 4


@immutable
class Origin:
    """A place in the text: a span inside a unit.  It stays true while the unit merely moves."""

    unit: int
    span: Span


@immutable
class DeclarationSite:
    """A place named by what is declared there, looked up when the diagnostic is shown.

    Places in *another* declaration are always given so: that declaration may be edited without its users being
    checked again.  `part` is 'name', 'space', 'size', 'domain', 'codomain', 'option:<key>' or
    'step:<name>'.
    """

    name: str
    part: str = "name"


Place = Origin | DeclarationSite


def within(place: Place, whole: Origin) -> bool:
    """Whether a place lies in a part of the same unit."""
    if not isinstance(place, Origin) or place.unit != whole.unit:
        return False
    return whole.span.start <= place.span.start and place.span.end <= whole.span.end


@immutable
class Related:
    """Another place that a diagnostic stems from."""

    message: str
    place: Place


@immutable
class Edit:
    """Replace the text at `place` by `text`.  `where` is 'replace', 'before', 'after', or 'line-before' / 'line-after'
    (a whole new line next to the statement of `place`)."""

    place: Place
    text: str
    where: str = "replace"


@immutable
class Fix:
    """A quick fix.  A preferred fix is one that `source.fixAll` may apply."""

    title: str
    edits: tuple[Edit, ...]
    preferred: bool = False


@immutable
class Code:
    """An entry of the catalogue.  `summary` is the first line of its page in docs/diagnostics/<name>.md."""

    name: str
    severity: Severity
    summary: str
    unnecessary: bool = False


@immutable
class Diagnostic:
    """One finding at one place, with what it stems from and what would fix it."""

    code: Code
    message: str
    place: Place
    related: tuple[Related, ...] = ()
    fixes: tuple[Fix, ...] = ()
