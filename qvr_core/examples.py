"""The example programs with their data: in a clone they stand in examples/, in an installed package beside its code."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDERS = ("", "statistics", "analyses")
"""Of those that run as they stand."""
SOURCE = re.compile(r'"(\w+):([^"]+)"')
"""A file in the settings, as in `"csv:radon.csv"`."""
SECTION = re.compile(r"^\[run\.(\w+)\]$")


@dataclass(frozen=True)
class Example:
    """One program, its settings in qvr.toml, and the files that these name."""

    name: str
    program: Path
    settings: str
    """With every file in the folder of the program."""
    files: tuple[Path, ...]

    def copy(self, folder: Path) -> list[Path]:
        """Put all of it into a folder that is there.  Raises OSError."""
        texts = {self.program.name: self.program.read_bytes(), "qvr.toml": self.settings.encode()}
        texts |= {file.name: file.read_bytes() for file in self.files}
        for name, content in texts.items():
            (folder / name).write_bytes(content)
        return [folder / name for name in texts]


def names() -> list[str]:
    """What the examples are called: `radon`, `statistics/radon`."""
    root = _root()
    found = [(folder, path.stem) for folder in FOLDERS for path in sorted((root / folder).glob("?*.qvr"))]
    return [f"{folder}/{stem}" if folder else stem for folder, stem in found]


def example(name: str) -> Example | None:
    """An example by its name; None where there is none."""
    if name not in names():
        return None
    root = _root()
    program = root / f"{name}.qvr"
    # the settings of the first folder stand in the repository's own file, beside the folder
    beside = program.with_name("qvr.toml")
    toml = beside if beside.is_file() else root.parent / "qvr.toml"
    text = toml.read_text(encoding="utf-8")
    declared = re.findall(r"^(?:program|let)\s+(\w+)", program.read_text(encoding="utf-8"), re.MULTILINE)
    files: dict[Path, None] = {}
    kept = [f"# Settings of {program.name}: `qvr run` and the editors read them. Flags go before.", ""]
    for section in _sections(text):
        head = SECTION.match(section[0])
        if (head[1] in declared) if head else section[0] == "[defaults]":
            kept += [moved for line in section if (moved := _moved(line, toml.parent, files)) is not None]
    settings = "\n".join(kept).rstrip() + "\n"
    tomllib.loads(settings)
    return Example(name, program, settings, tuple(files))


def _root() -> Path:
    inside = HERE / "docs" / "examples"
    return inside if inside.is_dir() else HERE.parent / "examples"


def _sections(text: str) -> Iterator[list[str]]:
    """The tables of a TOML file, each with the lines below it."""
    section: list[str] = []
    for line in text.splitlines():
        if line.startswith("["):
            yield from [section] if section else []
            section = []
        if section or line.startswith("["):
            section.append(line)
    yield from [section] if section else []


def _moved(line: str, folder: Path, files: dict[Path, None]) -> str | None:
    """A line of the settings with its files beside the program; None where one of them is not shipped."""
    for found in SOURCE.finditer(line):
        inside = found[2].removeprefix("examples/") if not (folder / found[2]).is_file() else found[2]
        file = next((path for path in (folder / inside, _root() / inside) if path.is_file()), None)
        if file is None:
            return None
        files[file] = None
    return SOURCE.sub(lambda found: f'"{found[1]}:{Path(found[2]).name}"', line)
