"""`qvr init DIR`: a folder with a program, data and qvr.toml, ready to run."""

from __future__ import annotations

import difflib
import json
import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from qvr_core import examples
from qvr_core.cli.console import say
from qvr_core.cli.files import stop

if TYPE_CHECKING:
    from qvr_core.data.formula.result import Program

app = typer.Typer(add_completion=False)

DATA = """\
plot,rain,yield_t
a,3.1,4.2
a,4.0,4.9
a,5.2,5.8
a,6.1,6.1
b,2.8,2.9
b,4.4,4.4
b,5.0,4.6
b,6.6,5.9
c,3.5,5.1
c,4.1,5.3
c,5.7,6.6
c,6.3,7.2
d,2.9,3.4
d,3.8,4.1
d,5.1,5.2
d,6.0,5.4
"""
NEXT = (
    "qvr sample {} --prior --plot prior.png",
    "qvr run nuts {}",
    "qvr sample last --plot predicted.png",
)
FORMULA = "yield_t ~ rain + (1 | plot)"


@app.command()
def init(
    folder: Path = typer.Argument(metavar="DIR", help="A folder that does not exist yet, or is empty."),
    data: Path | None = typer.Option(None, "--data", metavar="FILE.csv", help="Your table; a small one by default."),
    formula: str | None = typer.Option(None, "--formula", help='What explains what, as "y ~ x + (1 | g)".'),
    family: str | None = typer.Option(None, "--family", help="normal, poisson, beta …; else by the outcome."),
    example: str | None = typer.Option(
        None, "--example", metavar="NAME", help="An example with its data, as statistics/radon; `list` names all."
    ),
) -> None:
    """Make a folder with a program, its data and qvr.toml, and say what to do there."""
    from qvr_core.cli.new import end_without, tell

    if example is not None:
        if data is not None or formula is not None or family is not None:
            stop("an example has its own data and program: leave out --data, --formula and --family")
        _copy_example(example, folder)
        return
    _check_free(folder)
    if data is not None and formula is None:
        stop('say what explains what in your table, as --formula "y ~ x + (1 | g)"')
    if formula is not None and data is None:
        stop("a formula is about a table: --data FILE.csv")
    if data is not None and not data.is_file() and (named := _without_source(data)).is_file():
        data = named
    if data is not None and not data.is_file():
        stop(f"there is no file {data}")
    existed = folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "data.csv"
    try:
        if data is None:
            table.write_text(DATA, encoding="utf-8")
        made = _fitting(formula or FORMULA, data or table, table, family)
    except typer.Exit:
        table.unlink(missing_ok=True)
        if not existed:
            folder.rmdir()
        raise
    (folder / "model.qvr").write_text(made.text, encoding="utf-8")
    renamed = ", ".join(f"{word} = {json.dumps(name, ensure_ascii=False)}" for word, name in made.columns.items())
    columns = f"columns = {{ {renamed} }}\n" if renamed else ""
    why = "# small steps: scales are drawn with what they scale\n" if made.settings else ""
    careful = why + "".join(f"{key} = {value}\n" for key, value in made.settings.items())
    (folder / "qvr.toml").write_text(f'[run.model]\ndata = "csv:data.csv"\n{columns}{careful}', encoding="utf-8")
    tell(made)
    say(f"made {folder}: model.qvr, data.csv, qvr.toml.  Next:")
    for command in (f"cd {folder}", *NEXT):
        say(f"    {command.format('model.qvr')}")
    end_without(made)


def _fitting(formula: str, given: Path, table: Path, family: str | None) -> Program:
    """The program of a formula about the `given` table, and its `table`, a copy of that without the rows in which a
    cell lacks that cannot be filled in.  Messages name the one that the user has."""
    from qvr_core.cli.new import table as columns_of
    from qvr_core.cli.new import written

    made = written(formula, f"csv:{given}", family, "model")
    if not made.incomplete:
        if given != table:
            shutil.copyfile(given, table)
        return made
    import polars as pl

    columns = columns_of(f"csv:{given}")
    frame = pl.DataFrame(list(columns.values())).rename(
        {series.name: name for name, series in columns.items() if series.name != name}
    )
    whole = frame.drop_nulls(list(made.incomplete))
    lacking = ", ".join(f"{gaps} in {name}" for name, gaps in made.incomplete.items())
    if not len(whole):
        stop(f"{given}: no row is complete: there are missing cells, {lacking}", 1)
    whole.write_csv(table)
    say(f"left out {len(frame) - len(whole)} of {len(frame)} rows, in which a cell is missing: {lacking}")
    return written(formula, f"csv:{table}", family, "model")


def _check_free(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        stop(f"{folder} is there already, and not empty: name another folder", 1)


def _without_source(data: Path) -> Path:
    """The file of a source as other commands take it, `csv:d.csv`."""
    source, colon, path = str(data).partition(":")
    return Path(path) if colon and source == "csv" else data


def _copy_example(name: str, folder: Path) -> None:
    known = examples.names()
    if name == "list":
        say("\n".join(known))
        return
    found = examples.example(name)
    if found is None:
        near = difflib.get_close_matches(name, [*known, *(one.rpartition("/")[2] for one in known)], 1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        stop(f"there is no example `{name}`{hint} `qvr init {folder} --example list` names all")
    _check_free(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made = found.copy(folder)
    except OSError as error:
        stop(f"{folder} cannot be written: {error.strerror}", 1)
    say(f"made {folder}: {', '.join(path.name for path in made)}.  Next:")
    for command in (f"cd {folder}", f"qvr check {made[0].name}", f"qvr run {_algorithm(found)} {made[0].name}"):
        say(f"    {command}")


def _algorithm(found: examples.Example) -> str:
    return tomllib.loads(found.settings).get("defaults", {}).get("algorithm", "svi")
