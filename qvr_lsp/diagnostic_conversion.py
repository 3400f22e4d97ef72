"""Diagnostics as LSP wants them, converted once: what stays where it is is taken from the last conversion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_core.diagnostic_pages import page_of
from qvr_lsp.converter import converter
from qvr_lsp.json_values import Json
from qvr_lsp.serialising import encoded
from qvr_lsp.uris import uri_of, uri_of_location

if TYPE_CHECKING:
    from qvr_core.analysis import LocatedDiagnostic, Snapshot
    from qvr_core.semantics.file.placed_diagnostics import LocatedRelated
    from qvr_lsp.editor import Client

UNNECESSARY = 1


@dataclass(frozen=True, slots=True)
class Converted:
    """A diagnostic as LSP wants it, as a dict and as JSON.  `lines` are those that its places are on."""

    source: LocatedDiagnostic
    lines: tuple[int, ...]
    item: Json
    encoded: str

    def is_valid_in(self, lines: Sequence[str]) -> bool:
        """Whether its columns are the same in any text in which the diagnostic is the same."""
        return all([lines[number].isascii() for number in self.lines])


class Conversions:
    """What was published of a document last: a keystroke converts only what is new or has moved."""

    def __init__(self) -> None:
        self._known: dict[int, Converted] = {}

    def of(self, client: Client, uri: str, snapshot: Snapshot) -> list[Converted]:
        """Diagnostics as LSP wants them, at most `diagnostics.maximum` and then one that says so."""
        located, lines = snapshot.diagnostics(), snapshot.lines
        limit = client.settings.diagnostics_maximum
        found: list[Converted] = []
        plain = client.codec.units == "utf-32" or all(map(str.isascii, lines))
        for source in located[:limit]:
            known = self._known.get(id(source))
            if known is None or known.source is not source or not (plain or known.is_valid_in(lines)):
                item = convert_one(client, uri, lines, source)
                ranges = (source.range, *(related.range for related in source.related if not related.location))
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
        "range": client.codec.range_json(lines, left_out[0].range),
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
        "range": client.codec.range_json(lines, located.range),
        "severity": code.severity.value,
        "code": code.name,
        "source": "qvr",
        "message": located.message,
    }
    page = page_uri(code.name)
    if page is not None:
        result["codeDescription"] = {"href": page}
    if code.unnecessary:
        result["tags"] = [UNNECESSARY]
    if located.related:
        result["relatedInformation"] = [
            {
                "location": _place(client, uri, lines, related),
                "message": related.message,
            }
            for related in located.related
        ]
    if located.fixes:
        result["data"] = {"fixes": [fix.title for fix in located.fixes]}
    return result


def diagnostic(client: Client, uri: str, lines: Sequence[str], located: LocatedDiagnostic) -> types.Diagnostic:
    """One diagnostic as lsprotocol has it."""
    return converter().structure(convert_one(client, uri, lines, located), types.Diagnostic)


def _place(client: Client, uri: str, lines: Sequence[str], related: LocatedRelated) -> Json:
    """Where related information points: into another file, perhaps, whose columns are counted as they are."""
    if not related.location:
        return {"uri": uri, "range": client.codec.range_json(lines, related.range)}
    return {
        "uri": uri_of_location(related.location),
        "range": client.codec.range_of_lines(related.lines, related.range),
    }


@cache
def page_uri(code: str) -> str | None:
    """The URI of a code's page, where there is one."""
    page = page_of(code)
    return None if page is None else uri_of(page)
