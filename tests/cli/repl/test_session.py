"""What lines do that come from a pipe: declarations, expressions, commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from qvr_core.analysis import Analyzer, analyse
from qvr_core.cli.repl.session import MOST_LETTERS, Session
from tests.cli.repl.conftest import SCHOOLS, Ask
from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[3]
EIGHT = ROOT / "examples" / "eight_schools.qvr"


def piped(text: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "qvr_core.cli", "repl", *arguments]
    return subprocess.run(command, cwd=cwd, input=text, capture_output=True, text=True, check=False, timeout=HANG)


def test_a_pipe_is_answered_in_plain_text(tmp_path: Path) -> None:
    done = piped(f"{SCHOOLS}theta - mu\n1 + 2\n", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "School : FinSet 8",
        "schools : School -> Real 8",
        "theta - mu : School",
        "1 + 2 : Real 1 = 3",
    ]


def test_the_exit_status_says_whether_anything_was_refused(tmp_path: Path) -> None:
    done = piped("object A : FinSett 3\nobject B : FinSet 2\n", str(EIGHT), cwd=tmp_path)
    assert done.returncode == 1
    first, *shown, last = done.stdout.splitlines()
    assert first.endswith("eight_schools.qvr: 3 declarations") and last == "B : FinSet 2"
    assert [line.rstrip() for line in shown] == [
        "error[syntax-error]: `FinSett` is no space; did you mean `FinSet`?",
        " --> input:1:12",
        "1 | object A : FinSett 3",
        "  |            ^^^^^^^",
        "  = fix: Replace it with `FinSet`",
        "not added",
    ]


def test_what_a_wrong_line_clashes_with_is_shown_where_it_stands(session: Session, ask: Ask) -> None:
    ask("object A : FinSet 2", "object H : Real 4", "morphism e : A -> H [role=embed]")
    said = ask("let f = e >> e")
    assert "error[compose-mismatch]" in said and "input:1:11" in said
    assert "the document:2:8" in said and "2 | object H : Real 4" in said
    assert said.endswith("not added") and "f" not in session.document.snapshot().model.lets


def test_a_block_is_one_declaration(session: Session, ask: Ask) -> None:
    blank = SCHOOLS.replace("    sample mu", "\n    # the mean\n    sample mu")
    steps = ("sample mu <- Normal(0.0, 1.0)", "let nu = mu + 1", "sample z : School <- Normal(nu, 1.0)", "return z")
    said = ask(
        blank, "program p : School -> School", *steps, "def third(x)", "    let y = x / 3", "    return y",
        "object H : Real 4", "morphism e : School ->", "    H [", "    role=embed", "]",
        "let g = e >>", "    identity(H)",
        "third(3.0)",
    )  # fmt: skip
    added = [line for line in said.splitlines() if " : " in line or "(function)" in line]
    assert added == [
        "School : FinSet 8", "schools : School -> Real 8", "p : School -> Real 8", "third (function)",
        "H : Real 4", "e : School => H", "g : School => H", "third(3.0) : Real 1 = 1",
    ]  # fmt: skip
    assert "unindented-body" in said and not [
        one for one in analyse(session.document.text).diagnostics() if one.severity.name == "ERROR"
    ]


def test_a_declaration_takes_the_place_of_the_one_of_its_name(session: Session, ask: Ask) -> None:
    ask(SCHOOLS)
    assert ask("object School : FinSet 9") == "School : FinSet 9  (in place of the earlier one)"
    assert session.document.text == SCHOOLS.replace("FinSet 8\n", "FinSet 9\n\n", 1)
    # one that others do not go with is refused, with what is wrong there
    ask(
        "object H : Real 4",
        "morphism e : School -> H [role=embed]",
        "morphism f : H -> Real 2 [role=linear]",
        "let g = e >> f",
    )
    said = ask("morphism f : Real 5 -> Real 2 [role=linear]")
    assert said.endswith("not added") and "compose-mismatch" in said and "the document:14:" in said
    assert "morphism f : H ->" in session.document.text


def test_a_size_may_be_settled_by_a_later_line(session: Session, ask: Ask) -> None:
    assert "unsolved-hole" in ask("object D : Real _")
    assert ask("object A : FinSet 2", "morphism e : A -> Real 7 [role=embed]", "let f = e >> identity(D)").endswith(
        "f : A => D"
    )
    assert not [one for one in session.document.snapshot().diagnostics() if one.severity.name == "ERROR"]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("School", "School : FinSet 8"),
        ("School * Real 2", "School * Real 2 : FinSet 8 * Real 2"),
        ("schools", "schools : School -> Real 8"),
        ("theta[0] * exp(mu)", "theta[0] * exp(mu) : Real 1"),
        ("2 ^ 10 - 24", "2 ^ 10 - 24 : Real 1 = 1000"),
        ("sigmoid(0.0)", "sigmoid(0.0) : Real 1 [low=0, high=1] = 0.5"),
        ("sum([1.0, 2.0, 3.5])", "sum([1.0, 2.0, 3.5]) : Real 1 = 6.5"),
        ("sqrt([4.0, 9.0])", "sqrt([4.0, 9.0]) : Real 2 [low=0] = [2, 3]"),
        ("softmax([0.0, 0.0])", "softmax([0.0, 0.0]) : Simplex 2"),
        ("log(0.0)", "log(0.0) : Real 1"),
        ("[1, sqrt(4), -cos(0)]", "[1, sqrt(4), -cos(0)] : Real 3 = [1, 2, -1]"),
        ("1 / 0", "1 / 0 : Real 1"),
        ("log(mu", "log(mu"),
    ],
)
def test_an_expression_says_its_type_and_its_value(expression: str, said: str, ask: Ask) -> None:
    ask(SCHOOLS)
    answered = ask(expression)
    assert said in answered if expression.count("(") > expression.count(")") else answered == said
    assert "unclosed-bracket" in answered or "error" not in answered


def test_a_value_is_followed_through_lets(ask: Ask) -> None:
    ask(
        "program p : One -> One", "    let a = 2", "    let b = a * 3", "    sample x <- Normal(b, 1.0)", "    return x"
    )
    assert ask("b / 4") == "b / 4 : Real 1 = 1.5"
    assert ask("x + b") == "x + b : Real 1"


@pytest.mark.parametrize("expression", ["nowhere", "theta + nowhere", "e >> nowhere"])
def test_a_name_that_nobody_has_is_an_error(expression: str, session: Session, ask: Ask) -> None:
    ask(SCHOOLS, "morphism e : School -> Real 4 [role=embed]")
    said = ask(expression)
    assert said.startswith("error[unknown-name]") and session.refused
    assert said.splitlines()[3] == "  | " + " " * expression.index("nowhere") + "^" * len("nowhere")
    assert "nowhere" not in session.document.text


def test_type_and_info_are_hovers(ask: Ask) -> None:
    ask(SCHOOLS)
    assert ask(":type theta - mu").splitlines()[0] == "theta - mu : School"
    assert "one number for each school" in ask(":i theta").lower()
    assert "latent · from Normal" in ask(":type theta") == ask(":info theta")
    assert "the document:7" in ask(":info theta")
    assert "Bell curve" in ask("Normal") == ask(":info Normal")
    assert "Gamma" in ask(":info Gamma")
    assert "Folds a cell over a sequence" in ask(":info scan")
    assert "side by side" in ask(":info @").lower()
    assert "qvr explain compose-mismatch" in ask(":info compose-mismatch")
    assert ask(":info thet") == "error: nothing is called `thet`; did you mean `theta`?"


def test_undo_goes_back_one_change_at_a_time(session: Session, ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "m.qvr").write_text(SCHOOLS)
    ask("object A : FinSet 2", "object B : FinSett 3", ":load m.qvr", "object School : FinSet 9")
    assert session.document.path == Path("m.qvr")
    assert ask(":undo") == "undone: School" and session.document.text == SCHOOLS
    assert ask(":undo") == "undone: :load m.qvr"
    assert (session.document.text, session.document.path) == ("object A : FinSet 2\n", None)
    assert ask(":undo", ":undo") == "undone: A\nerror: there is nothing to undo"


def test_load_takes_a_file_as_it_is_and_save_writes_over_nothing_else(
    session: Session, ask: Ask, tmp_path: Path
) -> None:
    wrong, other = tmp_path / "wrong.qvr", tmp_path / "other.qvr"
    wrong.write_bytes(b"object A : FinSet 2\r\nobject B : FinSett 2\r\n")
    said = ask(":load wrong.qvr")
    assert "error[syntax-error]" in said and said.endswith("wrong.qvr: 2 declarations, 1 error")
    # what was wrong before is in nobody's way
    assert ask("object C : FinSet 4") == "C : FinSet 4"
    assert ask(":save") == "wrong.qvr: 3 lines"
    assert wrong.read_bytes().endswith(b"FinSett 2\r\nobject C : FinSet 4\r\n")
    other.write_text("mine")
    assert "is there already" in ask(":save other.qvr") and other.read_text() == "mine"
    assert ask(":save ! other.qvr") == "other.qvr: 3 lines" and session.document.path == Path("other.qvr")
    other.write_text("object Z : FinSet 1\n")
    assert "has changed since it was read" in ask(":save") and other.read_text() == "object Z : FinSet 1\n"
    assert "there is no file nowhere.qvr" in ask(":load nowhere.qvr")


def test_watch_takes_over_what_the_file_has_become(session: Session, ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "m.qvr"
    assert "no file yet" in ask(":watch")
    file.write_text("object A : FinSet 2\n")
    ask(":load m.qvr", ":watch", "object B : FinSet 3")
    file.write_text("object A : FinSett 2000\n")
    said = ask("A")
    assert "m.qvr:1:12" in said and ":undo brings it back" in said
    ask(":undo")
    assert session.document.text == "object A : FinSet 2\nobject B : FinSet 3\n"
    ask(":watch off")
    file.write_text("object C : FinSet 4\n")
    assert "C" not in ask(":list")
    assert ask(":load", ":list").splitlines()[-1] == "1 | object C : FinSet 4"


def test_imports_start_from_the_file(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.qvr").write_text("object A : FinSet 2\n")
    (tmp_path / "lib" / "m.qvr").write_text('import "a.qvr" as a\n')
    assert "import-missing" in ask('import "a.qvr" as a')
    assert ask(":load lib/m.qvr", "object B : a.A").splitlines()[-1] == "B : a.A"


def test_commands_that_are_none(ask: Ask) -> None:
    assert ask(":tpye 1") == "error: there is no command :tpye; did you mean :type?"
    assert ask(":undo 3") == "error: :undo stands alone"
    assert ask("exit").endswith("commands begin with a colon: :quit")
    assert ":posterior [NAMES]" in ask(":help")
    assert ask(":quit", "object A : FinSet 2") == ""


def test_what_is_typed_is_bounded(session: Session, ask: Ask) -> None:
    assert "characters at once" in ask("1 + " * MOST_LETTERS)
    assert ask("[" + "1, " * 1000 + "1]").endswith("1, 1, …]")
    assert ask("2 ^ 999999999", "2.0 ^ 9 ^ 9 ^ 9") == "2 ^ 999999999 : Real 1\n2.0 ^ 9 ^ 9 ^ 9 : Real 1"
    assert "unclosed-bracket" in ask("(" * 5000)
    many = "\n".join(f"object A{number} : FinSett 2" for number in range(300))
    (Path.cwd() / "m.qvr").write_text(many)
    assert "200 more are not shown" in ask(":load m.qvr")


def test_nothing_reaches_the_terminal_as_an_order(ask: Ask) -> None:
    assert "\x1b" not in ask("object A\x1b[2J : FinSet 2", ":info \x1b[2J", "\x1b]0;x\x07")


def test_an_interrupted_analysis_leaves_nothing_by_half(
    session: Session, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(SCHOOLS)
    edit = Analyzer.edit

    def interrupted(self: Analyzer, *given: Any) -> None:
        edit(self, *given)
        if given[2]:
            monkeypatch.setattr(Analyzer, "edit", edit)
            raise KeyboardInterrupt

    monkeypatch.setattr(Analyzer, "edit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.take("object A : FinSet 3\n" * 3)
    assert ask("object B : FinSet 3", "A").startswith("B : FinSet 3\nerror[unknown-name]")
