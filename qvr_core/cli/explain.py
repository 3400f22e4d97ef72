"""`qvr explain`: the page about a diagnostic, in the terminal."""

from __future__ import annotations

import sys
from difflib import get_close_matches

import typer
from rich.console import Console
from rich.markdown import Markdown

from qvr_core.cli.console import say
from qvr_core.cli.files import stop, write_out
from qvr_core.diagnostic_pages import pages, summary_of

app = typer.Typer(add_completion=False)


@app.command()
def explain(
    code: str | None = typer.Argument(None, help="What stands in brackets behind `error`; all where none is named."),
) -> None:
    """What a diagnostic means, an example of it, and what mends it."""
    known = pages()
    if code is None:
        width = max(map(len, known))
        for name, page in known.items():
            say(f"{name:{width}}  {summary_of(page)}")
        return
    if code not in known:
        near = get_close_matches(code, known, 1)
        stop(f"there is no diagnostic `{code}`" + (f"; did you mean `{near[0]}`?" if near else ": see qvr explain"))
    text = known[code].read_text(encoding="utf-8")
    if sys.stdout.isatty():
        Console(width=min(Console().width, 100)).print(Markdown(text))
    else:
        write_out(text)
