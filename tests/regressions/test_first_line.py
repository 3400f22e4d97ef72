"""D8: the first line of a run says how many parameters there are to fit, where there are some."""

from __future__ import annotations

import pytest

from qvr_core.runs.record.protocol import Started


@pytest.mark.parametrize(
    ("own", "guide", "said"),
    [
        (0, None, ""),
        (0, 16, "16 parameters of the guide"),
        (1200, None, "1,200 parameters"),
        (3, 16, "3 parameters, 16 parameters of the guide"),
    ],
)
def test_d8_only_parameters_that_there_are_are_counted(own: int, guide: int | None, said: str) -> None:
    known = {"run_id": "r", "program": "p", "algorithm": "nuts", "directory": "d", "pid": 1, "device": "cpu"}
    event = Started.model_validate({**known, "parameters": own, "guide_parameters": guide, "steps": 1, "data": "x"})
    assert event.sizes() == said
