"""What an editor would show beside the cursor, of a line that is being typed: colours, completions, diagnostics.

The line is put into the document as it will be when it is entered, and the functions that answer editors are asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from qvr_core.analysis import LocatedDiagnostic
from qvr_core.cli.repl.colours import Painted, painted
from qvr_core.cli.repl.commands import COMMANDS, named
from qvr_core.cli.repl.document import Document, Excerpt, Lines, new_problems
from qvr_core.cli.repl.expressions import best, probes
from qvr_core.cli.repl.typed_lines import declares
from qvr_core.ide.answers import Completion
from qvr_core.ide.completion.completion import complete
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.semantics.types.model.file import Model
from qvr_core.syntax.layout import next_code
from qvr_core.syntax.source import Cursor, split_lines

LONG = 20_000
"""Characters beyond which a line is taken as it is: nobody types so much, and each key would wait for its analysis."""
WHILE_TYPING = 1
"""Programs in which an expression is looked at with each key: the last one; all are once it is entered."""
WORD = re.compile(r"\w*\Z")


@dataclass(frozen=True)
class Typed:
    """A text at the prompt: what stands in front of the code (a command), and the code."""

    before: str
    code: Lines
    command: str = ""

    @classmethod
    def of(cls, text: str) -> Typed:
        """Split off a command, or the blanks in front of an expression."""
        lines = tuple(split_lines(text)[0])
        if text.lstrip().startswith(":"):
            word, space, _ = text.lstrip().partition(" ")
            before = text[: len(text) - len(text.lstrip())] + word + space
            command = named(word)
            return cls(before, (lines[0][len(before) :], *lines[1:]), command.word if command else "?")
        return cls("", lines)

    @property
    def declares(self) -> bool:
        first = next_code(self.code, 0)
        return not self.before and first < len(self.code) and declares(self.code[first])


class Help:
    """Answers about what is typed into one document; the last one is kept, since several things ask for it."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._known: tuple[object, Excerpt | None] | None = None

    def excerpt(self, typed: Typed) -> Excerpt | None:
        """What is typed where it will stand; None where it is no code, or too much."""
        text = typed.before + "\n".join(typed.code)
        asked = self._document.scratch, self._document.lines, text
        if self._known is None or self._known[0] != asked:
            self._known = asked, self._placed(typed) if len(text) <= LONG else None
        return self._known[1]

    def _placed(self, typed: Typed) -> Excerpt | None:
        if typed.command not in ("", ":type", ":info") or next_code(typed.code, 0) == len(typed.code):
            return None
        return (
            self._document.excerpt(typed.code)
            if typed.declares
            else best(self._document, typed.code, WHILE_TYPING).excerpt
        )

    # ---------------------------------------------------------------- colours

    def painted(self, text: str) -> list[Painted]:
        """The colours of a text, those of what is wrong in it last."""
        typed = Typed.of(text)
        found: list[Painted] = [(0, 0, len(typed.before), "command")] if typed.before else []
        excerpt = self.excerpt(typed)
        if excerpt is None:
            return found
        wrong = [
            (
                start.line,
                start.column,
                end.column if end.line == start.line else len(typed.code[start.line]),
                one.severity,
            )
            for one in self.problems(text)
            for start, end in [excerpt.moved(one.range)]
            if excerpt.holds(one.range)
        ]
        marks = ((line, start, max(end, start + 1), severity.name.lower()) for line, start, end, severity in wrong)
        for line, start, end, kind in (*painted(excerpt), *marks):
            shift = len(typed.before) if line == 0 else 0
            found.append((line, start + shift, end + shift, kind))
        return found

    # ---------------------------------------------------------------- diagnostics

    def problems(self, text: str) -> list[LocatedDiagnostic]:
        """What is wrong so far.  What is wrong with the end of a text may be right with the next key."""
        typed = Typed.of(text)
        excerpt = self.excerpt(typed)
        if excerpt is None:
            return []
        after = excerpt.snapshot.diagnostics()
        if typed.declares:
            found = new_problems(self._document.snapshot().diagnostics(), after)
        else:
            found = [one for one in after if one.severity is Severity.ERROR and excerpt.holds(one.range)]
        end = excerpt.there(Cursor(len(typed.code) - 1, len(typed.code[-1].rstrip())))
        return [one for one in found if one.range.end < end and one.code.name != "missing-return"]

    def advice(self, text: str) -> str:
        """The first of them, and its fix on a line below."""
        found = self.problems(text)
        if not found:
            return ""
        fix = f"\nfix (F2): {found[0].fixes[0].title}" if found[0].fixes else ""
        return f"{found[0].severity.name.lower()}[{found[0].code.name}]: {found[0].message}{fix}"

    def mended(self, text: str) -> str | None:
        """The text with the first fix that `advice` offers; None where that changes anything else."""
        typed = Typed.of(text)
        excerpt = self.excerpt(typed)
        fixes = [one.fixes[0] for one in self.problems(text)[:1] if one.fixes]
        if excerpt is None or not fixes or not all(excerpt.holds(edit.range) for edit in fixes[0].edits):
            return None
        lines = list(typed.code)
        for edit in sorted(fixes[0].edits, key=lambda edit: edit.range, reverse=True):
            start, end = excerpt.moved(edit.range)
            if end.line >= len(lines):
                return None
            joined = lines[start.line][: start.column] + edit.text + lines[end.line][end.column :]
            lines[start.line : end.line + 1] = joined.split("\n")
        return typed.before + "\n".join(lines)

    # ---------------------------------------------------------------- completion

    def completions(self, text: str, cursor: int) -> list[Completion]:
        """What may stand at a cursor, the likeliest first: for a declaration what an editor offers at that place of the
        document, for an expression what it offers wherever such a one may stand."""
        typed, before = Typed.of(text), text[:cursor]
        if typed.before and " " not in before.lstrip():
            return [Completion(one.word, "command", one.summary, insert=one.word) for one in COMMANDS]
        if typed.command in (":info", ":diagram", ":posterior"):
            return self._names(typed.command)
        if typed.command not in ("", ":type") or len(text) > LONG:
            return []
        lines = before[len(typed.before) :].split("\n")
        place = Cursor(len(lines) - 1, len(lines[-1]))
        if typed.declares or (not typed.before and place.line == 0 and not WORD.sub("", lines[0]).strip()):
            excerpt = self._document.excerpt(typed.code)
            found = complete(excerpt.snapshot, excerpt.there(place))
            return found if typed.declares else _merged([*found, *self._in_expression(typed.code, place)])
        return _merged(self._in_expression(typed.code, place))

    def _in_expression(self, code: Lines, place: Cursor) -> Iterator[Completion]:
        for probe in probes(self._document, code, WHILE_TYPING):
            found = complete(probe.excerpt.snapshot, probe.excerpt.there(place))
            yield from (one for one in found if one.label != probe.name)

    def _names(self, command: str) -> list[Completion]:
        model: Model = self._document.snapshot().model
        drawn = (*model.lets, *model.own_programs)
        every = drawn if command == ":diagram" else model.order
        return [Completion(name, "name", insert=name) for name in every]


def _merged(found: list[Completion] | Iterator[Completion]) -> list[Completion]:
    """Each label once, where it stands first."""
    return list({one.label: one for one in reversed(list(found))}.values())[::-1]


def inserted(proposal: Completion) -> str:
    """What a proposal writes in an editor without snippets."""
    return proposal.insert if proposal.insert and not proposal.snippet else proposal.label


def fitting(found: list[Completion], word: str) -> list[Completion]:
    """Those that begin with what is typed already, then those that have it in them, as editors narrow a list."""
    low = word.lower()
    # a name that nothing else has is data to the checker, this very word
    found = [one for one in found if one.label != word or one.kind != "data"]
    begin = [one for one in found if one.label.lower().startswith(low)]
    inside = [one for one in found if low in one.label.lower() and one not in begin] if len(low) > 1 else []
    return [*begin, *inside]
