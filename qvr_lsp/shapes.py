"""What the parameters of each method look like: the one place where a wrong type becomes `InvalidParams`.

A shape is a type, a tuple of shapes (any of them), a list of one shape (a list of such), or a dict of key -> shape; a
key that ends in `?` may be missing or null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qvr_lsp.rpc import INVALID_PARAMS, RpcError

POSITION = {"line": int, "character": int}
RANGE = {"start": POSITION, "end": POSITION}
IDENTITY = {"uri": str}
DOCUMENT = {"textDocument": IDENTITY}
PLACE = {**DOCUMENT, "position": POSITION}
STRETCH = {**DOCUMENT, "range": RANGE}
VERSION = (int, type(None))
ITEM = {"item": {"uri": str, "name": str}}

SHAPES: Mapping[str, Any] = {
    "textDocument/didOpen": {"textDocument": {"uri": str, "text": str, "version?": VERSION}},
    "textDocument/didChange": {
        "textDocument": {"uri": str, "version?": VERSION},
        "contentChanges": [{"text": str, "range?": RANGE}],
    },
    "textDocument/didClose": DOCUMENT,
    "textDocument/didSave": DOCUMENT,
    "textDocument/diagnostic": {**DOCUMENT, "previousResultId?": str},
    "workspace/diagnostic": {"previousResultIds?": [{"uri": str, "value": str}]},
    "textDocument/hover": PLACE,
    "textDocument/completion": PLACE,
    "completionItem/resolve": {},
    "textDocument/signatureHelp": PLACE,
    "textDocument/inlayHint": STRETCH,
    "textDocument/semanticTokens/full": DOCUMENT,
    "textDocument/semanticTokens/full/delta": {**DOCUMENT, "previousResultId?": str},
    "textDocument/semanticTokens/range": STRETCH,
    "textDocument/codeLens": DOCUMENT,
    "textDocument/definition": PLACE,
    "textDocument/declaration": PLACE,
    "textDocument/typeDefinition": PLACE,
    "textDocument/references": {**PLACE, "context?": {"includeDeclaration?": bool}},
    "textDocument/documentHighlight": PLACE,
    "textDocument/documentSymbol": DOCUMENT,
    "workspace/symbol": {"query?": str},
    "textDocument/prepareCallHierarchy": PLACE,
    "callHierarchy/incomingCalls": ITEM,
    "callHierarchy/outgoingCalls": ITEM,
    "textDocument/documentLink": DOCUMENT,
    "textDocument/rename": {**PLACE, "newName": str},
    "textDocument/prepareRename": PLACE,
    "textDocument/codeAction": {**STRETCH, "context?": {"only?": [str]}},
    "textDocument/formatting": DOCUMENT,
    "textDocument/rangeFormatting": STRETCH,
    "textDocument/onTypeFormatting": PLACE,
    "textDocument/linkedEditingRange": PLACE,
    "textDocument/foldingRange": DOCUMENT,
    "textDocument/selectionRange": {**DOCUMENT, "positions": [POSITION]},
    "workspace/executeCommand": {"command": str, "arguments?": list},
    "workspace/didChangeConfiguration": {},
    "workspace/didChangeWatchedFiles": {"changes": [IDENTITY]},
    "workspace/didChangeWorkspaceFolders": {"event": {"added": [IDENTITY], "removed": [IDENTITY]}},
    "window/workDoneProgress/cancel": {"token": (str, int)},
    "qvr/diagram": {
        **DOCUMENT, "position?": POSITION, "name?": str, "format?": str, "collapse?": bool, "opened?": [str],
    },
    "qvr/model": DOCUMENT,
    "qvr/runs": ({"uri?": str}, type(None)),
    "qvr/status": (dict, type(None)),
}  # fmt: skip


def require(method: str, params: Any) -> None:
    """Raise `InvalidParams`, with the place that is wrong, where parameters do not have their method's shape."""
    wrong = misfit(params, SHAPES[method], "")
    if wrong is not None:
        raise RpcError(INVALID_PARAMS, f"`{method}`: {wrong}")


def misfit(value: Any, shape: Any, place: str) -> str | None:
    """What is wrong with a value, in words; None where it has the shape."""
    match shape:
        case tuple():
            found = [misfit(value, each, place) for each in shape]
            return None if None in found else found[0]
        case list():
            if not isinstance(value, list):
                return f"{place or 'the parameters'} must be a list"
            return next((w for n, one in enumerate(value) if (w := misfit(one, shape[0], f"{place}[{n}]"))), None)
        case dict():
            return _object_misfit(value, shape, place)
        case _:
            # to Python, true is a number
            good = isinstance(value, shape) and (shape is not int or not isinstance(value, bool))
            return None if good else f"{place or 'the parameters'} must be {WORDS[shape]}"


WORDS = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def _object_misfit(value: Any, shape: Mapping[str, Any], place: str) -> str | None:
    if not isinstance(value, dict):
        return f"{place or 'the parameters'} must be an object"
    for key, inner in shape.items():
        name = key.removesuffix("?")
        held = value.get(name)
        path = f"{place}.{name}" if place else name
        if held is None and key.endswith("?"):
            continue
        if name not in value:
            return f"{path} is missing"
        if (wrong := misfit(held, inner, path)) is not None:
            return wrong
    return None
