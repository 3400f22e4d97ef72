"""The posterior in the source: figures beside the steps, hovers, and warnings where a fit is not to be trusted."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.lsp.editor import FULL, Editor, place

FUNNEL = """\
object S : FinSet 4
program funnel : S -> S
    sample mu <- Normal(0.0, 1.0)
    sample tau <- HalfCauchy(5.0)
    sample theta : S <- Normal(mu, tau)
    observe y : S <- Normal(theta, 10.0)
    return theta
"""
ABLE = {**FULL, "workspace": {**FULL["workspace"], "inlayHint": {"refreshSupport": True}}}
ENDINGS = ("finished", "cancelled", "failed", "crashed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fits")
    (path / "funnel.qvr").write_text(FUNNEL)
    (path / "d.csv").write_text("y\n28\n8\n-3\n7\n")
    return path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(folder: Path) -> AsyncIterator[Editor]:
    """An editor in which the funnel has been run, so briefly that the fit is bad."""
    editor = await Editor.start(env={"OMP_NUM_THREADS": "1"})
    await editor.initialize(ABLE, folder=folder)
    editor.open(uri_of(folder), FUNNEL)
    await editor.published(uri_of(folder))
    options = {"data": "csv:d.csv", "warmup": 40, "samples": 60, "chains": 2}
    await run(editor, folder, {"algorithm": "nuts", "options": options, "program": "funnel"})
    yield editor
    await editor.stop()


def uri_of(folder: Path) -> str:
    return (folder / "funnel.qvr").as_uri()


async def run(editor: Editor, folder: Path, argument: dict[str, Any]) -> None:
    """Run the program to its end, and wait until the editor is asked to show what it has found."""
    before = editor.requests.count("workspace/inlayHint/refresh")
    call = {"command": "qvr.run", "arguments": [{"uri": uri_of(folder), **argument}]}
    started = await editor.request("workspace/executeCommand", call)

    def ended(params: Any) -> bool:
        return params["runId"] == started["runId"] and params["event"]["event"] in ENDINGS

    ending = await editor.notification("qvr/runEvent", ended)
    assert ending["event"]["event"] == "finished", ending
    await editor.until(lambda: editor.requests.count("workspace/inlayHint/refresh") > before)


async def beside(editor: Editor, folder: Path) -> dict[int, str]:
    """The figures by line."""
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 7, "character": 0}}
    params = {"textDocument": {"uri": uri_of(folder)}, "range": whole}
    hints = await editor.request("textDocument/inlayHint", params)
    return {hint["position"]["line"]: hint["label"] for hint in hints if "Run " in hint.get("tooltip", "")}


def problems(editor: Editor, folder: Path) -> list[Any]:
    found = editor.diagnostics[uri_of(folder)]["diagnostics"]
    return [item for item in found if item["code"] == "unreliable-fit"]


async def test_figures_stand_beside_the_steps_and_the_server_loads_no_numpy(session: Editor, folder: Path) -> None:
    shown = await beside(session, folder)
    assert list(shown) == [2, 3, 4]
    assert " ± " in shown[2] and "R̂ " in shown[2] and shown[2][0] in "▁▂▃▄▅▆▇█"
    assert shown[4].startswith("4 × ") and "R̂ ≤ " in shown[4]
    assert session.maps("torch") == 0 and session.maps("numpy") == 0


async def test_a_hover_has_density_prior_ranks_and_effective_draws(session: Editor, folder: Path) -> None:
    line, column = place(FUNNEL, "mu")
    text = (await session.hover(uri_of(folder), line, column))["contents"]["value"]
    for word in ("Posterior of run", "effective draws", "R̂", "prior ", "of it lies here", "chain 1"):
        assert word in text, text
    assert re.search("posterior [▁▂▃▄▅▆▇█]{8}", text), text
    line, column = place(FUNNEL, "theta")
    text = (await session.hover(uri_of(folder), line, column))["contents"]["value"]
    assert "`theta[0]`" in text and "`theta[3]`" in text


async def test_bad_chains_are_warnings_with_actions_at_the_step(session: Editor, folder: Path) -> None:
    found = problems(session, folder)
    assert found, session.diagnostics
    lines = {item["range"]["start"]["line"] for item in found}
    assert lines <= {1, 2, 3, 4, 5}
    ends = next(m["params"]["value"] for m in reversed(session.notifications) if m.get("method") == "$/progress")
    assert ends["kind"] == "end" and "not to be trusted" in ends["message"]
    lenses = await session.request("textDocument/codeLens", {"textDocument": {"uri": uri_of(folder)}})
    assert any("⚠ not to be trusted: " in lens["command"]["title"] for lens in lenses)
    assert session.maps("numpy") == 0


async def test_an_edit_fades_figures_and_takes_the_warnings_of_that_step(session: Editor, folder: Path) -> None:
    before = problems(session, folder)
    here = {item["range"]["start"]["line"] for item in before}
    line = min(here & {2, 3, 4})
    old = FUNNEL.split("\n")[line]
    version = session.change(uri_of(folder), edit(line, len(old), "  # a comment is no change"))
    await session.published(uri_of(folder), version)
    assert len(problems(session, folder)) == len(before)
    number = "1.0" if "1.0" in old else ("5.0" if "5.0" in old else "tau")
    at = old.index(number) + 1
    version = session.change(uri_of(folder), edit(line, at, " + 1.0 * ", len(number)))
    await session.published(uri_of(folder), version)
    assert line not in {item["range"]["start"]["line"] for item in problems(session, folder)}
    assert all("older text" in text for text in (await beside(session, folder)).values())
    version = session.change(uri_of(folder), {"text": FUNNEL})
    await session.published(uri_of(folder), version)
    assert len(problems(session, folder)) == len(before)
    assert not any("older text" in text for text in (await beside(session, folder)).values())


async def test_the_settings_switch_them_off(session: Editor, folder: Path) -> None:
    off = {"inlayHints": {"posterior": False}, "diagnostics": {"fits": False}}
    session.notify("workspace/didChangeConfiguration", {"settings": {"qvr": off}})
    assert await beside(session, folder) == {}
    assert not problems(session, folder)
    on = {"inlayHints": {"posterior": True}, "diagnostics": {"fits": True}}
    session.notify("workspace/didChangeConfiguration", {"settings": {"qvr": on}})
    assert await beside(session, folder)


async def test_an_editor_that_opens_the_file_later_sees_the_last_run(session: Editor, folder: Path) -> None:
    editor = await Editor.start()
    await editor.initialize(ABLE, folder=folder)
    editor.open(uri_of(folder), FUNNEL)
    await editor.until(lambda: uri_of(folder) in editor.diagnostics and problems(editor, folder))
    assert await beside(editor, folder) == await beside(session, folder)
    await editor.stop()


async def test_the_action_runs_again_with_other_settings(session: Editor, folder: Path) -> None:
    problem = problems(session, folder)[0]
    context = {"diagnostics": [problem]}
    params = {"textDocument": {"uri": uri_of(folder)}, "range": problem["range"], "context": context}
    actions = await session.request("textDocument/codeAction", params)
    again = next(one for one in actions if one["title"].startswith("Run NUTS again with "))
    argument = again["command"]["arguments"][0]
    assert argument["options"]["data"] == "csv:d.csv" and argument["program"] == "funnel"
    begun = session.requests.count("workspace/inlayHint/refresh")
    await run(session, folder, {**argument, "options": {**argument["options"], "warmup": 20, "samples": 20}})
    assert session.requests.count("workspace/inlayHint/refresh") > begun


def edit(line: int, character: int, text: str, width: int = 0) -> dict[str, Any]:
    start, end = {"line": line, "character": character}, {"line": line, "character": character + width}
    return {"range": {"start": start, "end": end}, "text": text}
