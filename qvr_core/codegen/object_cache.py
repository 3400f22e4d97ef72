"""What is compiled, on disk: bytes under a name, in a folder that is the user's alone.

Machine code that is read is run, so an entry is taken only where a keyed digest says that this user has written it
under this name.  The key lies beside the entries and is nobody else's to read; where the folder or the key were open to
others a new key is made, so all that was there is made anew.  An entry that is cut, changed or planted is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

CACHE_VARIABLE = "QVR_MACHINE_CACHE"
KEY = "key"
KEY_BYTES, DIGEST_BYTES = 32, 32
MOST_ENTRIES, MOST_IN_ALL = 256, 128 * 2**20
MOST_BYTES = 8 * 2**20
"""Of one entry; more takes longer to read than to make."""


def cache_folder() -> Path:
    """Where compiled densities are kept: what QVR_MACHINE_CACHE says, else the user's cache folder."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "qvr" / "machine"


def kept(name: str) -> bytes | None:
    """What was kept under a name, where it is whole and this user's."""
    with contextlib.suppress(OSError):
        folder = cache_folder()
        path = folder / f"{name}.bin"
        if not path.exists() or (key := _key(folder)) is None:
            return None
        held = path.read_bytes()
        digest, body = held[:DIGEST_BYTES], held[DIGEST_BYTES:]
        if hmac.compare_digest(digest, _digest(key, name, body)):
            return body
        path.unlink(missing_ok=True)
    return None


def keep(name: str, body: bytes) -> None:
    """Keep bytes under a name for later runs, where they are few and the folder is the user's."""
    if len(body) > MOST_BYTES:
        return
    with contextlib.suppress(OSError):
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if (key := _key(folder)) is not None:
            _placed(folder / f"{name}.bin", _digest(key, name, body) + body)
            _thin(folder)


def _digest(key: bytes, name: str, body: bytes) -> bytes:
    made = hmac.new(key, len(name).to_bytes(8, "little") + name.encode(), hashlib.sha256)
    made.update(body)
    return made.digest()


def _key(folder: Path) -> bytes | None:
    """The key of a folder, a new one where others could have read the old; None where the folder is another user's."""
    path = folder / KEY
    if os.name == "posix":
        about = folder.stat()
        if about.st_uid != os.getuid():
            return None
        if stat.S_IMODE(about.st_mode) != 0o700:
            folder.chmod(0o700)
            path.unlink(missing_ok=True)
    held = _read(path)
    if held is not None:
        return held
    made = secrets.token_bytes(KEY_BYTES)
    _placed(path, made)
    # another process may have been later still
    return _read(path)


def _read(path: Path) -> bytes | None:
    try:
        # a link would lead to a file whose owner and mode say nothing about who chose it
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(file.fileno())
        if os.name == "posix" and (about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) != 0o600):
            return None
        held = file.read(KEY_BYTES + 1)
    return held if len(held) == KEY_BYTES else None


def _placed(path: Path, held: bytes) -> None:
    """Write a file whole or not at all; it is nobody's but the user's."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(held)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _thin(folder: Path) -> None:
    """Let the oldest go."""
    age: Callable[[Path], float] = os.path.getmtime
    files: Iterator[Path] = folder.glob("*.bin")
    total = 0
    for number, path in enumerate(sorted(files, key=age, reverse=True)):
        total += path.stat().st_size
        if number >= MOST_ENTRIES or total > MOST_IN_ALL:
            path.unlink(missing_ok=True)
