"""The sampler compiled by a process of its own, while what runs it still loads torch and reads its data.

python -m qvr_core.inference.machine.ahead
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

from qvr_core.inference.machine.build import available
from qvr_core.inference.machine.turns import compiled_before


def begin() -> subprocess.Popen[bytes] | None:
    """Start compiling the sampler, if that is still to be done and there is a compiler.  Whoever begins it ends it."""
    if not available() or compiled_before():
        return None
    with contextlib.suppress(OSError):
        return subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONSAFEPATH": "1"},
        )  # fmt: skip
    return None


if __name__ == "__main__":
    from qvr_core.inference.machine.chain import compile_sampler

    compile_sampler()
