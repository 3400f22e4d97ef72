"""Files that only polars or numpy read, through a process of their own that reads the first of them and ends."""

from __future__ import annotations

import json
import os
import subprocess
from threading import Lock
from typing import Any

from qvr_core.data.problems import told
from qvr_core.data.typed.sources import Array, Arrays, Source, Table

KINDS = ("parquet", "ndjson", "npz")
PATIENCE = 60.0
"""Seconds after which the process is given up."""
MOST_CELLS = 500_000
"""Entries that are looked at in a file."""
MOST_KEPT = 4
"""Files whose content is kept, so that an edit of a program starts no process."""


class Excerpts:
    """Reads the first rows of tables, and arrays that are not large; remembers them while a file does not change."""

    def __init__(self, python: str, most_rows: int) -> None:
        self._python = python
        self._rows = most_rows
        self._lock = Lock()
        self._kept: dict[tuple[str, str], tuple[tuple[int, int], Any]] = {}

    def read(self, path: str, kind: str) -> Source | None:
        """What a file holds; None of another kind, a large archive, or where nothing here can read it.

        Raises `DataProblem` where the file is damaged.
        """
        if kind not in KINDS:
            return None
        try:
            found = os.stat(path)
        except OSError:
            return _source(self._asked(path, kind), path)
        state, key = (found.st_mtime_ns, found.st_size), (path, kind)
        with self._lock:  # documents are looked at in threads
            if key not in self._kept or self._kept[key][0] != state:
                self._kept[key] = (state, self._asked(path, kind))
                while len(self._kept) > MOST_KEPT:
                    del self._kept[next(iter(self._kept))]
            held = self._kept[key][1]
        return _source(held, path)

    def _asked(self, path: str, kind: str) -> Any:
        command = [self._python, "-m", __name__.removesuffix("s") + "_process", kind, path]
        command += [str(self._rows), str(MOST_CELLS)]
        environment = {**os.environ, "PYTHONSAFEPATH": "1"}
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, env=environment, check=False
            )
            return json.loads(done.stdout) if done.returncode == 0 else {}
        except (OSError, subprocess.TimeoutExpired, ValueError):
            return {}


def _source(found: Any, path: str) -> Source | None:
    match found:
        case {"problem": str(problem)}:
            raise told(problem, path)
        case {"columns": columns, "rows": rows, "whole": whole}:
            return Table(path, columns, rows, whole)
        case {"arrays": arrays}:
            return Arrays(path, {name: Array(tuple(one["shape"]), one["flat"]) for name, one in arrays.items()})
        case _:
            return None
