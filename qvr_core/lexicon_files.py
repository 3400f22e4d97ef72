"""Lexicons in files (`lexicon from "words.lex"`): entries, one a line, written as in a program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qvr_core.analysis import Snapshot, analyse
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.semantics.types.model.deductions import Deduction, EntryModel
from qvr_core.semantics.types.model.expressions import Lexicon


class LexiconProblem(Exception):
    """A lexicon's file is not there, or a line of it is wrong."""


def entries_of(name: str, deduction: Deduction) -> tuple[EntryModel, ...]:
    """The entries of a file, as if they stood in `deduction`.  Raises `LexiconProblem`."""
    head = [f"    atoms {', '.join(deduction.atoms)}"]
    if deduction.binders:
        head.append(f"    binders {', '.join(deduction.binders)}")
    snapshot, lines = _analysed(name, head)
    wrong = next((one for one in snapshot.diagnostics() if one.severity is Severity.ERROR), None)
    if wrong is not None:
        line = wrong.range.start.line - len(head) - 2
        raise LexiconProblem(f"{name}:{lines[max(0, min(line, len(lines) - 1))] if lines else 1}: {wrong.message}")
    return snapshot.model.deductions["lexicon_file"].lexicon


def known_words(lexicon: Lexicon) -> tuple[str, ...]:
    """All words that a deduction reads: those of its text, then those of its files.  Raises `LexiconProblem`."""
    found = dict.fromkeys(lexicon.words)
    for name in lexicon.files:
        deductions = _analysed(name, ())[0].model.deductions
        entries = deductions["lexicon_file"].lexicon if "lexicon_file" in deductions else ()
        found.update(dict.fromkeys(entry.word for entry in entries))
    return tuple(found)


def _analysed(name: str, head: Sequence[str]) -> tuple[Snapshot, list[int]]:
    """A file's lines as a deduction of their own, behind its header, `head` and `lexicon`, and their numbers."""
    path = Path(name)
    if not path.is_file():
        raise LexiconProblem(f"there is no lexicon file `{name}`")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LexiconProblem(f"the lexicon file `{name}` cannot be read: {error}") from error
    lines = {number: line.strip() for number, line in enumerate(text.splitlines(), 1) if line.strip()}
    head = ["deduction lexicon_file : FinSet 1 -> FinSet 1", *head, "    lexicon"]
    return analyse("\n".join([*head, *(f"        {line}" for line in lines.values())]) + "\n"), list(lines)
