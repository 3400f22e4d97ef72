"""The prompt, key by key: prompt_toolkit reads what a pipe holds as if it were typed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document as Buffer
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from qvr_core.cli.repl import prompt
from qvr_core.cli.repl.prompt import Colours, Offers, converse
from qvr_core.cli.repl.session import Session
from qvr_core.cli.repl.typing_help import Help
from tests.cli.repl.conftest import SCHOOLS, Ask

UP, F2, CTRL_C, CTRL_D = "\x1b[A", "\x1bOQ", "\x03", "\x04"
Type = Callable[..., str]


@pytest.fixture
def typed(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Type:
    """What is printed while keys are pressed, and Ctrl-D at the end."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def pressed(*keys: str) -> str:
        with create_pipe_input() as pipe:
            pipe.send_text("".join(keys) + CTRL_D)
            converse(session, input=pipe, output=DummyOutput())
        return capsys.readouterr().out

    return pressed


def test_a_program_is_typed_line_by_line(typed: Type, session: Session) -> None:
    said = typed(
        "object School : FinSet 8\r", "program p : School -> School\r", "sample mu <- Normal(0.0, 5.0)\r",
        "let twice = 2 *\r", "mu\r", "return mu\r", "mu + 1\r",
    )  # fmt: skip
    assert said.splitlines()[:3] == ["School : FinSet 8", "p : School -> Real 1", "mu + 1 : Real 1"]
    assert "    let twice = 2 *\n        mu\n    return mu\n" in session.document.text
    assert "not saved" in said


def test_an_empty_line_ends_a_block(typed: Type) -> None:
    assert "missing-return" in typed(
        "object S : FinSet 8\r", "program p : S -> S\r", "sample a <- Normal(0, 1)\r", "\r"
    )


def test_control_c_drops_the_line_and_nothing_else(typed: Type, session: Session) -> None:
    typed("object A : FinSet 2\r", "object B : Fin", CTRL_C, "object C : FinSet 3\r")
    assert session.document.text == "object A : FinSet 2\nobject C : FinSet 3\n"


def test_f2_applies_the_fix_that_is_shown(typed: Type, session: Session) -> None:
    assert Help(session.document).advice("object A : FinSett 2 ").endswith("fix (F2): Replace it with `FinSet`")
    typed("object A : FinSett 2", F2, "\r")
    assert session.document.text == "object A : FinSet 2\n"


def test_the_history_is_there_in_the_next_session(typed: Type, session: Session, tmp_path: Path) -> None:
    typed("object A : FinSet 2\r")
    session.document.undo()
    typed(UP, "\r")
    assert session.document.text == "object A : FinSet 2\n"
    file = tmp_path / "state" / "qvr" / "history"
    assert file.stat().st_mode & 0o077 == 0


def test_the_history_is_bounded(typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt, "MOST_HISTORY", 2_000)
    typed(*(f"object A{number} : FinSet 2\r" for number in range(60)))
    file = tmp_path / "state" / "qvr" / "history"
    assert file.stat().st_size > 2_000
    typed("object B : FinSet 2\r")
    assert file.stat().st_size < 1_200 and file.read_text().startswith("\n# ")
    assert "A59" in file.read_text() and "B : FinSet" in file.read_text()


def test_quit_leaves(typed: Type, session: Session) -> None:
    typed(":quit\r", "object A : FinSet 2\r")
    assert not session.document.lines


def offered(session: Session, text: str) -> list[str]:
    document = Buffer(text)
    found = Offers(Help(session.document)).get_completions(document, CompleteEvent(completion_requested=True))
    return [text[: len(text) + one.start_position] + one.text for one in found]


def test_completion_narrows_what_is_begun(session: Session, ask: Ask, tmp_path: Path) -> None:
    ask(SCHOOLS)
    assert offered(session, "morphism f : Sch")[0] == "morphism f : School"
    assert "theta - mu" in offered(session, "theta - m")
    assert offered(session, "sch")[0] == "schools"
    assert "object" in offered(session, "ob")
    assert offered(session, ":ty") == [":type"]
    assert ":type theta" in offered(session, ":type th")
    assert offered(session, ":info tau") == [] and offered(session, ":diagram s") == [":diagram schools"]
    (tmp_path / "model.qvr").write_text("")
    assert offered(session, ":load mo") == [":load model.qvr"]


def styles(session: Session, text: str) -> list[tuple[str, str]]:
    """The words that have a style, each with the last of its styles."""
    line = Colours(Help(session.document)).lex_document(Buffer(text))
    found: list[tuple[str, str]] = []
    for number in range(text.count("\n") + 1):
        last = ""
        for style, letter, *_ in line(number):
            if style == last and style:
                found[-1] = found[-1][0] + letter, found[-1][1]
            elif style:
                found.append((letter, style.rpartition(":")[2]))
            last = style
    return found


def test_colours_are_semantic_tokens(session: Session, ask: Ask) -> None:
    ask(SCHOOLS)
    assert styles(session, "morphism e : School -> Real 4 [role=embed]  # why") == [
        ("morphism", "word"), ("e", "function"), ("School", "type"), ("Real", "type"), ("4", "number"),
        ("embed", "enummember"), ("# why", "comment"),
    ]  # fmt: skip
    assert styles(session, ":type schools") == [(":type ", "command"), ("schools", "method")]
    wrong = styles(session, "let f = schools >> School >> schools")
    assert ("School", "error") in wrong and ("schools", "method") in wrong


def test_diagnostics_wait_for_the_end_of_a_word(session: Session, ask: Ask) -> None:
    ask(SCHOOLS)
    help = Help(session.document)
    assert help.advice("morphism e : Scho") == ""
    assert help.advice("morphism e : Scho -> School").startswith("error[unknown-name]: there is no object `Scho`")
    assert help.advice("program p : School -> School\n    sample a <- Normal(0.0, 1.0)\n    ") == ""
    assert "scale" in help.advice("program p : School -> School\n    sample a <- Normal(0.0, -1.0)\n    ")
    # the document itself may have errors: they are not those of the line
    ask(":load nowhere.qvr")
    assert help.problems("object B : FinSet 3") == []


def test_a_followed_file_is_taken_over_while_the_prompt_waits(
    session: Session, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    (tmp_path / "m.qvr").write_text("object A : FinSet 2\n")
    ask(":load m.qvr", ":watch")
    monkeypatch.setattr(prompt, "PAUSE", 0.01)

    async def changing() -> str:
        with create_pipe_input() as pipe:
            waiting = prompt.asking(session, input=pipe, output=DummyOutput())
            asked = asyncio.to_thread(prompt.ask, waiting, session)
            task = asyncio.ensure_future(asked)
            (tmp_path / "m.qvr").write_text("object Changed : FinSet 12\n")
            while "Changed" not in session.document.text:
                await asyncio.sleep(0.01)
            pipe.send_text("Changed\r")
            return await task

    assert asyncio.run(changing()) == "Changed"
