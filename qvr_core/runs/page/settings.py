"""Which files of data a qvr.toml names for the program of a text.

A page has no pydantic: the few keys that say where data are are read here, and what is wrong with the file is told by
the server, which checks all of it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from qvr_core.analysis import analyse
from qvr_core.container_types import is_mapping
from qvr_core.data.needs import needs_of
from qvr_core.dsl import CheckFailed
from qvr_core.runs.page.sampling import exported
from qvr_core.runtime.values.errors import RuntimeProblem

READ = re.compile(r"^(csv|json):")


def data_named(text: str, settings: str) -> str:
    """JSON: `main`, `named` and `columns` as a request has them, with paths from where the qvr.toml stands; `reads`,
    whether the program reads any data; or `problem`, why there is no answer."""
    try:
        snapshot = analyse(text)
        program = exported(snapshot)
        found = _data_files(program.name, tomllib.loads(settings.replace("\r\n", "\n")))
    except (CheckFailed, RuntimeProblem, ValueError) as problem:
        return json.dumps({"problem": str(problem)})
    return json.dumps({**found, "reads": bool(needs_of(program).all)})


def _data_files(program: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Raises `ValueError` in words."""
    run = {**_table(settings, "defaults"), **_table(_table(settings, "run"), program)}
    named = _table(settings, "data")
    columns = {name: one["columns"] for name in named if "columns" in (one := _table(named, name))}
    main = run.get("data")
    return {
        "main": None if main in (None, "synthetic") else _path(main),
        "named": {name: _path(one) for name, one in _table(run, "tables").items()},
        "columns": {**columns, **_table(run, "columns")},
    }


def _table(settings: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = settings.get(key, {})
    if not is_mapping(table):
        raise ValueError(f"qvr.toml: `{key}` must be a table")
    return table


def _path(source: object) -> str:
    if not isinstance(source, str) or not READ.match(source):
        raise ValueError(f"qvr.toml: the data {source!r} cannot be read in a page, which takes csv: and json:")
    return READ.sub("", source)
