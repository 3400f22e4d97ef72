"""The diagram of one let, program or morphism of an open file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcInvalidParams

from qvr_core.diagrams import NoDiagram, NoDot, build, drawable, main_name, to_dot, to_json, to_mermaid, to_png, to_svg
from qvr_core.ide.outline_and_folding import drawable_at
from qvr_core.semantics.types.diagnostics import Severity
from qvr_lsp.documents import Document, View
from qvr_lsp.features.resolving import call, run_in_thread
from qvr_lsp.json_values import Json
from qvr_lsp.messages import DiagramParams, ExportDiagramArguments
from qvr_lsp.protocol import RequestFailed
from qvr_lsp.uris import uri_of_location

if TYPE_CHECKING:
    from qvr_core.semantics.types.diagnostics import Origin
    from qvr_lsp.language_server import QvrLanguageServer

FORMATS = ("graph", "mermaid", "dot", "svg")


async def diagram_of(ls: QvrLanguageServer, document: Document, params: DiagramParams) -> Json:
    """The diagram by name, of what stands at `position`, or of the file's first export."""
    if params.format not in FORMATS:
        raise JsonRpcInvalidParams(f"unknown format `{params.format}`: one of {', '.join(FORMATS)}")
    # the addresses of open files, as their editor writes them
    opened = {each.location: each.uri for each in ls.documents}

    def answer(_: QvrLanguageServer, view: View, given: DiagramParams) -> tuple[Any, Json]:
        return graph_answer(view, given, opened)

    view = document.frozen()
    return await answer_in_thread(lambda: call(answer, ls, view, params))


async def answer_in_thread(make: Callable[[], tuple[Any, Json]]) -> Json:
    """The answer, made in a thread; SVG by the program `dot`, for which another one only waits."""
    graph, answer = await run_in_thread(make)
    if answer["format"] == "graph":
        return answer
    if answer["format"] != "svg":
        return {**answer, "text": answer[answer["format"]]}
    try:
        return {**answer, "text": await asyncio.to_thread(to_svg, graph)}
    except NoDot as error:
        raise RequestFailed(str(error)) from error


def graph_answer(document: View, params: DiagramParams, opened: Mapping[str, str]) -> tuple[Any, Json]:
    """The graph, and what is said of it in every format."""
    _, graph = graph_of(document, params, fold=params.format == "graph", opened=tuple(params.opened or ()))
    snapshot = document.snapshot
    answer: Json = {
        **to_json(graph, lambda origin: range_of(document, origin), lambda origin: home_of(document, origin, opened)),
        "format": params.format,
        "version": document.version,
        "names": drawable(snapshot.model),
        "stale": any(item.code.severity is Severity.ERROR for item in snapshot.diagnostics()),
    }
    return graph, answer


async def file_content(graph: Any, format_: str) -> bytes:
    """A diagram as the content of a file."""
    match format_:
        case "mermaid":
            return to_mermaid(graph).encode()
        case "dot":
            return to_dot(graph).encode()
        case _:
            try:
                return (
                    await asyncio.to_thread(to_png, graph)
                    if format_ == "png"
                    else (await asyncio.to_thread(to_svg, graph)).encode()
                )
            except NoDot as error:
                raise RequestFailed(str(error)) from error


def graph_of(
    document: View, params: DiagramParams | ExportDiagramArguments, *, fold: bool = False, opened: tuple[str, ...] = ()
) -> tuple[str, Any]:
    """The name that is drawn and its graph.  `fold` where chains may be: who asks for text or a picture cannot open
    them."""
    snapshot, name = document.snapshot, params.name
    if name is None and params.position is not None:
        name = drawable_at(snapshot, document.cursor(params.position))
    try:
        name = name if name is not None else main_name(snapshot.model)
        collapse = params.collapse
        graph = build(snapshot, name, collapse=collapse, opened=opened, fold=collapse and fold)
    except NoDiagram as error:
        raise RequestFailed(str(error)) from error
    return name, graph


def range_of(document: View, origin: Origin) -> Json | None:
    """Where a node stands in the text; None where that is gone."""
    found = document.snapshot.find(origin)
    return document.range_json(found) if found is not None else None


def home_of(document: View, origin: Origin, opened: Mapping[str, str]) -> Json | None:
    """Where a node stands in the text of another file; None where it is of this one."""
    others = document.snapshot.elsewhere
    found = None if others is None else others.find(origin)
    if others is None or found is None:
        return None
    location, stretch = found
    uri = opened.get(location) or uri_of_location(location)
    return {"uri": uri, "range": document.codec.range_of_lines(others.lines(location, stretch), stretch)}
