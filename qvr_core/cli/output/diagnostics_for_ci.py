"""Diagnostics for other programs: JSON of our own, and what GitHub, GitLab and readers of SARIF take."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Any

from qvr_core import __version__
from qvr_core.cli.output.diagnostics_text import Finding, file_of, lines_of
from qvr_core.diagnostic_pages import page_of
from qvr_core.runs.record.ranges import utf16
from qvr_core.semantics.file.placed_diagnostics import LocatedFix
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.syntax.source import Range

Json = dict[str, Any]
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning"}
"""What the others call them; all else is a notice or a note."""
GITLAB = {Severity.ERROR: "major", Severity.WARNING: "minor"}


def as_json(findings: Sequence[Finding]) -> str:
    """One array; ranges are zero-based, in UTF-16 units, their ends exclusive."""
    return _text([_own(finding) for finding in findings])


def _own(finding: Finding) -> Json:
    found = finding.diagnostic
    return {
        "file": finding.path,
        "code": found.code.name,
        "severity": found.severity.name.lower(),
        "message": found.message,
        "range": utf16(found.range, finding.lines),
        "related": [
            {
                "message": related.message,
                "file": file_of(finding, related),
                "range": utf16(related.range, lines_of(finding, related)),
            }
            for related in found.related
        ],
        "fixes": [_fix(finding, fix) for fix in found.fixes],
    }


def _fix(finding: Finding, fix: LocatedFix) -> Json:
    edits = [{"range": utf16(edit.range, finding.lines), "text": edit.text} for edit in fix.edits]
    return {"title": fix.title, "preferred": fix.preferred, "edits": edits}


def as_github(findings: Sequence[Finding]) -> str:
    """Workflow commands, one a line, which GitHub Actions shows as annotations."""
    return "".join(_command(finding) + "\n" for finding in findings)


def _command(finding: Finding) -> str:
    found = finding.diagnostic
    (line, column), (last, end) = found.range
    place = {"file": finding.path, "line": line + 1, "endLine": last + 1, "title": found.code.name}
    if line == last:
        # columns are read only where there is one line
        place |= {"col": column + 1, "endColumn": max(end, column + 1)}
    properties = ",".join(f"{key}={_escaped(str(value), ',:')}" for key, value in place.items())
    fixes = "".join(f"\nfix: {fix.title}" for fix in found.fixes)
    return f"::{LEVELS.get(found.severity, 'notice')} {properties}::{_escaped(found.message + fixes)}"


def _escaped(text: str, more: str = "") -> str:
    return "".join(f"%{ord(c):02X}" if c in "%\r\n" + more else c for c in text)


def as_gitlab(findings: Sequence[Finding]) -> str:
    """A Code Quality report."""
    return _text([_quality(finding, number) for number, finding in enumerate(findings)])


def _quality(finding: Finding, number: int) -> Json:
    found = finding.diagnostic
    # the line's text and not its number: a finding that only moves stays the same
    line = finding.lines[found.range.start.line] if found.range.start.line < len(finding.lines) else ""
    twins = f"{number}" if not line.strip() else ""
    marks = "\0".join([_uri(finding.path), found.code.name, found.message, line.strip(), twins])
    return {
        "description": found.message,
        "check_name": found.code.name,
        "fingerprint": hashlib.sha256(marks.encode("utf-8", "surrogatepass")).hexdigest(),
        "severity": GITLAB.get(found.severity, "info"),
        "location": {"path": _uri(finding.path), "lines": {"begin": found.range.start.line + 1}},
    }


def as_sarif(findings: Sequence[Finding]) -> str:
    """SARIF 2.1.0 (OASIS), with the fixes."""
    codes = {finding.diagnostic.code.name: finding.diagnostic.code for finding in findings}
    rules = [_rule(name, code.summary) for name, code in sorted(codes.items())]
    driver = {"name": "qvr", "version": __version__, "rules": rules}
    results = [_result(finding) for finding in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return _text({"$schema": schema, "version": "2.1.0", "runs": [run]})


def _rule(name: str, summary: str) -> Json:
    rule: Json = {"id": name, "shortDescription": {"text": summary}}
    page = page_of(name)
    if page is not None:
        rule["help"] = {"text": summary, "markdown": page.read_text(encoding="utf-8")}
    return rule


def _result(finding: Finding) -> Json:
    found = finding.diagnostic
    result: Json = {
        "ruleId": found.code.name,
        "level": LEVELS.get(found.severity, "note"),
        "message": {"text": found.message},
        "locations": [{"physicalLocation": _physical(finding.path, found.range)}],
    }
    if found.related:
        result["relatedLocations"] = [
            {
                "physicalLocation": _physical(file_of(finding, related), related.range),
                "message": {"text": related.message},
            }
            for related in found.related
        ]
    if found.fixes:
        result["fixes"] = [_replacements(finding, fix) for fix in found.fixes]
    return result


def _replacements(finding: Finding, fix: LocatedFix) -> Json:
    texts = ((_region(edit.range), {"text": edit.text}) for edit in fix.edits)
    replacements = [{"deletedRegion": region, "insertedContent": content} for region, content in texts]
    change = {"artifactLocation": {"uri": _uri(finding.path)}, "replacements": replacements}
    return {"description": {"text": fix.title}, "artifactChanges": [change]}


def _physical(path: str, range: Range) -> Json:
    return {"artifactLocation": {"uri": _uri(path)}, "region": _region(range)}


def _region(range: Range) -> Json:
    (line, column), (last, end) = range
    return {"startLine": line + 1, "startColumn": column + 1, "endLine": last + 1, "endColumn": end + 1}


def _uri(path: str) -> str:
    """A path as the others want it: from the working directory, with slashes."""
    try:
        return PurePath(path).relative_to(Path.cwd()).as_posix()
    except ValueError:
        return PurePath(path).as_posix()


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


FORMATS: dict[str, Callable[[Sequence[Finding]], str]] = {
    "json": as_json,
    "github": as_github,
    "gitlab": as_gitlab,
    "sarif": as_sarif,
}
