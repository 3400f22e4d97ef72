"""workspace/executeCommand: runs and diagrams.

Annotations are read by pygls, so that what they name is imported here.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import attrs
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from qvr_lsp.features.diagrams import diagram
from qvr_lsp.json_values import Json
from qvr_lsp.language_server import QvrLanguageServer, server
from qvr_lsp.messages import (
    CancelRunArguments,
    DiagramParams,
    ExportDiagramArguments,
    RestartArguments,
    RunArguments,
    RunsParams,
    ShowDiagramArguments,
)
from qvr_lsp.protocol import RequestFailed
from qvr_lsp.uris import path_of, uri_of

EXPORT_FORMATS = {".svg": "svg", ".png": "png", ".mmd": "mermaid", ".dot": "dot", ".gv": "dot"}


@server.command("qvr.run")
async def run(ls: QvrLanguageServer, given: RunArguments) -> Json:
    """Start a run of the text as it stands in the editor, or go on with the run whose id is `resume`."""
    uri = given.uri
    if given.resume is not None:
        return await ls.runs.resume(given.resume, run_folder(ls, uri))
    from qvr_core.runs.record.settings import main_program

    document = ls.documents.find(uri)
    path = path_of(uri) or Path.cwd() / "untitled.qvr"
    if document is not None:
        await document.wait_ready()
        text = document.text
    else:
        try:
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RequestFailed(f"cannot read {path}: {error}") from error
    options = given.options or {}
    if given.algorithm is not None:
        options = {**options, "algorithm": given.algorithm}
    snapshot = ls.documents.imports.analyse(path, text) if document is None else document.snapshot
    program = given.program or main_program(snapshot.model)
    return await ls.runs.start(uri=uri, path=path, text=text, program=program, options=options)


@server.command("qvr.cancelRun")
async def cancel_run(ls: QvrLanguageServer, given: CancelRunArguments) -> Json:
    """End a run; answers when the process is gone."""
    return await ls.runs.cancel(given.run_id)


@server.feature("qvr/runs")
@server.command("qvr.runs")
def runs(ls: QvrLanguageServer, given: RunsParams | None) -> list[Json]:
    """the runs of a folder

    Newest first."""
    return ls.runs.listing(run_folder(ls, None if given is None else given.uri))


def run_folder(ls: QvrLanguageServer, uri: str | None) -> Path:
    path = None if uri is None else path_of(uri)
    return ls.workspace.root_of(path or next(iter(ls.workspace.paths), Path.cwd()))


@server.command("qvr.restartWorker")
async def restart_worker(ls: QvrLanguageServer, given: RestartArguments) -> Json:
    """Go on with a run from its last checkpoint, in a fresh worker, with so many more draws of each chain than it was
    asked for."""
    return await ls.runs.resume(given.run_id, run_folder(ls, given.uri), given.more)


@server.command("qvr.diagram")
def show_diagram(ls: QvrLanguageServer, given: ShowDiagramArguments) -> Any:
    """The request qvr/diagram as a command."""
    more = attrs.asdict(given, recurse=False)
    return diagram(ls, DiagramParams(text_document=types.TextDocumentIdentifier(more.pop("uri")), **more))


@server.command("qvr.exportDiagram")
async def export_diagram(ls: QvrLanguageServer, given: ExportDiagramArguments) -> Json:
    """Write a diagram to a file; its suffix says as what."""
    from qvr_lsp.answers.diagrams import file_content, graph_of

    document = ls.documents.get(given.uri)
    target = Path(given.path)
    format_ = given.format or EXPORT_FORMATS.get(target.suffix, "")
    if format_ not in EXPORT_FORMATS.values():
        raise JsonRpcInvalidParams(f"the file must end in one of {', '.join(EXPORT_FORMATS)}")
    await document.wait_ready()
    name, graph = graph_of(document, given)
    content = await file_content(graph, format_)
    try:
        await asyncio.to_thread(target.write_bytes, content)
    except OSError as error:
        raise RequestFailed(f"cannot write {target}: {error.strerror}") from error
    return {"name": name, "format": format_, "path": str(target), "uri": uri_of(target)}
