"""The folders of a session: their .qvr files that are not open, and their qvr.toml files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.workspace import Workspace

from qvr_core.syntax.source import SourceText
from qvr_lsp.json_values import Json
from qvr_lsp.positions import LineCodec
from qvr_lsp.uris import is_settings, path_of, uri_of

if TYPE_CHECKING:
    from qvr_core.analysis import Snapshot
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


class QvrWorkspace(Workspace):
    """The folders that the editor has opened, and its texts, of which pygls keeps lines that end at form feeds and line
    separators too: edits behind one would go astray.  Ours are `Documents`, and a `SettingsDocument` for each qvr.toml.
    """

    def __init__(
        self,
        documents: Callable[[], Documents],
        changed: Callable[[SettingsDocument], None],
        root_uri: str | None,
        folders: Sequence[types.WorkspaceFolder],
        encoding: types.PositionEncodingKind | str | None,
    ) -> None:
        """`documents` are made when the first text is opened; `changed` is called with each open qvr.toml that is to be
        checked again."""
        super().__init__(root_uri, types.TextDocumentSyncKind.Incremental, folders, encoding)
        self._codec = LineCodec(encoding)
        self._open_documents = documents
        self._changed = changed
        self._settings: dict[str, SettingsDocument] = {}
        self._files: dict[Path, tuple[tuple[int, int], Snapshot]] = {}

    @property
    def documents(self) -> Documents:
        return self._open_documents()

    @property
    def position_codec(self) -> LineCodec:
        """pygls's is slow on long lines, and wrong behind the last one."""
        return self._codec

    # ------------------------------------------------------------ texts

    def put_text_document(self, text_document: types.TextDocumentItem, notebook_uri: str | None = None) -> None:
        """A text is the editor's from now on."""
        uri = text_document.uri
        if is_settings(uri):
            document = self._settings[uri] = SettingsDocument(uri, text_document.text, text_document.version)
            self._changed(document)
        else:
            self.documents.open(uri, text_document.version, text_document.text)

    def change_text_document(
        self,
        identity: types.VersionedTextDocumentIdentifier,
        changes: Sequence[types.TextDocumentContentChangeEvent],
    ) -> None:
        """Changes that make one version."""
        if not is_settings(identity.uri):
            self.documents.change(identity.uri, identity.version, changes)
            return
        document = self._settings.get(identity.uri)
        if document is None:
            raise JsonRpcInvalidParams(f"{identity.uri} is not open")
        document.version = identity.version
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                stretch = self._codec.stretch(document.source.lines, change.range)
                document.source.edit(stretch.start, stretch.end, change.text)
            else:
                document.source = SourceText(change.text)
        self._changed(document)

    def remove_text_document(self, doc_uri: str) -> None:
        if is_settings(doc_uri):
            self._settings.pop(doc_uri, None)
        else:
            self.documents.drop(doc_uri)

    # ------------------------------------------------------------ folders and files

    @property
    def paths(self) -> list[Path]:
        """The folders that are on this machine."""
        return [path for folder in self.folders.values() if (path := path_of(folder.uri)) is not None]

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
        for folder in self.paths:
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
            if held is not None and held[0] == stamp and self.documents.imports.current(held[1]):
                return held[1]
            if status.st_size > MAX_BYTES:
                return None
            text = path.read_bytes().decode("utf-8", "replace")
        except OSError:
            return None
        snapshot = self.documents.imports.analyse(path, text)
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
        opened = {document.uri for document in self.documents}
        return (path for path in self.files() if uri_of(path) not in opened)

    # ------------------------------------------------------------ qvr.toml

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
