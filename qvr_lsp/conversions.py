"""Diagnostics as LSP wants them, converted once: what stays where it is is taken from the last conversion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qvr_core.syntax.source import Encoding
from qvr_lsp.positions import to_range
from qvr_lsp.rpc import Json, encoded
from qvr_lsp.uris import uri_of

if TYPE_CHECKING:
    from qvr_core.analysis import LocatedDiagnostic, Snapshot
    from qvr_lsp.client import Client

# Where the pages of the codes are: beside the sources in a checkout.
PAGES = Path(__file__).resolve().parents[1] / "docs" / "diagnostics"

UNNECESSARY = 1


@dataclass(frozen=True, slots=True)
class Converted:
    """A diagnostic as LSP wants it, as a dict and as JSON.  `lines` are those that its places are on."""

    source: LocatedDiagnostic
    lines: tuple[int, ...]
    item: Json
    encoded: str

    def is_valid_in(self, lines: Sequence[str], encoding: Encoding) -> bool:
        """Whether its columns are the same in any text in which the diagnostic is the same."""
        if encoding != "utf-32":
            for number in self.lines:
                if not lines[number].isascii():
                    return False
        return True


class Conversions:
    """What was published of a document last: a keystroke converts only what is new or has moved."""

    def __init__(self) -> None:
        self._known: dict[int, Converted] = {}

    def of(self, client: Client, uri: str, snapshot: Snapshot) -> list[Converted]:
        """Diagnostics as LSP wants them, at most `diagnostics.maximum` and then one that says so."""
        located, lines = snapshot.diagnostics(), snapshot.lines
        limit = client.settings.diagnostics_maximum
        found: list[Converted] = []
        for source in located[:limit]:
            known = self._known.get(id(source))
            if known is None or known.source is not source or not known.is_valid_in(lines, client.encoding):
                item = convert_one(client, uri, lines, source)
                ranges = (source.range, *(related.range for related in source.related))
                touched = tuple({place.line for stretch in ranges for place in stretch})
                known = Converted(source, touched, item, encoded(item))
            found.append(known)
        self._known = {id(item.source): item for item in found}
        if len(located) > limit:
            rest = count_of_rest(client, lines, located[limit:])
            found.append(Converted(located[limit], (), rest, encoded(rest)))
        return found


def count_of_rest(client: Client, lines: Sequence[str], left_out: Sequence[LocatedDiagnostic]) -> Json:
    return {
        "range": to_range(lines, left_out[0].range, client.encoding),
        "severity": 3,
        "code": "too-many-problems",
        "source": "qvr",
        "message": f"{len(left_out)} more problems are not shown",
    }


def convert(client: Client, uri: str, snapshot: Snapshot) -> list[Json]:
    """The diagnostics of a text that is not open."""
    return [item.item for item in Conversions().of(client, uri, snapshot)]


def convert_one(client: Client, uri: str, lines: Sequence[str], located: LocatedDiagnostic) -> Json:
    """One diagnostic as a dict."""
    code = located.code
    result: Json = {
        "range": to_range(lines, located.range, client.encoding),
        "severity": code.severity.value,
        "code": code.name,
        "source": "qvr",
        "message": located.message,
    }
    page = page_of(code.name)
    if page is not None:
        result["codeDescription"] = {"href": page}
    if code.unnecessary:
        result["tags"] = [UNNECESSARY]
    if located.related:
        result["relatedInformation"] = [
            {
                "location": {"uri": uri, "range": to_range(lines, related.range, client.encoding)},
                "message": related.message,
            }
            for related in located.related
        ]
    if located.fixes:
        result["data"] = {"fixes": [fix.title for fix in located.fixes]}
    return result


_pages: dict[str, str | None] = {}


def page_of(code: str) -> str | None:
    """The URI of a code's page, where there is one."""
    if code not in _pages:
        page = PAGES / f"{code}.md"
        _pages[code] = uri_of(page) if page.is_file() else None
    return _pages[code]
