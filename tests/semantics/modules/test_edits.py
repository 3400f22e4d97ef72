"""A workspace after any edits is what it would be if all its files were read now."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from qvr_core.analysis import Analyzer, analyse
from qvr_core.semantics.types.model.file import Model
from qvr_core.syntax.source import Cursor
from qvr_core.workspace import Bundle, Workspace
from tests.patience import calls
from tests.seeds import seeds

FILES = {
    "spaces.qvr": """\
object Token : FinSet 20
object Hidden : Real 8
object Open : Real _
morphism fix : Open -> Hidden [role=linear]
let fixed = identity(Hidden) >> widen
morphism widen : Open -> Real 3 [role=linear]
""",
    "cells.qvr": """\
import "spaces.qvr" as s
object State : Real 8
morphism embed : s.Token -> s.Hidden [role=embed]
morphism cell : s.Hidden * State -> State [role=kernel, scale=0.1] ~ Normal
let encode = embed >> scan(cell)
def half(x) = _times(x, 0.5)
def _times(x, k) = x * k
morphism copies : s.Hidden -> State [role=linear, replicate=2]
""",
    "priors.qvr": """\
from "cells.qvr" import half as h
program effects(G : Object, sd : Real = 1.0) : G -> Real 1
    sample tau <- HalfNormal(h(sd))
    sample u : G <- Normal(0.0, tau)
    sample late <- Wald(1.0, 2.0)
    return u

family Shifted(loc, by) : Real 1
    density(x) = -0.5 * (x - loc - h(by))^2
""",
    "main.qvr": """\
import "spaces.qvr"
import "cells.qvr" as c
from "priors.qvr" import effects, Shifted as S
morphism head : c.State -> Token [role=kernel] ~ Categorical
let model = c.encode >> head
object Both : Real 16
morphism read : Both -> Hidden [role=linear]
let wide = c.embed >> fan(c.copies) >> read
program lm : Token -> Token
    sample h <- c.encode
    observe y <- head(h)
    return y
export lm
""",
    "school.qvr": """\
import "priors.qvr" as p
import "main.qvr" as m
object School : FinSet 8
program schools : School -> School
    sample a <- p.effects(School, sd=2.0)
    sample z : Real 1 <- p.Shifted(0.0, 1.0)
    sample w <- horseshoe(School, 0.1)
    observe y : School <- Normal(a + z, 1.0)
    return y
