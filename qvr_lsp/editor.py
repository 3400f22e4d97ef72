"""The editor as the parts of a session see it; `language_server.QvrLanguageServer` is one."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from pygls.progress import Progress

from qvr_lsp.positions import LineCodec
from qvr_lsp.protocol import QvrProtocol
from qvr_lsp.settings import Settings


class Client(Protocol):
    """One editor: what it can do, what its user has set, and messages to it."""

    settings: Settings
    trusted: bool
    """Whether the editor's user trusts the folders: links that imports lead over are followed only then."""

    @property
    def protocol(self) -> QvrProtocol: ...
    @property
    def codec(self) -> LineCodec: ...
    @property
    def work_done_progress(self) -> Progress: ...
    def has(self, path: str) -> bool: ...
    def get(self, path: str) -> Any: ...
    def refresh(self, *features: str) -> None: ...
    def spawn(self, work: Coroutine[Any, Any, Any]) -> None: ...
