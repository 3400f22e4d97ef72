"""What is made of files once, and kept in a folder for as long as they are the same."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any


def cache_key(files: Iterable[str], wanted: Any) -> str:
    """The name of what is made of files as they are now; `wanted`, which can be written as JSON, tells how."""
    states = [(os.path.abspath(file), os.stat(file)) for file in files]
    read = [(path, state.st_size, state.st_mtime_ns) for path, state in states]
    return hashlib.sha256(json.dumps([read, wanted]).encode()).hexdigest()[:24]


@contextlib.contextmanager
def written(target: Path) -> Generator[Path]:
    """Where to write what stands at `target` once it is whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield partial
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
