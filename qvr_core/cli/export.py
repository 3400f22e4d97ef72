"""`qvr export`: a program in the language of Stan, NumPyro, PyMC or torch, and its data as a file for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from qvr_core.cli.files import analysed_file, read_program, source_flags, stop, write_out
from qvr_core.export import TARGETS, Exported, Refused, export

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot

app = typer.Typer(add_completion=False)


@app.command(name="export")
def export_command(
    file: str = typer.Argument(help="A .qvr file, or - for stdin."),
    program: str | None = typer.Argument(None, help="Which program of the file; by default the one that would run."),
    to: str = typer.Option(..., "--to", help=f"{', '.join(TARGETS)}."),
    output: Path | None = typer.Option(None, "--output", "-o", help="Where to write it; stdout by default."),
    data: list[str] | None = typer.Option(
        None, "--data", metavar="[NAME=]VALUE", help="Its data as for `qvr run`: written beside the output as JSON."
    ),
    with_data: bool = typer.Option(False, "--with-data", help="Write the data that qvr.toml names."),
) -> None:
    """Write a program in the language of others.

    The file stands alone: it needs the other package, not this one.  What the target cannot say is an error at its
    line.
    """
    if to not in TARGETS:
        stop(f"unknown target `{to}`: {', '.join(TARGETS)}")
    if (data or with_data) and (output is None or file == "-"):
        stop("data are written beside the output: name a file, and one to write (-o)")
    text = read_program(file)
    snapshot = analysed_file(file, text)
    _check_sound(file, text, snapshot)
    name = _chosen(snapshot, program)
    try:
        made = export(snapshot, name, to)
    except Refused as refused:
        _show(file, text, snapshot, refused)
        raise typer.Exit(1) from None
    if output is None:
        write_out(made.text)
        return
    try:
        output.write_text(made.text, encoding="utf-8")
        if data or with_data:
            for ending, text in _data(file, name, data or [], made).items():
                output.with_suffix(ending).write_text(text, encoding="utf-8")
    except OSError as error:
        stop(f"{error.filename} cannot be written: {error.strerror}", 1)


def _check_sound(file: str, text: str, snapshot: Snapshot) -> None:
    """End where the program has errors."""
    from qvr_core.cli.output.diagnostics_text import Finding, show
    from qvr_core.semantics.types.diagnostics import Severity

    errors = [Finding(file, text, found) for found in snapshot.diagnostics() if found.severity is Severity.ERROR]
    if errors:
        show(errors)
        raise typer.Exit(1)


def _chosen(snapshot: Snapshot, program: str | None) -> str:
    programs = snapshot.model.own_programs
    named = snapshot.model.programs.get(program or "")
    guide = None if named is None else named.guidance
    if guide is not None:
        stop(
            f"`{program}` is the guide of `{guide.model}`: guides fit and models are exported, so name `{guide.model}`",
            1,
        )
    if program is not None and program not in programs:
        stop(f"there is no program `{program}`" + (f": {', '.join(programs)}" if programs else ""))
    exported = [one.name for one in snapshot.model.exports if one.name in programs]
    whole = [name for name, one in programs.items() if not one.template]
    found = program or next(iter([*exported, *reversed(whole)]), None)
    if found is None:
        stop("the file has no program to export" + (": templates have no sizes of their own" if programs else ""), 1)
    return found


def _show(file: str, text: str, snapshot: Snapshot, refused: Refused) -> None:
    from qvr_core.cli.output.diagnostics_text import Finding, show
    from qvr_core.semantics.file.placed_diagnostics import LocatedDiagnostic
    from qvr_core.semantics.types.diagnostics import Code, Severity

    code = Code("not-exported", Severity.ERROR, "the target cannot say this")
    place = snapshot.range(refused.origin)
    show([Finding(file, text, LocatedDiagnostic(code, str(refused), place, (), ()))])


def _data(file: str, program: str, sources: list[str], made: Exported) -> dict[str, str]:
    """The data of a program as JSON, under the names of its export, and the labels of the sets whose elements they
    tell, by set and code: each by the ending of its file.  What cannot be read ends the command."""
    import numpy as np
    import torch

    from qvr_core.cli.run import unstored
    from qvr_core.runs.prepare.failures import failure
    from qvr_core.runs.prepare.prepare import prepare
    from qvr_core.runs.record.program import analysed

    flags = {"algorithm": "nuts"} | {key: value for key, value in source_flags(sources).items() if value is not None}
    job = unstored(file, flags, program)
    try:
        prepared = prepare(job, analysed(job))
    except Exception as error:
        told = failure(error, snapshot=None, program=None, text=job.text)
        sys.stdout.flush()
        stop(told.message, 1)
    given = prepared.train.batch(torch.zeros(1, dtype=torch.int64))[1]
    values = {name: np.asarray(value).tolist() for name, value in given.items()}
    found = {".json": made.data(values, {name: one.size for name, one in prepared.known.items()})}
    if labels := {name: one.labels for name, one in prepared.known.items() if one.labels is not None}:
        found[".labels.json"] = labels
    return {ending: json.dumps(content, ensure_ascii=False) + "\n" for ending, content in found.items()}
