"""Parameters of the wrong type: every method answers with InvalidParams, never with an error of the server."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin

import attrs
import pytest

from qvr_lsp.converter import camel
from tests.lsp.editor import Editor, ResponseError
from tests.lsp.features import params_by_method

URI = "file:///tmp/shapes/good.qvr"
TEXT = "object A : Real 3\nmorphism f : A -> A [role=linear]\nlet g = f >> f\n"
VALUES: list[Any] = [None, 7, -1, 2.5, True, "text", [], [None], {}, {"uri": None}, {"line": "0", "character": {}}]
PARAMS = params_by_method()
REQUESTS = sorted(PARAMS)
INVALID_PARAMS, REQUEST_FAILED, INTERNAL_ERROR = -32602, -32803, -32603


def example(kind: Any, depth: int = 0) -> Any:
    """Parameters as a method wants them, optional members too; what refers to itself ends somewhere."""
    arguments = get_args(kind)
    if attrs.has(kind):
        members = {camel(field.name): field for field in attrs.fields(kind)}
        return {name: example(field.type, depth + 1) for name, field in members.items() if depth < 6}
    if get_origin(kind) in (Union, UnionType):
        return example(next(each for each in arguments if each is not type(None)), depth)
    if get_origin(kind) in (list, tuple, Sequence):
        return [example(arguments[0], depth)]
    if get_origin(kind) in (dict, Mapping):
        return {}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind)).value
    return {str: URI, int: 0, bool: True}.get(kind)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def corrupted(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    made = copy.deepcopy(value)
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = new
    return made


@pytest.mark.parametrize("method", REQUESTS)
async def test_wrong_types_are_the_editors_mistake(editor: Editor, method: str) -> None:
    editor.open(URI, TEXT)
    good = example(PARAMS[method])
    random_order = random.Random(method)
    for path in places(good):
        for value in random_order.sample(VALUES, 5):
            try:
                await editor.request(method, corrupted(good, path, value))
            except ResponseError as error:
                assert error.code in (INVALID_PARAMS, REQUEST_FAILED), (method, path, value, error)


@pytest.mark.parametrize(
    ("method", "params", "place"),
    [
        ("textDocument/references", {"position": {"line": 2, "character": 4}, "context": 5}, "context"),
        ("textDocument/selectionRange", {"positions": 7}, "positions"),
        ("workspace/symbol", {"query": []}, "query"),
        ("workspace/diagnostic", {"previousResultIds": [3]}, "previousResultIds[0]"),
        ("callHierarchy/incomingCalls", {"item": "f"}, "item"),
        ("callHierarchy/outgoingCalls", {"item": {"uri": URI, "name": {}}}, "item.name"),
    ],
)
async def test_the_answer_names_the_place(editor: Editor, method: str, params: Any, place: str) -> None:
    editor.open(URI, TEXT)
    with pytest.raises(ResponseError) as error:
        await editor.request(method, {"textDocument": {"uri": URI}, **params})
    assert error.value.code == INVALID_PARAMS
    assert place in error.value.message


async def test_settings_outside_their_range_count_as_the_nearest_inside(editor: Editor) -> None:
    uri = "file:///tmp/shapes/bad.qvr"
    for value in (-5, 0):
        editor.notify("workspace/didChangeConfiguration", {"settings": {"qvr": {"diagnostics": {"maximum": value}}}})
        editor.open(uri, "let a = b\nlet c = d\n")
        await editor.until(lambda: (editor.diagnostics.get(uri) or {}).get("diagnostics"))
        editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    editor.notify("workspace/didChangeConfiguration", {"settings": {"qvr": {"diagnostics": {"maximum": 1000}}}})
