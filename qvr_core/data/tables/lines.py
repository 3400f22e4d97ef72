"""What text tables and their refusals share."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

from qvr_core.data.size_limits import LINE, check_line

if TYPE_CHECKING:
    pass

IN_PARTS = "Let the run read it in parts with batch_size"


def numbered_lines(path: str) -> Iterator[tuple[int | None, bytes]]:
    """The lines of a text with the numbers of their rows, the header without one."""
    with open(path, "rb") as file:
        for row in count():
            line = file.readline(LINE + 1)
            if not line:
                return
            check_line(line, path, row or None)
            yield row or None, line


def first_line(error: BaseException) -> str:
    """An error of a library in one line; the name of its class where it says nothing."""
    return (str(error) or type(error).__name__).splitlines()[0]
