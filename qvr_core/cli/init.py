"""`qvr init DIR`: a folder with a program, data and qvr.toml, ready to run."""

from __future__ import annotations

import shutil
from pathlib import Path

import typer

from qvr_core.cli.console import say
from qvr_core.cli.files import stop

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
FORMULA = "yield_t ~ rain + (1 | plot)"


@app.command()
def init(
    folder: Path = typer.Argument(metavar="DIR", help="A folder that does not exist yet, or is empty."),
    data: Path | None = typer.Option(None, "--data", metavar="FILE.csv", help="Your table; a small one by default."),
    formula: str | None = typer.Option(None, "--formula", help='What explains what, as "y ~ x + (1 | g)".'),
    family: str | None = typer.Option(None, "--family", help="normal, bernoulli or poisson; else by the outcome."),
) -> None:
    """Make a folder with a program, its data and qvr.toml, and say what to do there."""
    from qvr_core.cli.new import written

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        stop(f"{folder} is there already, and not empty: name another folder", 1)
    if data is not None and formula is None:
        stop('say what explains what in your table, as --formula "y ~ x + (1 | g)"')
    if formula is not None and data is None:
        stop("a formula is about a table: --data FILE.csv")
    if data is not None and not data.is_file():
        stop(f"there is no file {data}")
    existed = folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "data.csv"
    try:
        if data is not None:
            shutil.copyfile(data, table)
        else:
            table.write_text(DATA, encoding="utf-8")
        text = written(formula or FORMULA, f"csv:{table}", family, "model")
    except typer.Exit:
        table.unlink(missing_ok=True)
        if not existed:
            folder.rmdir()
        raise
    (folder / "model.qvr").write_text(text, encoding="utf-8")
    (folder / "qvr.toml").write_text('[run.model]\ndata = "csv:data.csv"\n', encoding="utf-8")
    say(f"made {folder}: model.qvr, data.csv, qvr.toml.  Next:")
    commands = (
        f"cd {folder}",
        "qvr sample model.qvr --prior --plot prior.png",
        "qvr run nuts model.qvr",
        "qvr sample last --plot predicted.png",
    )
    for command in commands:
        say(f"    {command}")
