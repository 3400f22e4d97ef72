"""Which file imports which, read off the sources: imports inside functions count too.

Parsing them all takes seconds, so what was read of a text is kept for the next time (`keep`).
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / ".cache" / "imports.json"


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
    """A file is read once, and looked through where that was not done for the same text before."""
    text = path.read_bytes()
    return kept().get(key_of(path, text)) or looked_through(path, text)


def looked_through(path: Path, text: bytes) -> Source:
    """What a text says as the one of this file."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    imports: list[tuple[int, str]] = []
    literals: set[str] = set()
    tree = ast.parse(text, str(path))
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


def keep(paths: list[Path]) -> None:
    """Write down what these files say, and nothing else, for the next process that asks."""
    said = {key_of(path, path.read_bytes()): source(path) for path in paths}
    if said.keys() == kept().keys():
        return
    KEPT.parent.mkdir(exist_ok=True)
    new = KEPT.with_name(f"{KEPT.name}.{os.getpid()}")
    plain = {key: (each.imports, sorted(each.literals), sorted(each.statements)) for key, each in said.items()}
    new.write_text(json.dumps(plain), encoding="ascii")
    new.replace(KEPT)


@functools.cache
def kept() -> dict[str, Source]:
    """What was read before, by the text it was read of; nothing where that is damaged."""
    try:
        found = json.loads(KEPT.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return {}
    return {
        key: Source(tuple((line, name) for line, name in imports), frozenset(literals), frozenset(statements))
        for key, (imports, literals, statements) in found.items()
    }


@functools.cache
def _own() -> bytes:
    return Path(__file__).read_bytes()


def key_of(path: Path, text: bytes) -> str:
    """Of the text, of the file's place, which imports may be relative to, and of what is looked for."""
    return hashlib.blake2b(b"\0".join((str(path.relative_to(ROOT)).encode(), _own(), text)), digest_size=16).hexdigest()


def imported(path: Path) -> tuple[tuple[int, str], ...]:
    """Every absolute name a file imports anywhere, with its line."""
    return source(path).imports
