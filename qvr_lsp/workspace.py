"""The folders of a session: their .qvr files that are not open, and their qvr.toml files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qvr_core.analysis import Snapshot
from qvr_core.syntax.source import SourceText
from qvr_lsp import positions
from qvr_lsp.rpc import Json
from qvr_lsp.uris import path_of, uri_of

if TYPE_CHECKING:
    from qvr_lsp.client import Client
    from qvr_lsp.documents import Documents

MAX_FILES = 2000
MAX_BYTES = 4_000_000
SKIPPED = frozenset((".git", ".venv", "node_modules", "__pycache__", ".qvr", ".cache", "dist", "build"))


class SettingsDocument:
    """A qvr.toml that is open in the editor."""

    def __init__(self, uri: str, text: str, version: int | None) -> None:
        self.uri = uri
        self.version = version
        self.source = SourceText(text)


class Workspace:
    """The folders that the editor has opened."""

    def __init__(self, client: Client, documents: Documents, changed: Callable[[SettingsDocument], None]) -> None:
        """`changed` is called with each open qvr.toml that is to be checked again."""
        self._client = client
        self._documents = documents
        self._changed = changed
        self._folders: list[Path] = []
        self._settings: dict[str, SettingsDocument] = {}
        self._files: dict[Path, tuple[tuple[int, int], Snapshot]] = {}

    # ------------------------------------------------------------ folders and files

    def open_folders(self, uris: list[str]) -> None:
        self._folders += [path for uri in uris if (path := path_of(uri)) is not None]

    @property
    def folders(self) -> list[Path]:
        return self._folders

    def close_folders(self, uris: list[str]) -> None:
        gone = {path_of(uri) for uri in uris}
        self._folders = [path for path in self._folders if path not in gone]

    def root_of(self, path: Path) -> Path:
        """The folder that the runs and paths of a file or folder belong to: that of its qvr.toml, else its own."""
        from qvr_core.runs.record.settings_file import find_settings

        folder = path if path.is_dir() else path.parent
        if not folder.is_dir():
            return Path.cwd()
        found = find_settings(folder)
        return folder if found is None else found.parent

    def files(self) -> Iterator[Path]:
        """Every .qvr file of the folders, at most `MAX_FILES`."""
        count = 0
        for folder in self._folders:
            for parent, folders, names in os.walk(folder):
                folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
                for name in sorted(names):
                    if name.endswith(".qvr"):
                        count += 1
                        if count > MAX_FILES:
                            return
                        yield Path(parent) / name

    def closed_snapshot(self, path: Path) -> Snapshot | None:
        """The analysis of a file that is not open; kept until the file changes."""
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            held = self._files.get(path)
            if held is not None and held[0] == stamp and self._documents.imports.current(held[1]):
                return held[1]
            if status.st_size > MAX_BYTES:
                return None
            text = path.read_bytes().decode("utf-8", "replace")
        except OSError:
            return None
        snapshot = self._documents.imports.analyse(path, text)
        self._files[path] = (stamp, snapshot)
        return snapshot

    def closed_text(self, path: Path) -> str | None:
        """The text of a file that is not open; None where it is too long, '' where it cannot be read."""
        try:
            if path.stat().st_size > MAX_BYTES:
                return None
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def closed_files(self) -> Iterator[Path]:
        """The files that are not open in the editor, whose documents count instead."""
        opened = {document.uri for document in self._documents}
        return (path for path in self.files() if uri_of(path) not in opened)

    # ------------------------------------------------------------ qvr.toml

    def open_settings(self, uri: str, text: str, version: int | None) -> None:
        document = self._settings[uri] = SettingsDocument(uri, text, version)
        self._changed(document)

    def change_settings(self, uri: str, changes: list[Any], version: int | None) -> None:
        document = self._settings[uri]
        document.version = version
        for change in changes:
            if change.get("range") is None:
                document.source = SourceText(change["text"])
            else:
                stretch = positions.from_range(document.source.lines, change["range"], self._client.encoding)
                document.source.edit(stretch.start, stretch.end, change["text"])
        self._changed(document)

    def close_settings(self, uri: str) -> bool:
        return self._settings.pop(uri, None) is not None

    def settings_document(self, uri: str) -> SettingsDocument | None:
        return self._settings.get(uri)

    def settings_changed(self) -> None:
        """A qvr.toml changed on disk: the open ones are checked again."""
        for document in self._settings.values():
            self._changed(document)

    def settings_text(self, path: Path) -> tuple[Path, str] | None:
        """The qvr.toml that governs a file, as it stands in the editor or on disk."""
        from qvr_core.runs.record.settings_file import find_settings

        found = find_settings(path.parent)
        if found is None:
            return None
        document = self._settings.get(uri_of(found))
        if document is not None:
            return found, document.source.text
        try:
            return found, found.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def run_table(self, path: Path, program: str | None) -> Json:
        """What qvr.toml sets for a program's runs."""
        from qvr_core.runs.record.settings import resolve

        held = self.settings_text(path)
        if held is None:
            return {}
        resolved = resolve(program or "", held[1], {})
        return {key: getattr(resolved.config, key) for key, origin in resolved.origins.items() if origin != "default"}
