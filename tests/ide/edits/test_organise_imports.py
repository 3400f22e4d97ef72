"""Imports in order: sorted, joined, without what nothing uses."""

from __future__ import annotations

import pytest

from qvr_core.analysis import Analyzer, Snapshot
from qvr_core.ide.edits.imports_in_order import organise_imports
from qvr_core.ide.edits.refactor import organize
from qvr_core.workspace import Bundle, Workspace
from tests.ide.cases import applied

FILES = {
    "a.qvr": "object A : Real 3\nobject B : Real 4\nmorphism f : A -> B [role=linear]\n",
    "b.qvr": "object C : Real 5\ndef half(x) = x * 0.5\n",
    "c.qvr": "object D : Real 6\nobject E : {red, green}\n",
}
USER = "morphism g : A -> B [role=linear]\nexport g\n"


def analysed(text: str) -> Snapshot:
    return Analyzer(text, None, "main.qvr", Workspace(Bundle(FILES))).snapshot()


def organised(text: str) -> str:
    snapshot = analysed(text)
    after = applied(text, organise_imports(snapshot))
    before = sorted(each.code.name for each in snapshot.diagnostics() if each.severity.value == 1)
    assert sorted(each.code.name for each in analysed(after).diagnostics() if each.severity.value == 1) == before
    assert organise_imports(analysed(after)) == ()
    return after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('from "a.qvr" import B, A\n', 'from "a.qvr" import A, B\n'),
        ('import "c.qvr"\nimport "b.qvr" as b\nimport "a.qvr"\n', 'import "a.qvr"\n'),
        ('from "a.qvr" import B\nfrom "b.qvr" import C\nfrom "a.qvr" import f, A\n', 'from "a.qvr" import A, B\n'),
        ('from "a.qvr" import A as B, B as A\n', 'from "a.qvr" import A as B, B as A\n'),
        ('import "gone.qvr" as g\nimport "a.qvr"\n', 'import "a.qvr"\nimport "gone.qvr" as g\n'),
        (
            '# Head.\nimport "a.qvr"\n# Why.\nimport "gone.qvr"\n',
            '# Head.\nimport "a.qvr"\n# Why.\nimport "gone.qvr"\n',
        ),
        ('import "b.qvr"  # kept\nimport "a.qvr"\n', 'import "b.qvr"  # kept\nimport "a.qvr"\n'),
    ],
)
def test_imports_in_order(before: str, after: str) -> None:
    assert organised(before + USER) == after + USER


def test_what_a_prefix_names_keeps_its_import() -> None:
    text = 'import "b.qvr" as b\nimport "a.qvr" as a\nlet x = a.f\n'
    text += "program p : a.A -> a.A\n    let y = b.half(2.0)\n    return y\n"
    assert organised(text).startswith('import "a.qvr" as a\nimport "b.qvr" as b\nlet x')


def test_imports_among_statements_are_gathered() -> None:
    text = f'import "b.qvr" as b\nobject Own : Real 2\n# From a.\nimport "a.qvr"\n{USER}'
    assert organised(text) == f'# From a.\nimport "a.qvr"\nobject Own : Real 2\n{USER}'


def test_a_line_that_cannot_be_read_may_use_what_it_names() -> None:
    text = 'from "a.qvr" import B, A\nmorphism g : A -> B [role=\n'
    assert organised(text).startswith('from "a.qvr" import A, B\n')
    assert organise_imports(analysed('import "a.qvr\nfrom "b.qvr" import half\n')) == ()


def test_imports_stay_on_top_when_declarations_are_ordered() -> None:
    text = 'import "a.qvr"\nlet y = g\nmorphism g : A -> B [role=linear]\n'
    assert (
        applied(text, organize(analysed(text))) == 'import "a.qvr"\n\nmorphism g : A -> B [role=linear]\n\nlet y = g\n'
    )
