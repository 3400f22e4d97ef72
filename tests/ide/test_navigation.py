"""Definition, references, rename, outline, folding, selection, calls."""

from __future__ import annotations

import itertools

import pytest

from qvr_core.analysis import Analyzer
from qvr_core.ide.answers import Refusal
from qvr_core.ide.edits.rename import prepare, rename
from qvr_core.ide.imports.shared import Shared
from qvr_core.ide.navigation import callees, callers, definition, find_references, highlights, linked, type_definition
from qvr_core.ide.outline_and_folding import drawable_at, folds, outline, selections
from qvr_core.syntax.source import Range
from tests.ide.cases import LM, PROGRAM, applied, at, errors, text_of

TEXT = LM + PROGRAM


def words(snapshot, ranges: list[Range]) -> list[tuple[int, str]]:
    return [(r.start.line, snapshot.lines[r.start.line][r.start.column : r.end.column]) for r in ranges]


@pytest.mark.parametrize(
    ("marked", "line", "word"),
    [
        ("tok_embed >> scan(c$0ell)", 5, "cell"),
        ("t$0ok_embed >> scan(cell)", 4, "tok_embed"),
        ("Token -> Embed$0ded [role=embed]", 2, "Embedded"),
        ("sample h <- back$0bone", 7, "backbone"),
        ("<- lm_head($0h)", 9, "h"),
        ("return next_$0token", 10, "next_token"),
    ],
)
def test_definition(marked: str, line: int, word: str) -> None:
    plain = marked.replace("$0", "")
    assert plain in TEXT
    snapshot, cursor = at(TEXT.replace(plain, marked))
    assert words(snapshot, definition(snapshot, cursor)) == [(line, word)]


def test_words_of_the_language_have_no_definition() -> None:
    for marked in ("sc$0an(cell)", "Nor$0mal", "ro$0le=embed"):
        snapshot, cursor = at(TEXT.replace(marked.replace("$0", ""), marked, 1))
        assert definition(snapshot, cursor) == []


def test_type_definition_goes_to_the_objects() -> None:
    snapshot, cursor = at(TEXT.replace("morphism cell", "morphism ce$0ll"))
    assert [word for _, word in words(snapshot, type_definition(snapshot, cursor))] == ["Embedded", "Hidden"]
    snapshot, cursor = at(TEXT.replace("lm_head(h)", "lm_head($0h)"))
    assert [word for _, word in words(snapshot, type_definition(snapshot, cursor))] == ["Hidden"]


def test_references_hold_the_declaration_where_it_is_wanted() -> None:
    snapshot, cursor = at(TEXT.replace("object Hidden", "object Hid$0den"))
    assert len(find_references(snapshot, cursor)) == 4
    assert len(find_references(snapshot, cursor, declaration=False)) == 3
    kinds = [item.write for item in highlights(snapshot, cursor)]
    assert kinds == [True, False, False, False]


def test_names_of_one_program_are_not_those_of_another() -> None:
    two = TEXT + PROGRAM.replace("program lm", "program other")
    snapshot, cursor = at(two.replace("lm_head(h)", "lm_head($0h)", 1))
    assert [line for line, _ in words(snapshot, find_references(snapshot, cursor))] == [9, 10]
    assert len(linked(snapshot, cursor)) == 2


def test_rename_reaches_every_use_and_nothing_else() -> None:
    snapshot, cursor = at(TEXT.replace("object Hidden", "object Hid$0den"))
    edits = rename(snapshot, cursor, "State")
    assert not isinstance(edits, Refusal)
    renamed = applied(text_of(snapshot), edits)
    assert "Hidden" not in renamed
    assert renamed.count("State") == 4
    assert errors(renamed) == errors(TEXT)


def test_rename_of_a_replicated_arrow_renames_its_copies() -> None:
    text = LM + "morphism he$0ad : Hidden -> Hidden [role=linear, replicate=2]\nlet y = fan(head)\nlet z = head_1\n"
    snapshot, cursor = at(text)
    edits = rename(snapshot, cursor, "top")
    assert not isinstance(edits, Refusal)
    renamed = applied(text_of(snapshot), edits)
    assert "let y = fan(top)\nlet z = top_1\n" in renamed


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("program", "reserved"),
        ("scan", "reserved"),
        ("Normal", "family"),
        ("3x", "not a name"),
        ("", "not a name"),
        ("Token", "already an object"),
    ],
)
def test_rename_refuses_and_says_why(name: str, why: str) -> None:
    snapshot, cursor = at(TEXT.replace("object Hidden", "object Hid$0den"))
    answer = rename(snapshot, cursor, name)
    assert isinstance(answer, Refusal)
    assert why in answer.message


def test_rename_names_the_clash_inside_a_program() -> None:
    snapshot, cursor = at(TEXT.replace("sample h <-", "sample $0h <-"))
    answer = rename(snapshot, cursor, "next_token")
    assert isinstance(answer, Refusal)
    assert "line 11" in answer.message


def test_words_of_the_language_cannot_be_renamed() -> None:
    snapshot, cursor = at(TEXT.replace("scan(cell)", "sc$0an(cell)"))
    assert isinstance(prepare(snapshot, cursor), Refusal)


def test_outline_holds_the_sites_of_programs() -> None:
    found = outline(Analyzer(TEXT).snapshot())
    assert [symbol.name for symbol in found][-2:] == ["backbone", "lm"]
    assert [(child.name, child.kind) for child in found[-1].children] == [("h", "site"), ("next_token", "site")]
    assert found[-1].range.end.line == 11
    assert found[3].detail == "Token => Embedded"


def test_folds_are_blocks_and_comments() -> None:
    assert folds(Analyzer("# a\n# b\n# c\n\n" + PROGRAM).snapshot()) == [(0, 2, "comment"), (4, 7, "")]


def test_selection_grows_from_the_name_to_the_file() -> None:
    snapshot, cursor = at(TEXT.replace("scan(cell)", "scan(ce$0ll)"))
    found = selections(snapshot, cursor)
    texts = [snapshot.lines[r.start.line][r.start.column : r.end.column] for r in found[:-1]]
    assert texts == ["cell", "scan(cell)", "tok_embed >> scan(cell)", "let backbone = tok_embed >> scan(cell)"]
    for inner, outer in itertools.pairwise(found):
        assert outer.start <= inner.start
        assert inner.end <= outer.end


def test_calls() -> None:
    snapshot = Analyzer(TEXT).snapshot()
    assert [call.symbol.name for call in callers(snapshot, Shared("", "cell"))] == ["backbone"]
    assert [call.symbol.name for call in callees(snapshot, "lm")] == ["backbone", "lm_head"]
    assert [call.symbol.name for call in callees(snapshot, "backbone")] == ["tok_embed", "cell"]


def test_diagram_of_the_statement_at_the_cursor() -> None:
    assert drawable_at(*at(TEXT.replace("sample h", "sam$0ple h"))) == "lm"
    assert drawable_at(*at(TEXT + "export l$0m\n")) == "lm"
    assert drawable_at(*at(TEXT.replace("object Token", "obj$0ect Token"))) is None


@pytest.mark.parametrize("question", [definition, type_definition, find_references, highlights, linked, prepare])
def test_every_place_has_an_answer(question) -> None:
    snapshot = Analyzer(TEXT).snapshot()
    for line, text in enumerate(snapshot.lines):
        for column in range(len(text) + 1):
            question(snapshot, type(at("$0")[1])(line, column))
