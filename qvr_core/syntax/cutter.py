"""Logical lines -> the extent of one statement, and the tree of its block.

The cutter knows layout only: which lines belong together and what is wrong with their indentation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile

from qvr_core.syntax.layout import (
    ITEM_WORDS,
    RULES,
    STATEMENT_WORDS,
    STEP_WORDS,
    Logical,
    code_end,
    gives_value,
    line_of_family,
    logical_line,
    next_code,
)
from qvr_core.syntax.layout import shape as shape_of
from qvr_core.syntax.mistakes.openers import LOOPS, near_word
from qvr_core.syntax.problems import Replacement, problem
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import SyntaxProblem

# By its opener, what the lines of a block are: a function has the steps of a program.
BLOCKS = {
    **{"program": "program", "deduction": "deduction", "composition": "composition"},
    **{"def": "program", "family": "family"},
    **dict.fromkeys(("transformation", "encoder", "decoder"), "composition"),
}
INDENT = "    "
# Steps that a fix indents at most: it is made anew whenever the statement is cut.
MOST_INDENTED = 64
# Blocks within blocks that are still read as such: every layer walks them by recursion.
DEEPEST = 40


@dataclass(slots=True)
class Extent:
    """The logical lines of one statement.

    Its code ends before line `end`; what the cut depends on ends before line `reach`: the first line that does not
    belong to it, and what was looked at to find out whether a body is not indented.  `failure` stopped the cut.
    """

    kind: str
    lines: list[Logical]
    end: int
    reach: int
    stripped: bool = False
    stray: bool = False
    aligned: bool = True
    """Whether nothing is wrong with the layout; known once the tree of the block has been built."""
    failure: Exception | None = None

    @property
    def span(self) -> int:
        """How many lines from its start on the cut depends on."""
        return self.reach - self.lines[0].first


@dataclass(slots=True)
class Block:
    """A unit and the lines of the block that it opens, as the layout has it."""

    start: str
    line: Logical
    children: list[Block] = field(default_factory=list["Block"])
    problems: list[SyntaxProblem] = field(default_factory=list[SyntaxProblem])


@lru_cache(maxsize=4096)
def block_kind(word: str) -> str:
    """What sort of block a header's first word opens; 'statement' for none.  A misspelt word counts as what it meant
    to be, a word that is like none is 'unknown'."""
    if word in STATEMENT_WORDS:
        return BLOCKS.get(word, "statement")
    meant = near_word(word, STATEMENT_WORDS)
    return BLOCKS.get(meant, "statement") if meant else "unknown"


def extent(lines: Sequence[str], i: int) -> Extent:
    """The statement that starts with the code line `i`."""
    head = shape_of(lines[i])
    kind = block_kind(head.word)
    stray = head.width > 0
    header = logical_line(lines, i, kind if kind != "unknown" else "program")
    if head.word == "def" and gives_value(text_of(lines, header.first, header.last, "statement")):
        kind = "statement"
    found = Extent(kind, [header], header.last + 1, header.last + 1, stray=stray)
    if kind == "statement":
        return found
    j = next_code(lines, header.last + 1)
    step = head.word in STEP_WORDS and head.word != "return"
    opens_program = (kind == "program" and head.word != "def") or (kind == "unknown" and step)
    if opens_program and not stray and j < len(lines) and _is_unindented_step(lines[j]):
        _add_stripped_run(found, lines, j)
        return found
    body = kind if kind != "unknown" else "program"
    while j < len(lines):
        line = shape_of(lines[j])
        if line.width == 0 or (line.word in STATEMENT_WORDS and line.word != "let" and not _inside(line.word, kind)):
            break
        if kind == "unknown" and stray and line.width < head.width:
            break
        logical = logical_line(lines, j, body)
        found.lines.append(logical)
        found.end = found.reach = logical.last + 1
        j = next_code(lines, logical.last + 1)
    return found


def _inside(word: str, kind: str) -> bool:
    """Whether an indented line with the opener of a statement is a mistake inside the block, not its end."""
    return kind == "deduction" or word == "from" or (kind == "program" and word in MISPLACED)


def _is_unindented_step(line: str) -> bool:
    found = shape_of(line)
    return found.width == 0 and found.word in STEP_WORDS


def _add_stripped_run(found: Extent, lines: Sequence[str], j: int) -> None:
    """Take the unindented steps from line `j` as the body, up to `return`.

    Without a `return` (it may not be written yet) the body ends with the last step that can be nothing else: a `let` is
    a statement of its own then.
    """
    run: list[Logical] = []
    certain = 0
    returned = False
    while j < len(lines) and not returned:
        line = shape_of(lines[j])
        if line.word in STATEMENT_WORDS and line.word != "let":
            break
        if line.width == 0 and line.word not in STEP_WORDS:
            break
        logical = logical_line(lines, j, "program")
        run.append(logical)
        if line.width > 0 or line.word != "let":
            certain = len(run)
        returned = line.width == 0 and line.word == "return"
        j = next_code(lines, logical.last + 1)
    if certain:
        found.stripped = True
        found.lines += run[:certain]
        found.end = run[certain - 1].last + 1
    found.reach = found.end if returned else min(j + 1, len(lines) + 1)


# ---------------------------------------------------------------- the tree of a block


def block_tree(lines: Sequence[str], found: Extent) -> Block:
    """Nest the lines of a statement by their indentation, with what is wrong with it."""
    header, *body = found.lines
    root = Block("statement", header)
    if found.stray:
        width = shape_of(lines[header.first]).column
        message = "this line is indented, but nothing above it opens a block"
        fix = ("Remove the indentation", ((Span(-width, 0), ""),))
        root.problems.append(problem("stray-indent", message, Span(-width, 0), fix))
    placed = [root]
    levels: list[tuple[int, Block]] = []
    seen: set[int] = set()
    body_kind = "program" if found.kind == "unknown" else found.kind
    words = ITEM_WORDS if body_kind == "deduction" else STEP_WORDS
    sound = next((logical for logical in body if logical.shape.word in words), None)
    if sound is not None and body_kind not in RULES:
        # The block stands in the column of its first line that is one, whatever stands askew above.
        levels.append((sound.shape.width, root))
    for logical in body:
        block = Block(start_symbol(body_kind, lines, logical.first), logical)
        placed.append(block)
        _attach(block, root, levels, seen, found)
    _add_tab_problems(lines, placed, found)
    for block in placed:
        _check_chained(lines, block)
    if found.kind != "unknown":
        _check_blocks(lines, root)
    if found.stripped and found.kind == "program":
        _add_stripped_problem(lines, root, body)
    misplaced = any(block.line.shape.word in MISPLACED for block in placed[1:])
    found.aligned = not misplaced and not any(block.problems for block in placed)
    return root


def start_symbol(kind: str, lines: Sequence[str], first: int) -> str:
    """The start symbol for a line of a block of that kind."""
    if kind == "program":
        return "step"
    if kind == "composition":
        return "composition_rule"
    if kind == "family":
        return line_of_family(shape_of(lines[first]).word)
    quoted = lines[first].startswith('"', shape_of(lines[first]).column)
    return "lexicon_entry" if quoted else "deduction_item"


def _attach(block: Block, root: Block, levels: list[tuple[int, Block]], seen: set[int], found: Extent) -> None:
    """Put a line where its indentation says, or where it most likely belongs, with a problem.

    A line out of its column is one mistake: those below it may stand in its column or, as `seen`, in the one before.
    """
    shape = block.line.shape
    width = shape.width
    silent = shape.tabs or found.kind == "unknown"
    if not levels:
        levels.append((width, root))
    if found.stripped and shape.word == "return":
        del levels[1:]
    before = levels[-1][1].children[-1] if levels[-1][1].children else None
    if (
        before is not None
        and _opens_block(before)
        and len(levels) < DEEPEST
        and (width > levels[-1][0] or _takes_unindented(before, block, found))
    ):
        levels.append((width, before))
    elif width > levels[-1][0]:
        if not silent and width not in seen:
            span = Span(levels[-1][0] - width, 0)
            message = "this line is indented deeper than the block it stands in"
            block.problems.append(problem("stray-indent", message, span, ("Align it", ((span, ""),))))
        if not silent:
            levels.append((width, levels[-1][1]))
    elif width < levels[-1][0]:
        while len(levels) > 1 and levels[-1][0] > width:
            levels.pop()
        if levels[-1][0] != width and not silent:
            span = Span(-shape.column, 0)
            fix = ("Align it", ((span, " " * levels[-1][0]),))
            message = "this line's indentation matches no open block"
            block.problems.append(problem("bad-dedent", message, span, fix))
            if len(levels) == 1:
                seen.add(levels[0][0])
                levels[0] = (width, root)
    elif shape.word in ITEM_WORDS and block.start == "deduction_item" and len(levels) > 1:
        del levels[1:]
    parent = levels[-1][1]
    parent.children.append(block)
    if parent.start == "deduction_item" and shape.word not in ITEM_WORDS:
        block.start = "lexicon_entry"
    elif parent.start == "step" and parent.line.shape.word == "family":
        block.start = line_of_family(shape.word)


# Declarations that many write inside of a program.
MISPLACED = ("def", "family")
_OPENERS = {"step": ("marginalize", STEP_WORDS), "deduction_item": ("lexicon", ITEM_WORDS)}
"""The word that opens a block below a line of a body, and all words that may start such a line."""


def _opens_block(block: Block) -> bool:
    """Also where the opener is misspelt: that is one mistake, not one in each line below."""
    opener, words = _OPENERS.get(block.start, ("", ()))
    word = block.line.shape.word
    if block.children or not opener:
        return False
    if word == opener or (block.start == "step" and word in (*MISPLACED, *LOOPS)):
        return True
    return word not in words and near_word(word, words) == opener


def _takes_unindented(before: Block, block: Block, found: Extent) -> bool:
    """Whether a line in the column of its opener is that opener's body all the same."""
    if before.start == "deduction_item":
        return block.start == "lexicon_entry"
    return found.stripped and block.line.shape.word != "return"


