"""What an editor shows and changes in each program of examples/statistics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest

from qvr_core.analysis import Snapshot, analyse
from qvr_core.diagrams import build, to_dot, to_mermaid
from qvr_core.diagrams.graph import Node, nodes, sheet
from qvr_core.diagrams.legend import with_legend
from qvr_core.ide.completion.completion import complete
from qvr_core.ide.edits.rename import rename
from qvr_core.ide.hover import hover
from qvr_core.ide.names import names_of
from qvr_core.ide.navigation import definition, find_references
from qvr_core.ide.outline_and_folding import folds
from qvr_core.ide.prose import markdown
from qvr_core.ide.semantic_tokens import tokens
from qvr_core.ide.symbols import RENAMABLE, Found, Symbol, place_of, symbol_of
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Cursor, Range
from tests.examples.statistics.programs import NAMES, STATISTICS
from tests.ide.cases import applied
from tests.semantics.file.test_incremental import bare

WORD = re.compile(r"[A-Za-z_]\w*")
STEP = re.compile(r"    +(sample|observe|predict|marginalize|let|data|return)\b")
PLAIN = {
    *("object", "program", "morphism", "data", "sample", "observe", "predict", "marginalize", "let", "return"),
    *("from", "for", "if", "FinSet", "Nat", "Bool", "_"),
}
"""Words that only the grammar colours."""


@cache
def opened(name: str) -> tuple[str, Snapshot]:
    text = (STATISTICS / f"{name}.qvr").read_text(encoding="utf-8")
    return text, analyse(text)


def whole(snapshot: Snapshot) -> Range:
    return Range(Cursor(0, 0), Cursor(len(snapshot.lines), 0))


def steps(text: str) -> Iterator[list[tuple[int, str]]]:
    """The numbered lines of each statement outside a program, and of each step inside one, without comments."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n")):
        code = line.partition("#")[0]
        if found and (STEP.match(code) or re.match(r"\w", code)):
            yield found
            found = []
        if code.strip():
            found.append((number, code))
    yield found


# ---------------------------------------------------------------- renaming


def places(snapshot: Snapshot) -> Iterator[Found]:
    """The first place of everything that a user has named."""
    seen: set[Symbol] = set()
    for statement in snapshot.statements:
        for placed in units_of(statement):
            for occurrence in names_of(placed.unit):
                symbol = symbol_of(snapshot, statement, placed, occurrence)
                if symbol.kind in RENAMABLE and symbol not in seen:
                    seen.add(symbol)
                    yield Found(symbol, occurrence, placed, statement)


def renamed(node: object, old: str, new: str) -> object:
    """A model in which a name is another one; names in sets are sorted again."""
    match node:
        case str():
            return re.sub(rf"\b{old}\b", new, node)
        case ("Interval", *parts, names):
            return ["Interval", *parts, sorted(str(renamed(each, old, new)) for each in names)]
        case tuple() | list():
            return [renamed(each, old, new) for each in node]
        case dict():
            return [(renamed(key, old, new), renamed(value, old, new)) for key, value in node.items()]
        case _:
            return node


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(3)
def test_whatever_is_renamed_the_program_means_the_same(name: str) -> None:
    text, snapshot = opened(name)
    plain = bare(snapshot.model)
    named = list(places(snapshot))
    assert named
    for found in named:
        old, new = found.symbol.name, "renamed_here"
        edits = rename(snapshot, place_of(snapshot, found).start, new)
        assert isinstance(edits, tuple), (found.symbol, edits)
        after = analyse(applied(text, edits))
        assert [one for one in after.diagnostics() if one.severity is not Severity.HINT] == [], found.symbol
        # a local index is named in the types of its step alone, others of its name keep theirs
        if found.symbol.kind not in ("local", "label"):
            assert renamed(bare(after.model), new, old) == renamed(plain, new, old), found.symbol
        again = rename(after, place_of(snapshot, found).start, old)
        assert isinstance(again, tuple), (found.symbol, again)
        assert applied(applied(text, edits), again) == text


# ---------------------------------------------------------------- colours


def bound(text: str, keyword: str) -> set[str]:
    """The names that steps or statements of a keyword bind."""
    found = re.findall(rf"^ *{keyword} +\(?((?:\w+, *)*\w+)", text, re.MULTILINE)
    return {name for names in found for name in re.split(r", *", names)}