let again = m.model
export schools
""",
}

WORDS = (
    *("8", "9", "20", "3", "Hidden", "s.Hidden", "c.State", "Token", "h", "half", "p.", "l.", "_times", "cell", "Real"),
    *('import "cells.qvr" as c\n', 'import "school.qvr" as s\n', 'from "spaces.qvr" import Hidden\n', '"gone.qvr"'),
    *("Wald", "Logistic(0.0, 1.0)", "family Wald(m) : Real 1\n    density(x) = x - m\n", "horseshoe(School)"),
    *("", "", "", "\n", " ", "object Extra : Real 4\n", "object Hidden : Real 8\n", "x", "(", "#", "export model\n"),
)


class Open:
    """Files that are all open, edited as an editor does."""

    def __init__(self, files: dict[str, str]) -> None:
        self.workspace = Workspace(Bundle(files))
        self.analyzers = {name: Analyzer(text, None, name, self.workspace) for name, text in files.items()}
        for name in files:
            self.told(name)

    def told(self, name: str) -> None:
        self.workspace.put(self.analyzers[name].module())
        for other in self.workspace.reaching(name):
            self.analyzers[other].refresh()
            self.workspace.put(self.analyzers[other].module())

    def edit(self, name: str, start: Cursor, end: Cursor, text: str) -> None:
        self.analyzers[name].edit(start, end, text)
        self.told(name)

    def texts(self) -> dict[str, str]:
        return {name: analyzer.text for name, analyzer in self.analyzers.items()}


def assert_fresh(files: Open) -> None:
    texts = files.texts()
    fresh = Workspace(Bundle(texts))
    for name, analyzer in files.analyzers.items():
        now, expected = analyzer.snapshot(), analyse(texts[name], None, name, fresh)
        assert now.diagnostics() == expected.diagnostics(), (name, texts)
        assert now.model.order == expected.model.order, (name, texts)
        shown = [[repr(found) for found in _spaces(snapshot.model)] for snapshot in (now, expected)]
        assert shown[0] == shown[1], (name, texts)


def _spaces(model: Model) -> Iterator[tuple[Any, ...]]:
    yield from ((name, found.space) for name, found in model.objects.items())
    for table in (model.arrows, model.programs):
        yield from ((name, arrow.domain, arrow.codomain, arrow.sort) for name, arrow in table.items())


def random_edit(files: Open, rng: random.Random) -> None:
    name = rng.choice(list(FILES))
    lines = files.analyzers[name].document.lines
    line = rng.randrange(len(lines))
    start = Cursor(line, rng.randint(0, len(lines[line])))
    kind = rng.random()
    if kind < 0.3:
        stop = min(line + rng.randint(0, 1), len(lines) - 1)
        end = max(start, Cursor(stop, rng.randint(0, len(lines[stop]))))
    elif kind < 0.6:
        end = Cursor(line, min(start.column + rng.randint(0, 4), len(lines[line])))
    else:
        start, end = Cursor(line, 0), Cursor(line, 0 if kind < 0.8 else len(lines[line]))
    files.edit(name, start, end, rng.choice(WORDS))


def run(seed: int, edits: int, again: int) -> None:
    rng = random.Random(seed)
    files = Open(dict(FILES))
    assert_fresh(files)
    for count in range(edits):
        if count % again == 0:  # from programs that mean something
            for name, text in FILES.items():
                lines = files.analyzers[name].document.lines
                files.edit(name, Cursor(0, 0), Cursor(len(lines), 0), text)
        random_edit(files, rng)
        assert_fresh(files)


def test_the_files_are_right() -> None:
    files = Open(dict(FILES))
    errors = [(name, one.message) for name, a in files.analyzers.items() for one in a.snapshot().diagnostics()]
    assert [one for one in errors if "never used" not in one[1]] == []


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_edits_of_five_files_give_what_fresh_files_give(seed: int) -> None:
    run(seed, 25, 6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_two_thousand_edits_of_five_files_give_what_fresh_files_give(seed: int) -> None:
    run(seed, 100, 10)


def test_files_that_are_not_open_follow_what_they_import() -> None:
    texts = dict(FILES)
    workspace = Workspace(Bundle(texts))
    main = Analyzer(texts["main.qvr"], None, "main.qvr", workspace)
    rng = random.Random(7)
    for count in range(12):
        for name in ("spaces.qvr", "cells.qvr"):  # read from disk, the one imported by the other
            lines = FILES[name].split("\n")
            if count % 3:
                line = rng.randrange(len(lines))
                lines[line] = rng.choice(WORDS).rstrip("\n")
            texts[name] = "\n".join(lines)
            workspace.forget(name)
            for other in workspace.reaching(name):
                assert workspace.follow(other)
        assert workspace.waiting("cells.qvr") > 0
        main.refresh()
        if "cells.qvr" in main.links.table.modules:
            assert workspace.waiting("cells.qvr") == 0
        expected = analyse(texts["main.qvr"], None, "main.qvr", Workspace(Bundle(texts)))
        assert main.snapshot().diagnostics() == expected.diagnostics(), texts


def edit_work(declarations: int) -> int:
    """The work of an edit in a file of some length that others might import, but none does."""
    workspace = Workspace(Bundle({}))
    lets = "".join(f"let g{each + 1} = g{each} >> g0\n" for each in range(declarations))
    text = f"object A : Real 3\nmorphism g0 : A -> A [role=linear]\n{lets}"
    typed = Analyzer(text, None, "typed.qvr", workspace)
    workspace.put(typed.module())

    def once() -> None:
        typed.edit(Cursor(5, 0), Cursor(5, 0), "object B : Real 2\n")
        workspace.put(typed.module())
        assert workspace.reaching("typed.qvr") == []

    return calls(once)


def test_an_edit_of_a_long_file_that_nobody_imports_goes_through_none_of_it() -> None:
    assert edit_work(1_500) < edit_work(100) * 1.5
