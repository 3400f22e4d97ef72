"""Which file imports which, read off the sources: imports inside functions count too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def module_name(path: Path) -> str:
    """`…/qvr_core/ide/hover.py` -> `qvr_core.ide.hover`; a package by its own name."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources(package: str) -> list[Path]:
    """The files of a package, or the one file of a module; none where it is not written yet."""
    base = ROOT.joinpath(*package.split("."))
    single = base.with_suffix(".py")
    return sorted(base.rglob("*.py")) + ([single] if single.exists() else [])


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Every absolute name a file imports anywhere, with its line. `from a import b` gives `a.b`."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = package[: len(package) - level + 1] if level else []
                prefix = [*base, *(module.split(".") if module else [])]
                yield from ((node.lineno, ".".join([*prefix, alias.name])) for alias in names)
            case _:
                pass
