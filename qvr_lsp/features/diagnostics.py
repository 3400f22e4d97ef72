"""publishDiagnostics, and pulled diagnostics of a document and of the workspace.  They are prepared, each once."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_lsp.capabilities import pull_only
from qvr_lsp.features.resolving import on_document, run_in_thread
from qvr_lsp.json_values import Json
from qvr_lsp.language_server import QvrLanguageServer, server
from qvr_lsp.loading import AFTER_FILE, Loading
from qvr_lsp.serialising import Encoded, encoded
from qvr_lsp.uris import uri_of

if TYPE_CHECKING:
    from qvr_lsp.documents import Document
    from qvr_lsp.workspace import SettingsDocument


@server.shows("document")
def publish(ls: QvrLanguageServer, document: Document) -> None:
    """Send the diagnostics of a document's current text, unless the editor pulls them."""
    Loading.soon(ls, AFTER_FILE)
    ls.data_checks.follow(document)
    ls.fits.follow(document)
    ls.live.follow(document)
    if pull_only(ls):
        return
    converted = document.conversions.of(ls, document.uri, document.snapshot)
    shown = [*(item.encoded for item in converted), *map(encoded, beside(ls, document))]
    version = f',"version":{document.version}' if document.version is not None else ""
    params = f'{{"uri":{encoded(document.uri)},"diagnostics":[{",".join(shown)}]{version}}}'
    ls.protocol.notify(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, Encoded(params))


@server.shows("settings")
def publish_settings(ls: QvrLanguageServer, document: SettingsDocument) -> None:
    """The problems of an open qvr.toml."""
    from qvr_lsp.answers.settings_problems import problems

    found = [problem.diagnostic for problem in problems(ls, document)]
    ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(document.uri, found, document.version))
    ls.data_checks.ask_all()
    ls.live.again_all()


def items(ls: QvrLanguageServer, document: Document) -> list[Json]:
    """The diagnostics of an open document, those of its data and failures of runs included."""
    ls.data_checks.follow(document)
    ls.fits.follow(document)
    ls.live.follow(document)
    found = document.conversions.of(ls, document.uri, document.snapshot)
    return [*(item.item for item in found), *beside(ls, document)]


def beside(ls: QvrLanguageServer, document: Document) -> list[Json]:
    """What is wrong beside the text: with its data, its fits, its last run."""
    return [*ls.data_checks.items(document), *ls.fits.items(document), *failures(ls, document)]


def failures(ls: QvrLanguageServer, document: Document) -> list[Json]:
    """The last failed run of a document on its line, as long as the text is the one that failed."""
    held = ls.documents.failures.get(document.uri)
    if held is None or held[1].range is None or held[0] != document.text:
        return []
    from qvr_lsp.positions import LineCodec, range_from_json

    failed = held[1]
    assert failed.range is not None
    stretch = LineCodec().stretch(document.lines, range_from_json(failed.range.model_dump()))
    return [
        {
            "range": document.range_json(stretch),
            "severity": 1,
            "code": failed.code,
            "source": "qvr run",
            "message": failed.message,
        }
    ]


# ---------------------------------------------------------------- pulled


@server.feature(
    types.TEXT_DOCUMENT_DIAGNOSTIC,
    types.DiagnosticOptions(identifier="qvr", inter_file_dependencies=True, workspace_diagnostics=True),
)
@on_document
def document_diagnostic(ls: QvrLanguageServer, document: Document, params: types.DocumentDiagnosticParams) -> Json:
    """the diagnostics of a text"""
    return report(items(ls, document), params.previous_result_id)


def report(found: list[Json], previous: str | None) -> Json:
    """A full report, or 'unchanged' where it is what the editor has."""
    identity = hashlib.blake2b(repr(found).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    if previous == identity:
        return {"kind": "unchanged", "resultId": identity}
    return {"kind": "full", "resultId": identity, "items": found}


@server.feature(types.WORKSPACE_DIAGNOSTIC)
async def workspace_diagnostic(ls: QvrLanguageServer, params: types.WorkspaceDiagnosticParams) -> Json:
    """those of every file of the folders

    The open ones as they stand in the editor."""
    from qvr_lsp.diagnostic_conversion import convert

    known = {item.uri: item.value for item in params.previous_result_ids}
    reports: list[Json] = []
    for document in list(ls.documents):
        await document.wait_ready()
        result = report(items(ls, document), known.get(document.uri))
        reports.append({**result, "uri": document.uri, "version": document.version})
    for path in list(ls.workspace.closed_files()):
        snapshot = await run_in_thread(partial(ls.workspace.closed_snapshot, path))
        if snapshot is not None:
            uri = uri_of(path)
            found = report(convert(ls, uri, snapshot), known.get(uri))
            reports.append({**found, "uri": uri, "version": None})
    return {"items": reports}
