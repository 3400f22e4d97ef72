"""Answers as JSON: prepared ones go out as they are, values of lsprotocol's types by their converter."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from qvr_lsp.json_values import is_list, is_object, is_tuple


class Encoded(str):
    """What is JSON already."""


def encoded(value: Any) -> str:
    """JSON, escaped to ASCII, so that lone surrogates pass; NaN, unknown to JSON, is null."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False, default=unstructured())
    except ValueError:
        return json.dumps(without_nan(value), separators=(",", ":"), default=unstructured())


@cache
def unstructured() -> Callable[[Any], Any]:
    """What turns a value of lsprotocol's types into plain JSON: where it stands in a plain list or dict, these need no
    copy."""
    from qvr_lsp.converter import converter

    return converter().unstructure


def without_nan(value: Any) -> Any:
    """The value with every NaN and infinity replaced by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_object(value):
        return {key: without_nan(item) for key, item in value.items()}
    if is_list(value) or is_tuple(value):
        return [without_nan(item) for item in value]
    return value


# Numbers or words of a list that are encoded at once, and the depth below which everything is.
CHUNK, MOST_DEPTH = 2000, 12


def encoded_in_chunks(value: Any, depth: int = 0) -> Encoded:
    """The same as `encoded`, for a thread: encoding one large value would hold the interpreter all the while.
    Parts of a dict may be encoded already."""
    if isinstance(value, Encoded):
        return value
    if depth >= MOST_DEPTH:
        return Encoded(encoded(value))
    if is_object(value) and any(isinstance(item, dict | list | tuple | Encoded) for item in value.values()):
        inner = (f"{encoded(str(key))}:{encoded_in_chunks(item, depth + 1)}" for key, item in value.items())
        return Encoded(f"{{{','.join(inner)}}}")
    if (is_list(value) or is_tuple(value)) and value and isinstance(value[0], dict | list | tuple):
        return Encoded(f"[{','.join(encoded_in_chunks(item, depth + 1) for item in value)}]")
    if is_list(value) and len(value) > CHUNK:
        parts = (value[start : start + CHUNK] for start in range(0, len(value), CHUNK))
        return Encoded(f"[{','.join(encoded(part)[1:-1] for part in parts)}]")
    return Encoded(encoded(value))
