"""`python -m scripts.targets` makes the environments in which exports are compared with the engines they are for.

They are none of the project's: virtual environments under `$QVR_TARGETS`, else `~/.cache/qvr-targets`.  What is there
already is kept.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(os.environ.get("QVR_TARGETS", "~/.cache/qvr-targets")).expanduser()
PYTHON = ROOT / "env" / "bin" / "python"
STAN_PYTHON = ROOT / "stan" / "bin" / "python"
# Stan's headers, libraries and compiler into C++ come with httpstan; a C++ compiler is the machine's.
PACKAGES = {PYTHON: ("numpyro>=0.15", "diffrax>=0.6", "pymc>=5.28,<6"), STAN_PYTHON: ("httpstan>=4.13", "numpy")}


def main() -> int:
    """Make it, or complete it; status 1 where something cannot be had."""
    status = 0
    for python, packages in PACKAGES.items():
        if not python.exists():
            venv.create(python.parents[1], with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *packages]
        status |= int(subprocess.run(command, check=False).returncode != 0)
    if shutil.which("g++") is None:
        print("g++ is missing: exports to Stan cannot be compared", file=sys.stderr)
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
