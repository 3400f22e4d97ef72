"""publishDiagnostics, and pulled diagnostics of a document and of the workspace."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any

from qvr_core.syntax.source import Range
from qvr_lsp.capabilities import pull_only
from qvr_lsp.conversions import convert
from qvr_lsp.documents import Document
from qvr_lsp.features.resolving import on_document, run_in_thread
from qvr_lsp.positions import from_range, to_range
from qvr_lsp.rpc import Json, encoded
from qvr_lsp.uris import uri_of

if TYPE_CHECKING:
    from qvr_lsp.session import Session


def publish(session: Session, document: Document) -> None:
    """Send the diagnostics of a document's current text, unless the editor pulls them."""
    session.data_checks.follow(document)
    session.fits.follow(document)
    if pull_only(session.client.capabilities, session.client.settings):
        return
    converted = document.conversions.of(session.client, document.uri, document.snapshot)
    more = [*session.data_checks.items(document), *session.fits.items(document), *failures(session, document)]
    shown = [*(item.encoded for item in converted), *map(encoded, more)]
    version = f',"version":{document.version}' if document.version is not None else ""
    params = f'{{"uri":{encoded(document.uri)},"diagnostics":[{",".join(shown)}]{version}}}'
    session.client.notify_encoded("textDocument/publishDiagnostics", params)


def items(session: Session, document: Document) -> list[Json]:
    """The diagnostics of an open document, those of its data and failures of runs included."""
    session.data_checks.follow(document)
    session.fits.follow(document)
    found = document.conversions.of(session.client, document.uri, document.snapshot)
    more = [*session.data_checks.items(document), *session.fits.items(document), *failures(session, document)]
    return [*(item.item for item in found), *more]


def failures(session: Session, document: Document) -> list[Json]:
    """The last failed run of a document on its line, as long as the text is the one that failed."""
    held = session.documents.failures.get(document.uri)
    if held is None or held[1].range is None or held[0] != document.text:
        return []
    failed = held[1]
    assert failed.range is not None
    utf16 = failed.range.model_dump()
    lines = document.lines
    stretch: Range = from_range(lines, utf16, "utf-16")
    return [
        {
            "range": to_range(lines, stretch, session.client.encoding),
            "severity": 1,
            "code": failed.code,
            "source": "qvr run",
            "message": failed.message,
        }
    ]


# ---------------------------------------------------------------- pulled


@on_document
def document_diagnostic(session: Session, document: Document, params: Json) -> Json:
    """textDocument/diagnostic."""
    return report(items(session, document), params.get("previousResultId"))


def report(found: list[Json], previous: Any) -> Json:
    """A full report, or 'unchanged' where it is what the editor has."""
    identity = hashlib.blake2b(repr(found).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    if previous == identity:
        return {"kind": "unchanged", "resultId": identity}
    return {"kind": "full", "resultId": identity, "items": found}


async def workspace_diagnostic(session: Session, params: Json) -> Json:
    """workspace/diagnostic: every file of the folders, the open ones as they stand in the editor."""
    known = {item["uri"]: item["value"] for item in params.get("previousResultIds") or ()}
    reports: list[Json] = []
    for document in list(session.documents):
        await document.wait_ready()
        result = report(items(session, document), known.get(document.uri))
        reports.append({**result, "uri": document.uri, "version": document.version})
    for path in list(session.workspace.closed_files()):
        snapshot = await run_in_thread(partial(session.workspace.closed_snapshot, path))
        if snapshot is not None:
            uri = uri_of(path)
            reports.append(
                {**report(convert(session.client, uri, snapshot), known.get(uri)), "uri": uri, "version": None}
            )
    return {"items": reports}
