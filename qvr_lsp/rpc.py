"""JSON-RPC as features see it: plain dicts, and errors with the protocol's codes."""

from __future__ import annotations

import json
import math
from typing import Any

Json = dict[str, Any]

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
SERVER_NOT_INITIALIZED = -32002
REQUEST_FAILED, CONTENT_MODIFIED, REQUEST_CANCELLED = -32803, -32801, -32800


class RpcError(Exception):
    """An error response that the protocol calls for."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Received(dict[str, Any]):
    """An object from the peer: a key that is missing where it is wanted is the peer's error, not ours."""

    def __missing__(self, key: str) -> Any:
        raise RpcError(INVALID_PARAMS, f"`{key}` is missing")


class Encoded(str):
    """An answer that is JSON already."""


def encoded(message: Any) -> str:
    """JSON, escaped to ASCII, so that lone surrogates pass; NaN, unknown to JSON, is null."""
    try:
        return json.dumps(message, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(without_nan(message), separators=(",", ":"))


def without_nan(value: Any) -> Any:
    """The value with every NaN and infinity replaced by None."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: without_nan(item) for key, item in value.items()}
        case list() | tuple():
            return [without_nan(item) for item in value]
        case _:
            return value


# Numbers or words of a list that are encoded at once, and the depth below which everything is.
CHUNK, MOST_DEPTH = 2000, 12


def encoded_in_chunks(value: Any, depth: int = 0) -> Encoded:
    """The same as `encoded`, for a thread: encoding one large value would hold the interpreter all the while.
    Parts of a dict may be encoded already."""
    if isinstance(value, Encoded):
        return value
    if depth < MOST_DEPTH:
        match value:
            case dict() if any(isinstance(item, dict | list | tuple | Encoded) for item in value.values()):
                inner = (f"{encoded(str(key))}:{encoded_in_chunks(item, depth + 1)}" for key, item in value.items())
                return Encoded(f"{{{','.join(inner)}}}")
            case [dict() | list() | tuple(), *_]:
                return Encoded(f"[{','.join(encoded_in_chunks(item, depth + 1) for item in value)}]")
            case list() if len(value) > CHUNK:
                parts = (value[start : start + CHUNK] for start in range(0, len(value), CHUNK))
                return Encoded(f"[{','.join(encoded(part)[1:-1] for part in parts)}]")
            case _:
                pass
    return Encoded(encoded(value))
