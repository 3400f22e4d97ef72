"""The grammar for tree-sitter reads what our parser reads, and cuts a text as it does."""

import random
from functools import partial
from pathlib import Path

import pytest
from tree_sitter import Language, Parser, Query, QueryCursor, Tree

from qvr_core.syntax.statements import Document
from scripts.tree_sitter import DIGEST, FILES, digest, fresh, keywords
from tests.editors.grammar import (
    QUERIES,
    cases,
    compiled,
    edited,
    programs,
    statements_of_ours,
    statements_of_tree,
    unread,
)

PROGRAMS = programs()


@pytest.fixture(scope="module")
def language(tmp_path_factory: pytest.TempPathFactory) -> Language:
    return compiled(tmp_path_factory.mktemp("grammar"))


@pytest.fixture(scope="module")
def parser(language: Language) -> Parser:
    return Parser(language)


# ---------------------------------------------------------------- nothing has drifted


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_made_from_our_tables_is_fresh(path: Path) -> None:
    """`python -m scripts.tree_sitter` brings it up to date."""
    assert path.read_text(encoding="utf-8") == fresh(path)


def test_the_parser_was_generated_from_these_rules() -> None:
    assert DIGEST.read_text(encoding="utf-8") == digest()


def test_every_keyword_has_a_colour() -> None:
    text = (QUERIES / "highlights.scm").read_text(encoding="utf-8")
    spaces = {"Real", "Simplex", "Ordered", "CholeskyFactor", "Covariance", "Correlation"}
    assert not [word for word in keywords() if f'"{word}"' not in text and word not in spaces]


# ---------------------------------------------------------------- texts without mistakes


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_read_whole(parser: Parser, name: str) -> None:
    text = PROGRAMS[name]
    tree = parser.parse(text.encode())
    broken = {placed.start.line for placed, problem in Document(text).problems() if problem.severity == "error"}
    assert [node.start_point.row for node in unread(tree)] == sorted(broken)
    assert statements_of_tree(tree, text) == statements_of_ours(text)


def test_blocks_of_the_spec_are_read_whole_and_cut_alike(parser: Parser) -> None:
    found = list(cases())
    assert len(found) > 1000
    sound = 0
    for case in found:
        tree = parser.parse(case.source.encode())
        assert statements_of_tree(tree, case.source) == statements_of_ours(case.source), case.name
        if not Document(case.source).problems():
            sound += 1
            assert not unread(tree), f"{case.name}: {[node.text for node in unread(tree)]}"
    assert sound > 1000


# ---------------------------------------------------------------- texts under edits

POOL = [*PROGRAMS.values(), *(case.source for case in cases())]


def agree(parser: Parser, seed: int, count: int) -> None:
    chance = random.Random(seed)
    for _ in range(count):
        text, _ = edited(chance, chance.choice(POOL))
        tree = parser.parse(text.encode())
        assert statements_of_tree(tree, text) == statements_of_ours(text), text
        assert not tree.root_node.has_error, text


def test_edited_texts_are_cut_alike(parser: Parser) -> None:
    agree(parser, 1, 400)


@pytest.mark.slow
def test_thousands_of_edited_texts_are_cut_alike(parser: Parser) -> None:
    agree(parser, 2, 5000)


def test_a_tree_that_follows_edits_is_that_of_the_text(parser: Parser) -> None:
    chance = random.Random(3)
    for _ in range(150):
        text = chance.choice(POOL)
        tree = parser.parse(text.encode())
        document = Document(text)
        for start, end, piece in edited(chance, text)[1]:
            old = document.text
            document.edit(start, end, piece)
            tree = parser.parse(document.text.encode(), follow(tree, old, document.text))
            assert str(tree.root_node) == str(parser.parse(document.text.encode()).root_node), document.text


def follow(tree: Tree, old: str, new: str) -> Tree:
    """The old tree, told what has changed."""
    before, after = old.encode(), new.encode()
    head = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    point = partial(_point, before)
    tree.edit(
        head,
        len(before) - tail,
        len(after) - tail,
        point(head),
        point(len(before) - tail),
        _point(after, len(after) - tail),
    )
    return tree


def _point(text: bytes, place: int) -> tuple[int, int]:
    return text.count(b"\n", 0, place), place - text.rfind(b"\n", 0, place) - 1


def test_no_text_is_an_error(parser: Parser) -> None:
    chance = random.Random(4)
    signs = "".join(map(chr, range(1, 127))) + "éλ⊢→\u2028\ufeff\u00a0" + '\n\n\n    ()[]{}#"' * 3
    for _ in range(300):
        text = "".join(chance.choices(signs, k=chance.randrange(200)))
        assert not parser.parse(text.encode()).root_node.has_error, repr(text)
        parser.parse(chance.randbytes(chance.randrange(200)))


# ---------------------------------------------------------------- queries

SHOWN = """\
#! What it is about.
import "std/priors.qvr" as pr
object Row : {yes, no}
object Box : Real 3 [low=0.0]
morphism cell : Row * Box -> Box [role=kernel] ~ Normal
let both = fan(cell, pr.rnn)
program p(alpha : Real) : Row -> Real 1
    sample (v, w) <- cell(alpha)
    let u[i : Row] = total(v[i] for j : Row if j == 2) + exp(w)
    marginalize z : Row <- Bernoulli(0.5)
        observe y : Row <- Normal(u, scale=2)
    return (h: y)
"""
COLOURS = """
comment.documentation: #! What it is about.
keyword.import: import as
string: "std/priors.qvr"
module: pr
keyword: object morphism let program sample marginalize observe
type.definition: Row Box
constant: yes no
type.builtin: Real Normal Bernoulli
number: 3 2 1
number.float: 0.0 0.5
attribute: low role
constant.builtin: kernel
function: cell both p pr
function.builtin: fan exp
function.call: cell total
type: Row Box
variable.parameter: alpha i j scale
variable: v w u alpha i j z y
variable.member: rnn h
keyword.repeat: for if
keyword.return: return
"""


@pytest.mark.parametrize("path", sorted(QUERIES.glob("*.scm")), ids=lambda path: path.stem)
def test_a_query_compiles(language: Language, path: Path) -> None:
    assert Query(language, path.read_text(encoding="utf-8")).pattern_count


def test_colours(language: Language, parser: Parser) -> None:
    query = Query(language, (QUERIES / "highlights.scm").read_text(encoding="utf-8"))
    tree = parser.parse(SHOWN.encode())
    last: dict[tuple[int, int], tuple[int, str, str]] = {}
    for pattern, captures in QueryCursor(query).matches(tree.root_node):
        for kind, nodes in captures.items():
            for node in nodes:
                place = (node.start_byte, node.end_byte)
                last[place] = max(last.get(place, (-1, "", "")), (pattern, kind, (node.text or b"").decode()))
    found: dict[str, set[str]] = {}
    for _, kind, text in last.values():
        found.setdefault(kind, set()).add(text)
    for row in COLOURS.strip().split("\n"):
        kind, _, words = row.partition(": ")
        expected = {words} if kind.startswith("comment") else set(words.split())
        assert found.get(kind) == expected, kind


def test_folds(language: Language, parser: Parser) -> None:
    query = Query(language, (QUERIES / "folds.scm").read_text(encoding="utf-8"))
    nodes = QueryCursor(query).captures(parser.parse(SHOWN.encode()).root_node)["fold"]
    rows = {(node.start_point.row, node.end_point.row) for node in nodes}
    assert (6, 11) in rows
