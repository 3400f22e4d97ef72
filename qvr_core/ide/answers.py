"""What the functions of this package give back: plain values, in cursors and ranges of the text."""

from __future__ import annotations

from dataclasses import dataclass

from qvr_core.ide.prose import Prose
from qvr_core.syntax.source import Cursor, Range


@dataclass(frozen=True, slots=True)
class Hover:
    """What is said about the text at `range`."""

    content: Prose
    range: Range


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace the text at `range`."""

    range: Range
    text: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A proposal.  `insert` may hold `$1`, `${1:name}`, `$0` where `snippet` is true.  Small ranks come first, of one
    rank small orders."""

    label: str
    kind: str
    detail: str = ""
    documentation: Prose = ()
    insert: str = ""
    snippet: bool = False
    rank: int = 0
    order: int = 0


@dataclass(frozen=True, slots=True)
class Signature:
    """A call's signature; `parameters` are the labels inside `label` with their documentation."""

    label: str
    documentation: Prose
    parameters: tuple[tuple[str, Prose], ...]
    active: int


@dataclass(frozen=True, slots=True)
class InlayHint:
    """`kind` is 'type', 'hole', 'pipeline', 'direction' or 'parameter'.  `edits` write the hint into the text."""

    cursor: Cursor
    text: str
    kind: str
    tooltip: str = ""
    edits: tuple[TextEdit, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentSymbol:
    """An outline entry.  `range` is the whole of it, `name_range` its name."""

    name: str
    kind: str
    detail: str
    range: Range
    name_range: Range
    children: tuple[DocumentSymbol, ...] = ()


@dataclass(frozen=True, slots=True)
class SemanticToken:
    """A coloured name on one line."""

    line: int
    column: int
    length: int
    kind: str
    modifiers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Highlight:
    """A use of the symbol under the cursor."""

    range: Range
    write: bool


@dataclass(frozen=True, slots=True)
class Action:
    """A change that a user may choose.  `code` is the diagnostic it fixes ('' for a refactoring)."""

    title: str
    kind: str
    edits: tuple[TextEdit, ...]
    preferred: bool = False
    code: str = ""
    at: Range | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One side of a call: who, and the places where the name is used."""

    symbol: DocumentSymbol
    places: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something cannot be done, in the user's words."""

    message: str
