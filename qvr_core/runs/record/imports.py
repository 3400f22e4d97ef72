"""The files that a run's program imports, kept in its folder: a resumed run does not depend on files that changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from qvr_core.runs.record.atomic_files import DamagedFile, digest, read_json, write_json

FILE = "imports.json"


def digest_of(imports: Mapping[str, str]) -> str:
    """What changes with any of the texts."""
    return digest(json.dumps(imports, sort_keys=True).encode())


def write_imports(folder: Path, imports: Mapping[str, str]) -> None:
    """Keep the texts, by their locations; no file where there are none."""
    if imports:
        write_json(folder / FILE, dict(imports))


def read_imports(folder: Path, expected: str | None) -> dict[str, str]:
    """The texts, whose digest is `expected` (None where nothing was imported).  Raises `DamagedFile`, OSError."""
    if expected is None:
        return {}
    try:
        imports = read_json(folder / FILE)
    except FileNotFoundError as error:
        raise DamagedFile(f"run {folder.name} is damaged: {error.filename} is missing") from error
    if digest_of(imports) != expected:
        raise DamagedFile(f"{folder / FILE} is damaged: it is not what the program imported when it was run")
    return imports
