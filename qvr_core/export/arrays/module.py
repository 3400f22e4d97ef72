"""A Python file around a program: its head, what it is about, and how its data are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from qvr_core.export.arrays.expressions import Expressions
from qvr_core.export.data_arrays import DataArray
from qvr_core.export.names import Names
from qvr_core.export.reading import Reading, set_of, size_words
from qvr_core.semantics.types.spaces import Dim


def docstring(lines: Sequence[str], indent: int = 0) -> list[str]:
    """Lines as a docstring."""
    pad = " " * indent
    clean = [line.replace("\\", "\\\\").replace('"""', "'''") for line in lines] or [""]
    if len(clean) == 1:
        clean[0] += " " if clean[0].endswith('"') else ""
        return [f'{pad}"""{clean[0]}"""']
    return [f'{pad}"""{clean[0]}', *(f"{pad}{line}".rstrip() for line in clean[1:]), f'{pad}"""']


def about(reading: Reading, target: str) -> list[str]:
    """What stands at the head of a file."""
    found = [line for line in reading.comments.head if not line.startswith("Shows: ")]
    found = found or [f"The program `{reading.program.name}`."]
    return [*found, "", f"Made from the program `{reading.program.name}` by `qvr export --to {target}`."]


def data_lines(reading: Reading, expressions: Expressions, names: Names) -> Iterator[str]:
    """What a file says of its data: a line for each size and array, and the labels behind codes."""
    for name in reading.open_sets:
        yield f"    {expressions.sizes[name]}: {size_words(name)}"
    for item in reading.data:
        yield f"    {names[item.name]}: {kind_of(item, expressions)}{beside(reading, item)}"


def kind_of(item: DataArray, expressions: Expressions) -> str:
    """`codes of County from 0, (n_house,)`"""
    words = {"bool": "0 or 1", "count": "counts", "real": "numbers"}.get(item.kind, "codes from 0")
    if item.values is not None and item.values.nominal:
        words = f"codes of {item.values.nominal} from 0"
    if not item.told:
        return f"{words}, in the shape in which the program reads them"
    if item.missing:
        words += ", NaN where missing"
    return f"{words}, {expressions.shape(item.sizes)}" if item.sizes else words


def beside(reading: Reading, item: DataArray) -> str:
    """The comment that the program has of a data name."""
    found = reading.about(item.origin)[1]
    return f"; {found}" if found else ""


def labels(reading: Reading) -> list[str]:
    """What the codes of enumerated sets mean."""
    return [f"{name} is {', '.join(f'{at} {x}' for at, x in enumerate(all_))}" for name, all_ in reading.labels.items()]


def changed(names: Names) -> list[str]:
    """The names that are other ones here."""
    return [f"`{name}` of the program is `{given}` here" for name, given in names.changed]


def helpers(used: set[str], table: Mapping[str, str]) -> list[str]:
    """The functions that a file calls, two lines between them."""
    lines: list[str] = []
    for name, text in table.items():
        if name in used:
            lines += [*text.rstrip("\n").split("\n"), "", ""]
    return lines


def open_names(dims: Sequence[Dim]) -> list[str]:
    """The open sets among sizes."""
    return [name for dim in dims if (name := set_of(dim))]
