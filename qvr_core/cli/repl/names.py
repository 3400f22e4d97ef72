"""`:info NAME`: what an editor's hover says of a name of the document, or of a word of the language."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qvr_core.cli.repl.document import Document
from qvr_core.cli.repl.expressions import probes
from qvr_core.diagnostic_pages import page_of, summary_of
from qvr_core.ide.hover import hover
from qvr_core.ide.keywords import KEYWORDS
from qvr_core.ide.language_words import keyword_text
from qvr_core.ide.names import names_of
from qvr_core.ide.occurrences import Occurrence
from qvr_core.ide.prose import Heading, Prose, prose
from qvr_core.ide.symbols import writes
from qvr_core.semantics.language.spelling import closest
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.syntax.placing import units_of
from qvr_core.syntax.source import Cursor

MOST_PLACES = 8
"""Of one name that is bound in several programs."""


def info(document: Document, name: str) -> list[tuple[str, Prose]]:
    """What is said of a name, each with its place (`file:line`, '' for words of the language)."""
    known = list(_in_document(document, name))
    if known:
        return known
    if name in KEYWORDS:
        return [("", keyword_text(name))]
    if (page := page_of(name)) is not None:
        return [("", prose(Heading(name, " (a diagnostic)"), summary_of(page), f"All about it: `qvr explain {name}`"))]
    said = _in_language(document, name)
    return [("", said)] if said else []


def near(document: Document, name: str) -> str | None:
    """The name that was meant."""
    return closest(name, dict.fromkeys(one.text for _, one, _ in _occurrences(document)))


def _occurrences(document: Document) -> Iterator[tuple[Origin, Occurrence, bool]]:
    """Every name of the document with its place, and whether it is declared or bound there."""
    for statement in document.snapshot().statements:
        for placed in units_of(statement):
            for one in names_of(placed.unit):
                yield Origin(placed.uid, one.span), one, writes(one)


def _in_document(document: Document, name: str) -> Iterator[tuple[str, Prose]]:
    """Where it is declared or bound; where it is neither, the first place where it stands."""
    snapshot = document.snapshot()
    found = [(place, bound) for place, one, bound in _occurrences(document) if one.text == name]
    places = [place for place, bound in found if bound] or [place for place, _ in found[:1]]
    for place in places[:MOST_PLACES]:
        start = snapshot.range(place).start
        answer = hover(snapshot, start)
        if answer is not None:
            yield f"{document.name}:{start.line + 1}", answer.content


def _in_language(document: Document, name: str) -> Prose:
    """A family, a function, a combinator or an operator, which say the same wherever they stand."""
    if re.fullmatch(r"[A-Za-z_]\w*", name):
        asked = ((name, 0), (f"{name}(1.0)", 0))
    else:
        asked = ((f"identity(One) {name} identity(One)", len("identity(One) ")), (f"1 {name} 1", 2))
    for text, column in asked:
        for probe in probes(document, (text,)):
            there = probe.excerpt.there(Cursor(0, column))
            answer = hover(probe.excerpt.snapshot, there)
            if answer is not None and answer.range.start == there and not _unknown(answer.content, name):
                return answer.content
    return ()


def _unknown(said: Prose, name: str) -> bool:
    """Whether nothing is said but that the name is free: a hover takes it for data that somebody will supply."""
    return name.isidentifier() and any(getattr(part, "prose", "").startswith("Data, given to") for part in said[:2])
