"""Documents under edits: the same as fresh ones, whatever was edited; and uids that stay where they should."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qvr_core.syntax.formatter import format_text
from qvr_core.syntax.placing import statement_uid, units_of
from qvr_core.syntax.source import Cursor
from qvr_core.syntax.statements import Document, Layout
from qvr_core.syntax.tree.units import Placed
from qvr_core.syntax.units import parsed_unit
from tests.patience import calls
from tests.seeds import seeds
from tests.syntax.parsing import parse_text
from tests.syntax.samples import PIECES, RNN, SAMPLES, STRIPPED

SAMPLE = st.sampled_from(list(SAMPLES.values()))
MOST = 10**6


def picture(layout: Layout) -> list[Any]:
    """All there is to a layout but the uids."""
    result: list[Any] = []
    for statement in layout.statements:
        numbers = {placed.uid: i for i, placed in enumerate(units_of(statement))}
        problems = [(numbers[uid], problem) for uid, problem in statement.problems]
        lines = layout.start_line(statement.uid), layout.end_line(statement.uid)
        result.append((lines, _bare(statement.header), statement.doc, problems))
    return result


def _bare(placed: Placed[Any]) -> Any:
    return placed.line, placed.column, placed.unit, [_bare(child) for child in placed.children]


def uids(layout: Layout) -> list[int]:
    return [placed.uid for statement in layout.statements for placed in units_of(statement)]


# ---------------------------------------------------------------- incremental equals fresh


class Editor:
    """Makes edits out of small integers, so that hypothesis can shrink them."""

    def __init__(self, text: str) -> None:
        self.document = Document(text)
        self.past = [text]

    def cursor(self, line: int, column: int) -> Cursor:
        lines = self.document.lines
        line %= len(lines)
        return Cursor(line, min(column, len(lines[line])) if column < 60 else len(lines[line]))

    def replace(self, start: Cursor, end: Cursor, text: str) -> None:
        source = self.document.source
        start, end = min(start, end), max(start, end)
        expected = source.slice(Cursor(0, 0), start) + text + source.slice(end, Cursor(MOST, 0))
        before = {s.uid: s for s in self.document.statements}
        frozen = self.document.frozen()
        seen = picture(frozen)
        changes = self.document.edit(start, end, text)
        self.past.append(expected)
        after = {s.uid: s for s in self.document.statements}
        assert self.document.text == expected
        assert set(changes.removed) == before.keys() - after.keys()
        assert set(changes.added) == after.keys() - before.keys()
        assert set(changes.changed) == {uid for uid in after if uid in before and before[uid] is not after[uid]}
        assert picture(frozen) == seen
        self.check()

    def check(self) -> None:
        document = self.document
        fresh = Document(document.text)
        assert picture(document) == picture(fresh)
        assert [(r, p) for r, p in document.problems()] == [(r, p) for r, p in fresh.problems()]
        found = uids(document)
        assert len(set(found)) == len(found)
        for statement in document.statements:
            for placed in units_of(statement):
                line, column = document.locate(placed.uid)
                assert document.lines[line].startswith(placed.unit.text.split("\n")[0], column)
                assert statement_uid(placed.uid) == statement.uid
                assert document.statement_at(line) is statement

    def undo(self) -> None:
        if len(self.past) > 1:
            self.past.pop()
            self.replace(Cursor(0, 0), Cursor(MOST, 0), self.past.pop())


EDIT = st.tuples(
    st.sampled_from(["insert", "delete", "cut lines", "replace", "undo", "paste"]),
    st.integers(0, 60),
    st.integers(0, 70),
    st.integers(0, 3),
    st.integers(0, 70),
    st.sampled_from(PIECES),
    SAMPLE,
)


@settings(max_examples=150)
@given(SAMPLE, st.lists(EDIT, max_size=10))
def test_a_document_under_edits_equals_a_fresh_one(text: str, edits: list[Any]) -> None:
    editor = Editor(text)
    for kind, line, column, height, to_column, piece, whole in edits:
        start = editor.cursor(line, column)
        end = editor.cursor(start.line + height, to_column)
        match kind:
            case "insert":
                editor.replace(start, start, piece)
            case "delete":
                editor.replace(start, end, "")
            case "cut lines":
                editor.replace(Cursor(start.line, 0), editor.document.source.clamp(Cursor(start.line + height, 0)), "")
            case "replace":
                editor.replace(start, end, piece)
            case "paste":
                editor.replace(start, start, whole)
            case _:
                editor.undo()


@settings(max_examples=30)
@given(SAMPLE, st.integers(0, MOST))
def test_typing_a_program_letter_by_letter(text: str, seed: int) -> None:
    whole = text[seed % len(text) :][:120]
    editor = Editor(text[: seed % len(text)])
    for letter in whole:
        end = editor.document.source.clamp(Cursor(MOST, 0))
        editor.replace(end, end, letter)


def test_an_edit_inside_a_multi_byte_character_line() -> None:
    editor = Editor('deduction d : A -> B\n    lexicon\n        "𝛼é" : N = n\n')
    editor.replace(Cursor(2, 10), Cursor(2, 11), "𝛽\ud83d")
    editor.replace(Cursor(2, 0), Cursor(2, 4), "")


# ---------------------------------------------------------------- no exception, no hang


@settings(max_examples=300)
@given(st.text(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_text_is_read(text: str) -> None:
    document = Document(text)
    assert document.text == text
    document.problems()


@settings(max_examples=200)
@given(SAMPLE, st.integers(0, MOST), st.integers(0, MOST), st.sampled_from(PIECES))
def test_mutations_and_truncations_are_read(text: str, start: int, length: int, piece: str) -> None:
    start %= len(text)
    parse_text(text[:start])
    parse_text(text[:start] + piece + text[start + length % 20 :])
    parse_text(text[start:])


@pytest.mark.parametrize("seed", seeds(2, 40))
def test_random_texts_are_read_and_formatted(seed: int) -> None:
    """Random texts, mutations and truncations: 250 of them for each seed."""
    source = random.Random(seed)
    samples = list(SAMPLES.values())
    for _ in range(250):
        text = source.choice(samples)
        for _ in range(source.randrange(1, 6)):
            at = source.randrange(len(text) + 1)
            length = source.choice((0, 0, 1, 4, 30, len(text)))
            text = text[:at] + source.choice(PIECES) + text[at + length :]
        parse_text(text)
        format_text(text)


@pytest.mark.parametrize(
    "text",
    ["(" * 3000, ")" * 3000, "let f = " + "(" * 2000 + "a" + ")" * 2000, "-" * 5000, '"' * 5001, "\t" * 4000,
     "let f = " + " >> ".join(["a"] * 5000), "program p : A -> B\n" + "    let x = [\n" * 800, "a.b" * 3000,
     "program p : A -> B\nlet a = b\n" * 500, "program p : A -> B\n    marginalize z <- f\n" * 300,
     "program p : A -> B\n" + "".join(" " * i + f"marginalize z{i} <- f\n" for i in range(1, 1500)),
     "program p : A -> B\n    let x = " + "-" * 3000 + "1", "program p : A -> B\n    let x = " + "y ->" * 2000 + "1"],
    ids=range(14),
)  # fmt: skip
def test_long_and_deep_texts_are_read_in_time(text: str) -> None:
    def read(text: str) -> int:
        def work() -> None:
            document = Document(text)
            document.problems()
            document.edit(Cursor(0, 0), Cursor(0, 1), "x")

        return calls(work)

    assert read(text) < 200 * (len(text) + 1000)


def test_threads_may_parse_at_once() -> None:
    texts = [text.replace("a", f"a{n}") for n in range(8) for text in SAMPLES.values()]
    with ThreadPoolExecutor(8) as pool:
        pictures = list(pool.map(lambda text: picture(Document(text)), texts))
    parsed_unit.cache_clear()
    assert pictures == [picture(Document(text)) for text in texts]


# ---------------------------------------------------------------- uids


def test_statements_that_move_keep_their_uids() -> None:
    document = Document(RNN)
    before = [s.uid for s in document.statements]
    changes = document.edit(Cursor(1, 0), Cursor(1, 0), "\n\n# note\nobject New : Real 1\n\n")
    after = [s.uid for s in document.statements]
    assert [uid for uid in after if uid in before] == before
    assert len(changes.added) == 1 and not changes.removed


def test_a_changed_step_leaves_its_neighbours_alone() -> None:
    document = Document(RNN)
    program = next(s for s in document.statements if s.header.unit.keyword == "program")
    line, _ = document.locate(program.header.children[1].uid)
    changes = document.edit(Cursor(line, 12), Cursor(line, 12), "x")
    assert (changes.removed, changes.added, changes.changed) == ((), (), (program.uid,))
    after = document.statement_of(program.uid)
    same = [old.uid == new.uid for old, new in zip(program.header.children, after.header.children, strict=True)]
    assert same == [True, False, True]


def test_an_inserted_step_moves_the_others_without_new_uids() -> None:
    document = Document(RNN)
    program = next(s for s in document.statements if s.header.unit.keyword == "program")
    line, _ = document.locate(program.header.children[0].uid)
    document.edit(Cursor(line, 0), Cursor(line, 0), "    let z = 1\n")
    children = document.statement_of(program.uid).header.children
    assert [child.uid for child in children[1:]] == [child.uid for child in program.header.children]
    assert children[0].uid not in {placed.uid for placed in units_of(program)}


def test_a_header_that_is_edited_leaves_its_steps_alone() -> None:
    document = Document(RNN)
    program = next(s for s in document.statements if s.header.unit.keyword == "program")
    line = document.start_line(program.uid)
    changes = document.edit(Cursor(line, 8), Cursor(line, 8), "x")
    assert (changes.removed, changes.added, changes.changed) == ((), (), (program.uid,))
    after = document.statement_of(program.uid)
    assert [child.uid for child in after.header.children] == [child.uid for child in program.header.children]


def test_the_uid_of_a_step_is_never_given_to_another_text() -> None:
    document = Document(RNN)
    known: dict[int, str] = {}
    for n in range(200):
        line = n * 7 % len(document.lines)
        text = ["x", "\n", "    let q = 2\n", "# c\n"][n % 4]
        column = min(n % 11, len(document.lines[line]))
        document.edit(Cursor(line, column), Cursor(line, column), text)
        headers = {statement.uid for statement in document.statements}
        for uid in set(uids(document)) - headers:
            assert known.setdefault(uid, document.placed(uid).unit.text) == document.placed(uid).unit.text


def test_a_comment_edit_changes_the_statement_it_documents_only() -> None:
    document = Document(RNN)
    statement = next(s for s in document.statements if s.doc == "Embeds tokens.")
    line = document.start_line(statement.uid) - 1
    changes = document.edit(Cursor(line, 2), Cursor(line, 2), "Really ")
    assert changes == ((), (), (statement.uid,))
    assert document.statement_of(statement.uid).doc == "Really Embeds tokens."


# ---------------------------------------------------------------- layout


def test_the_stripped_layout_is_read_like_the_indented_one() -> None:
    indented = (
        STRIPPED.replace("\nsample", "\n    sample").replace("\nlet x", "\n    let x").replace("\n  2", "\n      2")
    )
    indented = indented.replace("\nobserve", "\n    observe").replace("\nreturn", "\n    return")
    ours, theirs = parse_text(STRIPPED)[0], parse_text(indented)[0]
    assert [[p.unit.node is not None for p in units_of(s)] for s in ours] == [
        [p.unit.node is not None for p in units_of(s)] for s in theirs
    ]
    assert parse_text(indented)[1] == []


def test_a_let_behind_a_program_without_steps_stays_a_statement() -> None:
    statements, _ = parse_text("program p : A -> B\nlet f = a >> b\nobject C : Real 1\n")
    assert [s.header.unit.keyword for s in statements] == ["program", "let", "object"]


def test_a_return_far_below_makes_the_lets_between_steps() -> None:
    document = Document("program p : A -> B\nlet f = a\nlet g = b\n\nobject C : Real 1\n")
    assert len(document.statements) == 4
    document.edit(Cursor(3, 0), Cursor(3, 0), "return g")
    assert [len(s.header.children) for s in document.statements] == [3, 0]


@pytest.mark.parametrize(
    "text",
    [
        "let f =\n    a >>\n    b\n",
        "let f = a\n    >> b\n  @ c\n",
        "let f = fan(\n    a,\n\n    # note\n    b,\n)\n",
        "morphism f :\n    A\n    -> B\n    [role=kernel]\n    ~ Normal\n",
        "program p(a,\n          b)\n    : A * B\n    -> C\n    sample x <- f(a,\n        b) [via=\n  z]\n"
        "    return x\n",
        "deduction d : A -> B\n    rule r :\n        X(a),\n        Y(b)\n        |- Z(a, b) #[learnable,\n"
        "            init=1]\n",
        "composition c as algebra\n    join(t) =\n        sum(t)\n    unit = 1.0\n",
        "program p : A -> B\n    let v[t : T] = v[t - 1]\n        # note\n        from v0\n    return v\n",
        "program p : A -> B\n    sample v[t : T] <- N(v[t - 1]) [a]\n     from N(0)\n     [b]\n    return v\n",
        "program p : A -> B\n    marginalize z[t : T] <- C\n        from C(q)\n        observe y <- z\n    return y\n",
        "program p : A -> B\n    let v = sum(\n        x[i]\n        for i : I,\n            j : J\n        if\n"
        "            i == j\n    )\n    let w = f(\n        data,\n        predict\n    )\n    return v\n",
        "def f(x,\n      y)\n    = x\n    + y\n",
        "def f(x, y = 1.0)\n    let z = x\n    return z\n",
        "family F(a,\n         b) :\n    Real 1\n    density(x) =\n        x\n    draw = a\n",
    ],
)
def test_continuation_lines(text: str) -> None:
    statements, problems = parse_text(text)
    assert problems == [] and len(statements) == 1


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_endings_and_byte_order_mark(ending: str) -> None:
    text = "\ufeff" + RNN.replace("\n", ending)[: -len(ending)]
    statements, problems = parse_text(text)
    assert problems == [] and len(statements) == len(parse_text(RNN)[0])


@pytest.mark.parametrize(
    ("text", "keywords"),
    [
        ("def f(x) = x\ndef g(x)\n    return x\nlet h = a\n", ["def", "def", "let"]),
        ("def f(x)\nlet h = a\n", ["def", "let"]),
        ("family F(a) : Real 1\n    density(x) = x\nlet h = a\n", ["family", "let"]),
        ("program p : A -> B\ndata x : A\npredict y <- f(x)\nreturn y\nlet h = a\n", ["program", "let"]),
        ("let x = f(\ndef g(a) = a\nfamily F(a) : Real 1\n", ["let", "def", "family"]),
    ],
)
def test_new_openers_take_no_neighbour_along(text: str, keywords: list[str]) -> None:
    assert [statement.header.unit.keyword for statement in parse_text(text)[0]] == keywords


def test_an_open_bracket_ends_at_a_line_of_data_or_a_prediction() -> None:
    text = (
        "program p : A -> B\n    let x = f(\n    data y, z : A\n    let u = g(\n    predict w <- f(y)\n    return w\n"
    )
    statements, problems = parse_text(text)
    assert [p.code for _, p in problems] == ["unclosed-bracket"] * 2
    assert [c.unit.keyword for c in statements[0].header.children] == ["let", "data", "let", "predict", "return"]


def test_an_open_bracket_takes_no_neighbour_along() -> None:
    statements, problems = parse_text(
        "let f = fan(a\nobject A : Real 1\nprogram p : A -> A\n    sample x <- f(\n    let y = x[\n    return y\n"
    )
    assert [p.code for _, p in problems] == ["unclosed-bracket"] * 3
    assert [s.header.unit.keyword for s in statements] == ["let", "object", "program"]
    assert [c.unit.keyword for c in statements[2].header.children] == ["sample", "let", "return"]


def test_documentation_comments() -> None:
    text = (
        "#! One\n#! two\n\nobject A : Real 1\n# three\n# four\nobject B : Real 1\n# five\n\nobject C : Real 1  # six\n"
    )
    assert [s.doc for s in parse_text(text)[0]] == ["One\ntwo", "three\nfour", ""]


def test_a_bracket_of_attributes_at_the_start_of_a_line_is_a_comment() -> None:
    statements, problems = parse_text("deduction d : A -> B\n    #[note]\n    rule r : A |- B  #[learnable]\n")
    assert problems == []
    assert statements[0].header.children[0].unit.node.attributes is not None


OUTCOME = """program p : Row -> Row
    data y : Row
    sample k <- LogNormal(0.0, 1.0)
    marginalize z[i : Row] : State <- Categorical([0.4, 0.6])
        observe log(k * y)[i : Row] <- Normal(z[i], 1.0)
    return k
"""


def test_which_name_of_an_outcome_is_observed_follows_the_other_lines() -> None:
    """An edit of another line makes the line that of another name, and its undoing that of the first."""

    def observed(layout: Layout) -> tuple[str, list[str]]:
        (line,) = [one for one in units_of(layout.statements[0]) if one.unit.keyword == "observe"]
        assert [name.text for name in line.unit.declares] == [line.unit.node.name.text]
        return line.unit.node.name.text, [*line.unit.node.rivals]

    document = Document(OUTCOME)
    assert observed(document) == ("y", [])
    before = picture(document)
    # `sample k` becomes `sample q`: of `k` and `y`, both data, either may be meant
    document.edit(Cursor(2, 11), Cursor(2, 12), "q")
    assert observed(document) == ("k", ["y"])
    assert picture(document) == picture(Document(document.text))
    # `data y` of a set becomes a number
    document.edit(Cursor(1, 13), Cursor(1, 16), "Real 1")
    assert observed(document) == ("k", [])
    document.edit(Cursor(1, 13), Cursor(1, 19), "Row")
    document.edit(Cursor(2, 11), Cursor(2, 12), "k")
    assert picture(document) == before
