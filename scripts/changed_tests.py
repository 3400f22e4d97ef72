"""`make test-changed`: run the tests that what differs from main can reach.

A test file reaches what it imports, what that imports in turn, and what any of these names in a string: the worker that
a client starts, a page, a folder of examples.  What every test stands on selects them all.

    python -m scripts.changed_tests --list          only say which
    python -m scripts.changed_tests -n 2 -x …       with arguments for pytest
    BASE=some-branch python -m scripts.changed_tests
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from scripts.import_graph import ROOT, keep, module_name, source

PACKAGES = ("qvr", "qvr_core", "qvr_lsp", "scripts", "benchmarks", "tests")
EVERYTHING = (
    "pyproject.toml",
    "constraints.txt",
    "tests/conftest.py",
    "tests/fork_server.py",
    "tests/forks.py",
    "tests/patience.py",
)
"""What every test stands on."""
OF_ALL = (
    *("tests/test_layers.py", "tests/test_dependencies.py", "tests/test_patience.py"),
    *("tests/docs/test_architecture.py", "tests/docs/test_contributing.py"),
)
"""Tests that read every source."""
BY_NAMES = {
    "qvr_core.cli": "qvr_core/cli/*.py",
    "qvr_core.inference": "qvr_core/inference/**/*.py",
    "qvr_lsp.server": "qvr_lsp/**/*.py",
}
"""Modules that import others by names that they put together."""
FORKING = ("tests/forks.py", "tests/fork_server.py")
"""What forks the language server, too, for tests that name it themselves."""
MODULE = re.compile(r"\b(?:qvr|qvr_core|qvr_lsp|scripts|benchmarks|tests)(?:\.\w+)+")


def main(arguments: list[str]) -> int:
    """Run or list the tests; the exit status of pytest, 0 where there is nothing to run."""
    base = os.environ.get("BASE", "main")
    chosen = selected(changed(base))
    if "--list" in arguments:
        print(*chosen, sep="\n")
        return 0
    print(f"{len(chosen)} test files reach what differs from {base}", flush=True)
    if not chosen:
        return 0
    return subprocess.run([sys.executable, "-m", "pytest", *arguments, *chosen], cwd=ROOT, check=False).returncode


def changed(base: str) -> set[str]:
    """The files that differ from where this branch left `base`, committed or not; new ones, and those that are gone."""
    fork = _git("merge-base", base, "HEAD").strip()
    differing = _git("diff", "--name-only", fork).splitlines()
    return {*differing, *_git("ls-files", "--others", "--exclude-standard").splitlines()}


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def selected(wanted: Iterable[str]) -> list[str]:
    """The test files that reach one of these files, in order."""
    wanted = set(wanted)
    tests = {_name(path): path for path in files_of("tests") if path.name.startswith("test_")}
    if not wanted or not wanted.isdisjoint(EVERYTHING):
        return [name for name in tests if wanted]
    reaching = _reaching(wanted)
    return [
        name for name, path in tests.items() if name in OF_ALL or not reaching.isdisjoint((path, *_conftests(path)))
    ]


@functools.cache
def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _reaching(wanted: set[str]) -> set[Path]:
    """The modules that reach one of these files, themselves among them."""
    others = {name for name in wanted if not name.endswith(".py") or not (ROOT / name).exists()}
    is_one = {path: _name(path) in wanted or _beside(others, path) or _named(others, path) for path in files()}
    pending = [path for path in files() if any(is_one[each] for each in (path, *packages(path)))]
    found = set(pending)
    while pending:
        new = reached_by().get(pending.pop(), frozenset()) - found
        found |= new
        pending += new
    return found


def _beside(files: set[str], path: Path) -> bool:
    """Whether one of the files lies in the folder of a module, whose table or template it may be."""
    folder = _name(path.parent)
    return folder.startswith(("qvr", "tests/")) and any(str(Path(file).parent) == folder for file in files)


def _named(files: set[str], path: Path) -> bool:
    """Whether a test, or what tests share, names one of the files or a folder above it."""
    if not _name(path).startswith("tests/"):
        return False
    words = strings(path)
    return any(part in words for file in files for part in (file, *Path(file).parts))


# ---------------------------------------------------------------- the graph


@functools.cache
def files_of(package: str) -> tuple[Path, ...]:
    return tuple(sorted((ROOT / package).rglob("*.py")))


@functools.cache
def modules() -> dict[str, Path]:
    return {module_name(path): path for package in PACKAGES for path in files_of(package)}


@functools.cache
def reached_by() -> dict[Path, set[Path]]:
    """For each file, those that import it or name it."""
    found: dict[Path, set[Path]] = {}
    for path in files():
        # A package around what is imported runs, but what it would import for others, when they ask, it does not.
        for other in uses(path).union(*map(at_once, packages(path))):
            found.setdefault(other, set()).add(path)
    keep([*files()])
    return found


def _conftests(test: Path) -> Iterator[Path]:
    """Of the folders around; what that of `tests` starts is named by the tests that want it."""
    inner = (folder for folder in test.parents if folder.is_relative_to(ROOT / "tests") and folder != ROOT / "tests")
    yield from (file for folder in inner if (file := folder / "conftest.py").exists())


@functools.cache
def packages(path: Path) -> frozenset[Path]:
    """The packages around a file."""
    return frozenset(file for folder in path.parents if (file := folder / "__init__.py") in files() and file != path)


@functools.cache
def files() -> frozenset[Path]:
    return frozenset(modules().values())


@functools.cache
def at_once(package: Path) -> frozenset[Path]:
    """What a package imports when it is imported itself."""
    read = source(package)
    return frozenset(found for line, name in read.imports if line in read.statements for found in _file_of(name))


@functools.cache
def uses(path: Path) -> frozenset[Path]:
    """What a file imports anywhere, or names as a module."""
    own = module_name(path)
    found = {file for _, name in source(path).imports for file in _file_of(name)}
    # The name of a module in a string: what is started by `-m`, or imported when it is asked for.
    named = {name for text in source(path).literals for name in MODULE.findall(text)}
    if _name(path) in FORKING:
        named = {name for name in named if not name.startswith("qvr_lsp.")}
    # A command line, written out or in a page whose commands a shell runs.
    if own.startswith("tests.") and not strings(path).isdisjoint(("qvr", "bash")):
        named.add("qvr_core.cli")
    found |= {modules()[name] for word in named for name in (word, f"{word}.__main__") if name in modules()}
    if own in BY_NAMES:
        found |= set(ROOT.glob(BY_NAMES[own]))
    return frozenset(found)


def _file_of(name: str) -> Iterator[Path]:
    """The file of a module, or of what is imported from one."""
    for word in (name, name.rpartition(".")[0]):
        if word in modules():
            yield modules()[word]
            return


@functools.cache
def strings(path: Path) -> frozenset[str]:
    """The words of those strings, and the strings themselves."""
    return frozenset(word for text in source(path).literals for word in (text, *re.split(r"[\s/:`'\"]+", text)) if word)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
