"""Write the table of docs/protocol.md from the features that are registered: `python scripts/protocol.py`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "protocol.md"
BEGIN, END = "<!-- from the live capabilities -->", "<!-- end -->"

sys.path.insert(0, str(ROOT))

from lsprotocol import types  # noqa: E402
from pygls.capabilities import ServerCapabilitiesBuilder  # noqa: E402

from qvr_lsp.converter import converter  # noqa: E402
from qvr_lsp.features import server  # noqa: E402
from qvr_lsp.messages import COMMANDS, PARAMS  # noqa: E402

CLIENT = {"textDocument": {"diagnostic": {}, "rename": {"prepareSupport": True}}}
"""An editor that is told of everything."""

# pygls's own, with what they do here
BUILT_IN = {
    types.TEXT_DOCUMENT_DID_OPEN: "a text is the editor's from now on",
    types.WORKSPACE_EXECUTE_COMMAND: "see Runs",
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: "other folders",
    types.WINDOW_WORK_DONE_PROGRESS_CANCEL: "a run is ended",
}
WITHOUT_FEATURE = {
    types.TEXT_DOCUMENT_DID_CHANGE: "`textDocumentSync.change` = `2`",
    types.WORKSPACE_EXECUTE_COMMAND: "`executeCommandProvider`",
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: "`workspace.workspaceFolders.changeNotifications`",
}
"""What pygls announces whether there is a feature or not."""
ABOVE = {
    types.TEXT_DOCUMENT_PREPARE_RENAME: types.TEXT_DOCUMENT_RENAME,
    types.COMPLETION_ITEM_RESOLVE: types.TEXT_DOCUMENT_COMPLETION,
    types.WORKSPACE_DIAGNOSTIC: types.TEXT_DOCUMENT_DIAGNOSTIC,
    types.CALL_HIERARCHY_INCOMING_CALLS: types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY,
    types.CALL_HIERARCHY_OUTGOING_CALLS: types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY,
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA: types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL,
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE: types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL,
}
"""Methods that stand in the object of another."""
LIFECYCLE = (types.INITIALIZE, types.INITIALIZED)

IN_SETTINGS = (types.TEXT_DOCUMENT_DID_OPEN, types.TEXT_DOCUMENT_DID_CHANGE, types.TEXT_DOCUMENT_DID_CLOSE)
"""Also of a qvr.toml, beside the features that say so themselves."""


def capabilities(methods: set[str]) -> dict[str, Any]:
    """What pygls announces of some methods."""
    client = converter().structure(CLIENT, types.ClientCapabilities)
    options = server.protocol.fm.feature_options
    sync = types.TextDocumentSyncKind.Incremental
    return converter().unstructure(ServerCapabilitiesBuilder(client, methods, options, [], sync).build())


def announced(method: str) -> str:
    """Where a method stands among the capabilities: what is not there without it."""
    if method in PARAMS:
        return f"`experimental.{method.replace('/', '.')}`"
    if method in WITHOUT_FEATURE:
        return WITHOUT_FEATURE[method]
    above = {ABOVE[method]} if method in ABOVE else set[str]()
    found = next(difference(capabilities(above), capabilities(above | {method})), "")
    found = found or next(difference(capabilities(set()), capabilities(above)), "")
    return f"`{found}`" if found else "always"


def difference(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """The paths at which an object has something new."""
    for key, value in new.items():
        there = f"{path}{key}"
        if key not in old:
            yield there
        elif isinstance(value, dict) and isinstance(old[key], dict):
            yield from difference(old[key], value, f"{there}.")
        elif value != old[key]:
            yield there


def line_of(handler: Any) -> str:
    """The first line of a feature's documentation."""
    return (handler.func.__doc__ or "").partition("\n")[0]


def table() -> str:
    """One row per method: what it is for, how it is announced, and whether it also answers in a qvr.toml."""
    features = {name: one for name, one in server.protocol.fm.features.items() if name not in LIFECYCLE}
    rows = ["| method | what it answers or does | announced as | in qvr.toml |", "|---|---|---|---|"]
    for name in sorted({*features, *BUILT_IN}, key=lambda name: (name in PARAMS, name)):
        line = BUILT_IN[name] if name in BUILT_IN else line_of(features[name])
        settings = name in IN_SETTINGS or bool(name in features and getattr(features[name].func, "in_settings", ""))
        rows.append(f"| `{name}` | {line} | {announced(name)} | {'yes' if settings else ''} |")
    every = capabilities(set(features))
    kinds = ", ".join(f"`{getattr(name, 'value', name)}`" for name in every["codeActionProvider"]["codeActionKinds"])
    legend = every["semanticTokensProvider"]["legend"]
    rows += [
        "",
        f"Commands: {', '.join(f'`{name}`' for name in COMMANDS)}.",
        "",
        f"Kinds of code actions: {kinds}.",
        "",
        f"Semantic tokens: {', '.join(legend['tokenTypes'])}; modifiers {', '.join(legend['tokenModifiers'])}.",
    ]
    return "\n".join(rows)


def page() -> str:
    """The page with its table made anew."""
    head, _, rest = PAGE.read_text().partition(BEGIN)
    return f"{head}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page())
