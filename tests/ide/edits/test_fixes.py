"""Every quick fix leaves the file with one problem less and no new one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from qvr_core.analysis import Analyzer, Snapshot, analyse
from qvr_core.ide.edits.fixes import actions_of, attempts, fix_all, quick_fixes, removes_problem
from qvr_core.ide.edits.repairs import MISMATCHES, repairs
from qvr_core.workspace import Workspace
from tests.ide.cases import LM, PROGRAM, applied, between, text_of
from tests.spec.cases import BesideLibrary, read_cases

ROOT = Path(__file__).resolve().parents[3]

SNIPPETS = {
    "misspelt": LM + "let y = tok_embde >> scan(cell)\n",
    "missing return": LM + "program p : Token -> Token\n    sample h <- backbone\n    observe y <- lm_head(h)\n",
    "unindented": LM + PROGRAM.replace("    ", ""),
    "option": LM + "morphism m : Hidden -> Hidden [role=attention, head=2]\n",
    "direction": LM
    + "morphism bwd_cell : Embedded * Hidden -> Hidden ~ Normal\nlet y = tok_embed >> scan(bwd_cell)\n",
    "replicated": LM + "morphism m : Hidden -> Hidden [role=linear, replicate=2]\nlet y = m >> m\n",
    "colon": LM + PROGRAM.replace("Token -> Token\n", "Token -> Token:\n"),
    "draw": LM + "program p : Token -> Hidden\n    sample h <- tok_embed >> scan(cell)\n    return h\n",
    "hole": "object A : Real _\n",
    "width": LM
    + "object Wide : Real 96\nmorphism g : Wide -> Token [role=kernel] ~ Categorical\nlet y = backbone >> g\n",
    "quotes": LM + "let y = from_data('x')\n",
    "lookalike": "object A : Real 3\nmorphism f : A → A [role=linear]\n",
    "two at once": LM + "let y = tok_embde >> scan(cel)\n",
}  # fmt: skip

SETS = """\
object Token, Word : FinSet 256
morphism embed : Token -> Real 3 [role=embed]
morphism head : Real 3 -> Token ~ Categorical
morphism again : Word -> Real 3 [role=embed]
"""


Files = tuple[tuple[str, str], ...]


def texts() -> Iterator[tuple[str, str, Files]]:
    """Texts, each with the files that it may import."""
    yield from ((name, text, ()) for name, text in SNIPPETS.items())
    for path in sorted((ROOT / "examples" / "broken").glob("*.qvr")):
        yield path.name, path.read_text(), ()
    for folder in ("tests/spec", "docs/diagnostics"):
        for page in sorted((ROOT / folder).rglob("*.md")):
            plain = [case for case in read_cases(page) if not case.flags]
            for number, case in enumerate(plain):
                yield f"{page.stem}:{number}", case.source, case.files


def analysed(text: str, files: Files) -> Snapshot:
    return analyse(text, None, "main.qvr", Workspace(BesideLibrary(dict(files))))


def mendable(text: str, files: Files) -> bool:
    return any(d.fixes or d.code.name in MISMATCHES for d in analysed(text, files).diagnostics())


CASES = [(name, text, files) for name, text, files in texts() if mendable(text, files)]


def problems(text: str, files: Files = ()) -> Counter[str]:
    found = analysed(text, files).diagnostics()
    return Counter(item.code.name for item in found if item.severity.value < 4)


@pytest.mark.parametrize(("name", "text", "files"), CASES, ids=[case[0] for case in CASES])
def test_offered_fix_fixes_its_problem_and_makes_no_new_one(name: str, text: str, files: Files) -> None:
    before = analysed(text, files)
    for found in before.diagnostics():
        for action in (*actions_of(found), *repairs(before, found)):
            fixed = applied(text, action.edits)
            if not removes_problem(before, analysed(fixed, files), action):
                continue
            assert not problems(fixed, files) - problems(text, files)
            if found.severity.value < 4:
                assert problems(fixed, files).total() < problems(text, files).total()


def test_fixes_of_every_code_lead_out_somewhere() -> None:
    tried: Counter[str] = Counter()
    good: Counter[str] = Counter()
    for _, text, files in CASES:
        before = analysed(text, files)
        for found in before.diagnostics():
            for action in actions_of(found):
                tried[action.code] += 1
                good[action.code] += removes_problem(before, analysed(applied(text, action.edits), files), action)
    assert not [code for code in tried if not good[code]]
    assert good.total() > 0.8 * tried.total(), {code: (good[code], tried[code]) for code in tried}


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        (
            SETS + "program p : Word -> Real 3\n    sample e <- $1embed$2\n    return e\n",
            ["Change `Word` to `Token` in `program p`", "Change `Token` to `Word` in `morphism embed`"],
        ),
        (
            SETS + "program p : Real 3 -> Word\n    sample t : $1Word$2 <- head\n    return t\n",
            ["Change `Token` to `Word` in `morphism head`"],
        ),
        (
            SETS + "program p : Real 3 -> Word\n    sample t <- head\n    $1return t$2\n",
            ["Change `Word` to `Token` in `program p`", "Change `Token` to `Word` in `morphism head`"],
        ),
        (
            SETS + "let y = head $1>>$2 again\n",
            ["Change `Token` to `Word` in `morphism head`", "Change `Word` to `Token` in `morphism again`"],
        ),
    ],
    ids=["argument", "ascription", "return", "compose"],
)
def test_one_space_is_changed_where_that_repairs_a_mismatch(text: str, titles: list[str]) -> None:
    snapshot, stretch = between(text)
    good = [
        action.title
        for action in attempts(snapshot, stretch)
        if removes_problem(snapshot, Analyzer(applied(text_of(snapshot), action.edits)).snapshot(), action)
    ]
    assert sorted(good) == sorted(titles)


def test_fixes_are_offered_where_their_problem_is() -> None:
    snapshot, stretch = between(LM + "let y = $1tok_embde$2 >> scan(cell)\n")
    found = quick_fixes(snapshot, stretch)
    assert found[0].code == "unknown-name"
    assert "let y = tok_embed >>" in applied(text_of(snapshot), found[0].edits)


def test_width_is_fixed_where_it_is_declared_too() -> None:
    text = LM.replace("object Hidden : Real 128", "object Hidden : Real $1$2128\nobject Other : Real 96")
    text += "morphism g : Other -> Token ~ Categorical\nlet y = backbone >> g\n"
    snapshot, stretch = between(text)
    assert not [found for found in snapshot.diagnostics() if found.range.start == stretch.start]
    assert [action.title for action in quick_fixes(snapshot, stretch)] == ["Change `Hidden` to 96"]


def test_fix_all_fixes_everything_that_has_one_way_out() -> None:
    text = SNIPPETS["two at once"]
    fixed = applied(text, fix_all(Analyzer(text).snapshot()))
    assert not problems(fixed)


def test_several_names_of_one_value_become_a_step_each() -> None:
    text = (
        "object A : Real 2\nprogram p : A -> A\n    sample b0, b1 <- Normal(0.0, 1.0)  # both\n"
        "    observe y <- Normal(b0 + b1, 1.0)\n    return y\n"
    )
    [found] = [item for item in Analyzer(text).snapshot().diagnostics() if item.severity.value < 4]
    [fix] = actions_of(found)
    assert fix.title == "Write one step each"
    fixed = applied(text, fix.edits)
    assert fixed.splitlines()[2:4] == ["    sample b0 <- Normal(0.0, 1.0)", "    sample b1 <- Normal(0.0, 1.0)  # both"]
    assert not problems(fixed)
