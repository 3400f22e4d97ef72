"""The posterior as one types: sampled by another process once the text has come to rest, shown beside the steps, and
dropped by the next keystroke."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.lsp.editor import FULL, Editor, Json, at, place
from tests.patience import eventually, wait_gone

TEXT = """\
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
# the prior has precision 1/4, three data 3: the posterior is Normal(3.15385, 0.5547²)
MEAN, SD = (3.0 / 4 + 9.5) / 3.25, 3.25**-0.5
SLOW = TEXT.replace("mu <- Normal(3.0, 2.0)", "mu <- Normal(3.0, 2.0)\n    sample z : Many <- Normal(mu, 1.0)").replace(
    "program other", "object Many : FinSet 40000\nprogram other"
)
ABLE = {**FULL, "workspace": {**FULL["workspace"], "inlayHint": {"refreshSupport": True}}}
TOML = '[run.schools]\ndata = "csv:d.csv"\n'
LIVE = {"live": "posterior"}


async def started(
    folder: Path, options: Json, text: str = TEXT, toml: str = '[run.schools]\ndata = "csv:d.csv"\n'
) -> Editor:
    (folder / "d.csv").write_text("y\n2\n4\n3.5\n")
    (folder / "qvr.toml").write_text(toml)
    (folder / "m.qvr").write_text(text)
    editor = await Editor.start(cwd=folder)
    editor.answers["workspace/configuration"] = [options]
    await editor.initialize(ABLE, folder=folder, options=options)
    editor.open(uri := (folder / "m.qvr").as_uri(), text)
    await editor.published(uri)
    editor.uri = uri  # pyright: ignore[reportAttributeAccessIssue]
    return editor


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    editor = await started(tmp_path_factory.mktemp("live"), LIVE)
    yield editor
    assert await editor.stop() == 0


def uri_of(editor: Editor) -> str:
    return editor.uri  # pyright: ignore[reportAttributeAccessIssue]


async def rewrite(editor: Editor, text: str) -> int:
    version = editor.change(uri_of(editor), {"text": text})
    await editor.published(uri_of(editor), version)
    return version


async def typed(editor: Editor, text: str, words: str, new: str) -> tuple[int, str]:
    """An edit in place of `words`, as an editor sends one."""
    line, character = place(text, words)
    stretch = {
        "start": {"line": line, "character": character},
        "end": {"line": line, "character": character + len(words)},
    }
    version = editor.change(uri_of(editor), {"range": stretch, "text": new})
    await editor.published(uri_of(editor), version)
    return version, text.replace(words, new)


async def said(editor: Editor, version: int, state: str) -> Json:
    """How it stands at the end of what was begun for a version."""

    def ends(told: Json) -> bool:
        return told["version"] == version and told["state"] == state and told.get("last", True)

    return await editor.notification("qvr/live", ends)


async def beside(editor: Editor) -> dict[int, Json]:
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    asked = {"textDocument": {"uri": uri_of(editor)}, "range": whole}
    hints = await editor.request("textDocument/inlayHint", asked)
    return {hint["position"]["line"]: hint for hint in hints if "tooltip" in hint and "±" in hint["label"]}


def processes(editor: Editor) -> list[int]:
    """What the server has started, and what that has."""
    found = [int(pid) for pid in Path(f"/proc/{editor.pid}/task/{editor.pid}/children").read_text().split()]
    return found + [int(pid) for one in found for pid in Path(f"/proc/{one}/task/{one}/children").read_text().split()]


def mean_of(told: Json, site: str) -> float:
    return next(one["elements"][0]["mean"] for one in told["summary"]["sites"] if one["name"] == site)


async def test_the_posterior_stands_beside_the_steps_marked_live(editor: Editor, tmp_path: Path) -> None:
    refreshed = editor.requests.count("workspace/inlayHint/refresh")
    told = await said(editor, 1, "drawn")
    assert (told["program"], told["method"]) == ("schools", "nuts")
    # 4,000 draws, some 1,500 of them effective
    assert mean_of(told, "mu") == pytest.approx(MEAN, abs=5 * SD / 1500**0.5)
    assert mean_of(told, "double") == pytest.approx(2 * mean_of(told, "mu"), rel=1e-6)
    assert told["text"].startswith("live posterior of `schools`: 4 chains of 1,000 draws in ")
    await editor.until(lambda: editor.requests.count("workspace/inlayHint/refresh") > refreshed)
    figures = await beside(editor)
    assert set(figures) == {5, 6} and figures[5]["label"].startswith("live ")
    # VS Code shows 43 characters of a line's hints, names of parameters included
    assert all(len(hint["label"]) < 35 for hint in figures.values())
    assert "No run: nothing of it is kept" in figures[5]["tooltip"]
    hover = await editor.hover(uri_of(editor), *place(TEXT, "mu <- Normal(3"))
    assert "Live posterior, 4 chains of 1,000 draws: 3." in hover["contents"]["value"]
    folder = Path(uri_of(editor).removeprefix("file://")).parent
    assert not (folder / ".qvr" / "runs").exists() and not (folder / ".qvr" / "unstored").exists()
    assert editor.maps("torch") == editor.maps("numpy") == 0


