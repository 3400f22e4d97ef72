"""textDocument/semanticTokens: full, delta, range.

The tokens of a large file are made in a thread, so that other requests are answered meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from qvr_core.ide.answers import SemanticToken
from qvr_core.ide.tokens import statement_tokens, tokens
from qvr_core.syntax.source import column_to_units
from qvr_lsp.capabilities import TOKEN_MODIFIERS, TOKEN_TYPES
from qvr_lsp.documents import Document, View
from qvr_lsp.features.resolving import in_thread_if_large, on_document, on_part, run_in_thread
from qvr_lsp.rpc import Json

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_lsp.session import Session

TYPES = {name: number for number, name in enumerate(TOKEN_TYPES)}
MODIFIERS = {name: 1 << number for number, name in enumerate(TOKEN_MODIFIERS)}


@on_document
async def full(session: Session, document: Document, params: Json) -> Json:
    return answer(session, document, await _all(session, document))


async def _all(session: Session, document: Document) -> list[int]:
    snapshot = document.snapshot
    if not document.large:
        return numbers(session, snapshot)
    return await run_in_thread(lambda: numbers(session, snapshot))


def numbers(session: Session, snapshot: Snapshot) -> list[int]:
    found = [token for statement in snapshot.statements for token in statement_tokens(snapshot, statement)]
    return encoded(found, snapshot.lines, session.client.encoding)


def answer(session: Session, document: Document, data: list[int]) -> Json:
    number = int(document.tokens[0]) + 1 if document.tokens is not None else 1
    document.tokens = (str(number), data)
    return {"resultId": str(number), "data": data}


@on_document
async def delta(session: Session, document: Document, params: Json) -> Json:
    before = document.tokens
    data = await _all(session, document)
    made = answer(session, document, data)
    if before is None or before[0] != params.get("previousResultId"):
        return made
    return {"resultId": made["resultId"], "edits": difference(before[1], data)}


def difference(old: list[int], new: list[int]) -> list[Json]:
    """One edit that turns the old numbers into the new ones: what is between the common beginning and end."""
    limit = min(len(old), len(new))
    head = next((index for index in range(limit) if old[index] != new[index]), limit)
    tail = next((index for index in range(limit - head) if old[-1 - index] != new[-1 - index]), limit - head)
    if head == len(old) == len(new):
        return []
    edit: Json = {"start": head, "deleteCount": len(old) - head - tail}
    inserted = new[head : len(new) - tail]
    return [{**edit, "data": inserted} if inserted else edit]


@on_part
@in_thread_if_large
def partial(session: Session, document: View, params: Json) -> Json:
    snapshot = document.snapshot
    found = tokens(snapshot, document.stretch(params["range"]))
    return {"data": encoded(found, snapshot.lines, session.client.encoding)}


def encoded(found: list[SemanticToken], lines: Sequence[str], encoding: Any) -> list[int]:
    """Tokens as LSP's numbers, each relative to the one before."""
    data: list[int] = []
    line = column = 0
    for token in sorted(found, key=lambda token: (token.line, token.column)):
        text = lines[token.line]
        start = column_to_units(text, token.column, encoding)
        end = column_to_units(text, token.column + token.length, encoding)
        modifiers = sum(MODIFIERS[name] for name in token.modifiers)
        data += (
            token.line - line,
            start - column if token.line == line else start,
            end - start,
            TYPES[token.kind],
            modifiers,
        )
        line, column = token.line, start
    return data
