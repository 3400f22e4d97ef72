"""Invariants 1 and 2 of the architecture: who may load what.

1. The front end and the server load neither torch nor numpy. Asked of the interpreter: each module is imported afresh.
2. qvr_core knows no editor, and no layer imports one above it. Read off the source, so lazy imports count too.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[1]

# Lowest first; what stands in one row are peers.
LAYERS = (
    ("syntax",),
    ("semantics",),
    ("analysis",),
    ("ide", "diagrams"),
    ("runtime",),
    ("dsl",),
    ("inference",),
    ("data",),
    ("runs",),
    ("cli", "__main__"),
)
RANK = {layer: rank for rank, row in enumerate(LAYERS) for layer in row}
FRONT_END = (*(f"qvr_core.{name}" for name in ("syntax", "semantics", "analysis", "ide", "diagrams")), "qvr_lsp")
HEAVY = ("torch", "numpy")
EDITOR = ("qvr_lsp", "pygls", "lsprotocol")

# One child per module: each meets an interpreter that holds none of our code, and what others have made (and is
# slow to import) is there already. What that brings along still shows in sys.modules.
PROBE = """
import importlib, json, os, sys
sys.path.insert(0, sys.argv[1])
preload, heavy, modules = map(json.loads, sys.argv[2:5])
for name in preload:
    importlib.import_module(name)
for module in modules:
    if os.fork() == 0:
        status = 0
        try:
            importlib.import_module(module)
            loaded = [name for name in heavy if name in sys.modules]
            if loaded:
                print(f"{module} loads {', '.join(loaded)}", flush=True)
                status = 1
        except BaseException as error:
            print(f"{module} cannot be imported alone: {error!r}", flush=True)
            status = 1
        os._exit(status)
    os.wait()
"""


def module_name(path: Path) -> str:
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


def layer_of(name: str) -> str | None:
    """`qvr_core.ide.hover` -> `ide`; None for what is not ours, and for the package itself and its dunders."""
    parts = name.split(".")
    if parts[0] != "qvr_core" or len(parts) == 1 or parts[1] == "__version__":
        return None
    return parts[1]


@pytest.mark.parametrize("package", FRONT_END)
def test_front_end_loads_neither_torch_nor_numpy(package: str) -> None:
    modules = [module_name(path) for path in sources(package) if path.name != "__main__.py"]
    if not modules:
        pytest.skip(f"{package} is not written yet")
    preload = ["pygls.lsp.server", "lsprotocol.types"] if package == "qvr_lsp" else []
    arguments = [str(ROOT), *map(json.dumps, (preload, HEAVY, modules))]
    probe = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, timeout=HANG, check=False
    )
    assert (probe.returncode, probe.stdout) == (0, ""), probe.stdout + probe.stderr


def test_core_knows_no_editor() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in sources("qvr_core")
        for line, name in imported(path)
        if name.split(".")[0] in EDITOR
    ]
    assert not wrong, "\n".join(wrong)


def test_every_module_of_the_core_has_a_layer() -> None:
    homeless = {layer for path in sources("qvr_core") if (layer := layer_of(module_name(path))) and layer not in RANK}
    assert not homeless, f"give {sorted(homeless)} a place in LAYERS, and in the architecture"


def test_no_layer_imports_one_above_it() -> None:
    wrong = []
    for path in sources("qvr_core"):
        own = layer_of(module_name(path))
        for line, name in imported(path):
            other = layer_of(name)
            if own is None or other is None:
                continue
            if other not in RANK:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}, which is in no layer")
            elif RANK[other] > RANK.get(own, -1):
                wrong.append(f"{path.relative_to(ROOT)}:{line} ({own}) imports {name}: {other} stands above it")
    assert not wrong, "\n".join(wrong)
