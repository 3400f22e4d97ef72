"""lsprotocol's converter as pygls makes it, with what it lacks: exact types, our own messages, capabilities that it
does not know, and members that editors leave out."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import cache
from typing import Any, get_args

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, override
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.protocol import default_converter

from qvr_lsp import messages
from qvr_lsp.json_values import Json, is_list, is_object

log = logging.getLogger("qvr.rpc")

UNDERSTOOD_BY_PARTS = (
    types.ClientCapabilities,
    types.GeneralClientCapabilities,
    types.TextDocumentClientCapabilities,
    types.WindowClientCapabilities,
    types.WorkspaceClientCapabilities,
)

FORMATTING = {"options": {"tabSize": 4, "insertSpaces": True}}

LEFT_OUT: dict[str, dict[str, Any]] = {
    types.INITIALIZE: {"processId": None, "capabilities": {}},
    types.WORKSPACE_SYMBOL: {"query": ""},
    types.WORKSPACE_DIAGNOSTIC: {"previousResultIds": []},
    types.TEXT_DOCUMENT_REFERENCES: {"context": {"includeDeclaration": True}},
    types.TEXT_DOCUMENT_CODE_ACTION: {"context": {"diagnostics": []}},
    types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA: {"previousResultId": ""},
    types.TEXT_DOCUMENT_FORMATTING: FORMATTING,
    types.TEXT_DOCUMENT_RANGE_FORMATTING: FORMATTING,
    types.TEXT_DOCUMENT_ON_TYPE_FORMATTING: {**FORMATTING, "ch": "\n"},
    types.TEXT_DOCUMENT_DID_OPEN: {"textDocument": {"languageId": "qvr", "version": 0}},
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: {"settings": None},
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: {"changes": {"type": types.FileChangeType.Changed.value}},
}
"""What lsprotocol wants and these answers do without."""


@cache
def converter() -> cattrs.Converter:
    """The one of all sessions of this process: making it takes longer than a keystroke."""
    made = default_converter()
    for kind in (int, str, bool):
        made.register_structure_hook(kind, exactly)
    for kind in UNDERSTOOD_BY_PARTS:
        made.register_structure_hook(kind, what_is_understood)
    made.register_structure_hook(types.CodeActionContext, without_diagnostics)
    for kind in (types.CompletionContext, types.SignatureHelpContext):
        made.register_structure_hook(kind, lambda given, kind: None)
    made.register_structure_hook(types.TextDocumentContentChangeEvent, change)
    made.register_structure_hook(messages.Draws, draws)
    for kind in {*messages.PARAMS.values(), *messages.COMMANDS.values()}:
        names = {field.name: override(rename=camel(field.name)) for field in attrs.fields(kind)}
        structured: Any = make_dict_structure_fn(kind, made, **names)  # type: ignore[arg-type]
        made.register_structure_hook(kind, _of_objects(structured))
    return made


def _of_objects(structured: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda given, kind: structured(an_object(given), kind)


def exactly(value: Any, kind: type) -> Any:
    """cattrs takes `"0"` for a number, 5 for a text, and true for both; an enumeration comes here by its base."""
    base = bool if kind is bool else int if issubclass(kind, int) else str
    if type(value) is not base:
        raise TypeError(f"must be {WORDS[base]}")
    return value if kind is base else kind(value)


WORDS = {str: "a string", int: "a whole number", bool: "true or false"}


def draws(value: Any, kind: Any) -> Any:
    if type(value) is not int or value < 0:
        raise TypeError("must be a number of draws")
    return value


def an_object(value: Any) -> dict[str, Any]:
    if not is_object(value):
        raise TypeError("must be an object")
    return value


def what_is_understood(given: Any, kind: Any) -> Any:
    """Capabilities but for those that lsprotocol does not know in this form: they are no reason to refuse an editor."""
    parts: dict[str, Any] = {}
    members: Json = given if is_object(given) else {}
    for field in attrs.fields(kind) if members else ():
        value = members.get(camel(field.name))
        if value is not None and (part := understood(value, field.type)) is not None:
            parts[field.name] = part
    return kind(**parts)


def understood(value: Any, kind: Any) -> Any:
    """What is understood of one capability; None where that is nothing."""
    try:
        return converter().structure(value, kind)
    except Exception:
        log.info("a capability of the editor is understood in parts")
    inner = next((each for each in get_args(kind) if each is not type(None)), kind)
    if attrs.has(inner):
        try:
            return what_is_understood(value, inner)
        except TypeError:
            return None  # a member is missing
    if is_list(value) and get_args(inner):
        return [found for each in value if (found := understood(each, get_args(inner)[0])) is not None]
    return None


def without_diagnostics(given: Any, kind: type) -> types.CodeActionContext:
    """What an editor shows of other programs need not be as lsprotocol wants it; our own we know."""
    only = an_object(given).get("only")
    return types.CodeActionContext([], None if only is None else converter().structure(only, list[str]))


def change(given: Any, kind: Any) -> Any:
    """A `range` that is null is none: an edit that is left out would damage the text silently."""
    partial = an_object(given).get("range") is not None
    one = types.TextDocumentContentChangePartial if partial else types.TextDocumentContentChangeWholeDocument
    return converter().structure(given, one)


def typed(given: Any, kind: Any, method: str) -> Any:
    """Parameters as their type.  Raises `JsonRpcInvalidParams` with the place that is wrong."""
    try:
        if kind is None or (given is None and attrs.has(kind) and not attrs.fields(kind)):
            return given
        return converter().structure(complete(given, LEFT_OUT.get(method)), kind)
    except Exception as error:
        raise JsonRpcInvalidParams(f"`{method}`: {what_is_wrong(error)}") from error


def complete(given: Any, left_out: Any) -> Any:
    """The value with what is left out of its objects, those of lists too."""
    if is_list(given) and is_object(left_out):
        return [complete(item, left_out) for item in given]
    if not is_object(given) or not is_object(left_out):
        return given
    inner = {key: complete(given[key], value) if key in given else value for key, value in left_out.items()}
    return {**given, **inner}


def what_is_wrong(error: Exception) -> str:
    """In words, with the place."""
    text, _, place = cattrs.transform_error(error, format_exception=in_words)[0].rpartition(" @ ")
    place = camel(place.removeprefix("$").lstrip("."))
    return f"`{place}` {text}" if place else f"the parameters {text}"


def in_words(error: BaseException, kind: Any) -> str:
    match error:
        case KeyError():
            return f"is without `{camel(str(error.args[0]))}`"
        case TypeError() if str(error).startswith("must be"):
            return str(error)
        case _:
            return f"must be {re.sub(r'^(Optional|Union).*', 'another', getattr(kind, '__name__', 'an object'))}"


def camel(name: str) -> str:
    """`text_document` as it is on the wire."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)
