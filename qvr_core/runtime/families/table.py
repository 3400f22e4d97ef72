"""The table that the front end reads, one row a family; `python -m qvr_core.runtime.families.table` writes it.

A row has what the family declares beyond the defaults of `qvr_core.semantics.language.family`; a test keeps it fresh.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

import qvr_core.semantics.language
from qvr_core.runtime.families.registry import RUNTIME_FAMILIES

PATH = Path(qvr_core.semantics.language.__file__).with_name("families.json")


def table() -> str:
    """What the file is to hold."""
    rows = (json.dumps(row(family.facts), ensure_ascii=False) for family in RUNTIME_FAMILIES.values())
    return "[\n" + ",\n".join(rows) + "\n]\n"


def row(value: Any) -> Any:
    """What a dataclass says beyond its defaults, for JSON."""
    if isinstance(value, tuple):
        return [row(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if not is_dataclass(value):
        return value
    given = {field.name: getattr(value, field.name) for field in fields(value)}
    return {field.name: row(given[field.name]) for field in fields(value) if given[field.name] != _default(field)}


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


if __name__ == "__main__":
    PATH.write_text(table(), encoding="utf-8")