def _check_blocks(lines: Sequence[str], root: Block) -> None:
    """Find blocks without a body, and lines behind a `return`."""
    returned = False
    for index, child in enumerate(root.children):
        word = child.line.shape.word
        if child.start == "step":
            span = Span(0, len(word))
            if returned:
                message = "this step stands behind the `return` that ends its program"
                child.problems.append(problem("misplaced-return", message, span))
                returned = False
            elif word == "return" and root.start == "step":
                message = "`return` ends the program and cannot stand in the body of a `marginalize`"
                child.problems.append(problem("misplaced-return", message, span))
            elif word == "return":
                returned = True
            if word == "marginalize" and not child.children:
                message = "the body of this `marginalize` is missing: indent the steps that use its name below it"
                fix = _indented_body(lines, child, root.children[index + 1 : index + MOST_INDENTED])
                child.problems.append(problem("empty-block", message, span, fix))
        if child.children and word not in (*MISPLACED, *LOOPS):
            _check_blocks(lines, child)


def _indented_body(
    lines: Sequence[str], opener: Block, below: list[Block]
) -> tuple[str, tuple[Replacement, ...]] | None:
    """The edits that make a body of the lines below a `marginalize`, up to the last one that uses its name."""
    bound = _MARGINALIZED.match(unit_text(lines, opener))
    if bound is None:
        return None
    uses = re.compile(rf"\b{bound[1]}\b")
    steps = list(takewhile(lambda block: block.line.shape.word not in ("return", "marginalize"), below))
    last = max((i for i, block in enumerate(steps) if uses.search(unit_text(lines, block))), default=-1)
    if last < 0:
        return None
    origin = (opener.line.first, opener.line.shape.column)
    end = max(_last_line(block) for block in steps[: last + 1])
    starts = [offset(lines, origin, (i, 0)) for i in range(steps[0].line.first, end + 1) if lines[i].strip()]
    return "Indent the steps that use its name", tuple((Span(at, at), INDENT) for at in starts)


