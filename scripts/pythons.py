"""`make pythons`: the tests of the front end under every Python that is supported and can be had here.

An interpreter comes from PATH, from pyenv, or from a newer Debian with libraries of its own; the packages of the base
install and those that the tests need come from PyPI, into a folder for each version.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from scripts.debian import CannotFetch, starting, unpacked

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "pythons"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
TESTS = ("tests/syntax", "tests/semantics", "tests/spec", "tests/ide", "tests/diagrams")
WITH_TORCH = (
    "--ignore-glob=*/test_parameter_counts.py",
    "--deselect=tests/syntax/test_printable.py::test_a_header_of_a_csv_cannot_speak_to_the_terminal",
)
"""They compare with torch or start a fit, which is no part of the front end."""
FOR_TESTS = ("pytest", "pytest-asyncio", "pytest-lsp", "pytest-timeout", "hypothesis")


def main(versions: list[str]) -> int:
    """Test the versions; 1 where one fails. One that cannot be had is told."""
    results: dict[str, str] = {}
    failed = False
    for version in versions or VERSIONS:
        try:
            command = interpreter(version)
            packages = installed(version)
        except CannotFetch as problem:
            results[version] = f"not to be had here: {problem}"
            continue
        print(f"Python {version}: {' '.join(command)}", flush=True)
        status, last = tested(command, packages)
        results[version] = last
        failed |= status != 0
    print(*(f"Python {version:6} {result}" for version, result in results.items()), sep="\n")
    return int(failed)


def interpreter(version: str) -> list[str]:
    """The command that starts a Python of a version."""
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    own = shutil.which(f"python{version}")
    for found in (*([own] if own else []), *map(str, reversed(pyenv))):
        if is_version([found], version):
            return [found]
    root = unpacked(f"python{version}", CACHE / f"debian-{version}")
    command = starting(root, f"python{version}")
    if not is_version(command, version):
        raise CannotFetch(f"the Python of {root} does not start here.")
    return [str(shortened(command, root))]


def shortened(command: list[str], root: Path) -> Path:
    """A file that runs a command, and is `sys.executable` inside: tests start Pythons of their own."""
    script = root / "python"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    own = root / "own"
    own.mkdir(exist_ok=True)
    (own / "sitecustomize.py").write_text(f"import sys\n\nsys.executable = {str(script)!r}\n", encoding="utf-8")
    return script


def is_version(command: list[str], version: str) -> bool:
    show = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([*command, "-c", show], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version


def installed(version: str) -> Path:
    """The folder with the packages for a version."""
    folder = CACHE / f"packages-{version}"
    if folder.is_dir():
        return folder
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    partial = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(partial, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(partial), "--only-binary=:all:"]
    command = [*pip, "--python-version", version, "-c", str(ROOT / "constraints.txt"), *wanted, *FOR_TESTS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotFetch(f"pip has no packages for Python {version}: {done.stderr.strip().splitlines()[-1]}")
    return partial.rename(folder)


def tested(command: list[str], packages: Path) -> tuple[int, str]:
    """The status of the tests, and the last line that they print."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    path = [str(Path(command[0]).parent / "own"), str(packages), str(ROOT)]
    environment |= {"PYTHONPATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-q", "-p", "no:cacheprovider", "-m", "not slow and not statistical and not long", *WITH_TORCH]
    last = ""
    with subprocess.Popen(
        [*command, "-m", "pytest", *options, *TESTS],
        cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as run:  # fmt: skip
        assert run.stdout is not None
        for line in run.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return run.returncode, last


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
