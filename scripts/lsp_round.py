"""One round with a language server, with the standard library only: `python lsp_round.py COMMAND…`.

It opens a program whose widths do not fit, asks for a hover, prints the codes and the hover that come back, and
ends it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

TEXT = "object A : Real 3\nobject B : Real 4\nmorphism f : A -> B [role=linear]\nlet g = f >> f\n"
URI = "untitled:round.qvr"


def packet(message: dict[str, object]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def answers(server: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    """What the server sends, message by message."""
    assert server.stdout is not None
    while line := server.stdout.readline():
        length = int(line.partition(b":")[2])
        while server.stdout.readline().strip():
            pass
        yield json.loads(server.stdout.read(length))


def main(command: list[str]) -> int:
    document = {"uri": URI, "languageId": "qvr", "version": 1, "text": TEXT}
    there = {"textDocument": {"uri": URI}, "position": {"line": 2, "character": 10}}
    messages: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
        {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen", "params": {"textDocument": document}},
        {"id": 2, "method": "textDocument/hover", "params": there},
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        server.stdin.write(b"".join(map(packet, messages)))
        server.stdin.flush()
        codes: list[str] | None = None
        hover = None
        for answer in answers(server):
            if answer.get("method") == "textDocument/publishDiagnostics":
                codes = [one["code"] for one in answer["params"]["diagnostics"]]
            if answer.get("id") == 2:
                hover = answer["result"]["contents"]
            if codes is not None and hover is not None:
                break
        server.stdin.write(packet({"id": 3, "method": "shutdown"}) + packet({"method": "exit"}))
        server.stdin.close()
        print(*(codes or []), json.dumps(hover))
        return server.wait(timeout=60)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
