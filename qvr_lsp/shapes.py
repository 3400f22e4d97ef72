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


def require(method: str, shape: Any, params: Any) -> None:
    """Raise `InvalidParams`, with the place that is wrong, where parameters do not have their method's shape."""
    wrong = mismatch(params, shape, "")
    if wrong is not None:
        raise RpcError(INVALID_PARAMS, f"`{method}`: {wrong}")


def mismatch(value: Any, shape: Any, place: str) -> str | None:
    """What is wrong with a value, in words; None where it has the shape."""
    match shape:
        case tuple():
            found = [mismatch(value, each, place) for each in shape]
            return None if None in found else found[0]
        case list():
            if not isinstance(value, list):
                return f"{place or 'the parameters'} must be a list"
            return next((w for n, one in enumerate(value) if (w := mismatch(one, shape[0], f"{place}[{n}]"))), None)
        case dict():
            return _object_mismatch(value, shape, place)
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


def _object_mismatch(value: Any, shape: Mapping[str, Any], place: str) -> str | None:
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
        if (wrong := mismatch(held, inner, path)) is not None:
            return wrong
    return None