async def test_an_edit_makes_the_figures_old_and_brings_new_ones(editor: Editor) -> None:
    version, text = await typed(editor, TEXT, "Normal(3.0, 2.0)", "Normal(13.0, 0.1)")
    before = (await beside(editor)).values()
    assert all(hint["label"].startswith("before ") and "has changed since" in hint["tooltip"] for hint in before)
    told = await said(editor, version, "drawn")
    assert mean_of(told, "mu") == pytest.approx((13.0 * 100 + 9.5) / 103, abs=0.02)
    assert all(hint["label"].startswith("live ") for hint in (await beside(editor)).values())
    # a comment changes nothing: what was drawn stands
    version, text = await typed(editor, text, "return mu", "return mu  # the mean")
    assert all(hint["label"].startswith("live ") for hint in (await beside(editor)).values())
    # the program that is typed in is the one that is drawn from
    version, text = await typed(editor, text, "sample a <- Normal(0.0, 1.0)", "sample a <- Normal(7.0, 0.5)")
    told = await said(editor, version, "drawn")
    assert told["program"] == "other" and mean_of(told, "a") == pytest.approx(7.0, abs=0.1)
    # and the one where the cursor is said to be
    await editor.request("qvr/live", at(uri_of(editor), *place(text, "observe y")))
    await editor.notification("qvr/live", lambda one: one["version"] == version and one.get("program") == "schools")
    await rewrite(editor, TEXT)


async def test_the_next_keystroke_leaves_no_process_at_work(editor: Editor) -> None:
    version = await rewrite(editor, SLOW)
    await said(editor, version, "drawing")
    eventually(lambda: len(processes(editor)) == 2)
    worker, fork = processes(editor)
    await typed(editor, SLOW, "let double", "let twice")
    assert wait_gone(fork) and processes(editor)[0] == worker
    version = await rewrite(editor, TEXT)
    await said(editor, version, "drawn")
    eventually(lambda: processes(editor) == [worker])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TEXT.replace("observe y", "observe z"), "`z`"),
        (TEXT.replace("2.0 * mu", "2.0 * muu(1.0)"), "errors"),
        (
            "object S : FinSet 3\nobject R : Real 2\nmorphism f : S -> R [role=embed]\nprogram schools : S -> R\n"
            "    observe y <- f ~ Normal(1.0)\n    return y\n",
            "",
        ),
    ],
)
async def test_what_cannot_be_drawn_is_said_in_words_and_nothing_else(editor: Editor, text: str, why: str) -> None:
    version = await rewrite(editor, text)
    told = await editor.notification(
        "qvr/live", lambda one: one["version"] == version and one["state"] in ("problem", "waiting")
    )
    assert why in told["text"] and "summary" not in told
    assert not any("showMessage" in one.get("method", "") for one in editor.notifications)
    await rewrite(editor, TEXT)


async def test_without_data_nothing_is_made_up(tmp_path: Path) -> None:
    editor = await started(tmp_path, LIVE, toml="")
    told = await said(editor, 1, "problem")
    assert told["text"] == "qvr.toml names no data for `schools`" and await beside(editor) == {}
    # they are there now
    (tmp_path / "qvr.toml").write_text(TOML)
    changes = [{"uri": (tmp_path / "qvr.toml").as_uri(), "type": 2}]
    editor.notify("workspace/didChangeWatchedFiles", {"changes": changes})
    await said(editor, 1, "drawn")
    assert await editor.stop() == 0


@pytest.mark.parametrize("options", [{}, {"live": "posterior", "trusted": False}])
async def test_nothing_is_started_where_it_is_off_or_not_trusted(tmp_path: Path, options: Json) -> None:
    editor = await started(tmp_path, options)
    await typed(editor, TEXT, "Normal(3.0, 2.0)", "Normal(3.0, 2.5)")
    # what comes 0.3 s after the keystroke would be before the answer to a question that takes a process of its own
    await editor.request("qvr/prior", {"textDocument": {"uri": uri_of(editor)}, "program": "schools"})
    assert not any(one.get("method") == "qvr/live" for one in editor.notifications)
    assert await editor.stop() == 0


async def test_the_prior_and_its_older_name(tmp_path: Path) -> None:
    editor = await started(tmp_path, {"prior": {"asYouType": True}})
    told = await said(editor, 1, "drawn")
    assert (told["kind"], told["method"], told["text"]) == ("prior", "prior", "prior of `schools`: 200 draws")
    assert (await beside(editor))[5]["label"].startswith("prior ")
    await editor.notification("window/logMessage", lambda one: 'qvr.live = "prior"' in one["message"])
    editor.answers["workspace/configuration"] = [{"live": "posterior", "prior": {"asYouType": False}}]
    editor.notify("workspace/didChangeConfiguration", {"settings": None})
    await editor.notification("qvr/live", lambda one: one.get("method") == "nuts")
    editor.answers["workspace/configuration"] = [{"live": "off"}]
    editor.notify("workspace/didChangeConfiguration", {"settings": None})
    # while the editor answers what the server asks
    await asyncio.to_thread(eventually, lambda: processes(editor) == [])
    assert await beside(editor) == {}
    assert await editor.stop() == 0
