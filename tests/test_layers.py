"""Invariants 1 and 2 of the architecture: who may load what.

1. The front end and the server load neither torch nor numpy. Asked of the interpreter: each module is imported.
2. qvr_core knows no editor, and no layer imports one above it. Read off the source, so lazy imports count too.
"""

import ast
import json
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

from scripts.import_graph import ROOT, imported, module_name, sources
from tests.patience import HANG

# Lowest first; what stands in one row are peers.
LAYERS = (
    ("syntax",),
    ("operations",),
    ("semantics",),
    ("analysis",),
    (
        *("workspace", "disk", "diagnostic_pages", "garbage_collection", "examples", "extras", "fetched_libraries"),
        *("html_tables", "container_types", "dependence", "lexicon_files"),
    ),
    ("lowered",),
    ("ide", "diagrams", "export"),
    ("arrays", "cluster"),
    ("codegen",),
    ("runtime",),
    ("data",),
    ("dsl",),
    ("inference",),
    ("runs",),
    ("cli", "__main__"),
)
# The rooms of a layer, lowest first: each knows only those before it.
ROOMS = {
    "semantics": (
        "types",
        "language",
        "scope",
        "arrows",
        "arithmetic",
        "algebras",
        "deductions",
        "programs",
        "terms",
        "file",
        "modules",
    ),
    "runtime": ("values", "families", "loops", "arrows", "tensors", "programs", "build"),
    "runs": ("record", "client", "prepare", "evaluation", "pictures", "fit", "worker", "python", "page"),
}
MOST_MODULES = 25
"""In one folder."""
MOST_LINES = 420
"""In one file, each of which holds one idea."""
RANK = {layer: rank for rank, row in enumerate(LAYERS) for layer in row}
FRONT_END = (
    *(f"qvr_core.{name}" for name in ("syntax", "operations", "semantics", "analysis", "workspace", "dependence")),
    *(f"qvr_core.{name}" for name in ("lowered", "ide", "diagrams", "export")),
    "qvr_lsp",
)
HEAVY = ("torch", "numpy")
EDITOR = ("qvr_lsp", "pygls", "lsprotocol")

# One process for all modules of the front end: what none of them loads after all others, none loads alone; and since no
# circle of files closes (below), the order in which they come is no matter.
PROBE = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
heavy, modules = map(json.loads, sys.argv[2:4])
for module in modules:
    importlib.import_module(module)
    loaded = [name for name in heavy if name in sys.modules]
    if loaded:
        sys.exit(f"{module} loads {', '.join(loaded)}")
"""


def layer_of(name: str) -> str | None:
    """`qvr_core.ide.hover` -> `ide`; None for what is not ours, and for the package itself and its dunders."""
    parts = name.split(".")
    if parts[0] != "qvr_core" or len(parts) == 1 or parts[1] == "__version__":
        return None
    return parts[1]


def test_front_end_loads_neither_torch_nor_numpy() -> None:
    files = {package: [path for path in sources(package) if path.name != "__main__.py"] for package in FRONT_END}
    assert all(files.values())
    modules = [module_name(path) for paths in files.values() for path in paths]
    probe = subprocess.run(
        [sys.executable, "-c", PROBE, str(ROOT), json.dumps(HEAVY), json.dumps(modules)],
        capture_output=True, text=True, timeout=HANG, check=False,
    )  # fmt: skip
    assert probe.returncode == 0, probe.stderr


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


def test_no_run_needs_an_editors_answers() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for layer in ("runtime", "dsl", "inference", "data", "runs")
        for path in sources(f"qvr_core.{layer}")
        for line, name in imported(path)
        if layer_of(name) in ("ide", "diagrams")
    ]
    assert not wrong, "\n".join(wrong)


def room_of(name: str) -> tuple[str, int] | None:
    """`qvr_core.runs.fit.svi` -> ('runs', 4): the layer and the rank of the room; None for what has no rooms."""
    parts = name.split(".")
    if len(parts) < 3 or parts[0] != "qvr_core" or parts[1] not in ROOMS or parts[2] not in ROOMS[parts[1]]:
        return None
    return parts[1], ROOMS[parts[1]].index(parts[2])


@pytest.mark.parametrize("layer", ROOMS)
def test_every_module_of_a_layer_has_a_room(layer: str) -> None:
    folder = ROOT / "qvr_core" / layer
    assert {path.name for path in folder.iterdir() if path.is_dir() and path.name != "__pycache__"} == {*ROOMS[layer]}
    assert [path.name for path in folder.glob("*.py")] == ["__init__.py"]


def test_no_room_imports_a_higher_one() -> None:
    wrong: list[str] = []
    for path in sources("qvr_core"):
        own = room_of(module_name(path))
        for line, name in imported(path):
            other = room_of(name)
            if own is not None and other is not None and own[0] == other[0] and other[1] > own[1]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}, a higher room of {own[0]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", ["qvr_core", "qvr_lsp"])
def test_no_circle_of_files(package: str) -> None:
    """Whatever closes it: an import in a function, or one for types alone."""
    files = {module_name(path): path for path in sources(package)}
    graph = nx.DiGraph()
    for name, path in files.items():
        for _, target in imported(path):
            found = target if target in files else target.rpartition(".")[0]
            # A package's __init__ that gathers names is no part of a circle with its own modules.
            if found in files and found != name and files[found].name != "__init__.py":
                graph.add_edge(name, found)
    circles = [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]
    assert not circles, circles


def test_no_part_of_the_server_knows_the_whole() -> None:
    """Features see a `Session`; what serves it stands above them."""
    whole = ("qvr_lsp.server", "qvr_lsp.transports")
    above = ("qvr_lsp.server", "qvr_lsp.page", "qvr_lsp.play.serving", "qvr_lsp.__main__")
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in sources("qvr_lsp")
        for line, name in imported(path)
        if name.startswith(whole) and module_name(path) not in above
    ]
    assert not wrong, "\n".join(wrong)


def lines_below_imports(path: Path) -> int:
    """How long a file is, but for its imports: what it has from elsewhere is no part of its idea."""
    text = path.read_text(encoding="utf-8")
    imports = [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return len(text.splitlines()) - sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)


def test_no_file_is_long() -> None:
    folders = ("qvr_core", "qvr_lsp", "tests", "benchmarks", "scripts")
    long = {
        path.relative_to(ROOT).as_posix(): count
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if path.read_text(encoding="utf-8").count("\n") > MOST_LINES
        and (count := lines_below_imports(path)) > MOST_LINES
    }
    assert not long, long


def test_no_folder_is_a_hall() -> None:
    crowded = {
        str(folder.relative_to(ROOT)): count
        for package in ("qvr_core", "qvr_lsp")
        for folder in {path.parent for path in sources(package)}
        if (count := len([path for path in folder.glob("*.py") if path.name != "__init__.py"])) > MOST_MODULES
    }
    assert not crowded, crowded