_MARGINALIZED = re.compile(r"marginalize\s+(\w+)")


def _last_line(block: Block) -> int:
    return max([block.line.last, *map(_last_line, block.children)])


# ---------------------------------------------------------------- problems that span lines


def offset(lines: Sequence[str], origin: tuple[int, int], place: tuple[int, int]) -> int:
    """The distance in code points from one (line, column) to another, a line break counting one."""
    (from_line, from_column), (to_line, to_column) = origin, place
    if to_line < from_line:
        return -offset(lines, place, origin)
    between = sum([len(lines[i]) + 1 for i in range(from_line, to_line)])
    return between + to_column - from_column


def _check_chained(lines: Sequence[str], block: Block) -> None:
    """A line with `from` that is not indented deeper than its step, with a fix."""
    origin = (block.line.first, block.line.shape.column)
    for i in range(block.line.first + 1, block.line.last + 1):
        found = shape_of(lines[i])
        if found.word == "from" and found.width <= block.line.shape.width:
            start = offset(lines, origin, (i, 0))
            place = Span(start + found.column, start + found.column + len("from"))
            indent = " " * (block.line.shape.width + len(INDENT))
            fix = ("Indent it", ((Span(start, start + found.column), indent),))
            message = "a line with `from` is indented deeper than the step that it goes on with"
            block.problems.append(problem("syntax-error", message, place, fix))


