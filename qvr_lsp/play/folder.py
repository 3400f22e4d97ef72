"""The folder that `qvr play` works in: its programs and settings are read and saved, its data are listed.

Nothing outside of it is ever named, read or written: a path is taken only where it stays inside after every link.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from pygls.exceptions import JsonRpcInvalidParams

from qvr_core.runs.record.atomic_files import digest, write_bytes
from qvr_lsp.json_values import Json
from qvr_lsp.messages import ReadParams, SaveParams
from qvr_lsp.protocol import RequestFailed
from qvr_lsp.uris import uri_of
from qvr_lsp.workspace import MAX_BYTES, MAX_FILES, SKIPPED

PROGRAM, SETTINGS = ".qvr", "qvr.toml"
DATA = {
    ".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".ndjson": "ndjson", ".jsonl": "ndjson", ".npz": "npz",
    ".txt": "text",
}  # fmt: skip
"""What a file's data are called in front of its path."""
MOST_LOOKED_AT = 20_000
"""Files and folders, so that a page never waits for a whole disk."""
NEW = "program.qvr"
NO_TEXT = "its text is not UTF-8"


class Folder:
    """One folder and what is in it."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()

    # ------------------------------------------------------------ what there is

    def listing(self) -> Json:
        """`{name, uri, files: [{path, uri, kind}], data: [{path, file, source}], whole}`; `whole` is false where some
        are left out."""
        programs: list[Json] = []
        data: list[Json] = []
        whole = True
        for count, path in enumerate(self._walk()):
            if count >= MOST_LOOKED_AT or len(programs) + len(data) >= MAX_FILES:
                whole = False
                break
            shown = path.relative_to(self.path).as_posix()
            if path.suffix == PROGRAM or path.name == SETTINGS:
                if not self._can_be_read(shown):
                    continue
                kind = "settings" if path.name == SETTINGS else "program"
                programs.append({"path": shown, "uri": uri_of(path), "kind": kind})
            elif path.suffix in DATA and path.is_file():
                data.append({"path": shown, "file": str(path), "source": DATA[path.suffix]})
        programs.sort(key=lambda one: (one["kind"] == "settings", one["path"]))
        data.sort(key=lambda one: one["path"])
        return {"name": self.path.name, "uri": uri_of(self.path), "files": programs, "data": data, "whole": whole}

    def _walk(self) -> Iterator[Path]:
        """Folders too, so that they count; what links lead to is not entered."""
        for place, folders, names in os.walk(self.path):
            folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
            for name in (*folders, *sorted(names)):
                yield Path(place, name)

    def first(self) -> str:
        """The program that is opened where none is named; one that is yet to be written where there is none."""
        found = [one["path"] for one in self.listing()["files"] if one["kind"] == "program"]
        return min(found, key=lambda path: (path.count("/"), path), default=NEW)

    # ------------------------------------------------------------ one file

    def read(self, params: ReadParams) -> Json:
        """`{path}` → `{path, uri, text, stamp}`; a stamp tells one content from another.  `program.qvr` need not be
        there: it has neither then."""
        path = self._inside(params.path)
        raw = self._bytes(path)
        if raw is None and params.path == NEW:
            return {"path": NEW, "uri": uri_of(path)}
        if raw is None:
            raise RequestFailed(f"{params.path} cannot be read: there is no such file")
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise RequestFailed(f"{params.path} cannot be read: {NO_TEXT}") from None
        return {"path": params.path, "uri": uri_of(path), "text": text, "stamp": digest(raw)}

    def save(self, params: SaveParams) -> Json:
        """`{path, text, stamp?, new?}` → `{uri, stamp}`.  With a `stamp`, only over the content that it was given for;
        a `new` file only where there is none."""
        path = self._inside(params.path)
        raw = params.text.encode("utf-8", "surrogatepass")
        if len(raw) > MAX_BYTES:
            raise JsonRpcInvalidParams(f"{params.path} cannot be saved: {len(raw):,} bytes, {MAX_BYTES:,} at most")
        there = self._bytes(path)
        if params.new and there is not None:
            raise RequestFailed(f"{params.path} is there already")
        if params.stamp is not None and (there is None or digest(there) != params.stamp):
            raise RequestFailed(f"{params.path} has changed on the disk since it was opened")
        try:
            write_bytes(path, raw)
        except OSError as error:
            raise RequestFailed(f"{params.path} cannot be saved: {error.strerror}") from error
        return {"uri": uri_of(path), "stamp": digest(raw)}

    def _inside(self, shown: str) -> Path:
        """The file that a path within the folder names.  Raises `JsonRpcInvalidParams` for any other."""
        try:
            path = Path(os.path.normpath(self.path / shown))
            real = path.resolve()
        except (OSError, ValueError):
            raise JsonRpcInvalidParams("the path is none") from None
        if not path.is_relative_to(self.path) or not real.is_relative_to(self.path):
            raise JsonRpcInvalidParams(f"{shown} is not in the folder {self.path.name}")
        if path.suffix != PROGRAM and path.name != SETTINGS:
            raise JsonRpcInvalidParams(f"{shown} is neither a program (.qvr) nor a {SETTINGS}")
        if any(part in SKIPPED or part.startswith(".") for part in path.relative_to(self.path).parts):
            raise JsonRpcInvalidParams(f"{shown} is hidden")
        return real

    def _can_be_read(self, shown: str) -> bool:
        """Whether `read` takes a path of the listing."""
        try:
            return self._size(self._inside(shown)) is not None
        except (JsonRpcInvalidParams, RequestFailed):
            return False

    def _size(self, path: Path) -> int | None:
        """The bytes of a file; None where there is none.  Raises RequestFailed for what is too large or no file:
        the other end of a pipe may never write, and a device has no end."""
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RequestFailed(f"{path.name} cannot be read: {error.strerror}") from error
        if not stat.S_ISREG(status.st_mode):
            raise RequestFailed(f"{path.name} cannot be read: it is no file")
        if status.st_size > MAX_BYTES:
            raise RequestFailed(f"{path.name} has more than {MAX_BYTES:,} bytes")
        return status.st_size

    def _bytes(self, path: Path) -> bytes | None:
        """What a file holds; None where there is none."""
        try:
            return None if self._size(path) is None else path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RequestFailed(f"{path.name} cannot be read: {error.strerror}") from error
