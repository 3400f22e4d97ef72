"""workspace/executeCommand: runs and diagrams; and the cancelling of progress."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qvr_core.analysis import Snapshot
from qvr_core.runs.record import settings
from qvr_lsp.features.diagrams import diagram, file_content, graph_of
from qvr_lsp.rpc import INVALID_PARAMS, REQUEST_FAILED, Json, RpcError
from qvr_lsp.uris import path_of, uri_of

if TYPE_CHECKING:
    from qvr_lsp.session import Session

EXPORT_FORMATS = {".svg": "svg", ".png": "png", ".mmd": "mermaid", ".dot": "dot", ".gv": "dot"}


def execute(session: Session, params: Json) -> Any:
    """Run a command with its one argument, an object."""
    command = COMMANDS.get(params["command"])
    if command is None:
        raise RpcError(INVALID_PARAMS, f"unknown command `{params['command']}`: one of {', '.join(COMMANDS)}")
    arguments = params.get("arguments") or [{}]
    argument = {"uri": arguments[0]} if isinstance(arguments[0], str) else arguments[0]
    if not isinstance(argument, dict):
        raise RpcError(INVALID_PARAMS, f"`{params['command']}` takes one object")
    return command(session, argument)


async def run(session: Session, argument: Json) -> Json:
    """`qvr.run {uri, program?, algorithm?, options?, resume?}`: start a run of the text as it stands in the editor, or
    go on with the run whose id is `resume`."""
    uri = required(argument, "uri")
    if argument.get("resume") is not None:
        return await session.runs.resume(required(argument, "resume"), run_folder(session, argument))
    document = session.documents.find(uri)
    path = path_of(uri) or Path.cwd() / "untitled.qvr"
    if document is not None:
        await document.wait_ready()
        text = document.text
    else:
        try:
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RpcError(REQUEST_FAILED, f"cannot read {path}: {error}") from error
    options = argument.get("options") or {}
    if not isinstance(options, dict):
        raise RpcError(INVALID_PARAMS, "`options` must be an object")
    if "algorithm" in argument:
        options = {**options, "algorithm": argument["algorithm"]}
    program = argument.get("program") or main_program(
        session.documents.imports.analyse(path, text) if document is None else document.snapshot
    )
    return await session.runs.start(uri=uri, path=path, text=text, program=program, options=options)


def main_program(snapshot: Snapshot) -> str | None:
    """What runs where nothing is named: the first export, else the last program."""
    return settings.main_program(snapshot.model)


async def cancel_run(session: Session, argument: Json) -> Json:
    """`qvr.cancelRun {runId}`: end it; answers when the process is gone."""
    return await session.runs.cancel(required(argument, "runId"))


def list_runs(session: Session, argument: Json) -> list[Json]:
    """`qvr.runs {uri?}`: the runs of the folder that a file belongs to, newest first."""
    return session.runs.listing(run_folder(session, argument))


def runs(session: Session, params: Json | None) -> list[Json]:
    """The request `qvr/runs`, like the command."""
    return list_runs(session, params or {})


def run_folder(session: Session, argument: Json) -> Path:
    path = path_of(argument["uri"]) if isinstance(argument.get("uri"), str) else None
    return session.workspace.root_of(path or next(iter(session.workspace.folders), Path.cwd()))


async def restart_worker(session: Session, argument: Json) -> Json:
    """`qvr.restartWorker {runId, uri?, more?}`: go on with a run from its last checkpoint, in a fresh worker,
    with so many more draws of each chain than it was asked for."""
    more = argument.get("more", 0)
    if not isinstance(more, int) or more < 0:
        raise RpcError(INVALID_PARAMS, "`more` must be a number of draws")
    return await session.runs.resume(required(argument, "runId"), run_folder(session, argument), more)


def show_diagram(session: Session, argument: Json) -> Any:
    """`qvr.diagram {uri, name?, position?, format?}`: the request qvr/diagram as a command."""
    return diagram(session, {**argument, "textDocument": {"uri": required(argument, "uri")}})


async def export_diagram(session: Session, argument: Json) -> Json:
    """`qvr.exportDiagram {uri, name?, path}`: write a diagram to a file; its suffix says as what."""
    document = session.documents.get(required(argument, "uri"))
    target = Path(required(argument, "path"))
    format_ = str(argument.get("format") or EXPORT_FORMATS.get(target.suffix))
    if format_ not in EXPORT_FORMATS.values():
        raise RpcError(INVALID_PARAMS, f"the file must end in one of {', '.join(EXPORT_FORMATS)}")
    await document.wait_ready()
    name, graph = graph_of(document, argument)
    content = await file_content(graph, format_)
    try:
        await asyncio.to_thread(target.write_bytes, content)
    except OSError as error:
        raise RpcError(REQUEST_FAILED, f"cannot write {target}: {error.strerror}") from error
    return {"name": name, "format": format_, "path": str(target), "uri": uri_of(target)}


def required(argument: Json, key: str) -> str:
    value = argument.get(key)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"`{key}` is missing")
    return value


COMMANDS: dict[str, Callable[[Session, Json], Any]] = {
    "qvr.run": run,
    "qvr.cancelRun": cancel_run,
    "qvr.runs": list_runs,
    "qvr.diagram": show_diagram,
    "qvr.exportDiagram": export_diagram,
    "qvr.restartWorker": restart_worker,
}


def cancel_progress(session: Session, params: Json) -> None:
    """window/workDoneProgress/cancel."""
    session.progress.cancel(params["token"])
