"""The names of the library, known in every file without an import: a scope below the file's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import scipy.stats as st
import torch

from qvr_core.analysis import Analyzer, analyse
from qvr_core.disk import Disk
from qvr_core.dsl import load, loads
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.prelude import PRELUDE, TABLE, hidden_kind
from qvr_core.syntax.lexer import COMBINATORS, keyword_kinds
from qvr_core.syntax.source import Cursor
from qvr_core.workspace import Workspace
from scripts import prelude
from tests.patience import calls


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


DRAWN = """object Row : FinSet 3
program p : Row -> Real 1
    sample m <- Logistic(0.5, 2.0)
    sample s <- Wald(1.0, 2.0)
    observe y[i : Row] <- Normal(m, s)
    return m
export p
"""


def values(**more: float) -> dict[str, torch.Tensor]:
    given = {"m": 0.3, "s": 0.8, "y": [0.1, 0.4, -1.0], **more}
    return {name: torch.tensor(value) for name, value in given.items()}


def density(text: str) -> float:
    return float(loads(text).morphism.log_joint(None, values()))


def expected() -> float:
    drawn = st.logistic.logpdf(0.3, 0.5, 2.0) + st.invgauss.logpdf(0.8, 0.5, scale=2.0)
    return float(drawn + st.norm.logpdf([0.1, 0.4, -1.0], 0.3, 0.8).sum())


def codes(text: str) -> list[str]:
    return [one.code.name for one in analyse(text).diagnostics()]


def test_the_table_is_fresh() -> None:
    """`python -m scripts.prelude` brings it up to date."""
    assert TABLE.read_text(encoding="utf-8") == prelude.table()


def test_each_name_is_one_things_alone() -> None:
    """No two files of the library declare a name, and none is one of the language's words."""
    assert prelude.table().count("\n{") == len(PRELUDE) > 20
    assert PRELUDE.keys().isdisjoint((*FAMILIES, *BUILTINS, *COMBINATORS, *keyword_kinds()))
    assert all(one.summary for one in PRELUDE.values())


def test_families_need_no_import() -> None:
    assert codes(DRAWN) == []
    assert density(DRAWN) == pytest.approx(expected(), abs=1e-9)


@pytest.mark.parametrize(
    "line",
    [
        'from "std/families.qvr" import Logistic, Wald\n',
        'from "std/families.qvr" import Logistic\n',
        'import "std/families.qvr"\n',
        'import "std/families.qvr" as f\n',
        'from "std/families.qvr" import Logistic as L, Wald as W\n',
    ],
)
def test_an_import_says_the_same(line: str) -> None:
    assert density(line + DRAWN) == pytest.approx(expected(), abs=1e-9)


def test_an_import_may_call_it_otherwise_beside_its_name() -> None:
    text = 'from "std/families.qvr" import Wald as W\n' + DRAWN.replace(
        "    observe", "    sample z <- W(m, s)\n    observe"
    )
    found = float(loads(text).morphism.log_joint(None, values(z=1.1)))
    assert found == pytest.approx(expected() + st.invgauss.logpdf(1.1, 0.3 / 0.8, scale=0.8), abs=1e-9)


def test_templates_and_cells_need_none() -> None:
    text = (
        "object Token : FinSet 7\nobject Item : Real 4\nobject State : Real 5\nobject Row : FinSet 9\n"
        "object Column : FinSet 3\nmorphism embed : Token -> Item [role=embed]\n"
        "let states = embed >> scan(lstm(Item, State))\n"
        "program p : Row -> Real 1\n    sample w <- horseshoe(Column, 0.1)\n    sample level <- local_level(Row)\n"
        "    observe y <- Normal(level, 1.0)\n    return w\nexport states\n"
    )
    assert "unused" not in codes(text) and not [one for one in codes(text) if "unknown" in one]
    imported = 'from "std/recurrent.qvr" import lstm\nfrom "std/priors.qvr" import horseshoe\n' + (
        'from "std/series.qvr" import local_level\n' + text
    )
    models = [loads(each) for each in (text, imported)]
    named = [sorted(name for name, _ in each.morphism.named_parameters()) for each in models]
    assert named[0] == named[1] and "lstm.gates.weight" in named[0]
    sites = (
        [sorted(each.programs["p"].morphism.run(None).sites) for each in models] if hasattr(models[0], "run") else []
    )
    assert not sites or sites[0] == sites[1]


