"""docs/std.md names all that the library has."""

import re
from pathlib import Path

from qvr_core.analysis import Analyzer
from qvr_core.disk import LIBRARY, library_files

PAGE = Path(__file__).resolve().parents[2] / "docs" / "std.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_its_table_has_every_template_with_parameters_that_it_has() -> None:
    rows = re.findall(r"^\| (?:`(std/\w+\.qvr)`)? ?\| `(\w+)\((.*?)\)` \|", TEXT, re.MULTILINE)
    assert {file for file, _, _ in rows} - {""} == set(library_files())
    shown = {name: parameters.split(", ") for _, name, parameters in rows}
    declared: dict[str, list[str]] = {}
    for written in library_files():
        text = (LIBRARY / written.removeprefix("std/")).read_text(encoding="utf-8")
        for name, program in Analyzer(text).snapshot().model.programs.items():
            declared[name] = [one.name for one in program.template if one.kind != "Mor"]
    assert shown == declared
