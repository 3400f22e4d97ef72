"""What holds of every file of the library."""

import pytest

from qvr_core.analysis import Analyzer
from qvr_core.disk import LIBRARY, LibraryOnly, library_files
from qvr_core.ide.symbols import lookup
from qvr_core.syntax.formatter import format_text
from qvr_core.workspace import Workspace


@pytest.mark.parametrize("written", library_files())
def test_a_file_is_clean_formatted_and_says_what_each_name_is(written: str) -> None:
    text = (LIBRARY / written.removeprefix("std/")).read_text(encoding="utf-8")
    location = written.replace("std/", "std:")
    snapshot = Analyzer(text, None, location, Workspace(LibraryOnly())).snapshot()
    assert not snapshot.diagnostics()
    assert format_text(text) == text
    for name in snapshot.model.programs:
        held = lookup(snapshot, name)
        assert held is not None and held.doc, name