@pytest.mark.parametrize("name", PRELUDE)
def test_a_value_of_the_name_is_the_programs_own(name: str) -> None:
    """Data that nobody declares, a latent, a let: nothing of the library is read for them, and nothing is said."""
    text = (
        f"object Row : FinSet 3\nprogram p : Row -> Row\n    sample m <- Normal(0.0, 1.0)\n"
        f"    observe y[i : Row] <- Normal(m * {name}[i], 1.0)\n    return m\nexport p\n"
    )
    snapshot = analyse(text)
    assert not snapshot.diagnostics() and not snapshot.table.known
    given = {"m": torch.tensor(0.7), name: torch.tensor([1.0, 2.0, 3.0]), "y": torch.tensor([0.4, 1.5, 2.0])}
    found = float(loads(text).morphism.log_joint(None, given))
    assert found == pytest.approx(
        st.norm.logpdf(0.7) + st.norm.logpdf([0.4, 1.5, 2.0], [0.7, 1.4, 2.1]).sum(), abs=1e-9
    )
    bound = (
        text.replace("sample m", f"sample {name}").replace(f"m * {name}[i]", name).replace("return m", f"return {name}")
    )
    assert not analyse(bound).diagnostics()


BASE = "morphism base : Real 1 -> Real 1 [role=kernel] ~ Normal(0.5, 2.0)\n"
OWN = {
    "family": (
        "family {0}(middle) : Real 1\n    density(x) = -(x - middle)^2 - 0.5723649429247001\n",
        "",
        "{0}(m)",
        "Row",
    ),
    "def": ("def {0}(x) = 3 * x - 1\n", "", "Normal({0}(m), 1.0)", "Row"),
    "object": ("object {0} : FinSet 3\n", "", "Normal(m, 1.0)", "{0}"),
    "let": (BASE + "let {0} = base\n", "    sample z <- {0}(m)\n", "Normal(m + z, 1.0)", "Row"),
    "program": (
        "program {0}(x) : Real 1 -> Real 1\n    let w = 2.0 * x\n    return w\n",
        "    sample z <- {0}(m)\n",
        "Normal(m + z, 1.0)",
        "Row",
    ),
}
"""What declares a name in each way, a step that uses it, what is observed, and over which set."""


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("name", PRELUDE)
def test_what_the_file_declares_goes_first(name: str, kind: str) -> None:
    declared, used, drawn, row = (part.format(name) for part in OWN[kind])
    text = (
        f"object Row : FinSet 3\n{declared}program p : {row} -> {row}\n    sample m <- Normal(0.0, 1.0)\n{used}"
        f"    observe y[i : {row}] <- {drawn}\n    return m\nexport p\n"
    )
    told = [code for code in codes(text) if not code.startswith("unused")]
    assert told == (["hidden-builtin"] if hidden_kind(name) is not None else [])
    y = [0.4, 1.5, 2.0]
    given = {"m": torch.tensor(0.7), "y": torch.tensor(y)} | ({"z": torch.tensor([0.2])} if kind == "let" else {})
    means = {"family": 0.7, "def": 1.1, "object": 0.7, "let": 0.9, "program": 2.1}
    wanted = st.norm.logpdf(0.7) + st.norm.logpdf(y, means[kind], 0.5**0.5 if kind == "family" else 1.0).sum()
    wanted += st.norm.logpdf(0.2, 0.5, 2.0) if kind == "let" else 0.0
    assert float(loads(text).morphism.log_joint(None, given)) == pytest.approx(wanted, abs=1e-9)


def test_an_imported_file_means_the_librarys(tmp_path: Path) -> None:
    """Whatever the importing file declares, and the other way round."""
    (tmp_path / "own.qvr").write_text(
        "program drawn(sd : Real) : FinSet 1 -> Real 1\n    sample z <- Logistic(0.0, sd)\n    return z\n"
        "family Wald(middle) : Real 1\n    density(x) = -(x - middle)^2 - 0.5723649429247001\n"
    )
    main = tmp_path / "main.qvr"
    main.write_text(
        'import "own.qvr" as own\nobject Row : FinSet 3\n'
        "family Logistic(middle) : Real 1\n    density(x) = -(x - middle)^2 - 0.5723649429247001\n"
        "program p : Row -> Row\n    sample u <- own.drawn(2.0)\n    sample m <- Wald(1.0, 3.0)\n"
        "    sample k <- own.Wald(0.5)\n    observe y[i : Row] <- Logistic(m + u + k)\n    return m\n"
    )
    y = [0.4, 1.5, 2.0]
    given = {"u": 0.2, "m": 0.7, "k": -0.3, "y": y}
    found = float(load(main).morphism.log_joint(None, {name: torch.tensor(value) for name, value in given.items()}))
    wanted = st.logistic.logpdf(0.2, 0.0, 2.0) + st.invgauss.logpdf(0.7, 1.0 / 3.0, scale=3.0)
    wanted += st.norm.logpdf(-0.3, 0.5, 0.5**0.5) + st.norm.logpdf(y, 0.6, 0.5**0.5).sum()
    assert found == pytest.approx(wanted, abs=1e-9)


