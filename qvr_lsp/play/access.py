"""Who may ask: the page that this process itself has served, and programs that are no page.

A page of another site may send requests to any port of this machine, but not choose their `Host` and `Origin`; a name
that someone has pointed at 127.0.0.1 (DNS rebinding) stands in both.
"""

from __future__ import annotations

from collections.abc import Iterable

NAMES = ("127.0.0.1", "localhost")


class Guard:
    """What the headers of every request must say."""

    def __init__(self, port: int) -> None:
        self.hosts = frozenset(f"{name}:{port}" for name in NAMES)
        self.origins = frozenset(f"http://{host}" for host in self.hosts)

    def refusal(self, hosts: Iterable[str], origins: Iterable[str]) -> str | None:
        """Why a request is refused whatever it knows; None for one of this machine's own page, or of no page."""
        named = [host.lower() for host in hosts]
        if len(named) != 1 or named[0] not in self.hosts:
            return f"this is {min(self.hosts)} and answers to no other name"
        if any(origin.lower() not in self.origins for origin in origins):
            return "pages of other sites may not ask"
        return None
