"""The files that settings name are looked at within bounds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from qvr_core.data.problems import DataProblem
from qvr_core.runs.record import data_checks


def test_a_json_file_is_read_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.json"
    path.write_text('{"x": [1.0, 2.0]}')
    assert data_checks.plain_reader(str(path), "json", 1) is not None
    monkeypatch.setattr(data_checks, "MOST_BYTES", 10)
    assert data_checks.plain_reader(str(path), "json", 1) is None


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_pipe_is_refused_before_it_is_opened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(DataProblem, match="not a file"):
        data_checks.plain_reader(str(path), kind, 1)
