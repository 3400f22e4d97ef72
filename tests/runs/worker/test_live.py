"""The process that draws as one types, where processes are not forked: it answers itself, one after the other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from qvr_core.runs.record.config import RunConfig
from qvr_core.runs.record.live import Asked, Drawn, Line
from qvr_core.runs.record.protocol import Job
from tests.patience import HANG

ALONE = "from qvr_core.runs.worker import live; live.FORKS = False; live.main()"
PROGRAM = """\
object Row : FinSet 4
program p : Row -> Row
    sample m <- Normal(0.0, 1.0)
    observe y : Row <- Normal(m, 1.0)
    return m
"""


@pytest.mark.process
def test_without_forks_questions_are_answered_in_turn_and_dropped_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("y\n1\n2\n3\n4\n")
    config = RunConfig(data="csv:d.csv", samples=200)
    job = Job(run_id="", directory=str(tmp_path), path="m.qvr", text=PROGRAM, config=config, base=str(tmp_path))
    asked = [Asked(number=number, kind="posterior", job=job, budget=10.0) for number in (1, 2, 3)]
    wrong = job.model_copy(update={"text": PROGRAM.replace("observe y", "observe z")})
    lines = [Line(asked=one) for one in (*asked, Asked(number=4, kind="posterior", job=wrong))]
    process = subprocess.Popen([sys.executable, "-c", ALONE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    try:
        # what is dropped before its turn has come is not begun
        for line in (Line(drop=2), *lines):
            process.stdin.write(line.model_dump_json(exclude_none=True).encode() + b"\n")
        process.stdin.flush()
        ends: dict[int, Drawn] = {}
        while len(ends) < 5:  # that everything is loaded is said first
            drawn = Drawn.model_validate_json(process.stdout.readline())
            if drawn.last:
                ends[drawn.number] = drawn
        assert list(ends) == [0, 1, 2, 3, 4]
        assert ends[2].dropped and ends[2].summary is None
        assert "`z`" in (ends[4].problem or "")
        for number in (1, 3):
            found = ends[number].summary
            assert found is not None and (ends[number].method, found.chains, found.draws) == ("nuts", 4, 200)
            (mean,) = (one.mean for one in found.sites[0].elements)
            assert mean == pytest.approx(2.0, abs=0.2)
    finally:
        process.stdin.close()
        assert process.wait(HANG) == 0
        process.stdout.close()
