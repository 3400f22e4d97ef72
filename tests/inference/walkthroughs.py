"""Three published walkthroughs: program and snippets, cut out of their text.

Their library `quivers` is read as `qvr_core`; nothing else changes.
"""

from __future__ import annotations

import contextlib
import io
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "walkthroughs"
SECTIONS = ("Generating synthetic data", "SVI fit", "NUTS posterior", "Categorical Perspective")


@dataclass(frozen=True)
class Walkthrough:
    """A program (bodies indented by four spaces) and its three snippets."""

    name: str
    source: str
    data: str
    svi: str
    nuts: str


def walkthrough(name: str) -> Walkthrough:
    """The one of a program: `bidirectional_rnn_lm`, `vanilla_rnn_lm` or `seq2seq`."""
    return _read((FOLDER / f"{name}.txt").read_text(encoding="utf-8"))


def _read(text: str) -> Walkthrough:
    lines = [line.rstrip().removesuffix("¶") for line in text.splitlines()]
    source = _program(lines)
    name = next(line.split()[1] for line in source.splitlines() if line.startswith("export"))
    starts = [lines.index(section) for section in SECTIONS]
    snippets = [_code(lines[start:end]) for start, end in itertools.pairwise(starts)]
    return Walkthrough(name, source, *snippets)


def _program(lines: list[str]) -> str:
    start = lines.index("QVR Source") + 1
    end = lines.index("Walkthrough")
    body = "\n".join(lines[start:end]).strip().splitlines()
    steps = ("sample ", "observe ", "let ", "return ")
    inside, out = False, []
    for line in body:
        inside = line.startswith("program ") or (inside and not line.startswith("export"))
        out.append("    " + line if inside and line.startswith(steps) else line)
    return "\n".join(out) + "\n"


def _code(lines: list[str]) -> str:
    """From the first import on; the text has lost the indentation of `for` bodies, so the line after gets it back."""
    start = next(i for i, line in enumerate(lines) if line.startswith("import "))
    out: list[str] = []
    for line in lines[start:]:
        loose = out and out[-1].startswith("for ") and not line.startswith(" ")
        out.append("    " + line if loose else line)
    return "\n".join(out).replace("quivers", "qvr_core")


def run(code: str, source: str, folder: Path, shift: int = 0, **replacements: str) -> dict[str, Any]:
    """Run a snippet with its program at the path that it names, below `folder`; what it leaves behind.

    `shift` is added to every seed that it sets.
    """
    name = next(line.split()[1] for line in source.splitlines() if line.startswith("export"))
    path = folder / f"{name}.qvr"
    path.write_text(source, encoding="utf-8")
    code = code.replace(f"docs/examples/source/{name}.qvr", str(path))
    for seed in (0, 1, 2):
        code = code.replace(f"manual_seed({seed})", f"manual_seed({seed} + {10 * shift})")
    for old, new in replacements.items():
        assert old in code
        code = code.replace(old, new)
    space: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, f"<{name}>", "exec"), space)
    return space


WALKTHROUGHS = tuple(walkthrough(path.stem) for path in sorted(FOLDER.glob("*.txt")))
