"""docs/std.md names all that the library has."""

import re
from pathlib import Path

from qvr_core.analysis import Analyzer
from qvr_core.disk import LIBRARY, library_files

PAGE = Path(__file__).resolve().parents[2] / "docs" / "std.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_its_table_has_every_template_and_family_with_its_parameters() -> None:
    rows = re.findall(r"^\| (?:`(std/\w+\.qvr)`)? ?\| `(\w+)\((.*?)\)` \|", TEXT, re.MULTILINE)
    assert {file for file, _, _ in rows} - {""} == set(library_files())
    shown = {name: parameters.split(", ") for _, name, parameters in rows}
    declared: dict[str, list[str]] = {}
    for written in library_files():
        text = (LIBRARY / written.removeprefix("std/")).read_text(encoding="utf-8")
        for name, program in Analyzer(text).snapshot().model.programs.items():
            declared[name] = [one.name for one in program.template if one.kind != "Mor"]
        for name, parameters in re.findall(r"^family (\w+)\(([^()]*)\)", text, re.MULTILINE):
            declared[name] = re.findall(r"(?:^|,)\s*(\w+)(?= :|,|$)", parameters)
    assert shown == declared
