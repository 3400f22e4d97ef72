"""What every file knows without an import: the public names of the library `std`, a scope below the file's own.

The declarations are text (`qvr_core/std`), which is read when one of the names is used (`semantics.modules.linking`).
For everything else there is this table, `prelude.json`: what kind each is, how it is called, what it is, and the facts
of families.  `python -m scripts.prelude` writes it from the text, and a test keeps it fresh.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qvr_core.semantics.language.families import FAMILIES, family_of_row
from qvr_core.semantics.language.family import Family
from qvr_core.syntax.immutable import immutable

TABLE = Path(__file__).with_name("prelude.json")


@immutable
class PreludeName:
    """A name of the library.

    `keyword` is the word that declares it ('family', 'def', 'program', …) in `file` ('families.qvr'), `header` the text
    behind its name there, `summary` the comment above it.  `parameters` are as written; a template of arrows `reads`
    and `gives` these factors.  `facts` are those of a family.
    """

    name: str
    file: str
    keyword: str
    header: str
    summary: str
    parameters: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    facts: Family | None = None

    @property
    def is_cell(self) -> bool:
        """Whether `scan` may take it: the end of what it reads is what it gives."""
        return len(self.reads) > len(self.gives) and self.reads[-len(self.gives) :] == self.gives


def _name(row: dict[str, Any]) -> PreludeName:
    made = dict(row)
    for key in ("parameters", "reads", "gives"):
        made[key] = tuple(row.get(key, ()))
    if "facts" in row:
        made["facts"] = family_of_row(row["facts"])
    return PreludeName(**made)


PRELUDE: Mapping[str, PreludeName] = {row["name"]: _name(row) for row in json.loads(TABLE.read_text(encoding="utf-8"))}
"""By name, in the order of the files (those that others may use first) and of their lines."""

PRELUDE_FAMILIES: Mapping[str, Family] = {name: one.facts for name, one in PRELUDE.items() if one.facts is not None}

EVERY_FAMILY: Mapping[str, Family] = {**FAMILIES, **PRELUDE_FAMILIES}
"""The families that a file may name without declaring or importing one: built in, or text of the library."""

FIRST_FILE = "families.qvr"
"""The file of the library that its other files may use without an import."""


def visible_from(file: str | None) -> Mapping[str, PreludeName]:
    """The names that a file may use without an import: `file` is one of the library, None any other."""
    if file is None:
        return PRELUDE
    return {name: one for name, one in PRELUDE.items() if one.file == FIRST_FILE != file}


def hidden_kind(name: str) -> str | None:
    """'family' or 'function' where a declaration of this name hides one of the language; templates of the library are
    there to be copied under their own names."""
    one = PRELUDE.get(name)
    return None if one is None else {"family": "family", "def": "function"}.get(one.keyword)
