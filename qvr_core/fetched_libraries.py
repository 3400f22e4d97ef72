"""Libraries that a page fetches when they are first imported: WebAssembly starts without them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class Fetched(MetaPathFinder):
    """Has a library put among the others as its import begins; it is found there like any other."""

    def __init__(self, name: str, fetch: Callable[[], object]) -> None:
        self.name, self.fetch = name, fetch

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == self.name:
            self.fetch()
            sys.meta_path.remove(self)
            importlib.invalidate_caches()
        return None


def fetch_when_imported(name: str, fetch: Callable[[], object]) -> None:
    """Call `fetch` before `name` is first imported; where it fails it is called again at the next import."""
    sys.meta_path.insert(0, Fetched(name, fetch))
