"""The version of this project, in each of the files that say it."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PATTERNS = {
    "qvr_core/__init__.py": r'__version__ = "([^"]+)"',
    "CITATION.cff": r"^version: (\S+)$",
    "CHANGELOG.md": r"^## (\d\S*)",
}
"""The first match in each is the version."""
PACKAGES = ("vscode-extension/package.json", "vscode-extension/package-lock.json", "playground/package.json")


def versions(root: Path = ROOT) -> dict[str, str]:
    """What each file says; "" where it says nothing."""
    found: dict[str, str] = {}
    for name, pattern in PATTERNS.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        found[name] = match[1] if match else ""
    for name in PACKAGES:
        if (root / name).is_file():
            found[name] = str(json.loads((root / name).read_text(encoding="utf-8")).get("version", ""))
    return found


def disagreement(found: dict[str, str]) -> str:
    """Which files do not say the same version; "" where all do."""
    if len(set(found.values())) == 1 and "" not in found.values():
        return ""
    return "versions differ: " + ", ".join(f"{name} {version or 'none'}" for name, version in found.items())
