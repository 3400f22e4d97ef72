"""textDocument/completion and completionItem/resolve.  The list of proposals is prepared: it is long."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import attrs
from lsprotocol import types

from qvr_lsp.features.resolving import on_part
from qvr_lsp.json_values import Json
from qvr_lsp.language_server import QvrLanguageServer, server

if TYPE_CHECKING:
    from qvr_core.ide.answers import Completion
    from qvr_core.ide.prose import Prose
    from qvr_lsp.documents import View

KINDS = {
    "method": 2,
    "function": 3,
    "morphism": 3,
    "let": 3,
    "program": 3,
    "site": 6,
    "binding": 6,
    "input": 6,
    "template": 25,
    "data": 6,
    "class": 7,
    "file": 17,
    "folder": 19,
    "module": 9,
    "property": 10,
    "enum": 20,
    "keyword": 14,
    "constant": 21,
    "struct": 22,
    "object": 22,
    "type": 25,
}

# What a client that resolves gets later: the long texts of the last answers, by their numbers; one may be under way in
# a thread while others are given.
KEPT = 8
_numbers = count()
_documentation: dict[int, dict[str, Prose]] = {}


@server.feature(
    types.TEXT_DOCUMENT_COMPLETION,
    types.CompletionOptions(trigger_characters=list('>~[=,(.@:-"/'), resolve_provider=True),
)
@on_part(in_settings="settings_file:completion")
def completion(ls: QvrLanguageServer, document: View, params: types.CompletionParams) -> Json:
    """what may stand here"""
    from qvr_core.ide.completion.completion import complete
    from qvr_core.ide.completion.imported import path_before
    from qvr_core.ide.completion.offers import partial_answer
    from qvr_lsp.answers.columns import columns_of_undeclared, columns_offered
    from qvr_lsp.answers.import_paths import paths_offered
    from qvr_lsp.documents import Excerpt

    cursor = document.cursor(params.position)
    path = path_before(document.snapshot, cursor)
    if path is not None:
        return {"isIncomplete": False, "items": paths_offered(ls, document, path, params.position)}
    columns = columns_of_undeclared(ls, document, cursor)
    found = [*columns_offered(ls, document, cursor), *complete(document.snapshot, cursor, columns)]
    snippets = ls.settings.snippets and ls.has("text_document.completion.completion_item.snippet_support")
    number = next(_numbers)
    _documentation[number] = {made.label: made.documentation for made in found if made.documentation}
    _documentation.pop(number - KEPT, None)
    return {
        "isIncomplete": partial_answer(document.snapshot) or isinstance(document, Excerpt),
        "items": [item(proposal, (number, place), snippets=snippets) for place, proposal in enumerate(found)],
    }


def item(proposal: Completion, at: tuple[int, int], *, snippets: bool) -> Json:
    """A completion item, of an answer and at a place in it; its documentation waits for `resolve`."""
    number, place = at
    made: Json = {
        "label": proposal.label,
        "kind": KINDS.get(proposal.kind, 1),
        # Editors sort by this text; the rank comes first, then our order.
        "sortText": f"{proposal.rank}{place:05d}",
    }
    if proposal.detail:
        made["detail"] = proposal.detail
    if proposal.insert and (not proposal.snippet or snippets):
        made["insertText"] = proposal.insert
        made["insertTextFormat"] = 2 if proposal.snippet else 1
    if proposal.documentation:
        made["data"] = [number, proposal.label]
    return made


@server.feature(types.COMPLETION_ITEM_RESOLVE)
def resolve(ls: QvrLanguageServer, params: types.CompletionItem) -> types.CompletionItem:
    """the documentation of a proposal"""
    from qvr_lsp.answers.markup import COMPLETION, markup

    data: Any = params.data
    match data:
        case [int(number), str(label)]:
            text = _documentation.get(number, {}).get(label)
        case _:
            text = None
    return attrs.evolve(params, documentation=markup(ls, COMPLETION, text)) if text else params
