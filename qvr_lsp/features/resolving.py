"""What handlers of one document share: wait for its first analysis, then answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar

from qvr_core.syntax.tree import Statement
from qvr_lsp.documents import Document
from qvr_lsp.rpc import REQUEST_FAILED, Json, RpcError

if TYPE_CHECKING:
    from qvr_lsp.server import Server

T = TypeVar("T")
Answer = Callable[["Server", Document, Json], Any]


# Statements that are gone through in one turn of the event loop: some ten milliseconds.
SLICE = 200


async def in_slices(statements: Sequence[Statement], each: Callable[[Statement], Iterable[T]]) -> list[T]:
    """What `each` finds in every statement.  Between the slices others are answered, and a cancelled request stops."""
    found: list[T] = []
    for number, statement in enumerate(statements):
        if number % SLICE == SLICE - 1:
            await asyncio.sleep(0)
        found += each(statement)
    return found


def on_document(answer: Answer) -> Callable[[Server, Json], Any]:
    """A handler from a function on an open, analysed document.  Answers at once where the analysis is there."""

    @wraps(answer)
    def handler(server: Server, params: Json) -> Any:
        document = server.documents.get(params["textDocument"]["uri"])
        if document.ready:
            return guarded(server, document, params)
        return later(server, document, params)

    async def later(server: Server, document: Document, params: Json) -> Any:
        await document.wait_ready()
        found = guarded(server, document, params)
        return await found if isawaitable(found) else found

    def guarded(server: Server, document: Document, params: Json) -> Any:
        try:
            return answer(server, document, params)
        except RecursionError as error:
            raise RpcError(REQUEST_FAILED, "something here is nested too deeply") from error

    return handler
