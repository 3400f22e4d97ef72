"""Json files as Stan reads them: one object, arrays and numbers by name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, cast

from qvr_core.data.problems import DataProblem
from qvr_core.data.size_limits import check_room
from qvr_core.data.typed.nested import nested_arrays
from qvr_core.data.typed.sources import Arrays

WRITTEN = "Write one object: names, each with a number or nested lists"


def read_json(path: str, room: int | None, *, first: int = 1) -> Arrays:
    """The arrays of a file; whole numbers that stand for elements count from `first`.  Raises `DataProblem`."""
    check_room(path, 8 * os.path.getsize(path), room, remedy="Write the numbers as npz")
    try:
        with open(path, encoding="utf-8-sig") as file:
            content = json.load(file)
    except (ValueError, RecursionError) as error:
        row = getattr(error, "lineno", None)
        message = f"this is not json: {error}" if not isinstance(error, RecursionError) else "it is nested too deeply"
        raise DataProblem(message, path=path, row=row, remedy=WRITTEN) from error
    if not isinstance(content, dict):
        raise DataProblem("this is no json object", path=path, remedy=WRITTEN)
    return nested_arrays(cast(Mapping[str, Any], content), path, first)
