"""The requests that the server answers, as it has registered them."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from qvr_lsp.features import server
from qvr_lsp.messages import PARAMS


def params_by_method() -> dict[str, Any]:
    """The class of each request's parameters."""
    names = [name for name in server.protocol.fm.features if name in PARAMS or is_request(name)]
    names = [types.WORKSPACE_EXECUTE_COMMAND, *(name for name in names if name != types.INITIALIZE)]
    return {name: PARAMS.get(name) or types.METHOD_TO_TYPES[name][2] for name in names}


def is_request(method: str) -> bool:
    """Whether an editor waits for an answer."""
    return method in types.METHOD_TO_TYPES and types.METHOD_TO_TYPES[method][1] is not None
