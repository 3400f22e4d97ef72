"""SVG and PNG through Graphviz' `dot` program, the only outputs that need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qvr_core.diagrams.dot import to_dot

if TYPE_CHECKING:
    from qvr_core.diagrams.graph import Diagram

MISSING = (
    "SVG and PNG are drawn by the program 'dot', which was not found. Install Graphviz (Debian, Ubuntu: "
    "'apt install graphviz'; macOS: 'brew install graphviz'), or ask for Mermaid or DOT text, which need no program."
)


class NoDot(Exception):
    """`dot` is missing or failed; the message is for the user."""


def to_svg(graph: Diagram, direction: str = "right") -> str:
    """The diagram as an SVG document, 'right' or 'down'.  Raises `NoDot`."""
    return drawn(graph, "svg", direction).decode()


def to_png(graph: Diagram, direction: str = "right") -> bytes:
    """The diagram as a PNG image at 144 dots an inch, 'right' or 'down'.  Raises `NoDot`."""
    return drawn(graph, "png:cairo", direction)


def drawn(graph: Diagram, output: str, direction: str) -> bytes:
    import subprocess  # the package graphviz runs `dot` without a limit of time

    resolution = ["-Gdpi=144", "-Gbgcolor=white"] if output.startswith("png") else []
    command = ["dot", f"-T{output}", *resolution]
    try:
        done = subprocess.run(
            command, input=to_dot(graph, direction).encode(), capture_output=True, timeout=60, check=False
        )
    except FileNotFoundError as error:
        raise NoDot(MISSING) from error
    except subprocess.TimeoutExpired as error:
        raise NoDot("'dot' took more than a minute for this diagram: collapse its frames or draw a let.") from error
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip() or f"exit status {done.returncode}"
        raise NoDot(f"'dot' could not draw the diagram: {reason}")
    return done.stdout
