"""textDocument/completion and completionItem/resolve."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.completion.completion import complete
from qvr_core.ide.completion.imported import path_before
from qvr_core.ide.completion.offers import partial_answer
from qvr_core.ide.prose import Prose
from qvr_lsp.documents import Excerpt, View
from qvr_lsp.features.data.columns import columns_offered
from qvr_lsp.features.import_paths import paths_offered
from qvr_lsp.features.resolving import on_part
from qvr_lsp.markup import COMPLETION, markup
from qvr_lsp.rpc import Json

if TYPE_CHECKING:
    from qvr_lsp.session import Session

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


@on_part
def completion(session: Session, document: View, params: Json) -> Json:
    snippets = session.client.settings.snippets and session.client.has(
        "textDocument.completion.completionItem.snippetSupport"
    )
    path = path_before(document.snapshot, document.cursor(params["position"]))
    if path is not None:
        return {"isIncomplete": False, "items": paths_offered(session, document, path, params["position"])}
    found = complete(document.snapshot, document.cursor(params["position"]))
    found = [*columns_offered(session, document, params["position"]), *found]
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


def resolve(session: Session, params: Json) -> Json:
    match params.get("data"):
        case [int(number), str(label)]:
            text = _documentation.get(number, {}).get(label)
        case _:
            text = None
    return {**params, "documentation": markup(session.client, COMPLETION, text)} if text else params
