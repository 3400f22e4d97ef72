"""What handlers of one document share: wait until it is analysed, then answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import wraps
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar

from qvr_lsp.documents import Document, View
from qvr_lsp.positions import number
from qvr_lsp.rpc import CONTENT_MODIFIED, REQUEST_FAILED, Encoded, Json, RpcError, encoded_in_chunks
from qvr_lsp.updates import background_work

if TYPE_CHECKING:
    from qvr_lsp.session import Session

T = TypeVar("T")
Answer = Callable[["Session", Any, Json], Any]
Handler = Callable[["Session", Json], Any]

# Parameters that say where in a text something is asked.
PLACES = ("position", "positions", "range")


def on_document(answer: Answer) -> Handler:
    """A handler from a function on an open, analysed document.  Answers at once where the analysis is there."""

    @wraps(answer)
    def handler(session: Session, params: Json) -> Any:
        document = session.documents.asked(params["textDocument"]["uri"])
        if document.ready:
            return call(answer, session, document, params)
        return when_ready(answer, session, document, params)

    return handler


def on_part(answer: Answer) -> Handler:
    """The same for a function that needs no more than some lines and the declarations that they mention: while the
    first analysis of a large text is under way, it is asked about these alone."""
    whole = on_document(answer)

    @wraps(answer)
    def handler(session: Session, params: Json) -> Any:
        document = session.documents.asked(params["textDocument"]["uri"])
        if not document.ready:
            excerpt = document.excerpt(*lines_of(params))
            if excerpt is not None:
                return call(answer, session, excerpt, params)
        elif document.slow_between(*lines_of(params)):
            return encoded_in_thread(answer, session, document.frozen(), params)
        return whole(session, params)

    return handler


def lines_of(params: Json) -> tuple[int, int]:
    """The first and the last line that a request is about."""
    stretch = params.get("range")
    if isinstance(stretch, dict):
        places = [stretch["start"], stretch["end"]]
    else:
        places = params["positions"] if "positions" in params else [params["position"]]
    lines = [number(place, "line") for place in places]
    return (min(lines), max(lines)) if lines else (0, 0)


def in_thread_if_large(answer: Answer) -> Answer:
    """The same answer, made in a thread where the document is large: others are answered meanwhile."""

    @wraps(answer)
    def made(session: Session, document: View, params: Json) -> Any:
        if not isinstance(document, Document) or not document.large:
            return answer(session, document, params)
        return encoded_in_thread(answer, session, document.frozen(), params)

    return made


def edits_in_thread_if_large(answer: Answer) -> Answer:
    """The same for an answer of edits, which only fit the text that they were made for."""

    @wraps(answer)
    def made(session: Session, document: Document, params: Json) -> Any:
        if not document.large:
            return answer(session, document, params)
        return edits_in_thread(answer, session, document, params)

    return made


async def edits_in_thread(answer: Answer, session: Session, document: Document, params: Json) -> Encoded:
    edits = document.edits
    found = await encoded_in_thread(answer, session, document.frozen(), params)
    require_unchanged(document, edits)
    return found


async def encoded_in_thread(answer: Answer, session: Session, view: View, params: Json) -> Encoded:
    """An answer, made and encoded in a thread."""
    return await run_in_thread(lambda: encoded_in_chunks(call(answer, session, view, params)))


async def run_in_thread(work: Callable[[], T]) -> T:
    """What some work gives that is done in a thread.  A request that is cancelled does not wait for it."""
    with background_work():
        return await asyncio.get_running_loop().run_in_executor(None, work)


async def when_ready(answer: Answer, session: Session, document: Document, params: Json) -> Any:
    edits = document.edits
    await document.wait_ready()
    if any(params.get(name) is not None for name in PLACES):
        # It may stand elsewhere now; editors ask again.
        require_unchanged(document, edits)
    found = call(answer, session, document, params)
    return await found if isawaitable(found) else found


def require_unchanged(document: Document, edits: int) -> None:
    """Raise ContentModified where a document was changed since it had been so many times."""
    if document.edits != edits:
        raise RpcError(CONTENT_MODIFIED, "the text was edited meanwhile")


def call(answer: Answer, session: Session, document: View, params: Json) -> Any:
    try:
        return answer(session, document, params)
    except RecursionError as error:
        raise RpcError(REQUEST_FAILED, "something here is nested too deeply") from error
