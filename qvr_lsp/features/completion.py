"""textDocument/completion and completionItem/resolve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.ide.answers import Completion
from qvr_core.ide.completion.completion import complete
from qvr_core.ide.completion.offers import partial_answer
from qvr_lsp.documents import Excerpt, View
from qvr_lsp.features.resolving import on_part
from qvr_lsp.rpc import Json

if TYPE_CHECKING:
    from qvr_lsp.server import Server

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
    "module": 9,
    "property": 10,
    "enum": 20,
    "keyword": 14,
    "constant": 21,
    "struct": 22,
    "object": 22,
    "type": 25,
}

# What a client that resolves gets later: the long texts.
_documentation: dict[str, str] = {}


@on_part
def completion(server: Server, document: View, params: Json) -> Json:
    snippets = server.settings.snippets and server.client.has("textDocument.completion.completionItem.snippetSupport")
    found = complete(document.snapshot, document.cursor(params["position"]))
    _documentation.clear()
    return {
        "isIncomplete": partial_answer(document.snapshot) or isinstance(document, Excerpt),
        "items": [item(proposal, number, snippets=snippets) for number, proposal in enumerate(found)],
    }


def item(proposal: Completion, number: int, *, snippets: bool) -> Json:
    """A completion item; its documentation waits for `resolve`."""
    made: Json = {
        "label": proposal.label,
        "kind": KINDS.get(proposal.kind, 1),
        # Editors sort by this text; the rank comes first, then our order.
        "sortText": f"{proposal.rank}{number:05d}",
    }
    if proposal.detail:
        made["detail"] = proposal.detail
    if proposal.insert and (not proposal.snippet or snippets):
        made["insertText"] = proposal.insert
        made["insertTextFormat"] = 2 if proposal.snippet else 1
    if proposal.documentation:
        _documentation[proposal.label] = proposal.documentation
        made["data"] = proposal.label
    return made


def resolve(server: Server, params: Json) -> Json:
    text = _documentation.get(str(params.get("data", "")))
    return {**params, "documentation": {"kind": "markdown", "value": text}} if text else params
