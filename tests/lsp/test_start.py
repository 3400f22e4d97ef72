"""What is imported when: `initialize` is answered without the analyser, and no question waits for an import later."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[2]

BEFORE = """\
import json, sys
from qvr_lsp.server import loaded
loaded()
analyser = ("qvr_core.analysis", "qvr_core.ide", "qvr_core.semantics.file")
print(json.dumps([name for name in sys.modules if name.startswith(analyser)]))
"""

# The same while the answer is written.
ANSWER = """\
import asyncio, json, os, sys
from qvr_lsp.server import loaded
async def main():
    def send(message):
        print(json.dumps([name for name in sys.modules if name.startswith(("qvr_core.analysis", "qvr_core.ide"))]))
        sys.stdout.flush()
        os._exit(0)
    params = {"processId": None, "capabilities": {}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    loaded().connect(send, lambda: None)(json.dumps(request))
    await asyncio.sleep(600)
asyncio.run(main())
"""

# Every feature's imports, read off its source: what stands inside of functions.
LATER = """\
import ast, json, sys
from pathlib import Path
from qvr_lsp.loading import load_all, load_first
load_all(); load_first()
wanted = set()
for path in Path("qvr_lsp/features").glob("*.py"):
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            wanted |= {node.module for node in ast.walk(function) if isinstance(node, ast.ImportFrom)}
print(json.dumps(sorted(wanted - set(sys.modules))))
"""


def printed(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_initialize_is_answered_without_the_analyser() -> None:
    assert printed(BEFORE) == []
    assert printed(ANSWER) == []


def test_what_features_import_when_they_are_asked_is_loaded_before() -> None:
    assert printed(LATER) == []
