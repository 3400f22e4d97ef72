"""Every code that the syntax layer reports, with its severity and what it means in one sentence."""

from __future__ import annotations

from qvr_core.syntax.immutable import immutable
from qvr_core.syntax.tree.names import Span
from qvr_core.syntax.tree.units import SyntaxProblem

Replacement = tuple[Span, str]


@immutable
class ProblemKind:
    """An entry of the table: `severity` is 'error', 'warning' or 'hint'."""

    code: str
    severity: str
    summary: str


PROBLEMS: dict[str, ProblemKind] = {
    kind.code: kind
    for kind in (
        ProblemKind("syntax-error", "error", "A word or sign stands where the grammar has no place for it."),
        ProblemKind("unknown-statement", "error", "A line starts with a word that opens no statement."),
        ProblemKind("misplaced-step", "error", "A program step stands outside of a program."),
        ProblemKind("unclosed-bracket", "error", "A bracket is opened and never closed."),
        ProblemKind("unmatched-bracket", "error", "A bracket is closed that was never opened."),
        ProblemKind("unclosed-string", "error", "A string has no closing quote on its line."),
        ProblemKind(
            "invalid-character", "error", "A character that the language does not use stands outside a string."
        ),
        ProblemKind("invalid-number", "error", "A number is malformed."),
        ProblemKind("reserved-name", "error", "A reserved word is used as a name."),
        ProblemKind("too-deep", "error", "An expression is nested more deeply than anyone could read."),
        ProblemKind("tab-indentation", "error", "A line is indented with tabs."),
        ProblemKind("stray-indent", "error", "A line is indented although nothing above it opens a block."),
        ProblemKind("bad-dedent", "error", "A line's indentation matches no open block."),
        ProblemKind("misplaced-return", "error", "A step follows the `return` that ends its program."),
        ProblemKind("empty-block", "error", "A block that must have a body has none."),
        ProblemKind("unindented-body", "warning", "A program's body is not indented."),
        ProblemKind("header-colon", "hint", "A colon at the end of a header is not needed."),
    )
}


def problem(
    code: str, message: str, span: Span, fix: tuple[str, tuple[Replacement, ...]] | None = None
) -> SyntaxProblem:
    """A problem with the severity that the table gives its code."""
    return SyntaxProblem(code, message, span, PROBLEMS[code].severity, fix)
