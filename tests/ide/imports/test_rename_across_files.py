"""Rename of what several files name: every one of them changes, or none."""

from __future__ import annotations

import re

import pytest

from qvr_core.analysis import Analyzer, Snapshot
from qvr_core.ide.answers import Refusal
from qvr_core.ide.edits.rename import rename
from qvr_core.ide.imports.rename import rename_at_home, rename_in_importer, to_rename
from qvr_core.syntax.source import Cursor
from qvr_core.workspace import Bundle, Workspace
from tests.ide.cases import applied
from tests.ide.imports.test_imported_names import LAYERS, MAIN

OTHER = """\
import "lib/layers.qvr"
object Mine : FinSet 3
morphism pick : Mine -> Colour [role=kernel]
program reads(x) : Token -> Hidden
    sample h <- block_0(x)
    let part = half(0.5, part=weight)
    score s = part + other
    return h
morphism pre : Token -> Hidden [role=embed]
program all : Token -> Hidden
    sample h <- encode
    return h
export all
export reads
export pick
export pre
"""
FILES = {
    "lib/layers.qvr": LAYERS,
    "main.qvr": MAIN,
    "other.qvr": OTHER.replace("block_0(x)", "encode(x)"),
}


def snapshots(files: dict[str, str]) -> dict[str, Snapshot]:
    workspace = Workspace(Bundle(files))
    return {name: Analyzer(text, None, name, workspace).snapshot() for name, text in files.items()}


BEFORE = snapshots(FILES)


def renamed(name: str, cursor: Cursor, new: str) -> dict[str, str] | str:
    """The files afterwards, or why they stay as they are."""
    held = BEFORE
    shared = to_rename(held[name], cursor)
    if isinstance(shared, Refusal):
        return shared.message
    if shared is None:
        answers = {name: rename(held[name], cursor, new)}
    else:
        answers = {
            each: (rename_at_home if each == shared.location else rename_in_importer)(snapshot, shared, new)
            for each, snapshot in held.items()
        }
    for answer in answers.values():
        if isinstance(answer, Refusal):
            return answer.message
    return {
        each: text if each not in answers else applied(text, answers[each])  # pyright: ignore[reportArgumentType]
        for each, text in FILES.items()
    }


def at(name: str, marked: str) -> tuple[str, Cursor]:
    plain, text = marked.replace("$0", ""), FILES[name]
    before = text[: text.index(plain) + marked.index("$0")]
    return name, Cursor(before.count("\n"), len(before) - before.rfind("\n") - 1)


def told(files: dict[str, str]) -> dict[str, list[str]]:
    held = BEFORE if files is FILES else snapshots(files)
    return {name: sorted(each.code.name for each in snapshot.diagnostics()) for name, snapshot in held.items()}


@pytest.mark.parametrize(("name", "marked"), [("lib/layers.qvr", "let en$0code"), ("main.qvr", "import enc$0ode as")])
def test_a_declaration_and_all_its_users_change(name: str, marked: str) -> None:
    files = renamed(*at(name, marked), "whole")
    assert not isinstance(files, str), files
    assert "let whole = embed" in files["lib/layers.qvr"]
    assert "import whole as enc, Hidden" in files["main.qvr"] and "let model = enc >>" in files["main.qvr"]
    assert "sample h <- whole\n" in files["other.qvr"] and "whole(x)" in files["other.qvr"]
    assert told(files) == told(FILES)


def test_copies_prefixes_and_parameters_follow() -> None:
    files = renamed(*at("main.qvr", "l.bl$0ock_2"), "layer")
    assert not isinstance(files, str), files
    assert "Hidden, layer\n" in files["main.qvr"] and "l.layer_2 >>" in files["main.qvr"]
    assert "embed >> layer_1" in files["lib/layers.qvr"]
    files = renamed(*at("main.qvr", "par$0t=0.2"), "share")
    assert not isinstance(files, str), files
    assert "share=0.2" in files["main.qvr"] and "x, share=0.5) = x * share" in files["lib/layers.qvr"]
    assert "let part = half(0.5, share=weight)" in files["other.qvr"]
    files = renamed(*at("main.qvr", "== r$0ed"), "crimson")
    assert not isinstance(files, str), files
    assert "c == crimson" in files["main.qvr"] and "{crimson, green}" in files["lib/layers.qvr"]


def test_an_alias_and_a_prefix_are_a_matter_of_their_file() -> None:
    files = renamed(*at("main.qvr", "let model = e$0nc"), "reader")
    assert not isinstance(files, str), files
    assert "encode as reader, Hidden" in files["main.qvr"] and "let model = reader >>" in files["main.qvr"]
    assert files["lib/layers.qvr"] == LAYERS
    files = renamed(*at("main.qvr", "$0l.Hidden ->"), "layers")
    assert not isinstance(files, str), files
    assert re.findall(r"\bl\b", files["main.qvr"]) == [] and files["main.qvr"].count("layers.") == 10 + 2
    assert told(files) == told(FILES)


@pytest.mark.parametrize(
    ("name", "marked", "new", "why"),
    [
        ("lib/layers.qvr", "object To$0ken", "Mine", "`Mine` is declared in other.qvr, which imports `Token`"),
        ("lib/layers.qvr", "object Hid$0den", "enc", "`enc` comes from layers.qvr in main.qvr, which imports `Hidden`"),
        ("lib/layers.qvr", "object Hid$0den", "l", "`l` is the name of another import in main.qvr"),
        ("lib/layers.qvr", "object Hid$0den", "_H", "names that begin with `_` stay inside their file"),
        ("lib/layers.qvr", "let en$0code", "h", "In other.qvr: `h` is already bound in the program"),
        ("lib/layers.qvr", "family Shif$0ted", "weight", "In other.qvr: `weight` on line 6 is data"),
        ("main.qvr", "l.Hid$0den ->", "Token", "already an object"),
        ("main.qvr", "l.Hid$0den ->", "let", "reserved word"),
        ("main.qvr", "object Sch$0ool", "enc", "`enc` is imported from layers.qvr"),
        ("main.qvr", "object Sch$0ool", "l", "`l` is the name of an import"),
        ("main.qvr", 'import "lib/lay$0ers.qvr" as', "x", "path of a file"),
    ],
)
def test_a_clash_in_any_file_refuses(name: str, marked: str, new: str, why: str) -> None:
    answer = renamed(*at(name, marked), new)
    assert isinstance(answer, str)
    assert why in answer


@pytest.mark.long
def test_every_name_of_every_file_can_be_renamed_and_means_the_same() -> None:
    before, tried, seen = told(FILES), 0, set[tuple[str, str]]()
    for name, text in FILES.items():
        for line, content in enumerate(text.split("\n")):
            for match in re.finditer(r"[A-Za-z_]\w*", content):
                if (name, match[0]) in seen:
                    continue
                seen.add((name, match[0]))
                files = renamed(name, Cursor(line, match.start()), "renamed")
                if not isinstance(files, str):
                    tried += 1
                    assert files != FILES, (name, line, match[0])
                    assert told(files) == before, (name, line, match[0], files)
    assert tried > 60
