"""What commands say to people: nothing that comes from a file reaches the terminal as an order to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from qvr_core.syntax.printable import printable


class PlainConsole(Console):
    """A console that styles what it is told to, and shows whatever else would be an escape sequence."""

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def say(text: str, *, err: bool = False) -> None:
    """One line in plain text."""
    typer.echo(printable(text), err=err)
