"""publishDiagnostics, and pulled diagnostics of a document and of the workspace.

Diagnostics are converted to plain dicts once: what merely moves or stays is taken from the last conversion.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qvr_core.syntax.source import Range
from qvr_lsp.capabilities import pull_only
from qvr_lsp.documents import Document
from qvr_lsp.features.resolving import on_document
from qvr_lsp.positions import to_range
from qvr_lsp.rpc import Json
from qvr_lsp.uris import uri_of

if TYPE_CHECKING:
    from qvr_core.analysis import LocatedDiagnostic, Snapshot
    from qvr_lsp.server import Server

# Where the pages of the codes are: beside the sources in a checkout.
PAGES = Path(__file__).resolve().parents[2] / "docs" / "diagnostics"

UNNECESSARY = 1


def publish(server: Server, document: Document) -> None:
    """Send the diagnostics of a document's current text, unless the editor pulls them."""
    if pull_only(server.client, server.settings):
        return
    params: Json = {"uri": document.uri, "diagnostics": items(server, document)}
    if document.version is not None:
        params["version"] = document.version
    server.connection.notify("textDocument/publishDiagnostics", params)


def items(server: Server, document: Document) -> list[Json]:
    """The diagnostics of an open document, failures of runs included."""
    found = convert(server, document.uri, document.snapshot)
    return [*found, *failures(server, document)]


def convert(server: Server, uri: str, snapshot: Snapshot) -> list[Json]:
    """Diagnostics as LSP wants them, at most `diagnostics.maximum` and then one that says so."""
    located = snapshot.diagnostics()
    limit = server.settings.diagnostics_maximum
    lines = snapshot.lines
    found = [one(server, uri, lines, item) for item in located[:limit]]
    if len(located) > limit:
        found.append(
            {
                "range": to_range(lines, located[limit].range, server.encoding),
                "severity": 3,
                "code": "too-many-problems",
                "source": "qvr",
                "message": f"{len(located) - limit} more problems are not shown",
            }
        )
    return found


def one(server: Server, uri: str, lines: Sequence[str], located: LocatedDiagnostic) -> Json:
    """One diagnostic as a dict."""
    code = located.code
    result: Json = {
        "range": to_range(lines, located.range, server.encoding),
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
                "location": {"uri": uri, "range": to_range(lines, related.range, server.encoding)},
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


def failures(server: Server, document: Document) -> list[Json]:
    """The last failed run of a document on its line, as long as the text is the one that failed."""
    held = server.failures.get(document.uri)
    if held is None or held[1].range is None or held[0] != document.text:
        return []
    failed = held[1]
    assert failed.range is not None
    utf16 = failed.range.model_dump()
    lines = document.lines
    from qvr_lsp.positions import from_range

    stretch: Range = from_range(lines, utf16, "utf-16")
    return [
        {
            "range": to_range(lines, stretch, server.encoding),
            "severity": 1,
            "code": failed.code,
            "source": "qvr run",
            "message": failed.message,
        }
    ]


# ---------------------------------------------------------------- pulled


@on_document
def document_diagnostic(server: Server, document: Document, params: Json) -> Json:
    """textDocument/diagnostic."""
    return report(items(server, document), params.get("previousResultId"))


def report(found: list[Json], previous: Any) -> Json:
    """A full report, or 'unchanged' where it is what the editor has."""
    identity = hashlib.blake2b(repr(found).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    if previous == identity:
        return {"kind": "unchanged", "resultId": identity}
    return {"kind": "full", "resultId": identity, "items": found}


async def workspace_diagnostic(server: Server, params: Json) -> Json:
    """workspace/diagnostic: every file of the folders, the open ones as they stand in the editor."""
    known = {item["uri"]: item["value"] for item in params.get("previousResultIds") or ()}
    reports: list[Json] = []
    for document in list(server.documents):
        await document.wait_ready()
        result = report(items(server, document), known.get(document.uri))
        reports.append({**result, "uri": document.uri, "version": document.version})
    for path in list(server.workspace.closed_files()):
        # A turn of the loop per file: others are answered meanwhile, and a cancelled request stops here.
        await asyncio.sleep(0)
        snapshot = server.workspace.closed_snapshot(path)
        if snapshot is not None:
            uri = uri_of(path)
            reports.append({**report(convert(server, uri, snapshot), known.get(uri)), "uri": uri, "version": None})
    return {"items": reports}
