"""Names of columns: the one that is probably meant, and how one is given another name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is probably meant; capitals, blanks and `_` do not count."""
    plain = {plainly(one): one for one in known}
    near = difflib.get_close_matches(plainly(name), plain, 1)
    return plain[near[0]] if near else None


def plainly(name: str) -> str:
    """A name without capitals, blanks and `_`."""
    return re.sub(r"[\W_]", "", name).lower()


def renaming(name: str, column: str) -> str:
    """The flag that says what a name of the program is called in the file."""
    pair = f"{name}={column}"
    return f"--columns {pair}" if re.fullmatch(r"[\w=.…]+", pair) else f"--columns '{pair}'"


def listed(names: Iterable[str]) -> str:
    """The first dozen names, for a message."""
    found = list(names)
    more = f" and {len(found) - 12} more" if len(found) > 12 else ""
    return (", ".join(f"`{name}`" for name in found[:12]) or "none") + more