def test_an_import_of_another_file_goes_first(tmp_path: Path) -> None:
    (tmp_path / "own.qvr").write_text("family Wald(a, b) : Real 1\n    density(x) = -(x - a)^2 - 0.5723649429247001\n")
    main = tmp_path / "main.qvr"
    main.write_text('from "own.qvr" import Wald\n' + DRAWN)
    snapshot = Analyzer(main.read_text(), None, main.as_posix(), Workspace(Disk())).snapshot()
    assert [one.code.name for one in snapshot.diagnostics()] == ["hidden-builtin", "argument-support"]
    wanted = expected() - st.invgauss.logpdf(0.8, 0.5, scale=2.0) + st.norm.logpdf(0.8, 1.0, 0.5**0.5)
    assert float(load(main).morphism.log_joint(None, values())) == pytest.approx(wanted, abs=1e-9)
    main.write_text('import "gone.qvr"\n' + DRAWN)
    snapshot = Analyzer(main.read_text(), None, main.as_posix(), Workspace(Disk())).snapshot()
    assert [one.code.name for one in snapshot.diagnostics()] == ["import-missing"]  # they may be those of `gone.qvr`


def test_a_declaration_comes_and_goes() -> None:
    """Under edits the names mean what they mean in the whole text, and what nothing calls is not kept."""
    own = "family Wald(mean, shape) : Real 1\n    density(x) = -mean * x\n"
    analyzer = Analyzer(DRAWN)
    for text, known in ((own, {"Logistic"}), ("", {"Logistic", "Wald"})):
        lines = 2 if not text else 0
        analyzer.edit(Cursor(0, 0), Cursor(lines, 0), text)
        fresh = analyse(analyzer.text)
        assert analyzer.snapshot().diagnostics() == fresh.diagnostics()
        assert analyzer.snapshot().model.order == fresh.model.order
        assert set(fresh.table.known) == set(analyzer.snapshot().table.known) == known
    analyzer.edit(Cursor(2, 16), Cursor(2, 24), "Normal")
    assert set(analyzer.snapshot().table.known) == {"Wald"}
    assert "Logistic" not in analyzer.snapshot().entries


def test_a_name_that_is_misspelt_is_found() -> None:
    for wrong, meant in (("Logistc(", "Logistic("), ("inverse_gaussian(", "Wald(")):
        (problem,) = analyse(DRAWN.replace("Logistic(", wrong)).diagnostics()
        assert [fix.edits[0].text for fix in problem.fixes] == [meant[:-1]]
    text = "object A : Real 2\nobject H : Real 3\nlet s = scan(lstn(A, H))\nexport s\n"
    (problem,) = analyse(text).diagnostics()
    assert [fix.edits[0].text for fix in problem.fixes] == ["lstm"]


def test_what_is_wrong_at_a_use_is_told_there() -> None:
    (problem,) = analyse(DRAWN.replace("Wald(1.0, 2.0)", "Wald(1.0, -2.0)")).diagnostics()
    assert problem.range.start.line == 3
    text = "object A : FinSet 2\nobject H : Real 3\nlet s = scan(lstm(A, H))\nexport s\n"
    assert {one.range.start.line for one in analyse(text).diagnostics()} == {2}


def work_of_an_edit(family: str) -> int:
    """The work of an edit in a long program that draws from a family in each of its lines."""
    steps = "".join(f"    sample v{at} <- {family}({at + 1}.0, 2.0)\n" for at in range(400))
    analyzer = Analyzer(f"program p : One -> One\n{steps}    return v0\n")
    analyzer.snapshot()
    return calls(lambda: analyzer.edit(Cursor(200, 18), Cursor(200, 18), " "))


def test_an_edit_is_as_much_work_as_with_a_family_that_is_built_in() -> None:
    assert work_of_an_edit("Wald") < 1.2 * work_of_an_edit("Gamma")