def _add_tab_problems(lines: Sequence[str], blocks: list[Block], found: Extent) -> None:
    """One problem for each run of lines that are indented with tabs, at the first one's tabs."""
    run: list[tuple[Block, int]] = []
    for block in blocks:
        for i in range(block.line.first, block.line.last + 1):
            shape = shape_of(lines[i])
            if shape.tabs:
                run.append((block, i))
            elif shape.code and run:
                _report_tabs(lines, run)
                run = []
    if run:
        _report_tabs(lines, run)


def _report_tabs(lines: Sequence[str], run: list[tuple[Block, int]]) -> None:
    block, first = run[0]
    origin = (block.line.first, block.line.shape.column)
    indent = lines[first][: shape_of(lines[first]).column]
    start = offset(lines, origin, (first, indent.index("\t")))
    end = offset(lines, origin, (first, indent.rindex("\t") + 1))
    replacements: list[Replacement] = []
    for _, i in run:
        found = shape_of(lines[i])
        at = offset(lines, origin, (i, 0))
        replacements.append((Span(at, at + found.column), " " * found.width))
    fix = ("Replace tabs by spaces", tuple(replacements))
    message = "this line is indented with tabs; QVR is indented with spaces"
    block.problems.append(problem("tab-indentation", message, Span(start, end), fix))


def _add_stripped_problem(lines: Sequence[str], root: Block, body: list[Logical]) -> None:
    first = root.children[0]
    origin = (first.line.first, first.line.shape.column)
    depths: dict[int, int] = {}

    def measure(block: Block, depth: int) -> None:
        for i in range(block.line.first, block.line.last + 1):
            depths[i] = depth
        for child in block.children:
            measure(child, depth + (child.line.shape.width == block.line.shape.width or block is root))

    for child in root.children:
        measure(child, 1)
    replacements = [
        (Span(at := offset(lines, origin, (i, 0)), at), INDENT * depth)
        for i, depth in sorted(depths.items())
        if lines[i].strip()
    ]
    span = Span(0, len(first.line.shape.word))
    message = "the body of a program is indented"
    fix = ("Indent the body", tuple(replacements))
    first.problems.append(problem("unindented-body", message, span, fix))


def unit_text(lines: Sequence[str], block: Block) -> str:
    """The text of a block's own line."""
    return text_of(lines, block.line.first, block.line.last, block.start)


def text_of(lines: Sequence[str], first: int, last: int, start: str) -> str:
    """The text of a unit: from its first token to its last, line breaks as `\\n`."""
    deduction = start in ("deduction_item", "lexicon_entry")
    line = lines[first]
    column = shape_of(line).column
    if first == last:
        return line[column : code_end(line, deduction)]
    closing = lines[last]
    return "\n".join([line[column:], *lines[first + 1 : last], closing[: code_end(closing, deduction)]])
