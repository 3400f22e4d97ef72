"""Every code that a diagnostic may have: those of the text, of the checker, of programs."""

from __future__ import annotations

from collections.abc import Mapping

from qvr_core.semantics.types import codes, program_codes
from qvr_core.semantics.types.diagnostics import Code, Severity
from qvr_core.syntax import internal_error
from qvr_core.syntax.problems import PROBLEMS
from qvr_core.syntax.tree.units import SyntaxProblem

_SEVERITIES = {
    "error": Severity.ERROR,
    "warning": Severity.WARNING,
    "information": Severity.INFORMATION,
    "hint": Severity.HINT,
}


def _all() -> dict[str, Code]:
    found = {kind.code: Code(kind.code, _SEVERITIES[kind.severity], kind.summary) for kind in PROBLEMS.values()}
    for module in (codes, program_codes):
        found.update({code.name: code for code in vars(module).values() if isinstance(code, Code)})
    return dict(sorted(found.items()))


CATALOGUE: Mapping[str, Code] = _all()
"""Every code that a text can bring about, by name, in alphabetical order."""

INTERNAL_ERROR = Code(internal_error.INTERNAL_ERROR.code, Severity.ERROR, internal_error.INTERNAL_ERROR.summary)
"""And that of an analysis that failed."""


def syntax_code(problem: SyntaxProblem) -> Code:
    """The code of a problem that the syntax layer found."""
    return INTERNAL_ERROR if problem.code == INTERNAL_ERROR.name else CATALOGUE[problem.code]
