"""The pages that show every example: what it says of itself, its diagram, its text."""

from __future__ import annotations

import re
from pathlib import Path

from qvr_core import diagrams
from qvr_core.cli.files import analysed_file
from scripts.website.pages import GALLERIES, ROOT, write


def galleries(folder: Path) -> None:
    """Write the page of each folder of programs, with the diagrams beside it."""
    for page, programs in GALLERIES.items():
        title = "Gallery" if programs == "examples" else "Gallery of statistics"
        shown = [_shown(path, folder / programs) for path in sorted((ROOT / programs).glob("?*.qvr"))]
        write(folder / page, "\n".join([f"# {title}\n", *shown]))


def _shown(path: Path, folder: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    top = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
    about = "\n".join(line.removeprefix("#").strip() for line in lines[:top])
    about = re.sub(r"\n(?=(?:Shows|Data|What to see): )", "\n\n", about)
    source = "\n".join(f"    {line}".rstrip() for line in lines[top:])
    program = f'??? example "The program"\n    ```qvr\n{source}\n    ```\n'
    return f"## {path.stem}\n\n{about}\n\n{_drawn(path, folder)}\n\n{program}"


def _drawn(path: Path, folder: Path) -> str:
    """A picture, or where `dot` is missing the diagram as text."""
    graph = diagrams.build(analysed_file(str(path)), None)
    try:
        picture = diagrams.to_svg(graph)
    except diagrams.NoDot:
        return f"```text\n{diagrams.to_mermaid(graph).rstrip()}\n```"
    write(folder / f"{path.stem}.diagram.svg", picture)
    name = f"{path.stem}.diagram.svg"
    return f"[![The diagram of {path.stem}]({name}){{ .diagram }}]({name})"
