"""A shift along rows that have groups is told with the line of the groups, whether the data are there or not."""

from __future__ import annotations

import pytest

from qvr_core.analysis import Analyzer, Cursor
from qvr_core.semantics.file.open_sets import KnownSet

TEXT = """object Subject, Row : FinSet _
program p : Row -> Row
    data subject : Row -> Subject
    data y : Row
    sample level[s : Subject] <- Normal(0.0, 1.0)
    observe y[i : Row] <- Normal(level[subject[i]] + 0.5 * y[i - 1], 1.0)
    return level
"""


@pytest.mark.parametrize("known", [None, {"Subject": KnownSet(2, ("a", "b")), "Row": KnownSet(9)}])
def test_the_warning_points_at_the_groups(known: dict[str, KnownSet] | None) -> None:
    [found] = Analyzer(TEXT, known).snapshot().diagnostics()
    assert found.code.name == "shift-across-groups"
    assert TEXT.splitlines()[found.range.start.line][found.range.start.column : found.range.end.column] == "i - 1"
    [groups] = found.related
    assert (groups.range.start.line, groups.range.start.column) == (2, 9)


def test_what_is_typed_at_the_shift_brings_the_warning_and_takes_it_away() -> None:
    analyzer = Analyzer(TEXT)
    place = analyzer.snapshot().diagnostics()[0].range
    analyzer.edit(place.start, place.end, "i")
    assert "shift-across-groups" not in [one.code.name for one in analyzer.snapshot().diagnostics()]
    analyzer.edit(place.start, Cursor(place.start.line, place.start.column + 1), "i - 1")
    assert [one.code.name for one in analyzer.snapshot().diagnostics()] == ["shift-across-groups"]


def test_nothing_is_said_where_the_groups_are_compared() -> None:
    text = TEXT.replace("0.5 * y", "(subject[i] == subject[i - 1]) * y")
    assert not Analyzer(text).snapshot().diagnostics()
