"""`python -m benchmarks.engines.environment` makes the environment of Stan and NumPyro, and builds Stan's programs.

It is none of the project's: a virtual environment under `$QVR_BENCH`, else `~/.cache/qvr-bench`, with pystan (whose
httpstan compiles a program in some 20 s, and needs a C++ compiler) and NumPyro.  What is there already is kept.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.engines.client import STAN_PROGRAMS, Engine, Missing, root, stan

# Setuptools: httpstan builds with it and does not ask for it.
PACKAGES = ("pystan>=3.10", "numpyro>=0.15", "setuptools<81")


def main() -> int:
    """Make it, or complete it; status 1 where something cannot be had."""
    made = root() / "env"
    if not (made / "bin" / "python").exists():
        venv.create(made, with_pip=True)
    status = 0
    # one by one: where the one cannot be had, the other may
    for package in PACKAGES:
        command = [str(made / "bin" / "python"), "-m", "pip", "install", "--quiet", package]
        if subprocess.run(command, check=False).returncode:
            print(f"{package} cannot be installed", file=sys.stderr)
            status = 1
    try:
        with stan() as engine:
            build(engine, sorted(STAN_PROGRAMS.glob("*.stan")))
    except Missing as missing:
        print(missing, file=sys.stderr)
        status = 1
    return status


def build(engine: Engine, programs: list[Path]) -> None:
    """Have Stan's programs compiled."""
    for path in programs:
        print(f"building {path.stem} …", flush=True)
        engine.ask("build", program=str(path))


if __name__ == "__main__":
    sys.exit(main())
