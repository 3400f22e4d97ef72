"""textDocument/semanticTokens: full, delta, range.  The tokens of a large file are made in a thread.

Answers are prepared: five numbers for each name of a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_lsp.capabilities import LEGEND, TOKEN_MODIFIERS, TOKEN_TYPES
from qvr_lsp.features.resolving import in_thread_if_large, on_document, on_part, run_in_thread
from qvr_lsp.json_values import Json
from qvr_lsp.language_server import QvrLanguageServer, server

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_core.ide.answers import SemanticToken
    from qvr_core.syntax.source import Encoding
    from qvr_lsp.documents import Document, View

TYPES = {name: number for number, name in enumerate(TOKEN_TYPES)}
MODIFIERS = {name: 1 << number for number, name in enumerate(TOKEN_MODIFIERS)}


@server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
@on_document
async def full(ls: QvrLanguageServer, document: Document, params: types.SemanticTokensParams) -> Json:
    """what each word is"""
    return answer(document, await _all(ls, document))


async def _all(ls: QvrLanguageServer, document: Document) -> list[int]:
    snapshot, units = document.snapshot, document.codec.units
    if not document.large:
        return numbers(snapshot, units)
    return await run_in_thread(lambda: numbers(snapshot, units))


def numbers(snapshot: Snapshot, units: Encoding) -> list[int]:
    from qvr_core.ide.semantic_tokens import statement_tokens

    found = [token for statement in snapshot.statements for token in statement_tokens(snapshot, statement)]
    return encoded(found, snapshot.lines, units)


def answer(document: Document, data: list[int]) -> Json:
    number = int(document.tokens[0]) + 1 if document.tokens is not None else 1
    document.tokens = (str(number), data)
    return {"resultId": str(number), "data": data}


@server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA)
@on_document
async def delta(ls: QvrLanguageServer, document: Document, params: types.SemanticTokensDeltaParams) -> Json:
    """what has changed of that"""
    before = document.tokens
    data = await _all(ls, document)
    made = answer(document, data)
    if before is None or before[0] != params.previous_result_id:
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


@server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE)
@on_part
@in_thread_if_large
def partial(ls: QvrLanguageServer, document: View, params: types.SemanticTokensRangeParams) -> Json:
    """the same of some lines"""
    from qvr_core.ide.semantic_tokens import tokens

    snapshot = document.snapshot
    found = tokens(snapshot, document.stretch(params.range))
    return {"data": encoded(found, snapshot.lines, document.codec.units)}


def encoded(found: list[SemanticToken], lines: Sequence[str], units: Encoding) -> list[int]:
    """Tokens as LSP's numbers, each relative to the one before."""
    from qvr_core.syntax.source import column_to_units

    data: list[int] = []
    line = column = 0
    for token in sorted(found, key=lambda token: (token.line, token.column)):
        text = lines[token.line]
        start = column_to_units(text, token.column, units)
        end = column_to_units(text, token.column + token.length, units)
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
