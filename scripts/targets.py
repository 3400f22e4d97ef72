"""`python -m scripts.targets` makes the environment in which exports are compared with the engines they are for.

It is none of the project's: a virtual environment under `$QVR_TARGETS`, else `~/.cache/qvr-targets`.  What is there
already is kept.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(os.environ.get("QVR_TARGETS", "~/.cache/qvr-targets")).expanduser()
PYTHON = ROOT / "env" / "bin" / "python"
PACKAGES = ("numpyro>=0.15", "pymc>=5.28,<6")


def main() -> int:
    """Make it, or complete it; status 1 where something cannot be had."""
    if not PYTHON.exists():
        venv.create(ROOT / "env", with_pip=True)
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", *PACKAGES]
    return int(subprocess.run(command, check=False).returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
