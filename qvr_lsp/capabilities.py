"""What this server says that it can do, beside what pygls says of the features that are registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from qvr_lsp.messages import PARAMS

if TYPE_CHECKING:
    from qvr_lsp.editor import Client

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

LEGEND = types.SemanticTokensLegend(TOKEN_TYPES, TOKEN_MODIFIERS)


def pull_only(client: Client) -> bool:
    """Whether the editor asks for diagnostics; if so they are not published too, or it would show each twice."""
    if not client.has("text_document.diagnostic"):
        return False
    return client.settings.diagnostics_mode == "pull" or client.get("text_document.publish_diagnostics") is None


def announce_more(capabilities: types.ServerCapabilities, client: Client) -> None:
    """Add what pygls leaves out, and take back what this editor is not to do."""
    if not pull_only(client):
        capabilities.diagnostic_provider = None
    if capabilities.execute_command_provider is not None:
        capabilities.execute_command_provider.work_done_progress = True
    ours = {method.removeprefix("qvr/"): True for method in PARAMS if method.startswith("qvr/")}
    capabilities.experimental = {"qvr": ours}
