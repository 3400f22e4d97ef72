"""What is asked at names that other files declare."""

from __future__ import annotations

import pytest

from qvr_core.analysis import Analyzer, Snapshot
from qvr_core.ide.hover import hover
from qvr_core.ide.imports.homes import FilePlace
from qvr_core.ide.navigation import (
    definition,
    definition_elsewhere,
    find_references,
    highlights,
    linked,
    type_definition,
    type_elsewhere,
)
from qvr_core.ide.prose import markdown
from qvr_core.syntax.source import Cursor
from qvr_core.workspace import Bundle, Workspace

LAYERS = """\
#! What is read.
object Token : FinSet 256
object Hidden : Real 64
object Colour : {red, green}
morphism embed : Token -> Hidden [role=embed]
morphism block : Hidden -> Hidden [role=linear, replicate=3]
# The whole of it.
let encode = embed >> block_1
def half(x, part=0.5) = x * part
family Shifted(loc, by) : Real 1
    density(x) = -0.5 * (x - loc - by)^2

program effects(G : Object, sd : Real = 1.0) : G -> Real 1
    sample u : G <- Normal(0.0, sd)
    return u
"""
MAIN = """\
import "lib/layers.qvr" as l
from "lib/layers.qvr" import encode as enc, Hidden, block
morphism head : l.Hidden -> l.Token [role=kernel] ~ Categorical
let model = enc >> l.block_2 >> head
let twice = l.block_0 >> l.block_1
object School : FinSet 8
program schools : School -> School
    data c : School -> l.Colour
    sample a <- l.effects(School, sd=2.0)
    sample z : Real 1 <- l.Shifted(loc=0.0, by=l.half(1.0, part=0.2))
    let r = where(c == red, 1.0, 0.0)
    observe y : School <- Normal(a + z + r, l.half(2.0))
    return y
export model
"""


def at(marked: str) -> tuple[Snapshot, Cursor]:
    """The analysis of `MAIN`, with the cursor at the mark `$0` in a stretch of it."""
    plain = marked.replace("$0", "")
    assert MAIN.count(plain) == 1, plain
    before = MAIN[: MAIN.index(plain) + marked.index("$0")]
    workspace = Workspace(Bundle({"lib/layers.qvr": LAYERS}))
    snapshot = Analyzer(MAIN, None, "main.qvr", workspace).snapshot()
    return snapshot, Cursor(before.count("\n"), len(before) - before.rfind("\n") - 1)


def word(place: FilePlace | None) -> tuple[str, int, str]:
    assert place is not None
    start, end = place.range
    return place.location, start.line, place.lines[start.line][start.column : end.column]


def said(marked: str) -> str:
    answer = hover(*at(marked))
    assert answer is not None
    return markdown(answer.content)


def test_the_program_has_no_errors() -> None:
    assert [found.message for found in at("le$0t model")[0].diagnostics() if found.severity.value < 2] == []


@pytest.mark.parametrize(
    ("marked", "line", "name"),
    [
        ("l.Hid$0den ->", 2, "Hidden"),
        ("l.To$0ken [role", 1, "Token"),
        ("encode as e$0nc", 7, "encode"),
        ("import enc$0ode", 7, "encode"),
        ("e$0nc >> l", 7, "encode"),
        ("l.block$0_2", 5, "block"),
        ("l.block_$00 >>", 5, "block"),
        ("l.eff$0ects", 12, "effects"),
        ("School, s$0d=", 12, "sd"),
        ("l.Shi$0fted", 9, "Shifted"),
        ("b$0y=", 9, "by"),
        ("l.hal$0f(1.0", 8, "half"),
        ("par$0t=", 8, "part"),
        ("l.Col$0our", 3, "Colour"),
        ("== r$0ed", 3, "red"),
    ],
)
def test_definition_goes_to_the_declaration_in_the_other_file(marked: str, line: int, name: str) -> None:
    snapshot, cursor = at(marked)
    assert word(definition_elsewhere(snapshot, cursor)) == ("lib/layers.qvr", line, name)
    assert definition(snapshot, cursor) == []


def test_definition_of_the_path_and_of_the_prefix() -> None:
    assert word(definition_elsewhere(*at('import "lib/lay$0ers.qvr" as')))[:2] == ("lib/layers.qvr", 0)
    snapshot, cursor = at("$0l.Hidden ->")
    assert definition_elsewhere(snapshot, cursor) is None
    assert [found.start for found in definition(snapshot, cursor)] == [Cursor(0, 27)]


def test_type_definition_goes_to_objects_of_both_files() -> None:
    snapshot, cursor = at("he$0ad : l")
    assert [word(place)[2] for place in type_elsewhere(snapshot, cursor)] == ["Hidden", "Token"]
    snapshot, cursor = at("l.block$0_2")
    assert [word(place)[2] for place in type_elsewhere(snapshot, cursor)] == ["Hidden"]
    snapshot, cursor = at("sample a$0 <-")
    assert [found.start.line for found in type_definition(snapshot, cursor)] == []


@pytest.mark.parametrize(
    ("marked", "wanted"),
    [
        ("l.To$0ken [role", ("FinSet 256", "What is read.", "From `lib/layers.qvr`.")),
        ("e$0nc >>", ("Token", "Hidden", "The whole of it.", "From `lib/layers.qvr`.")),
        ("l.block$0_2", ("linear", "From `lib/layers.qvr`.")),
        ("l.eff$0ects", ("Template over", "From `lib/layers.qvr`.")),
        ("l.hal$0f(1.0", ("def half(x, part = 0.5)", "From `lib/layers.qvr`.")),
        ("par$0t=", ("part=0.5", "Parameter of the function `half`.", "From `lib/layers.qvr`.")),
        ("School, s$0d=", ("sd : Real = 1.0", "Parameter of the template `effects`.")),
        ("== r$0ed", ("an element of `l.Colour`", "From `lib/layers.qvr`.")),
        ("$0l.Hidden ->", ("`lib/layers.qvr`", "`encode`", "behind `l.`")),
        ('import "lib/lay$0ers.qvr" as', ("`lib/layers.qvr`", "It declares `Token`")),
        ("Hidden, blo$0ck", ("linear", "From `lib/layers.qvr`.")),
    ],
)
def test_hover_says_what_it_is_and_where_it_comes_from(marked: str, wanted: tuple[str, ...]) -> None:
    text = said(marked)
    assert [part for part in wanted if part not in text] == []
    assert "which has an error" not in text


def test_references_here_are_those_of_the_declaration_whatever_they_are_called() -> None:
    snapshot, cursor = at("l.block$0_2")
    places = find_references(snapshot, cursor)
    texts = [snapshot.lines[place.start.line][place.start.column : place.end.column] for place in places]
    assert texts == ["block", "block_2", "block_0", "block_1"]
    snapshot, cursor = at("e$0nc >>")
    assert len(find_references(snapshot, cursor)) == 3
    snapshot, cursor = at("l.Hid$0den ->")
    assert len(highlights(snapshot, cursor)) == 2
    snapshot, cursor = at("$0l.Hidden ->")
    assert [item.write for item in highlights(snapshot, cursor)] == [True, *[False] * 10]


@pytest.mark.parametrize(
    "question",
    [definition, definition_elsewhere, type_definition, type_elsewhere, find_references, highlights, linked, hover],
)
def test_every_place_has_an_answer(question) -> None:
    snapshot, _ = at("le$0t model")
    for line, text in enumerate(snapshot.lines):
        for column in range(len(text) + 1):
            question(snapshot, Cursor(line, column))
