"""What is said where the front end itself fails: a bug, which must not look like a text without problems."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from qvr_core.syntax.printable import printable
from qvr_core.syntax.problems import ProblemKind
from qvr_core.syntax.tree.names import Name, Span
from qvr_core.syntax.tree.units import SyntaxProblem, Unit

INTERNAL_ERROR = ProblemKind("internal-error", "error", "QVR itself failed: the mistake is its own, not the text's.")
"""No text is known that brings it about, so it is none of `PROBLEMS`."""

PACKAGE = Path(__file__).resolve().parents[1]
LONGEST = 200
"""Characters of an exception's own words: it may quote a whole text."""

_NAMELESS = frozenset({"export", "import", "from", "return"})
_WORDS = re.compile(r"\s*([A-Za-z_]\w*)(?:\s+([A-Za-z_]\w*))?")


def report(error: Exception) -> str:
    """The message about an exception: whose mistake it is, what to report, and where that goes."""
    what = printable(f"{type(error).__name__}: {error}".removesuffix(": ").replace("\n", " "))
    what = what if len(what) <= LONGEST else f"{what[:LONGEST]}…"
    return (
        f"QVR itself failed here, in {_raised_at(error)}: {what}; this is its mistake, not yours: please report these "
        "words with this part of the program (`qvr explain internal-error` says where)"
    )


def _raised_at(error: Exception) -> str:
    """`semantics/arithmetic/gathers.py:88`: the innermost line of this package that the exception came through."""
    place, frame = "an unknown place", error.__traceback__
    while frame is not None:
        file = Path(frame.tb_frame.f_code.co_filename)
        if file.is_relative_to(PACKAGE):
            place = f"{file.relative_to(PACKAGE).as_posix()}:{frame.tb_lineno}"
        frame = frame.tb_next
    return place


def failed_unit(text: str, error: Exception) -> Unit[Any]:
    """What is left of a unit: its first word, and the name that it seems to declare."""
    found = _WORDS.match(text)
    keyword = "" if found is None else found[1]
    names = found is not None and found[2] is not None and keyword not in _NAMELESS
    declares = (Name(found[2], Span(*found.span(2))),) if found is not None and names else ()
    problem = SyntaxProblem(INTERNAL_ERROR.code, report(error), Span(0, len(text)), INTERNAL_ERROR.severity)
    return Unit(text, None, (problem,), keyword, declares)
