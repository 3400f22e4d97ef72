"""Write the table of docs/protocol.md from what the running server says of itself: `python scripts/protocol.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "protocol.md"
BEGIN, END = "<!-- from the live capabilities -->", "<!-- end -->"

sys.path.insert(0, str(ROOT))

from qvr_lsp.methods import METHODS  # noqa: E402


def capabilities(client: dict[str, Any]) -> dict[str, Any]:
    """What a fresh server answers to `initialize`."""
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": None, "capabilities": client}}
    ).encode()
    message = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    command = [sys.executable, "-m", "qvr_lsp.server"]
    done = subprocess.run(command, input=message, capture_output=True, cwd=ROOT, timeout=60, check=False)
    size = int(done.stdout.split(b"\r\n", 1)[0].split(b":")[1])
    return json.loads(done.stdout.split(b"\r\n\r\n", 1)[1][:size])["result"]["capabilities"]


def at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def table() -> str:
    """One row per method: what it is for, how it is announced, and whether it also answers in a qvr.toml."""
    found = capabilities({"textDocument": {"diagnostic": {}, "rename": {"prepareSupport": True}}})
    rows = ["| method | what it answers or does | announced as | in qvr.toml |", "|---|---|---|---|"]
    for method in METHODS.values():
        value = at(found, method.capability)
        shown = f"`{method.capability}`" if value is not None else "always"
        shown += f" = `{json.dumps(value)}`" if isinstance(value, int) and value is not True else ""
        rows.append(f"| `{method.name}` | {method.line} | {shown} | {'yes' if method.in_settings else ''} |")
    commands = ", ".join(f"`{name}`" for name in found["executeCommandProvider"]["commands"])
    kinds = ", ".join(f"`{name}`" for name in found["codeActionProvider"]["codeActionKinds"])
    legend = found["semanticTokensProvider"]["legend"]
    rows += [
        "",
        f"Commands: {commands}.",
        "",
        f"Kinds of code actions: {kinds}.",
        "",
        f"Semantic tokens: {', '.join(legend['tokenTypes'])}; modifiers {', '.join(legend['tokenModifiers'])}.",
    ]
    return "\n".join(rows)


def page() -> str:
    """The page with its table made anew."""
    head, _, rest = PAGE.read_text().partition(BEGIN)
    return f"{head}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page())
