"""What the editor can do, and what this server says it can do."""

from __future__ import annotations

from typing import Any

from qvr_core.syntax.source import Encoding
from qvr_lsp.rpc import Json
from qvr_lsp.settings import Settings

# Kept in this order: the legend's indices are what goes over the wire.
TOKEN_TYPES = (
    "type",
    "typeParameter",
    "function",
    "method",
    "class",
    "variable",
    "parameter",
    "property",
    "enumMember",
    "keyword",
    "namespace",
    "data",
)
TOKEN_MODIFIERS = (
    "declaration",
    "readonly",
    "deterministic",
    "sampled",
    "tensor",
    "latent",
    "observed",
    "defaultLibrary",
)

COMMANDS = ("qvr.run", "qvr.cancelRun", "qvr.runs", "qvr.diagram", "qvr.exportDiagram", "qvr.restartWorker")
CODE_ACTION_KINDS = (
    "quickfix",
    "refactor.extract",
    "refactor.inline",
    "refactor.rewrite",
    "source.fixAll",
    "source.organize",
)

# Which encoding is cheapest for us, where the editor leaves us the choice: ours counts code points.
ENCODINGS: tuple[Encoding, ...] = ("utf-32", "utf-8", "utf-16")


class ClientCapabilities:
    """The editor's capabilities, asked by path."""

    def __init__(self, given: Json) -> None:
        self._given = given

    def get(self, path: str, default: Any = None) -> Any:
        """The value at `a.b.c`, or `default`."""
        value: Any = self._given
        for key in path.split("."):
            if not isinstance(value, dict) or key not in value:
                return default
            value = value[key]
        return value

    def has(self, path: str) -> bool:
        """Whether it is there at all: an object counts, empty or not."""
        return self.get(path) not in (None, False)


def choose_encoding(client: ClientCapabilities) -> Encoding:
    """The position encoding of this session; utf-16 where the editor names none."""
    offered = client.get("general.positionEncodings") or ()
    for name in ENCODINGS:
        if name in offered:
            return name
    return "utf-16"


def pull_only(client: ClientCapabilities, settings: Settings) -> bool:
    """Whether the editor asks for diagnostics; if so they are not published too, or it would show each twice."""
    if not client.has("textDocument.diagnostic"):
        return False
    return settings.diagnostics_mode == "pull" or client.get("textDocument.publishDiagnostics") is None


def server_capabilities(client: ClientCapabilities, encoding: str, settings: Settings) -> Json:
    """The answer to `initialize`."""
    capabilities: Json = {
        "positionEncoding": encoding,
        "textDocumentSync": {"openClose": True, "change": 2, "save": {"includeText": False}},
        "hoverProvider": True,
        "completionProvider": {
            "triggerCharacters": [">", "~", "[", "=", ",", "(", ".", "@", ":", "-"],
            "resolveProvider": True,
        },
        "signatureHelpProvider": {"triggerCharacters": ["(", ",", "["], "retriggerCharacters": [")"]},
        "definitionProvider": True,
        "declarationProvider": True,
        "typeDefinitionProvider": True,
        "referencesProvider": True,
        "documentHighlightProvider": True,
        "documentSymbolProvider": {"label": "QVR"},
        "workspaceSymbolProvider": True,
        "codeActionProvider": {"codeActionKinds": list(CODE_ACTION_KINDS), "resolveProvider": False},
        "codeLensProvider": {"resolveProvider": False},
        "documentLinkProvider": {"resolveProvider": False},
        "documentFormattingProvider": True,
        "documentRangeFormattingProvider": True,
        "documentOnTypeFormattingProvider": {"firstTriggerCharacter": "\n"},
        "renameProvider": {"prepareProvider": True} if client.has("textDocument.rename.prepareSupport") else True,
        "foldingRangeProvider": True,
        "selectionRangeProvider": True,
        "linkedEditingRangeProvider": True,
        "callHierarchyProvider": True,
        "inlayHintProvider": {"resolveProvider": False},
        "semanticTokensProvider": {
            "legend": {"tokenTypes": list(TOKEN_TYPES), "tokenModifiers": list(TOKEN_MODIFIERS)},
            "full": {"delta": True},
            "range": True,
        },
        "executeCommandProvider": {"commands": list(COMMANDS), "workDoneProgress": True},
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
        "experimental": {"qvr": {"diagram": True, "model": True, "runs": True}},
    }
    if pull_only(client, settings):
        capabilities["diagnosticProvider"] = {
            "identifier": "qvr",
            "interFileDependencies": False,
            "workspaceDiagnostics": True,
        }
    return capabilities
