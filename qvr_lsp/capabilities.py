"""What the editor can do, and what this server says it can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qvr_core.syntax.source import Encoding
from qvr_lsp.methods import METHODS
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

LEGEND = {"tokenTypes": list(TOKEN_TYPES), "tokenModifiers": list(TOKEN_MODIFIERS)}

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
    """The answer to `initialize`: what each method announces, and what belongs to no single one."""
    capabilities: Json = {
        "positionEncoding": encoding,
        "semanticTokensProvider": {"legend": LEGEND},
        "workspace": {"workspaceFolders": {"supported": True}},
    }
    for method in METHODS.values():
        if method.capability and UNDER.get(method.name, always)(client, settings):
            announce(capabilities, method.capability.split("."), method.value)
    return capabilities


def always(client: ClientCapabilities, settings: Settings) -> bool:
    return True


def prepares(client: ClientCapabilities, settings: Settings) -> bool:
    return client.has("textDocument.rename.prepareSupport")


# Methods that are announced to some editors only; they are answered to all.
UNDER: dict[str, Callable[[ClientCapabilities, Settings], bool]] = {
    "textDocument/diagnostic": pull_only,
    "workspace/diagnostic": pull_only,
    "textDocument/prepareRename": prepares,
}


def announce(capabilities: Json, path: list[str], value: Any) -> None:
    """Put a value at a path; an object is added to what stands there, and stands for true."""
    *above, last = path
    for key in above:
        held = capabilities.get(key)
        capabilities[key] = held if isinstance(held, dict) else {}
        capabilities = capabilities[key]
    held = capabilities.get(last)
    capabilities[last] = {**held, **value} if isinstance(held, dict) and isinstance(value, dict) else value
