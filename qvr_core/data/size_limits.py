"""What may be read at all: a regular file, of a size that the run's memory holds."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from qvr_core.data.problems import DataProblem

KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
LINE = 2**24
"""Bytes of the longest line of a table."""
NESTED = 64
"""Brackets that a line of ndjson may hold in one another: parsers go one call deeper with each."""


def check_regular(path: str) -> None:
    """Raise `DataProblem` for what is no file: opening a pipe waits for its other end, and a device has none.

    Raises OSError where the path cannot be looked at.
    """
    mode = os.stat(path).st_mode
    kind = next((name for is_one, name in KINDS if is_one(mode)), None)
    if kind is not None:
        remedy = "Data are read more than once: save them to a file first"
        raise DataProblem(f"this is {kind}, not a file", path=path, remedy=remedy, usage=True)


def check_room(path: str, needed: int, room: int | None, *, column: str | None = None, remedy: str) -> None:
    """Raise `DataProblem` where reading takes more bytes than the run has left."""
    if room is not None and needed > room:
        message = f"reading it takes about {in_bytes(needed)}, and {in_bytes(max(room, 0))} of the memory are left"
        raise DataProblem(message, path=path, column=column, remedy=f"{remedy}, or raise memory_limit")


def available() -> int | None:
    """Bytes that this process may still take: the machine's, or its cgroup's where that is less.  None: unknown."""
    found: list[int] = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    except OSError:
        pass
    try:
        most = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if most != "max":
            found.append(int(most) - int(Path("/sys/fs/cgroup/memory.current").read_text()))
    except (OSError, ValueError):
        pass
    return min(found) if found else None


def check_line(line: bytes | str, path: str, row: int | None, what: str = "line") -> None:
    """Raise `DataProblem` for a line, read with `readline(LINE + 1)`, that is longer than `LINE`."""
    if len(line) > LINE:
        remedy = "Is this a table, and is every quote closed?"
        raise DataProblem(f"the {what} has more than {in_bytes(LINE)}", path=path, row=row, remedy=remedy)


class LineEnds:
    """Looks for carriage returns that stand alone outside quotes: some readers of csv end a row there, some do not."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._quotes = 0

    def check(self, line: str, row: int | None) -> None:
        """Raise `DataProblem` for a line, as it stands between two line feeds, that holds one."""
        *parts, last = line.removesuffix("\n").removesuffix("\r").split("\r")
        for part in parts:
            self._quotes += part.count('"')
            if self._quotes % 2 == 0:
                raise DataProblem(
                    "a carriage return stands inside the line",
                    path=self.path,
                    row=row,
                    remedy="End lines by a line feed, and put a field that holds a carriage return into quotes",
                )
        self._quotes += last.count('"')


def check_nesting(line: bytes, path: str, row: int) -> None:
    """Raise `DataProblem` for a line of JSON whose brackets nest deeper than `NESTED`."""
    if line.count(b"[") + line.count(b"{") <= NESTED:
        return
    depth = deepest = 0
    quoted = escaped = False
    for byte in line:
        if quoted:
            quoted = escaped or byte != ord('"')
            escaped = not escaped and byte == ord("\\")
        elif byte == ord('"'):
            quoted = True
        else:
            depth += (byte in b"[{") - (byte in b"]}")
            deepest = max(deepest, depth)
    if deepest > NESTED:
        message = f"the line has {deepest:,} brackets in one another"
        raise DataProblem(message, path=path, row=row, remedy="Write one flat object per line")


def in_bytes(count: float) -> str:
    """A number of bytes for people, three digits."""
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if count < 1000 or unit == "PB":
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError
