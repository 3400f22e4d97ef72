"""Where the functions that are compiled are written, and what their names mean there."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any


@dataclass(frozen=True, slots=True)
class Definition:
    """A function with all that its names mean outside it."""

    node: ast.FunctionDef
    names: Mapping[str, Any]
    flags: str = ""
    inline: str = ""


@functools.cache
def _functions(path: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(Path(path).read_text(encoding="utf-8"), path)
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def definition(function: FunctionType) -> Definition:
    """A function of a module of the subset."""
    names = function.__globals__
    node = _functions(function.__code__.co_filename)[function.__name__]
    inline = {True: "alwaysinline ", False: "noinline ", None: ""}[names.get("INLINE")]
    return Definition(node, names, names.get("FLAGS", ""), inline)


def parsed(text: str, names: Mapping[str, Any], flags: str) -> Definition:
    """The one function of a text."""
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    return Definition(node, names, flags)
