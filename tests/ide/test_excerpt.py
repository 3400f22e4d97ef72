"""What a few lines of a long text mean is what they mean in the whole of it."""

from __future__ import annotations

import pytest

from benchmarks.server import long_program, seq2seq
from qvr_core.analysis import analyse
from qvr_core.ide.excerpt import Excerpts
from qvr_core.ide.hover import hover
from qvr_core.ide.navigation import definition
from qvr_core.syntax.source import Cursor

TEXT = seq2seq(600)
LINES = TEXT.split("\n")


@pytest.fixture(scope="module")
def excerpts() -> Excerpts:
    return Excerpts(LINES)


def test_names_have_their_types_and_places(excerpts: Excerpts) -> None:
    whole = analyse(TEXT)
    lets = [number for number, line in enumerate(LINES) if line.startswith("let")]
    for number in lets[:: len(lets) // 12]:
        part = excerpts.around(number, number)
        assert part is not None
        assert not part.diagnostics() or {item.code.name for item in part.diagnostics()} <= {"unused-declaration"}
        name = Cursor(number, 5)
        heading = [hover(snapshot, name).content[0] for snapshot in (whole, part)]
        assert heading[0] == heading[1]
        used = Cursor(number, LINES[number].rindex("_") + 1)
        assert definition(part, used) == definition(whole, used) != []


def test_text_around_damage_is_told(excerpts: Excerpts) -> None:
    broken = [*LINES[:300], "let damaged = >> (", *LINES[300:]]
    part = Excerpts(broken).around(300, 300)
    assert part is not None
    assert [item.range.start.line for item in part.diagnostics()] == [300]


def test_lines_too_many_to_be_quick_are_left_to_the_whole(excerpts: Excerpts) -> None:
    assert excerpts.around(0, 500) is None
    assert Excerpts(long_program(1000).split("\n")).around(500, 500) is None


def test_places_outside_of_the_text() -> None:
    assert Excerpts([""]).around(5, 9) is not None
    assert Excerpts(["# nothing", "  odd"]).around(1, 1) is not None
