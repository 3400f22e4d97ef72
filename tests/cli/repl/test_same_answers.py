"""The prompt's answers are the language server's, at the same place of the same text."""

from __future__ import annotations

from pathlib import Path

from qvr_core.cli.repl.session import Session
from qvr_core.cli.repl.typing_help import Help, inserted
from tests.cli.repl.conftest import SCHOOLS, Ask
from tests.lsp.editor import Editor, Json, at

PROGRAM = "program q(x : Real) : School -> School\n    sample b : School <- Normal(0.0, x)\n    let c = b * "
TYPED = (
    "",
    "morphism f : ",
    "morphism f : School -> Real 2 [",
    "let f = schools >> ",
    "program p : School -> School\n    ",
    PROGRAM,
)


async def test_completion(session: Session, ask: Ask, tmp_path: Path) -> None:
    ask(SCHOOLS)
    editor = await Editor.start()
    try:
        await editor.initialize(folder=tmp_path)
        for number, typed in enumerate(TYPED):
            text = f"{SCHOOLS}\n{typed}" if typed else SCHOOLS
            uri = (tmp_path / f"{number}.qvr").as_uri()
            editor.open(uri, text)
            place = at(uri, text.count("\n"), len(text.rpartition("\n")[2]))
            answer = await editor.request("textDocument/completion", place)
            theirs = sorted(answer["items"], key=lambda item: item["sortText"])
            ours = Help(session.document).completions(typed, len(typed))
            assert len(theirs) > 3
            if not typed:
                # where a line begins an expression may begin, too
                assert len(ours) > len(theirs)
                ours = ours[: len(theirs)]
            assert [(one.label, one.detail) for one in ours] == [
                (item["label"], item.get("detail", "")) for item in theirs
            ]
            assert [inserted(one) for one in ours] == [written(item) for item in theirs]
    finally:
        await editor.stop()


def written(item: Json) -> str:
    """A snippet of the server's is the word alone in a terminal, as in editors without snippets."""
    return item["label"] if item.get("insertTextFormat") == 2 else item.get("insertText", item["label"])


async def test_diagnostics_and_hover(session: Session, ask: Ask, tmp_path: Path) -> None:
    ask(SCHOOLS)
    typed = "let f = School >> schools"
    editor = await Editor.start()
    try:
        await editor.initialize(folder=tmp_path)
        uri = (tmp_path / "schools.qvr").as_uri()
        editor.open(uri, f"{SCHOOLS}\n{typed}\n")
        published = await editor.published(uri)
        hover = await editor.hover(uri, 5, len("    sample t"))
    finally:
        await editor.stop()
    wrong = {one["message"] for one in published if one["severity"] == 1}
    assert wrong and {one.message for one in Help(session.document).problems(typed)} >= wrong
    said = ask(":info theta")
    first = hover["contents"]["value"].splitlines()
    assert any(line.strip("`* ") and line.strip("`* ") in said for line in first)
