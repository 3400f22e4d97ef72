"""Libraries of the page that are fetched when they are first imported."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from qvr_core.fetched_libraries import fetch_when_imported


def test_a_library_is_fetched_at_its_first_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "late_library", raising=False)
    fetched: list[str] = []

    def fetch() -> None:
        fetched.append("late_library")
        if len(fetched) == 1:
            raise OSError("no network")
        (tmp_path / "late_library.py").write_text("VALUE = 7\n")

    fetch_when_imported("late_library", fetch)
    import_module("json")
    assert fetched == []
    with pytest.raises(OSError, match="no network"):
        import_module("late_library")
    assert import_module("late_library").VALUE == 7
    monkeypatch.delitem(sys.modules, "late_library")
    assert import_module("late_library").VALUE == 7
    assert len(fetched) == 2
