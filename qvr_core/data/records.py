"""Tables larger than memory: checked and copied once, row by row, into a file of fixed-size records.

A step then reads its rows by their numbers; what is held is one chunk while copying and one batch while fitting.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.typed_engine import from_numpy, listed
from qvr_core.data.binding import check_names, tensor_of
from qvr_core.data.file_cache import cache_key, written
from qvr_core.data.needs import Needs
from qvr_core.data.size_limits import LINE, LineEnds, check_line, check_nesting
from qvr_core.data.tables.columns import Columns, by_name, no_rows
from qvr_core.data.tables.csv_tables import check_separator
from qvr_core.data.tables.parquet import parquet_files, scanned
from qvr_core.data.tables.reading import ragged_or_broken
from qvr_core.data.typed.cell_values import NULLS

BLOCK = 2**20
"""Bytes of text that are parsed at a time: small enough that parsing, and not the block, decides the peak."""


class Records:
    """Rows of a table on disk.

    `batch` gives what the program reads: the input (None for a statistical program) and observations, in the shapes
    that `binding.bind` gives.  Columns in `whole` are kept as numbers of any kind and are whole ones.
    """

    def __init__(self, path: Path, layout: np.dtype[Any], whole: frozenset[str], needs: Needs) -> None:
        self.path = path
        self.layout = layout
        self.whole = whole
        self.needs = needs
        self.rows = path.stat().st_size // layout.itemsize
        self._file = os.open(path, os.O_RDONLY)
        if hasattr(os, "posix_fadvise"):
            # Rows are drawn at random: reading ahead would fill the cache with what is not wanted.
            os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_RANDOM)

    def batch(self, rows: Tensor, generator: arrays.Generator | None = None) -> tuple[Any, dict[str, Tensor]]:
        """The rows of these numbers."""
        size = self.layout.itemsize
        raw = b"".join([os.pread(self._file, size, row * size) for row in listed(rows)])
        values = np.frombuffer(raw, self.layout)
        found = {name: self._tensor(name, values) for name in self.layout.names or ()}
        inputs = [found.pop(need.name) for need in self.needs.inputs]
        x = None if not inputs else inputs[0] if len(inputs) == 1 else tuple(inputs)
        return x, found

    def _tensor(self, name: str, values: NDArray[Any]) -> Tensor:
        tensor = from_numpy(values[name].copy())
        if name in self.whole:
            return tensor.long()
        return tensor.to(arrays.get_default_dtype()) if tensor.is_floating_point() else tensor

    def __del__(self) -> None:
        os.close(self._file)


def records(path: str, source: str, needs: Needs, names: Mapping[str, str], folder: Path) -> Records:
    """The records of a table, made in `folder` unless they stand there already.  Raises `DataProblem`."""
    wanted = needs.all
    files = parquet_files(path) if source == "parquet" else [path]
    target = folder / f"{cache_key(files, [dict(names), list(map(str, wanted))])}.records"
    layout_file = target.with_suffix(".json")
    if (kept := _copied_before(target, layout_file)) is not None:
        return Records(target, *kept, needs)
    with written(target) as partial:
        layout, whole, digest = _copy(_chunks(path, source), needs, names, partial)
        if layout is None:
            raise no_rows(path)
        layout_file.write_text(json.dumps([_described(layout), sorted(whole), digest]))
    return Records(target, layout, whole, needs)


def _copied_before(target: Path, layout_file: Path) -> tuple[np.dtype[Any], frozenset[str]] | None:
    """The layout and the whole columns of a copy that is as it was written; None where there is none such."""
    try:
        described, whole, digest = json.loads(layout_file.read_text())
        with open(target, "rb") as file:
            return (_layout(described), frozenset(whole)) if _digest(file, described, whole) == digest else None
    except (OSError, ValueError, TypeError):
        return None


def _digest(file: BufferedIOBase, described: list[Any], whole: list[str]) -> str:
    found = hashlib.file_digest(file, "blake2b")
    found.update(json.dumps([described, whole]).encode())
    return found.hexdigest()


def _described(layout: np.dtype[Any]) -> list[Any]:
    return [[name, layout[name].base.str, list(layout[name].shape)] for name in layout.names or ()]


def _copy(
    chunks: Iterable[Columns], needs: Needs, names: Mapping[str, str], target: Path
) -> tuple[np.dtype[Any] | None, frozenset[str], str]:
    """Write all chunks; the layout, the columns of any kind that hold whole numbers only, and what was written in
    digest."""
    layout: np.dtype[Any] | None = None
    wanted = needs.all
    whole = {need.name for need in wanted if need.kind == "any"}
    with open(target, "wb+") as file:
        for chunk in chunks:
            check_names(chunk, needs, names)
            columns = {need.name: tensor_of(chunk, need, names).numpy() for need in wanted}
            for need in wanted:
                if need.kind == "any":
                    columns[need.name] = values = columns[need.name].astype(np.float64)
                    if need.name in whole and not np.array_equal(values, np.floor(values)):
                        whole.discard(need.name)
            layout = layout or np.dtype([(name, array.dtype, array.shape[1:]) for name, array in columns.items()])
            file.write(_packed(columns, layout).tobytes())
        file.seek(0)
        return layout, frozenset(whole), "" if layout is None else _digest(file, _described(layout), sorted(whole))


def _layout(written: list[Any]) -> np.dtype[Any]:
    return np.dtype([(name, kind, tuple(shape)) for name, kind, shape in written])


def _packed(columns: Mapping[str, NDArray[Any]], layout: np.dtype[Any]) -> NDArray[Any]:
    rows = np.empty(len(next(iter(columns.values()))), layout)
    for name, array in columns.items():
        rows[name] = array
    return rows


def _chunks(path: str, source: str) -> Iterator[Columns]:
    """Stretches of a table, each knowing the number of its first row."""
    first = 0
    try:
        for part in FRAMES[source](path):
            yield Columns(path, source, by_name(path, part), first)
            first += len(part)
    except pl.exceptions.PolarsError as error:
        raise ragged_or_broken(path, source, error) from error


def _csv(path: str) -> Iterator[pl.DataFrame]:
    """Everything as text: a value that is no number is then found with its row."""
    check_separator(path)
    with open(path, "rb") as file:
        header = file.readline(LINE + 1)
        check_line(header, path, None)
        ends, row = LineEnds(path), 0
        ends.check(header.decode(errors="replace"), None)
        for block in _blocks(file, path, quotes=True):
            lines = block.split(b"\n") if block.count(b"\r") > block.count(b"\r\n") else ()
            for number, line in enumerate(lines, row + 1):
                ends.check(line.decode(errors="replace"), number)
            row += block.count(b"\n")
            yield pl.read_csv(header + block, infer_schema=False, null_values=[*NULLS])


def _ndjson(path: str) -> Iterator[pl.DataFrame]:
    with open(path, "rb") as file:
        row = 0
        for block in _blocks(file, path, quotes=False):
            for line in block.splitlines():
                row += 1
                check_nesting(line, path, row)
            yield pl.read_ndjson(block, infer_schema_length=None)


def _parquet(path: str) -> Iterator[pl.DataFrame]:
    yield from scanned(path).collect_batches(chunk_size=BLOCK // 64)


def _blocks(file: IO[bytes], path: str, *, quotes: bool) -> Iterator[bytes]:
    """Whole lines, some `BLOCK` bytes at a time; a line end inside quotes ends no line.

    Polars' own scan maps the file into memory, which then counts as this process'.  Raises `DataProblem` for a line
    that is longer than `LINE`.
    """
    held = b""
    while block := file.read(BLOCK):
        held += block
        cut = held.rfind(b"\n") + 1
        while quotes and cut and held.count(b'"', 0, cut) % 2:
            cut = held.rfind(b"\n", 0, cut - 1) + 1
        if cut:
            yield held[:cut]
            held = held[cut:]
        check_line(held, path, None)
    if held.strip():
        yield held


FRAMES: dict[str, Callable[[str], Iterator[pl.DataFrame]]] = {"csv": _csv, "ndjson": _ndjson, "parquet": _parquet}
