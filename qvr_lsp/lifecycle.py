"""Watching the editor's process: a server never outlives it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

POLL_SECONDS = 0.5


def watch_process(pid: int, gone: Callable[[], None]) -> None:
    """Call `gone` in the running loop when the process `pid` ends."""
    loop = asyncio.get_running_loop()
    if hasattr(os, "pidfd_open"):
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            loop.call_soon(gone)
            return
        except OSError:
            pass  # an old kernel, or a sandbox that forbids it
        else:

            def ended() -> None:
                loop.remove_reader(descriptor)
                os.close(descriptor)
                gone()

            loop.add_reader(descriptor, ended)
            return

    def poll() -> None:
        if alive(pid):
            loop.call_later(POLL_SECONDS, poll)
        else:
            gone()

    poll()


def alive(pid: int) -> bool:
    """Whether a process of that id exists; unsure counts as alive."""
    if os.name != "posix":
        return True  # stdin ends with the editor there
    with contextlib.suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True
