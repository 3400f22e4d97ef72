"""Every misfit between a file and a program is one message that names file, column, row, site and remedy."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from qvr_core.data.binding import bind
from qvr_core.data.needs import Need, Needs
from qvr_core.data.problems import DataProblem
from qvr_core.data.tables.reading import read_columns
from qvr_core.data.text import plan, read_corpus, split

Y = Need("observed", "y", "real", "Normal")
COUNT = Need("observed", "y", "count", "Poisson", low=0.0)
POSITIVE = Need("observed", "y", "real", "Gamma", low=0.0)
UNIT = Need("observed", "y", "real", "Beta", low=0.0, high=1.0)
SCHOOL = Need("data", "school", "finite", "School", size=8)
COLOUR = Need("observed", "colour", "finite", "Colour", size=2, labels=("red", "green"))
TOKENS = Need("input", "x", "finite", "Token", size=256, sequence=True)
PLAIN = Need("input", "x", "finite", "Token", size=256)
WIDE = Need("input", "x", "real", "Pixels", width=3)
TARGET = Need("observed", "token", "finite", "Token", size=256)


def needs(*given: Need) -> Needs:
    by_role = {role: tuple(n for n in given if n.role == role) for role in ("input", "observed", "data")}
    return Needs("model", by_role["input"], by_role["observed"], by_role["data"])


def csv(text: str) -> Callable[[Path], tuple[str, str]]:
    def write(folder: Path) -> tuple[str, str]:
        path = folder / "d.csv"
        path.write_text(text, encoding="utf-8")
        return str(path), "csv"

    return write


def raw(name: str, content: bytes, source: str) -> Callable[[Path], tuple[str, str]]:
    def write(folder: Path) -> tuple[str, str]:
        path = folder / name
        path.write_bytes(content)
        return str(path), source

    return write


def npz(**arrays: np.ndarray) -> Callable[[Path], tuple[str, str]]:
    def write(folder: Path) -> tuple[str, str]:
        path = folder / "d.npz"
        np.savez(path, **arrays)
        return str(path), "npz"

    return write


def parquet(**columns: list[object]) -> Callable[[Path], tuple[str, str]]:
    def write(folder: Path) -> tuple[str, str]:
        path = folder / "d.parquet"
        pl.DataFrame(columns).write_parquet(path)
        return str(path), "parquet"

    return write


# name: (file, what the program needs, columns that are renamed, what the message must say)
MISFITS: dict[str, tuple[Callable[[Path], tuple[str, str]], Needs, dict[str, str], tuple[str, ...]]] = {
    "missing column": (csv("x,yy\n1,2\n"), needs(Y), {}, ("no column `y`", "`x`, `yy`", "for `y`", "columns = ")),
    "near name": (csv("skool\n1\n"), needs(SCHOOL), {}, ("no column `school`", "Did you mean `skool`")),
    "text in a number": (csv("y\n1\n2\nthree\n"), needs(Y), {}, ("column `y`, row 3", "`three` is not a number")),
    "missing value": (csv("x,y\n1,2\n1,\n1,NA\n"), needs(Y), {}, ("column `y`, row 2", "missing (2 in all)")),
    "NaN": (csv("y\n1.0\nnan\n"), needs(Y), {}, ("row 2", "not a number", "leave the row out")),
    "infinite": (csv("y\n1.0\ninf\n"), needs(Y), {}, ("row 2", "infinite")),
    "negative count": (csv("y\n3\n-1\n"), needs(COUNT), {}, ("row 2", "-1 is negative", "for `y`")),
    "fraction as a count": (csv("y\n3\n1.5\n"), needs(COUNT), {}, ("row 2", "1.5 is not a whole number")),
    "below the support": (csv("y\n3\n-0.5\n"), needs(POSITIVE), {}, ("row 2", "-0.5 is below 0")),
    "above the support": (csv("y\n0.5\n1.5\n"), needs(UNIT), {}, ("row 2", "1.5 is above 1")),
    "index beyond the plate": (
        csv("school\n0\n7\n8\n"), needs(SCHOOL), {}, ("row 3", "8 is outside `School`", "0 to 7", "count from 0"),
    ),
    "negative index": (csv("school\n0\n-1\n"), needs(SCHOOL), {}, ("row 2", "-1 is negative")),
    "labels without an enumeration": (
        csv("school\nEton\n"), needs(SCHOOL), {}, ("row 1", "`Eton` is not a number", "enumeration"),
    ),
    "unknown label": (csv("colour\nred\nblue\n"), needs(COLOUR), {}, ("row 2", "`blue`", "`red`, `green`")),
    "ragged rows": (csv("x,y\n1,2\n1,2,3\n"), needs(Y), {}, ("row 2", "3 fields and the header 2")),
    "header only": (csv("x,y\n"), needs(Y), {}, ("no rows", "at least one row")),
    "semicolons": (csv("y;x\n1,5;2\n"), needs(Y), {}, ("separated by semicolons", 'separator=";", decimal_comma=True')),
    "tabs": (csv("y\tx\n1\t2\n"), needs(Y), {}, ("separated by tabs", 'separator="\\t")')),
    "name in other letters": (csv("Skool\n1\n"), needs(SCHOOL), {}, ("Did you mean `Skool`", "columns school=Skool")),
    "duplicate column": (csv("y,y\n1,2\n"), needs(Y), {}, ("column `y`", "two columns have this name")),
    "rename of nothing": (csv("y\n1\n"), needs(Y), {"z": "y"}, ("renames `z`", "it needs `y`", "file has `y`")),
    "dates": (parquet(y=[date(2020, 1, 1)]), needs(Y), {}, ("column `y`", "date", "numbers")),
    "ragged lists": (
        parquet(x=[[1, 2], [3]], token=[1, 2]), needs(TOKENS, TARGET), {},
        ("column `x`, row 2", "1 values", "first row's 2"),
    ),
    "one value for a sequence": (
        csv("x,token\n1,2\n"), needs(TOKENS, TARGET), {}, ("column `x`", "one value per row", "list per row"),
    ),
    "too few columns": (npz(x=np.zeros((4, 2)), y=np.zeros(4)), needs(WIDE, Y), {}, ("2 values per row", "width 3")),
    "different lengths": (
        npz(x=np.zeros(4, int), token=np.zeros(3, int)), needs(PLAIN, TARGET), {},
        ("3 rows, and 4 for `x`", "for `token`"),
    ),
    "wrong dtype": (npz(y=np.array(["a", "b"])), needs(Y), {}, ("column `y`", "dtype <U1", "numbers")),
    "Python objects": (npz(y=np.array([{}, []], dtype=object)), needs(Y), {}, ("never unpickled", "column `y`")),
    "not a zip": (raw("d.npz", b"nonsense", "npz"), needs(Y), {}, ("not a whole npz file", "numpy.savez")),
    "cut parquet": (raw("d.parquet", b"PAR1\x00\x00", "parquet"), needs(Y), {}, ("not a whole parquet file",)),
    "broken json": (raw("d.ndjson", b'{"y": 1}\n{"y": \n', "ndjson"), needs(Y), {}, ("row 2", "not JSON")),
    "json that is no object": (raw("d.ndjson", b'{"y": 1}\n[2]\n', "ndjson"), needs(Y), {},
    ("row 2", "not a JSON object")),
    "bad UTF-8": (raw("d.csv", b"y\n1\n\xff\n", "csv"), needs(Y), {}, ("row 2", "0xff", "UTF-8")),
    "binary as csv": (raw("d.csv", b"y\n\x00\x01\n", "csv"), needs(Y), {}, ("NUL byte", "npz:")),
    "empty file": (raw("d.csv", b"", "csv"), needs(Y), {}, ("the file is empty",)),
}  # fmt: skip


@pytest.mark.parametrize("name", MISFITS)
def test_misfit_is_one_message(name: str, tmp_path: Path) -> None:
    write, wanted, renamed, parts = MISFITS[name]
    path, source = write(tmp_path)
    with pytest.raises(DataProblem) as caught:
        bind(read_columns(path, source), wanted, renamed)
    message = str(caught.value)
    for part in (path, *parts, caught.value.remedy):
        assert part in message
    assert caught.value.remedy
    assert "\n" not in message


@pytest.mark.parametrize("source", ["csv", "parquet", "ndjson", "npz"])
def test_folder_and_absent_file(source: str, tmp_path: Path) -> None:
    with pytest.raises(DataProblem, match="this is a folder"):
        read_columns(str(tmp_path), source)
    with pytest.raises(DataProblem, match="no such file"):
        read_columns(str(tmp_path / "none"), source)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_text("y\n1\n")
    file.chmod(0)
    with pytest.raises(DataProblem, match="may not be read"):
        read_columns(str(file), "csv")


TEXT_MISFITS = {
    "too short": (b"ab", needs(TOKENS, TARGET), {}, ("2 bytes", "window of 8", "sequence_length")),
    "small vocabulary": (
        b"hello world, hello", needs(Need("input", "x", "finite", "Letter", size=32, sequence=True), TARGET), {},
        ("byte 119", "outside `Letter`", "32 values", "FinSet 256", "character"),
    ),
    "no free mask": (bytes(range(256)), needs(TOKENS, TARGET), {"task": "masked"},
    ("every one of the 256", "mask_token")),
    "mask token outside": (
        b"hello world, hello", needs(TOKENS, TARGET), {"task": "masked", "mask_token": 256},
        ("mask_token = 256", "0 to 255"),
    ),
    "mask outside the window": (b"hello world, hello", needs(TOKENS, TARGET), {"mask": 8}, ("mask = 8", "0 to 7")),
    "not a language model": (b"hello world, hello", needs(WIDE, Y), {}, ("`model`", "sequence of tokens")),
    "two observed sites": (b"hello world, hello", needs(TOKENS, TARGET, Y), {}, ("`token`, `y`", "one `observe`")),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXT_MISFITS)
def test_text_misfit(name: str, tmp_path: Path) -> None:
    content, wanted, options, parts = TEXT_MISFITS[name]
    file = tmp_path / "t.txt"
    file.write_bytes(content)
    asked = {"task": None, "length": 8, "mask": "middle", "mask_token": None, **options}
    with pytest.raises(DataProblem) as caught:
        plan(read_corpus(str(file)), wanted, both_ways=False, **asked)
    for part in (str(file), *parts):
        assert part in str(caught.value)


def test_characters_want_utf8(tmp_path: Path) -> None:
    file = tmp_path / "t.txt"
    file.write_bytes(b"abc\xff")
    with pytest.raises(DataProblem, match=r'byte 3 is not UTF-8.*unit = "byte"'):
        read_corpus(str(file), "character")


def test_held_out_share_that_leaves_no_window(tmp_path: Path) -> None:
    file = tmp_path / "t.txt"
    file.write_bytes(b"abcdefghijklmnop")
    corpus = read_corpus(str(file))
    task = plan(corpus, needs(TOKENS, TARGET), both_ways=False, task=None, length=8, mask="middle", mask_token=None)
    with pytest.raises(DataProblem, match=r"the held-out part has 2 of the file's 16 bytes.*held_out"):
        split(corpus, task, 0.1)
