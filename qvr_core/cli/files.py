"""Reading and writing the files that commands are given."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from qvr_core.cli.console import say

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
    from qvr_core.runs.record.store import RunStore


def stop(message: str, status: int = 2) -> NoReturn:
    """End the command with a message on stderr; status 2 is wrong usage."""
    say(f"qvr: {message}", err=True)
    raise typer.Exit(status)


CLUSTER = "Where units of the work are done, as `qvr run nuts` has it: `none`, `local[N]`, `tcp://HOST:PORT`, …"


def known_cluster(value: str | None) -> str | None:
    """A cluster as it was named; ends the command where it is none."""
    from qvr_core.cluster.address import address_of

    try:
        address_of(value or "none")
    except ValueError as problem:
        stop(str(problem))
    return value


def write_out(text: str) -> None:
    """Write to stdout what programs read: UTF-8, whatever the terminal's encoding."""
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
    sys.stdout.buffer.flush()


def _bytes_of(path: str | Path, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        stop(f"there is no {what} {path}")
    except IsADirectoryError:
        stop(f"{path} cannot be read: it is a folder")
    except OSError as error:
        stop(f"{path} cannot be read: {error.strerror}")


def read_settings(path: Path) -> str:
    """The text of a qvr.toml; the command stops where there is none to read."""
    try:
        return _bytes_of(path, "settings file").decode("utf-8")
    except UnicodeDecodeError:
        stop(f"{path} is not UTF-8; save the file as UTF-8 first")


def read_program(path: str, *, exact: bool = False) -> str:
    """The text of a file, or of stdin for `-`.

    What is not UTF-8 is kept readable, as an editor would show it; with `exact`, because the text will be written
    back, the command stops instead.
    """
    raw = sys.stdin.buffer.read() if path == "-" else _bytes_of(path, "file")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if exact:
            line = raw.count(b"\n", 0, error.start) + 1
            stop(f"{path}, line {line}: byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8 first", 1)
    return raw.decode("utf-8", "replace")


def write_program(path: str, text: str) -> None:
    """Write a program's text back."""
    try:
        Path(path).write_bytes(text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        stop(f"{path} cannot be written: {error.strerror}", 1)


def analysed_file(path: str, text: str | None = None) -> Snapshot:
    """The analysis of a file, with what it imports."""
    from qvr_core.analysis import analyse
    from qvr_core.disk import Disk, location_of_file
    from qvr_core.workspace import Workspace

    known = read_program(path) if text is None else text
    return analyse(known, None, location_of_file(path), Workspace(Disk()))


def store() -> RunStore:
    """Where this command keeps runs and looks for them: beside the nearest qvr.toml, else in the working directory."""
    from qvr_core.runs.record.settings_file import find_settings
    from qvr_core.runs.record.store import RunStore

    settings = find_settings(Path.cwd())
    return RunStore(settings.parent if settings is not None else Path.cwd())


def program_files(arguments: Iterable[str]) -> Iterator[str]:
    """The files named, and every .qvr file below the folders named, those of hidden folders (`.qvr/runs`) left out."""
    for argument in arguments:
        if argument != "-" and Path(argument).is_dir():
            found = sorted(str(path) for path in _programs_below(Path(argument)))
            if not found:
                stop(f"no .qvr file in {argument}")
            yield from found
        elif argument == "-" or Path(argument).suffix == ".qvr" or not Path(argument).exists():
            yield argument
        else:
            stop(f"{argument} is not a .qvr file; rename it, or hand it over on stdin (-)")


def _programs_below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("?*.qvr"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden:
            yield path


def source_flags(given: Sequence[str], tables: str | None = None) -> dict[str, str | None]:
    """The settings that several `--data` stand for: the main source, and those with the name of what they hold."""
    from qvr_core.runs.record.settings import UsageProblem, data_flags

    try:
        main, named = data_flags(given)
    except UsageProblem as problem:
        stop(str(problem))
    return {"data": main, "tables": ",".join(filter(None, [tables, *map("=".join, named.items())])) or None}
