"""Exceptions as the `Failed` event: in the user's words, at the user's line where one is to blame."""

from __future__ import annotations

import re
import traceback
from typing import Any

from qvr_core.analysis import Snapshot
from qvr_core.arrays.engine import arrays
from qvr_core.data.problems import DataProblem, NoColumn
from qvr_core.runs.record.atomic_files import DamagedFile
from qvr_core.runs.record.guide_names import in_flags
from qvr_core.runs.record.protocol import Failed, TextRange
from qvr_core.runs.record.ranges import utf16
from qvr_core.runtime.values.errors import NonFinite, RuntimeProblem
from qvr_core.semantics.file.placed_diagnostics import LocatedDiagnostic
from qvr_core.semantics.file.site_origins import site_origins
from qvr_core.semantics.types.diagnostics import Origin, Severity
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.program_codes import POSSIBLE_TYPO
from qvr_core.syntax.source import split_lines

USAGE = frozenset(
    (
        "no-program", "template", "no-device", "too-few-positions", "batch", "unit", "processes", "objective",
        "changed-data", "busy",
    )
)  # fmt: skip
"""Codes of what is asked and cannot be."""


class Refused(Exception):
    """A run that is not started, or ended on purpose, with a reason for the user."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        site: str | None = None,
        origin: Origin | None = None,
        fixes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.site = site
        self.origin = origin
        self.fixes = fixes


def check_failure(snapshot: Snapshot, text: str) -> Failed | None:
    """The first error of the program's text, or None where it has none."""
    errors = [d for d in snapshot.diagnostics() if d.severity is Severity.ERROR]
    if not errors:
        return None
    first = errors[0]
    more = f" (and {len(errors) - 1} more: see `qvr check`)" if len(errors) > 1 else ""
    return Failed(
        code=first.code.name,
        message=first.message + more,
        range=TextRange.model_validate(utf16(first.range, split_lines(text)[0])),
        fixes=tuple(fix.title for fix in first.fixes),
    )


def failure(error: Exception, *, snapshot: Snapshot | None, program: Program | None, text: str) -> Failed:
    """What to tell of an exception.  An unforeseen one keeps the end of its traceback in `log`."""

    def place(site: str | None, exact: Origin | None = None) -> dict[str, Any]:
        if snapshot is None or program is None:
            return {}
        arrow = snapshot.model.arrows.get(site or "")
        origin = arrow.origin if arrow is not None else site_origins(program).get(site or "", program.origin)
        origin = exact or origin
        where = TextRange.model_validate(utf16(snapshot.range(origin), split_lines(text)[0]))
        return {"range": where, "foreign": snapshot.foreign(origin)}

    match error:
        case Refused():
            return Failed(
                code=error.code,
                message=str(error),
                **place(error.site, error.origin),
                site=error.site,
                fixes=error.fixes,
                usage=error.code in USAGE or None,
            )
        case DataProblem():
            typo = _typo(error, snapshot, program)
            return Failed(
                code="data",
                message=f"{typo.message} {error}" if typo else str(error),
                **place(error.site),
                site=error.site,
                fixes=(*(fix.title for fix in typo.fixes), error.remedy) if typo else (error.remedy,),
                usage=error.usage or None,
            )
        case RuntimeProblem():
            message = in_flags(str(error))
            at = place(error.site, error.origin if isinstance(error, NonFinite) else None)
            return Failed(code=_code(error), message=message, site=error.site, **at)
        case arrays.OutOfMemoryError() | MemoryError():
            return Failed(
                code="out-of-memory",
                message=f"the run needed more memory than there is: {_first_line(error)}",
                **place(None),
                fixes=("Use a smaller batch_size or sequence_length", "Make the widest spaces smaller"),
            )
        case DamagedFile():
            return Failed(code="damaged", message=str(error), fixes=("Start a new run",))
        case OSError() if error.filename is not None:
            return Failed(code="file", message=f"{error.filename}: {error.strerror}", **place(None))
        case _:
            lines = traceback.format_exception(error)
            return Failed(
                code="internal",
                message=f"{type(error).__name__}: {_first_line(error)}",
                **place(None),
                log=tuple("".join(lines).splitlines()[-20:]),
            )


def _typo(error: DataProblem, snapshot: Snapshot | None, program: Program | None) -> LocatedDiagnostic | None:
    """The checker's warning that a data name without a column is another name, misspelt."""
    if snapshot is None or program is None or not isinstance(error, NoColumn):
        return None
    places = [snapshot.range(datum.origin) for datum in program.data if datum.name == error.site]
    warned = (found for found in snapshot.diagnostics() if found.code is POSSIBLE_TYPO)
    return next((found for found in warned if found.range in places), None)


def _code(error: Exception) -> str:
    """`MissingData` -> `missing-data`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(error).__name__).lower()


def _first_line(error: BaseException) -> str:
    return (str(error) or "no details").splitlines()[0]
