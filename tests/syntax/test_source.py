"""Lines, columns and edits, as LSP counts them."""

from hypothesis import given
from hypothesis import strategies as st

from qvr_core.syntax.source import Cursor, SourceText, column_to_units, split_lines, units_to_column

ALPHABET = [*"ab\n\r", "\r\n", "é", "𝛼", "\ud800", "\x00", "\u2028", "\x0c", "\x85"]
TEXT = st.lists(st.sampled_from(ALPHABET), max_size=30).map("".join)


def test_only_newline_and_carriage_return_end_a_line() -> None:
    assert split_lines("a\nb\r\nc\rd\u2028e\x0cf\x85g\x0bh") == (
        ["a", "b", "c", "d\u2028e\x0cf\x85g\x0bh"],
        ["\n", "\r\n", "\r", ""],
    )


def test_a_text_has_at_least_one_line() -> None:
    assert split_lines("") == ([""], [""])


def test_columns_in_code_units() -> None:
    line = "a𝛼é\ud800z"
    assert [column_to_units(line, n, "utf-16") for n in range(7)] == [0, 1, 3, 4, 5, 6, 6]
    assert [column_to_units(line, n, "utf-8") for n in range(7)] == [0, 1, 5, 7, 10, 11, 11]
    assert [column_to_units(line, n, "utf-32") for n in range(7)] == [0, 1, 2, 3, 4, 5, 5]


def test_a_place_inside_a_character_is_its_start() -> None:
    assert units_to_column("a𝛼b", 2, "utf-16") == 1
    assert [units_to_column("a𝛼b", n, "utf-8") for n in range(8)] == [0, 1, 1, 1, 1, 2, 3, 3]


@given(TEXT, st.sampled_from(["utf-8", "utf-16", "utf-32"]), st.integers(-2, 40))
def test_columns_survive_the_way_there_and_back(line: str, encoding: str, column: int) -> None:
    units = column_to_units(line, column, encoding)  # pyright: ignore[reportArgumentType]
    expected = min(max(column, 0), len(line))
    assert units_to_column(line, units, encoding) == expected  # pyright: ignore[reportArgumentType]


@given(TEXT, st.lists(st.tuples(st.integers(-1, 9), st.integers(-1, 9), st.integers(-1, 9), st.integers(-1, 9), TEXT)))
def test_edits_equal_string_surgery(text: str, edits: list[tuple[int, int, int, int, str]]) -> None:
    source = SourceText(text)
    for from_line, from_column, to_line, to_column, inserted in edits:
        start, end = source.clamp(Cursor(from_line, from_column)), source.clamp(Cursor(to_line, to_column))
        start, end = min(start, end), max(start, end)
        text = source.slice(Cursor(0, 0), start) + inserted + source.slice(end, Cursor(10**6, 0))
        before = list(source.lines)
        first, removed, added = source.edit(start, end, inserted)
        assert source.text == text
        assert (source.lines, source.ends) == split_lines(text)
        assert before[:first] == source.lines[:first]
        assert before[first + removed :] == source.lines[first + added :]


def test_clamping() -> None:
    source = SourceText("ab\ncde")
    assert source.clamp(Cursor(0, 9)) == Cursor(0, 2)
    assert source.clamp(Cursor(7, 0)) == Cursor(1, 3)
    assert source.clamp(Cursor(-1, 5)) == Cursor(0, 0)
