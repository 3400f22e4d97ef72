"""What the packages import is declared, and what is declared is imported: an install holds nothing else."""

from __future__ import annotations

import re
import sys
import tomllib

from scripts.import_graph import ROOT, imported

PACKAGES = ("qvr_core", "qvr_lsp")
PARTS = {"pydantic_core": "pydantic", "cycler": "matplotlib"}
"""Modules that another distribution documents as its own."""
# HDF5 is chosen by a string: `engine="h5netcdf"`, which in turn looks for h5py.
BY_NAME = {"h5netcdf", "h5py"}


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = ("sample", "run", "plots", "cluster", "repl")
    requirements = [*project["dependencies"], *(one for name in named for one in extras[name])]
    names = {re.split(r"[<>=!~\[; ]", requirement, maxsplit=1)[0] for requirement in requirements}
    return {name.replace("-", "_") for name in names} - {project["name"].replace("-", "_")}


def used() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            place = path.relative_to(ROOT).as_posix()
            for name in {name.partition(".")[0] for _, name in imported(path)}:
                if name not in sys.stdlib_module_names and name not in PACKAGES:
                    found.setdefault(PARTS.get(name, name), set()).add(place)
    return found


def test_every_import_is_declared() -> None:
    undeclared = {name: sorted(places) for name, places in used().items() if name not in declared()}
    assert not undeclared


def test_every_declared_dependency_is_imported() -> None:
    assert declared() - BY_NAME <= set(used())
