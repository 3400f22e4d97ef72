"""Where the server logs: a rotating file, stderr for errors, and the editor's log channel.  Never message bodies."""

from __future__ import annotations

import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path

from lsprotocol import types

from qvr_lsp.editor import Client

LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}
FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
MESSAGE_TYPES = ((logging.ERROR, 1), (logging.WARNING, 2), (logging.INFO, 3))


def log_file() -> Path:
    """The log's path: QVR_LOG_FILE, else in the user's state folder."""
    if "QVR_LOG_FILE" in os.environ:
        return Path(os.environ["QVR_LOG_FILE"])
    state = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "qvr" / "lsp.log"


def to_file() -> None:
    """Log to the rotating file; a folder that cannot be written is no reason not to start."""
    root = logging.getLogger("qvr")
    root.setLevel(logging.INFO)
    root.propagate = False
    stderr = logging.StreamHandler()
    stderr.setLevel(logging.ERROR)
    root.addHandler(stderr)
    try:
        path = log_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(path, maxBytes=1_000_000, backupCount=2, encoding="utf-8", delay=True)
    except (OSError, RuntimeError):
        return
    handler.setFormatter(logging.Formatter(FORMAT))
    root.addHandler(handler)


class EditorHandler(logging.Handler):
    """Sends records as `window/logMessage`."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client

    def emit(self, record: logging.LogRecord) -> None:
        kind = next((number for level, number in MESSAGE_TYPES if record.levelno >= level), 4)
        try:
            params = types.LogMessageParams(types.MessageType(kind), self.format(record))
            self._client.protocol.notify(types.WINDOW_LOG_MESSAGE, params)
        except Exception:
            self.handleError(record)


def to_editor(client: Client, level: str) -> None:
    """Also log to this editor."""
    root = logging.getLogger("qvr")
    for handler in [old for old in root.handlers if isinstance(old, EditorHandler)]:
        root.removeHandler(handler)
    handler = EditorHandler(client)
    handler.setLevel(LEVELS.get(level, logging.WARNING))
    root.setLevel(min(logging.INFO, handler.level))
    root.addHandler(handler)
