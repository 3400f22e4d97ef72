"""Files that are whole or absent: written beside their place, flushed to the disk, then renamed; checked when read."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


class DamagedFile(Exception):
    """A file of a run directory that cannot be trusted.  The message names it and says what follows from it."""


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically.  After a kill or on a full disk the old content stands, or the new one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.is_dir():
            raise DamagedFile(f"{path} is damaged: it is a folder, where the run keeps a file")
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable (POSIX wants this after a rename)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest(content: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(content).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file of any size, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Path, content: dict[str, Any], indent: int | None = 1) -> None:
    """Write a JSON object with a checksum of itself under `checksum`; without `indent` on one line."""
    body = json.dumps(content, ensure_ascii=False, sort_keys=True, allow_nan=False)
    checked = {**content, "checksum": digest(body.encode())}
    write_bytes(path, (json.dumps(checked, ensure_ascii=False, indent=indent, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """Read what `write_json` wrote.  Raises `DamagedFile` where a byte has changed, OSError where it is absent."""
    try:
        content = json.loads(_whole(path))
        checksum = content.pop("checksum")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedFile(f"{path} is damaged: it is not the JSON that the run wrote") from error
    body = json.dumps(content, ensure_ascii=False, sort_keys=True)
    if digest(body.encode()) != checksum:
        raise DamagedFile(f"{path} is damaged: its content does not match its checksum")
    return content


def _whole(path: Path) -> bytes:
    """What a file of a run holds, nothing where it is no longer a file that could hold anything: a folder has no
    bytes, and the other end of a pipe may never write.  Raises OSError where there is nothing."""
    return path.read_bytes() if stat.S_ISREG(path.stat().st_mode) else b""


def stamped(line: str) -> str:
    """A line of a log with its CRC-32 in front."""
    body = line.rstrip("\n")
    return f"{zlib.crc32(body.encode()):08x} {body}\n"


def cut_torn_line(file: IO[bytes]) -> None:
    """Cut off a last line without its end, which a killed process left; else what is appended would be glued to it."""
    size = file.seek(0, os.SEEK_END)
    kept = size
    while kept and (end := _last_line_end(file, kept)) != kept:
        kept = end
    if kept != size:
        file.truncate(kept)


def _last_line_end(file: IO[bytes], size: int, block: int = 4096) -> int:
    """Where the last line end among the last bytes before `size` is; where those bytes begin, if there is none."""
    start = file.seek(max(0, size - block))
    return start + file.read(size - start).rfind(b"\n") + 1


def read_stamped(path: Path) -> Iterator[str]:
    """The whole lines of a log written by `stamped`.

    A last line without its end (the process was killed while writing it) is left out; any other damage raises
    `DamagedFile`.
    """
    with open(path, "rb") as file:
        for number, raw in enumerate(file, start=1):
            if not raw.endswith(b"\n"):
                return
            crc, _, body = raw[:-1].partition(b" ")
            if crc != f"{zlib.crc32(body):08x}".encode():
                raise DamagedFile(f"{path} is damaged at line {number}")
            yield body.decode()
