"""Which file imports which, read off the sources: imports inside functions count too."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Source:
    """What a file says of other files."""

    imports: tuple[tuple[int, str], ...]
    """Every absolute name that it imports anywhere, with its line. `from a import b` gives `a.b`."""
    literals: frozenset[str]
    """Its strings, but for what documents it."""
    statements: frozenset[int]
    """The lines where those of the module itself begin."""


@functools.cache
def source(path: Path) -> Source:
    """A file is read and looked through once."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    imports: list[tuple[int, str]] = []
    literals: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        match node:
            case ast.Import(names=names):
                imports += [(node.lineno, alias.name) for alias in names]
            case ast.ImportFrom(module=module, names=names, level=level):
                base = package[: len(package) - level + 1] if level else []
                prefix = [*base, *(module.split(".") if module else [])]
                imports += [(node.lineno, ".".join([*prefix, alias.name])) for alias in names]
            case ast.Constant(value=str(value)):
                literals.add(value)
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                for part in vars(node).values():
                    if isinstance(part, ast.AST):
                        pending.append(part)
                    elif isinstance(part, list):
                        pending += [each for each in part if isinstance(each, ast.AST)]
    return Source(tuple(sorted(imports)), frozenset(literals), frozenset(node.lineno for node in tree.body))


def imported(path: Path) -> tuple[tuple[int, str], ...]:
    """Every absolute name a file imports anywhere, with its line."""
    return source(path).imports
