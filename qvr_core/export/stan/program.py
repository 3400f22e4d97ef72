"""A program of Stan: its blocks, with what it is about at its head."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from qvr_core.export.arrays.module import about, changed
from qvr_core.export.data_arrays import untold
from qvr_core.export.exported import Exported
from qvr_core.export.reading import Reading, size_words
from qvr_core.export.stan.declarations import data_line
from qvr_core.export.stan.steps import Steps
from qvr_core.export.stan.tables import HELPERS

WIDTH = 100
_BREAK = re.compile(r", (?![^\[]*\])| [-+*/?:|] ")


def stan_program(reading: Reading) -> Exported:
    """The program."""
    if (item := next((one for one in reading.data if not one.told), None)) is not None:
        raise untold(item)
    steps = Steps(reading)
    steps.run()
    lines = [f"// {line}".rstrip() for line in (*about(reading, "stan"), *_notes(reading, steps))]
    helpers = [HELPERS[name] for name in reversed(HELPERS) if name in steps.elements.used]
    blocks = {
        "functions": [
            *("".join(helpers).rstrip("\n").split("\n") if helpers else []),
            *_indented(steps.densities.families.lines),
            *_indented(steps.equations.lines),
        ],
        "data": [f"  {line}" for line in _data(reading, steps)],
        "transformed data": _indented(steps.known),
        "parameters": _indented(steps.parameters),
        "transformed parameters": _indented(steps.made),
        "model": _indented(steps.model),
        "generated quantities": _indented(steps.drawn),
    }
    for name, inner in blocks.items():
        if inner:
            lines += [f"{name} {{", *inner, "}"]
    names = {item.name: steps.names[item.name] for item in reading.data}
    arrays = {item.name: item for item in reading.data}
    return Exported("\n".join(lines) + "\n", names, steps.shapes.sizes, arrays, first=1, counts=reading.counts)


def _notes(reading: Reading, steps: Steps) -> list[str]:
    sets = [
        f"{name} is {', '.join(f'{at} {x}' for at, x in enumerate(all_, 1))}" for name, all_ in reading.labels.items()
    ]
    found = [*sets, *changed(steps.names)]
    if any(item.kind == "index" for item in reading.data):
        found.append("Codes of sets count from 1.")
    return ["", *found] if found else []


def _data(reading: Reading, steps: Steps) -> Iterator[str]:
    for name in reading.open_sets:
        yield f"int<lower=0> {steps.shapes.sizes[name]};  // {size_words(name)}"
    for item in reading.data:
        line = f"{data_line(item, steps.names[item.name], steps.shapes)};"
        notes = [reading.about(item.origin)[1]]
        if item.kind == "index" and item.values is not None and item.values.nominal:
            notes.append(f"codes of {item.values.nominal} from 1")
        if item.missing:
            notes.append("NaN where missing")
        note = "; ".join(filter(None, notes))
        yield f"{line}  // {note}" if note else line


def _indented(lines: Sequence[str]) -> list[str]:
    return [part for line in lines for part in _wrapped(f"  {line}".rstrip())]


def _wrapped(line: str) -> Iterator[str]:
    """A line in pieces of `WIDTH`, broken behind a comma or in front of an operator."""
    indent = len(line) - len(line.lstrip()) + 4
    while len(line) > WIDTH and "//" not in line:
        found = list(_BREAK.finditer(line, indent + 8, WIDTH))
        cuts = [one.end() if one[0] == ", " else one.start() for one in found]
        if not cuts:
            break
        cut = min(cuts, key=lambda at: (line.count("(", 0, at) - line.count(")", 0, at), -at))
        yield line[:cut].rstrip()
        line = " " * indent + line[cut:].lstrip()
    yield line
