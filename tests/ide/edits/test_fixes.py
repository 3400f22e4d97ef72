"""Every fix takes its diagnostic away; where it may hide another, or only turns into another, is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from qvr_core.analysis import Analyzer, Snapshot, analyse
from qvr_core.ide.edits.fixes import actions_of, attempts, fix_all, quick_fixes, removes_problem
from qvr_core.ide.edits.repairs import repairs
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
REST = "the rest of "
PLACES = ("snippets", "examples/broken", "tests/spec", "docs/diagnostics")
EVERYWHERE = (*PLACES, f"{REST}tests/spec")
SHARE = 3
"""Of the many texts of the specification every third is tried in `make test`, the rest in `make slow`."""


def texts(place: str) -> Iterator[tuple[str, str, Files]]:
    """The texts of a place, each with its name and the files that it may import."""
    if place == "snippets":
        yield from ((name, text, ()) for name, text in SNIPPETS.items())
    for path in sorted((ROOT / place).glob("?*.qvr")):
        yield path.name, path.read_text(), ()
    for page in sorted((ROOT / place).rglob("*.md")):
        for case in read_cases(page):
            if not case.flags:
                yield case.name, case.source, case.files


def analysed(text: str, files: Files = ()) -> Snapshot:
    return analyse(text, None, "main.qvr", Workspace(BesideLibrary(dict(files))))


@dataclass(frozen=True)
class Outcome:
    """What one fix of one diagnostic leads to."""

    text: str
    """The name of the text."""
    code: str
    title: str
    mends: bool
    """Whether the diagnostic is gone."""
    leads_out: bool
    """Whether a problem less is left, and no new one: what an editor asks of a fix before it offers it."""
    repair: bool
    """Whether it is one of those for two spaces that do not fit."""


@cache
def all_outcomes(place: str) -> tuple[Outcome, ...]:
    """Every fix and every repair of every diagnostic of a place, applied alone."""
    tried = list(texts(place.removeprefix(REST)))
    if "tests/spec" in place:
        tried = [one for at, one in enumerate(tried) if (at % SHARE != 0) == place.startswith(REST)]
    return tuple(outcome for name, text, files in tried for outcome in _outcomes(name, text, files))


def outcomes(place: str, *, repair: bool = False) -> list[Outcome]:
    return [one for one in all_outcomes(place) if one.repair == repair]


def _outcomes(name: str, text: str, files: Files) -> Iterator[Outcome]:
    before = analysed(text, files)
    known = messages(before)
    for diagnostic in before.diagnostics():
        message = (diagnostic.code.name, diagnostic.message)
        for repair, actions in ((False, actions_of(diagnostic)), (True, repairs(before, diagnostic))):
            for action in actions:
                after = analysed(applied(text, action.edits), files)
                mends = messages(after)[message] < known[message]
                yield Outcome(name, action.code, action.title, mends, removes_problem(before, after, action), repair)


def messages(snapshot: Snapshot) -> Counter[tuple[str, str]]:
    return Counter((one.code.name, one.message) for one in snapshot.diagnostics())


def problems(text: str, files: Files = ()) -> Counter[str]:
    return Counter(one.code.name for one in analysed(text, files).diagnostics() if one.severity.value < 4)


@pytest.mark.parametrize("place", [*PLACES, pytest.param(EVERYWHERE[-1], marks=pytest.mark.slow)])
def test_a_fix_takes_its_diagnostic_away(place: str) -> None:
    assert outcomes(place)
    idle = [f"{one.text}: {one.code}: {one.title}" for one in outcomes(place) if not one.mends]
    assert not idle, "\n".join(idle)


def leading_out(places: tuple[str, ...]) -> tuple[Counter[str], Counter[str]]:
    """How many fixes of each code were tried, and how many of them lead out."""
    tried: Counter[str] = Counter()
    good: Counter[str] = Counter()
    for one in (one for place in places for one in outcomes(place)):
        tried[one.code] += 1
        good[one.code] += one.leads_out
    return tried, good


def test_most_fixes_lead_out() -> None:
    tried, good = leading_out(PLACES)
    assert len(tried) > 60
    assert good.total() > 0.8 * tried.total(), {code: (good[code], tried[code]) for code in tried}


@pytest.mark.slow
def test_fixes_of_every_code_lead_out_somewhere() -> None:
    tried, good = leading_out(EVERYWHERE)
    assert not [code for code in tried if not good[code]]


@pytest.mark.slow
def test_repairs_of_every_mismatch_lead_out_somewhere() -> None:
    """An editor tries them before it offers them, so that some lead elsewhere."""
    every = [one for place in EVERYWHERE for one in outcomes(place, repair=True)]
    codes = {one.code for one in every}
    assert {one.code for one in every if one.leads_out} == codes
    assert len(codes) >= 5


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


@pytest.mark.parametrize(
    ("given", "value", "title", "mended"),
    [
        (": School", "a[0, 1]", "Remove the index", "a[0]"),
        (": School", "a[0, 1, 2]", "Remove the last 2 indices", "a[0]"),
        (": School * Pupil", "a[0, 1, 2]", "Remove the index", "a[0, 1]"),
        ("", "a[0]", "Remove the index", "a"),
        ("", "a[0, 1]", "Remove the index", "a"),
    ],
)
def test_indices_that_are_too_many_are_removed(given: str, value: str, title: str, mended: str) -> None:
    text = (
        "object School : FinSet 8\nobject Pupil : FinSet 9\nprogram p : School -> Real 1\n"
        f"    sample a {given} <- Normal(0.0, 1.0)\n    let b = {value}\n    return b\nexport p\n"
    )
    [found] = [one for one in Analyzer(text).snapshot().diagnostics() if one.code.name == "index-mismatch"]
    [fix] = actions_of(found)
    assert (fix.title, fix.preferred) == (title, True)
    assert applied(text, fix.edits).splitlines()[4] == f"    let b = {mended}"