def expected(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Line, column and word of every name, with the kind of its token by the rules of the language alone."""
    code = re.sub("#.*", "", text)
    kinds = {name: "enumMember" for braces in re.findall(r"\{(.*?)\}", code) for name in WORD.findall(braces)}
    kinds |= dict.fromkeys(bound(code, "object"), "type") | dict.fromkeys(bound(code, "program"), "method")
    for keyword, kind in (
        ("let", "variable"), ("sample", "variable"), ("observe", "variable"), ("predict", "variable"),
        ("marginalize", "variable"), ("morphism", "function"), ("data", "data"),
    ):  # fmt: skip
        kinds |= dict.fromkeys(bound(code, keyword), kind)
    for lines in steps(text):
        step = "\n".join(line for _, line in lines)
        running = STEP.match(step) and not step.lstrip().startswith("data")
        indices = set(re.findall(r"(\w+) : [A-Z]\w*(?=[\],)]| if)", step)) if running else set[str]()
        for number, line in lines:
            for match in re.finditer(r'"(\w+)"|(?<![\w.])[A-Za-z_]\w*', line):
                word, at = match[1] or match[0], match.start() + (match[1] is not None)
                yield number, at, word, _kind(word, match[1] is not None, line, match.end(), indices, kinds)


def _kind(word: str, quoted: bool, line: str, end: int, indices: set[str], kinds: dict[str, str]) -> str:
    if quoted or ("{" in line and line.index("{") < end) or re.search(r"(role|missing)=$", line[: end - len(word)]):
        return "enumMember"
    if re.match(r"=[^=]", line[end:]) or word == "noncentred":
        return "property"
    if word in ("Real", "Ordered"):
        return "type"
    if word in indices:
        return "parameter"
    if line[end : end + 1] == "(" and word not in kinds:
        return "class" if word in FAMILIES else "function" if word in BUILTINS else ""
    return kinds.get(word, "class" if word in FAMILIES else "")


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_its_colour(name: str) -> None:
    text, snapshot = opened(name)
    found = {(token.line, token.column): token for token in tokens(snapshot, whole(snapshot))}
    for line, column, word, kind in expected(text):
        token = found.pop((line, column), None)
        if word in PLAIN and not kind:
            assert token is None, (line, word)
        else:
            assert token is not None and (token.kind, token.length) == (kind, len(word)), (line, word, kind, token)
    assert found == {}


# ---------------------------------------------------------------- hovers and places


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_explained_and_found_from_wherever_it_stands(name: str) -> None:
    text, snapshot = opened(name)
    words = list(expected(text))
    assert any(kind for *_, kind in words)
    for line, column, word, kind in words:
        cursor = Cursor(line, column)
        if kind:
            answer = hover(snapshot, cursor)
            assert answer is not None and word in markdown(answer.content), (line, word)
        if kind in ("data", "variable", "type", "parameter") and word not in ("Real", "Ordered"):
            uses = find_references(snapshot, cursor)
            assert any(use.start == cursor for use in uses), (line, word)
            (declared,) = definition(snapshot, cursor)
            assert declared in uses, (line, word)
            assert all(find_references(snapshot, use.start) == uses for use in uses), (line, word)


@pytest.mark.parametrize("name", NAMES)
def test_a_program_folds_and_its_blocks_do(name: str) -> None:
    text, snapshot = opened(name)
    lines = text.split("\n")
    found = {(first, kind) for first, _, kind in folds(snapshot)}
    for number, line in enumerate(lines):
        if line.startswith("program") or line.lstrip().startswith("marginalize"):
            assert (number, "") in found, line
    assert max(last for _, last, _ in folds(snapshot)) == len(text.rstrip().split("\n")) - 1


@pytest.mark.parametrize("name", NAMES)
def test_in_brackets_the_indices_of_the_step_are_offered_first(name: str) -> None:
    _, snapshot = opened(name)
    for lines in steps("\n".join(snapshot.lines)):
        binders = re.findall(r"(\w+) : \w+", re.split("[=<]", lines[0][1])[0])
        for number, line in lines:
            for match in re.finditer(r"\w\[(?=(\w+)[\],])", line):
                if STEP.match(lines[0][1]) and match[1] in binders:
                    offered = complete(snapshot, Cursor(number, match.end()))
                    best = min(each.rank for each in offered)
                    assert match[1] in {each.label for each in offered if each.rank == best}, (number, line)


# ---------------------------------------------------------------- diagrams


def frames(name: str, text: str) -> Iterator[tuple[Node, list[str]]]:
    graph = build(analyse(text), name)
    boxes = {box.id: box for box in sheet(graph).boxes}
    for node in nodes(graph):
        path, box = list[str](), node.box
        while box is not None:
            path.insert(0, boxes[box].label)
            box = boxes[box].parent
        yield node, path


@pytest.mark.parametrize("name", NAMES)
def test_a_diagram_has_a_plate_for_each_index_and_what_is_known_is_shaded(name: str) -> None:
    text, snapshot = opened(name)
    drawn = {node.label: (node, path) for node, path in frames(name, text) if node.kind != "output"}
    observed = bound(text, "observe")
    for data in bound(text, "data"):
        node, _ = drawn[data]
        as_observed = [("site", "observed"), ("site", "imputed")]
        assert (node.kind, node.role) in (as_observed if data in observed else [("data", "")]), data
    assert {label for label, (node, _) in drawn.items() if node.kind == "data"} <= bound(text, "data")
    for lines in steps(text):
        step = re.match(r" +(?:sample|observe|predict|marginalize|let) (\w+)\[([^\]]*)\]", lines[0][1])
        if step is not None:
            # `County (85)`, with its index where a set stands inside itself: `Time · t (60)`
            sets = [binder.split(" : ")[1] for binder in step[2].split(", ")]
            _, path = drawn[step[1]]
            plates = [re.sub(r"( · \w+)?( \([\d,]+\))?$", "", box) for box in path if not box.startswith("Σ")]
            assert sorted(plates) == sorted(sets), step[1]
    graph = build(snapshot, name)
    shaded = sum(node.kind == "data" or node.role in ("observed", "imputed") for node in nodes(with_legend(graph)))
    for written in (to_dot(graph), to_mermaid(graph)):
        # Mermaid names a colour once, for a class of nodes
        assert written.count("#d9d5e3") == shaded if written.startswith("digraph") else "#d9d5e3" in written
        for _, path in drawn.values():
            assert all(box in written for box in path)
