"""What is offered of other files."""

from __future__ import annotations

import pytest

from qvr_core.analysis import Analyzer
from qvr_core.ide.answers import Completion
from qvr_core.ide.completion.completion import complete
from qvr_core.ide.completion.imported import path_before
from qvr_core.ide.prose import markdown
from qvr_core.syntax.source import Cursor
from qvr_core.workspace import Bundle, Workspace
from tests.ide.imports.test_imported_names import LAYERS

PREFIX = 'import "lib/layers.qvr" as l\n'
PLAIN = 'import "lib/layers.qvr"\n'
ROUND = 'import "main.qvr"\nobject Back : Real 3\n'
ARROWS = ["block", "block_0", "block_1", "block_2", "effects", "embed", "encode"]
OBJECTS = ["Colour", "Hidden", "Token"]
NAMED = ["block", "effects", "embed", "encode", "half", "Shifted", *OBJECTS]


def offered(text: str) -> dict[str, Completion]:
    before = text[: text.index("$0")]
    workspace = Workspace(Bundle({"lib/layers.qvr": LAYERS, "round.qvr": ROUND, "main.qvr": "object A : Real 2\n"}))
    snapshot = Analyzer(text.replace("$0", ""), None, "main.qvr", workspace).snapshot()
    cursor = Cursor(before.count("\n"), len(before) - before.rfind("\n") - 1)
    return {item.label: item for item in complete(snapshot, cursor)}


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        (f"{PREFIX}object Wide : l.$0\n", OBJECTS),
        (f"{PREFIX}morphism f : l.Hidden -> l.H$0\n", OBJECTS),
        (f"{PREFIX}let a = l.$0\n", ARROWS),
        (f"{PREFIX}let a = l.embed >> scan(l.$0)\n", [one for one in ARROWS if one != "effects"]),  # no cell
        (f"{PREFIX}let a = identity(l.$0)\n", OBJECTS),
        (f"{PREFIX}export l.$0\n", ARROWS),
        (f"{PREFIX}program p : l.Token -> l.Hidden\n    sample h <- l.$0\n", sorted(["Shifted", *ARROWS])),
        (f"{PREFIX}program p : l.Token -> l.Hidden\n    let h = 2.0 * l.$0\n", sorted(["half", *ARROWS])),
        (f"{PREFIX}program p : l.Token -> l.Hidden\n    sample h : l.$0\n", OBJECTS),
        (f"{PREFIX}program p : l.Token -> l.Hidden\n    sample h[i : l.$0] <- Normal(0, 1)\n", OBJECTS),
        ('from "lib/layers.qvr" import $0\n', NAMED),
        ('from "lib/layers.qvr" import Hidden, h$0\n', [name for name in NAMED if name != "Hidden"]),
        ('from "lib/layers.qvr" $0\n', ["import"]),
        ('from "gone.qvr" import $0\n', []),
        ('from "round.qvr" import $0\n', []),
        ('from "main.qvr" import $0\n', []),
        ('import "lib/layers.qvr" $0\n', ["as"]),
    ],
)  # fmt: skip
def test_what_is_offered(text: str, labels: list[str]) -> None:
    assert sorted(offered(text), key=str.lower) == sorted(labels, key=str.lower)


def test_names_without_a_prefix_stand_among_the_own_ones() -> None:
    found = offered(f"{PLAIN}object Mine : Real 3\nmorphism f : Mine -> $0\n")
    assert {"Hidden", "Mine", "Real"} <= set(found) and "embed" not in found
    assert found["Hidden"].detail == "Real 64" and "From `lib/layers.qvr`." in markdown(found["Hidden"].documentation)
    assert "What is read." in markdown(found["Token"].documentation)
    found = offered('from "lib/layers.qvr" import encode as whole\nlet y = $0\n')
    assert "whole" in found and "encode" not in found
    found = offered(f"{PREFIX}let y = $0\n")
    assert found["l"].kind == "module" and found["l"].detail == "names of lib/layers.qvr" and "embed" not in found


def test_the_arguments_of_what_a_prefix_names() -> None:
    found = offered(f"{PREFIX}program p : l.Token -> l.Hidden\n    let a = 2.0\n    sample h <- l.Shifted($0)\n")
    assert {"a", "exp", "l"} <= set(found)
    found = offered(f"{PREFIX}program p : l.Token -> l.Hidden\n    sample h : Real 1 <- l.Shifted(loc=0.0, $0by=2.0)\n")
    assert {"loc", "by"} <= set(found)


def test_the_path_before_the_cursor() -> None:
    snapshot = Analyzer('import "lib/lay.qvr" as l\nfrom "x\nobject A : Real 3 # "lib\n').snapshot()
    assert path_before(snapshot, Cursor(0, 15)) == "lib/lay"
    assert path_before(snapshot, Cursor(1, 7)) == "x"
    assert path_before(snapshot, Cursor(0, 22)) is None
    assert path_before(snapshot, Cursor(2, 24)) is None
