"""Names that Stan takes: letters of ASCII, digits and underscores, none in front and not two behind."""

from __future__ import annotations

import re

from qvr_core.export.names import Names


def identifier(name: str) -> str:
    """A name as Stan takes it; '' where nothing is left of it."""
    plain = re.sub(r"[^A-Za-z0-9_]", lambda found: f"u{ord(found[0]):x}", name).lstrip("_0123456789")
    return re.sub(r"_{2,}$", "_", plain)


class StanNames(Names):
    """Gives names that Stan takes."""

    def fresh(self, name: str) -> str:
        plain = identifier(name) or "x"
        stem, wanted, count = plain.rstrip("_"), plain, 1
        while self.is_taken(wanted):
            wanted = f"{stem}_" if count == 1 else f"{stem}_{count}"
            count += 1
        return super().fresh(wanted)
