"""What features of one document share: wait until it is analysed, then answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial, wraps
from importlib import import_module
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified

from qvr_lsp.protocol import RequestFailed
from qvr_lsp.serialising import Encoded, encoded_in_chunks
from qvr_lsp.uris import is_settings

if TYPE_CHECKING:
    from qvr_lsp.documents import Document, View
    from qvr_lsp.language_server import QvrLanguageServer

T = TypeVar("T")
Answer = Callable[["QvrLanguageServer", Any, Any], Any]
"""Of a document that is analysed, or of some of its lines, and the parameters."""
Feature = Callable[["QvrLanguageServer", Any], Any]


def on_document(answer: Answer | None = None, *, in_settings: str = "") -> Any:
    """Decorator: a feature from a function on an open, analysed document.  Answers at once where the analysis is there.

    `in_settings`, `module:function` of `qvr_lsp.answers`, answers in a qvr.toml; without one nothing is there.
    """
    if answer is None:
        return partial(on_document, in_settings=in_settings)

    @wraps(answer)
    def feature(ls: QvrLanguageServer, params: Any) -> Any:
        uri = params.text_document.uri
        if is_settings(uri):
            module, _, name = in_settings.partition(":")
            return getattr(import_module(f"qvr_lsp.answers.{module}"), name)(ls, params) if name else None
        document = ls.documents.asked(uri)
        if document.ready:
            return call(answer, ls, document, params)
        return when_ready(answer, ls, document, params)

    feature.in_settings = in_settings  # type: ignore[attr-defined]
    return feature


def on_part(answer: Answer | None = None, *, in_settings: str = "") -> Any:
    """The same for a function that needs no more than some lines and the declarations that they mention: while the
    first analysis of a large text is under way, it is asked about these alone."""
    if answer is None:
        return partial(on_part, in_settings=in_settings)
    whole = on_document(answer, in_settings=in_settings)

    @wraps(whole)
    def feature(ls: QvrLanguageServer, params: Any) -> Any:
        if is_settings(params.text_document.uri):
            return whole(ls, params)
        document = ls.documents.asked(params.text_document.uri)
        if not document.ready:
            excerpt = document.excerpt(*lines_of(params))
            if excerpt is not None:
                return call(answer, ls, excerpt, params)
        elif document.slow_between(*lines_of(params)):
            return encoded_in_thread(answer, ls, document.frozen(), params)
        return whole(ls, params)

    return feature


def lines_of(params: Any) -> tuple[int, int]:
    """The first and the last line that a request is about."""
    if isinstance(stretch := getattr(params, "range", None), types.Range):
        places = [stretch.start, stretch.end]
    else:
        places = params.positions if hasattr(params, "positions") else [params.position]
    lines = [place.line for place in places]
    return (min(lines), max(lines)) if lines else (0, 0)


def is_about_places(params: Any) -> bool:
    """Whether parameters say where in a text something is asked."""
    return any(getattr(params, name, None) is not None for name in ("position", "positions", "range"))


def in_thread_if_large(answer: Answer) -> Answer:
    """The same answer, made in a thread where the document is large: others are answered meanwhile."""

    @wraps(answer)
    def made(ls: QvrLanguageServer, document: Any, params: Any) -> Any:
        if not document.large:
            return answer(ls, document, params)
        return encoded_in_thread(answer, ls, document.frozen(), params)

    return made


def edits_in_thread_if_large(answer: Answer) -> Answer:
    """The same for an answer of edits, which only fit the text that they were made for."""

    @wraps(answer)
    def made(ls: QvrLanguageServer, document: Document, params: Any) -> Any:
        if not document.large:
            return answer(ls, document, params)
        return edits_in_thread(answer, ls, document, params)

    return made


async def edits_in_thread(answer: Answer, ls: QvrLanguageServer, document: Document, params: Any) -> Encoded:
    edits = document.edits
    found = await encoded_in_thread(answer, ls, document.frozen(), params)
    require_unchanged(document, edits)
    return found


async def encoded_in_thread(answer: Answer, ls: QvrLanguageServer, view: View, params: Any) -> Encoded:
    """An answer, made and encoded in a thread."""
    return await run_in_thread(lambda: encoded_in_chunks(call(answer, ls, view, params)))


async def run_in_thread(work: Callable[[], T]) -> T:
    """What some work gives that is done in a thread.  A request that is cancelled does not wait for it."""
    from qvr_lsp.updates import background_work

    with background_work():
        return await asyncio.get_running_loop().run_in_executor(None, work)


async def when_ready(answer: Answer, ls: QvrLanguageServer, document: Document, params: Any) -> Any:
    edits = document.edits
    await document.wait_ready()
    if is_about_places(params):
        # It may stand elsewhere now; editors ask again.
        require_unchanged(document, edits)
    found = call(answer, ls, document, params)
    return await found if isawaitable(found) else found


def require_unchanged(document: Document, edits: int) -> None:
    """Raise `JsonRpcContentModified` where a document was changed since it had been so many times."""
    if document.edits != edits:
        raise JsonRpcContentModified("the text was edited meanwhile")


def call(answer: Answer, ls: QvrLanguageServer, document: View, params: Any) -> Any:
    try:
        return answer(ls, document, params)
    except RecursionError as error:
        raise RequestFailed("something here is nested too deeply") from error
