"""The prior of the program under the cursor: drawn by another process, shown beside the steps and in hovers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.lsp.editor import FULL, Editor, ResponseError, place
from tests.patience import wait_gone

SCHOOLS = """\
object S : {north, east, south}
program other : S -> S
    sample a <- Normal(0.0, 1.0)
    return a
program schools : S -> S
    sample mu <- Normal(3.0, 2.0)
    let double = 2.0 * mu
    observe y : S <- Normal(mu, 1.0)
    return mu
"""
ABLE = {**FULL, "workspace": {**FULL["workspace"], "inlayHint": {"refreshSupport": True}}}
CONTENT_MODIFIED, CANCELLED, FAILED = -32801, -32800, -32803


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    folder = tmp_path_factory.mktemp("priors")
    (folder / "d.csv").write_text("y\n2\n4\n3.5\n")
    (folder / "qvr.toml").write_text('[run.schools]\ndata = "csv:d.csv"\n')
    (folder / "m.qvr").write_text(SCHOOLS)
    editor = await Editor.start(cwd=folder)
    await editor.initialize(ABLE, folder=folder)
    editor.open(uri := (folder / "m.qvr").as_uri(), SCHOOLS)
    await editor.published(uri)
    editor.uri = uri  # pyright: ignore[reportAttributeAccessIssue]
    yield editor
    assert await editor.stop() == 0


def asked(editor: Editor, **more: Any) -> dict[str, Any]:
    return {"textDocument": {"uri": uri_of(editor)}, **more}


def uri_of(editor: Editor) -> str:
    return editor.uri  # pyright: ignore[reportAttributeAccessIssue]


def inside(text: str, words: str) -> dict[str, int]:
    line, character = place(text, words)
    return {"line": line, "character": character}


async def rewrite(editor: Editor, text: str) -> None:
    version = editor.change(uri_of(editor), {"text": text})
    await editor.published(uri_of(editor), version)


async def beside(editor: Editor) -> dict[int, str]:
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
    hints = await editor.request("textDocument/inlayHint", asked(editor, range=whole))
    return {hint["position"]["line"]: hint["label"] for hint in hints if "prior" in hint.get("tooltip", "")}


async def test_draws_of_the_program_under_the_cursor(editor: Editor) -> None:
    refreshed = editor.requests.count("workspace/inlayHint/refresh")
    found = await editor.request("qvr/prior", asked(editor, position=inside(SCHOOLS, "observe y"), draws=1000))
    assert (found["program"], found["problem"], found["data"]) == ("schools", None, "csv:d.csv")
    sites = {site["name"]: site for site in found["summary"]["sites"]}
    assert list(sites) == ["mu", "double", "y"]
    (mu,), (double,) = sites["mu"]["elements"], sites["double"]["elements"]
    # 1,000 draws: five standard errors
    assert mu["mean"] == pytest.approx(3.0, abs=0.32) and mu["sd"] == pytest.approx(2.0, abs=0.23)
    assert double["mean"] == pytest.approx(2 * mu["mean"], rel=1e-4)
    assert [one["name"] for one in sites["y"]["elements"]] == ["y[north]", "y[east]", "y[south]"]
    assert all(one["sd"] == pytest.approx(5**0.5, abs=0.26) for one in sites["y"]["elements"])
    (seen,) = found["summary"]["predictive"]
    assert sum(seen["observed"]) == pytest.approx(1.0) and seen["prior"]["mean"] and not found["outside"]
    await editor.until(lambda: editor.requests.count("workspace/inlayHint/refresh") > refreshed)
    figures = await beside(editor)
    assert set(figures) == {5, 6, 7} and figures[5].startswith("prior ▁") and " ± 2." in figures[5]
    hover = await editor.hover(uri_of(editor), *place(SCHOOLS, "mu <- Normal(3"))
    assert (
        f"Prior, 1,000 draws: {mu['mean']:.1f} ±" in hover["contents"]["value"]
        and "prior     ▁" in hover["contents"]["value"]
    )
    assert editor.maps("torch") == editor.maps("numpy") == 0


async def test_data_that_the_prior_leaves_outside_are_noted(editor: Editor) -> None:
    text = SCHOOLS.replace("Normal(3.0, 2.0)", "Normal(300.0, 2.0)")
    await rewrite(editor, text)
    # what was drawn from the program before is not shown any more
    assert await beside(editor) == {}
    found = await editor.request("qvr/prior", asked(editor, program="schools"))
    assert found["outside"]["y"].startswith("`y`: 100% of its data (2 to 4) lie outside what the prior predicts, 29")
    assert (await beside(editor))[7].endswith("misses its data")
    hover = await editor.hover(uri_of(editor), *place(text, "y : S"))
    assert "lie outside what the prior predicts" in hover["contents"]["value"]
    await rewrite(editor, SCHOOLS)


async def test_an_edit_another_question_and_the_editor_itself_end_a_question(editor: Editor) -> None:
    _, first = editor.ask("qvr/prior", asked(editor, program="schools"))
    _, second = editor.ask("qvr/prior", asked(editor, program="schools"))
    number, third = editor.ask("qvr/prior", asked(editor, program="other"))
    with pytest.raises(ResponseError) as told:
        await first
    assert told.value.code == CONTENT_MODIFIED
    with pytest.raises(ResponseError) as told:
        await second
    assert told.value.code == CONTENT_MODIFIED
    editor.notify("$/cancelRequest", {"id": number})
    with pytest.raises(ResponseError) as told:
        await third
    assert told.value.code == CANCELLED
    _, fourth = editor.ask("qvr/prior", asked(editor, program="schools"))
    await rewrite(editor, SCHOOLS.replace("2.0 * mu", "3.0 * mu"))
    with pytest.raises(ResponseError) as told:
        await fourth
    assert told.value.code == CONTENT_MODIFIED
    found = await editor.request("qvr/prior", asked(editor, program="other"))
    assert [site["name"] for site in found["summary"]["sites"]] == ["a"]
    await rewrite(editor, SCHOOLS)


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("sample mu <- Normal(3.0, 2.0)", "sample mu <- Flat()", "Flat"),
        ("observe y", "observe z", "`z`"),
    ],
)
async def test_what_cannot_be_drawn_is_the_answer(editor: Editor, before: str, after: str, problem: str) -> None:
    await rewrite(editor, SCHOOLS.replace(before, after))
    found = await editor.request("qvr/prior", asked(editor, program="schools"))
    assert found["summary"] is None and problem in found["problem"]
    assert await beside(editor) == {}
    await rewrite(editor, SCHOOLS)


async def test_a_program_with_errors_is_not_drawn_from(editor: Editor) -> None:
    await rewrite(editor, SCHOOLS.replace("2.0 * mu", "2.0 * muu(1.0)"))
    with pytest.raises(ResponseError) as told:
        await editor.request("qvr/prior", asked(editor))
    assert told.value.code == FAILED and "has errors" in told.value.message
    await rewrite(editor, SCHOOLS)
    with pytest.raises(ResponseError, match="there is no program `none`"):
        await editor.request("qvr/prior", asked(editor, program="none"))


async def test_the_process_goes_with_the_server(tmp_path: Path) -> None:
    (tmp_path / "m.qvr").write_text(SCHOOLS)
    editor = await Editor.start(cwd=tmp_path)
    await editor.initialize(ABLE, folder=tmp_path)
    editor.open(uri := (tmp_path / "m.qvr").as_uri(), SCHOOLS)
    editor.ask("qvr/prior", {"textDocument": {"uri": uri}})
    children = Path(f"/proc/{editor.pid}/task/{editor.pid}/children")
    (child,) = await editor.until(lambda: children.read_text().split())
    assert await editor.stop() == 0
    assert wait_gone(int(child))
