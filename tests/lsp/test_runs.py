"""Runs through the real server: events, cancel, crash, and a server that never loads torch."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from qvr_lsp.runs.processes import AT_ONCE
from tests.lsp.editor import EXAMPLES, Editor, ResponseError
from tests.patience import HANG

ENDINGS = ("finished", "cancelled", "failed", "crashed")
SMALL = {"rows": 16, "sequence_length": 4, "batch_size": 8}


MEAN = """\
program p : FinSet 2 -> FinSet 2
    sample mu <- Normal(0.0, 1.0)
    observe y <- Normal(mu, 1.0)
    return mu
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs")
    shutil.copy(EXAMPLES / "vanilla_rnn_lm.qvr", path / "lm.qvr")
    (path / "mean.qvr").write_text(MEAN)
    return path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(folder: Path) -> AsyncIterator[Editor]:
    editor = await Editor.start(env={"OMP_NUM_THREADS": "1"})
    await editor.initialize(folder=folder)
    for path in (folder / "lm.qvr", folder / "mean.qvr"):
        editor.open(path.as_uri(), path.read_text())
        await editor.published(path.as_uri())
    yield editor
    await editor.stop()


async def command(editor: Editor, name: str, argument: Any, timeout: float = HANG) -> Any:
    return await editor.request("workspace/executeCommand", {"command": name, "arguments": [argument]}, timeout)


async def run(editor: Editor, folder: Path, **options: Any) -> Any:
    argument = {"uri": (folder / "lm.qvr").as_uri(), "algorithm": "svi", "options": {**SMALL, **options}}
    return await command(editor, "qvr.run", argument)


async def chains(editor: Editor, folder: Path, samples: int = 10_000_000) -> Any:
    """A run whose worker loads no torch; of so many draws it is ended before its end."""
    options = {"data": "synthetic", "warmup": 5, "samples": samples, "chains": 1}
    argument = {"uri": (folder / "mean.qvr").as_uri(), "algorithm": "nuts", "options": options}
    return await command(editor, "qvr.run", argument)


async def long_fit(editor: Editor, folder: Path) -> Any:
    """A fit whose worker loads no torch, and which is ended before its end."""
    options = {"data": "synthetic", "steps": 100_000_000, "checkpoint_steps": 20}
    argument = {"uri": (folder / "mean.qvr").as_uri(), "algorithm": "svi", "options": options}
    return await command(editor, "qvr.run", argument)


def events(editor: Editor, run_id: str) -> list[Any]:
    return [
        message["params"]["event"]
        for message in editor.notifications
        if message.get("method") == "qvr/runEvent" and message["params"]["runId"] == run_id
    ]


async def event(editor: Editor, run_id: str, *kinds: str) -> Any:
    found = await editor.until(lambda: [item for item in events(editor, run_id) if item["event"] in kinds])
    return found[0]


async def test_run_reports_its_progress_and_its_end(session: Editor, folder: Path) -> None:
    assert session.maps("torch") == 0
    started = await run(session, folder, steps=5)
    await event(session, started["runId"], "started")
    assert session.maps("torch") == 0
    ending = await event(session, started["runId"], *ENDINGS)
    assert ending["event"] == "finished", ending
    assert session.maps("torch") == 0
    assert session.maps("numpy") == 0
    # The event goes out first, then the end of the progress.
    await session.notification("$/progress", lambda params: params["value"]["kind"] == "end")
    progress = [m["params"]["value"]["kind"] for m in session.notifications if m.get("method") == "$/progress"]
    assert progress[0] == "begin"
    assert progress[-1] == "end"
    assert (Path(started["directory"]) / "events.log").exists()
    listed = await command(session, "qvr.runs", {"uri": (folder / "lm.qvr").as_uri()})
    assert listed[0]["runId"] == started["runId"]
    assert listed[0]["status"] == "finished"
    # A window whose editors are all closed asks for the folder, or names nothing.
    assert await command(session, "qvr.runs", {"uri": folder.as_uri()}) == listed
    assert await session.request("qvr/runs", {}) == listed
    lenses = await session.request("textDocument/codeLens", {"textDocument": {"uri": (folder / "lm.qvr").as_uri()}})
    titles = [lens["command"]["title"] for lens in lenses]
    assert titles[:3] == ["▶ SVI", "▶ NUTS", "◫ Diagram"]
    assert "78,592 parameters" in titles[3]
    assert "last run: −ELBO" in titles[3]


async def test_cancel_answers_when_the_run_is_over(session: Editor, folder: Path) -> None:
    uri = (folder / "mean.qvr").as_uri()
    started = await long_fit(session, folder)
    await event(session, started["runId"], "progress")
    lenses = await session.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    commands = {lens["command"]["title"]: lens["command"] for lens in lenses}
    assert commands["■ Cancel"]["arguments"] == [{"runId": started["runId"]}]
    assert any("running: " in title and "/100000000 · −ELBO" in title for title in commands), commands
    await session.until(lambda: "workspace/codeLens/refresh" in session.requests)
    answer = await command(session, "qvr.cancelRun", {"runId": started["runId"]})
    assert answer["status"] == "cancelled"
    assert (await event(session, started["runId"], *ENDINGS))["event"] == "cancelled"


async def test_cancelling_the_progress_cancels_the_run(session: Editor, folder: Path) -> None:
    started = await chains(session, folder)
    await event(session, started["runId"], "progress")
    token = [m["params"]["token"] for m in session.notifications if m.get("method") == "$/progress"][-1]
    session.notify("window/workDoneProgress/cancel", {"token": token})
    assert (await event(session, started["runId"], *ENDINGS))["event"] == "cancelled"


async def test_killed_worker_is_a_crash_and_the_server_lives(session: Editor, folder: Path) -> None:
    started = await chains(session, folder)
    await event(session, started["runId"], "progress")
    os.kill(started["pid"], signal.SIGKILL)
    ending = await event(session, started["runId"], *ENDINGS)
    assert ending["event"] == "crashed"
    assert ending["signal"] == "SIGKILL"
    listed = await command(session, "qvr.runs", {"uri": (folder / "mean.qvr").as_uri()})
    assert next(item for item in listed if item["runId"] == started["runId"])["status"] == "crashed"
    assert session.maps("torch") == 0
    uri = (folder / "lm.qvr").as_uri()
    lines = (folder / "lm.qvr").read_text().split("\n")
    line = next(number for number, text in enumerate(lines) if text.startswith("let backbone"))
    hover = await session.hover(uri, line, 5)
    assert "backbone" in hover["contents"]["value"]


async def test_wrong_options_are_refused_before_anything_starts(session: Editor, folder: Path) -> None:
    with pytest.raises(ResponseError, match="steps"):
        await run(session, folder, steps=0)
    with pytest.raises(ResponseError, match="no run"):
        await command(session, "qvr.cancelRun", {"runId": "nothing"})
    with pytest.raises(ResponseError, match="unknown command"):
        await command(session, "qvr.fly", {})


async def test_server_that_loses_its_editor_takes_its_runs_along(folder: Path) -> None:
    editor = await Editor.start(env={"OMP_NUM_THREADS": "1"})
    await editor.initialize(folder=folder)
    started = await chains(editor, folder)
    await event(editor, started["runId"], "progress")
    assert editor.process.stdin is not None
    editor.process.stdin.close()
    await asyncio.wait_for(editor.process.wait(), HANG)
    await gone(started["pid"])


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


NAN = """\
object I : FinSet 8
program reg : I -> I
    sample w <- Normal(0.0, 1.0)
    observe y : I <- Normal(w, exp(1000.0 + w))
    return y
export reg
"""


async def test_failure_is_shown_on_its_line_until_the_text_changes(session: Editor, folder: Path) -> None:
    uri = (folder / "nan.qvr").as_uri()
    session.open(uri, NAN)
    assert not await session.published(uri)
    started = await command(session, "qvr.run", {"uri": uri, "options": {"steps": 5}})
    ending = await event(session, started["runId"], *ENDINGS)
    assert ending["event"] == "failed"
    await session.until(lambda: session.diagnostics[uri]["diagnostics"])
    shown = session.diagnostics[uri]["diagnostics"][0]
    assert shown["source"] == "qvr run"
    assert shown["range"]["start"]["line"] == 3
    assert "`y`" in shown["message"]
    stretch = {"start": {"line": 3, "character": 0}, "end": {"line": 3, "character": 0}}
    version = session.change(uri, {"range": stretch, "text": "    # fixed\n"})
    assert not await session.published(uri, version)


async def test_run_goes_on_in_a_fresh_worker(session: Editor, folder: Path) -> None:
    started = await long_fit(session, folder)
    await event(session, started["runId"], "checkpoint")
    again = await command(
        session, "qvr.restartWorker", {"runId": started["runId"], "uri": (folder / "mean.qvr").as_uri()}
    )
    assert again["runId"] == started["runId"]
    assert again["pid"] != started["pid"]
    resumed = await session.until(
        lambda: [e for e in events(session, started["runId"]) if e["event"] == "started" and e.get("resumed_from")], 60
    )
    assert resumed[0]["resumed_from"] > 0
    await command(session, "qvr.cancelRun", {"runId": started["runId"]})


async def test_finished_chains_go_on_with_more_draws(session: Editor, folder: Path) -> None:
    uri = (folder / "mean.qvr").as_uri()
    short = {"data": "synthetic", "warmup": 5, "samples": 5, "chains": 1}
    started = await command(session, "qvr.run", {"uri": uri, "algorithm": "nuts", "options": short})
    again = {"runId": started["runId"], "uri": uri}
    assert (await event(session, started["runId"], *ENDINGS))["event"] == "finished"
    with pytest.raises(ResponseError, match="its chains have all of their 5 draws"):
        await command(session, "qvr.restartWorker", again)
    with pytest.raises(ResponseError, match="`more` must be a number of draws"):
        await command(session, "qvr.restartWorker", {**again, "more": "5"})
    await command(session, "qvr.restartWorker", {**again, "more": 7})
    resumed = await session.until(
        lambda: [e for e in events(session, started["runId"]) if e["event"] == "started" and e.get("resumed_from")], 60
    )
    assert (resumed[0]["resumed_from"], resumed[0]["steps"]) == (10, 17)
    await session.until(lambda: len([e for e in events(session, started["runId"]) if e["event"] == "finished"]) == 2)


async def gone(pid: int) -> None:
    """Wait for the end of a process."""
    async with asyncio.timeout(HANG):
        while alive(pid):
            await asyncio.sleep(0.05)


def workers(editor: Editor) -> dict[int, int]:
    """The server's worker processes, with the processor ticks that each has used."""
    found: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            mine = int(fields[1]) == editor.pid and fields[0] not in "ZX"
            if mine and b"qvr_core.runs.worker" in (entry / "cmdline").read_bytes():
                found[int(entry.name)] = int(fields[11]) + int(fields[12])
        except (OSError, IndexError, ValueError):
            continue
    return found


async def idle_worker(editor: Editor) -> int:
    """The one worker that waits for a job, once it has loaded everything."""
    ticks: dict[int, int] = {}
    async with asyncio.timeout(HANG):
        while len(ticks) != 1 or workers(editor) != ticks:
            ticks = workers(editor)
            await asyncio.sleep(1)
    return next(iter(ticks))


@pytest.mark.long
async def test_next_run_starts_at_once_in_an_idle_worker_that_dies_with_the_server(folder: Path) -> None:
    editor = await Editor.start(env={"OMP_NUM_THREADS": "1"})
    await editor.initialize(folder=folder)
    first = await chains(editor, folder, 3)
    await event(editor, first["runId"], *ENDINGS)
    waiting = await idle_worker(editor)
    second = await chains(editor, folder, 3)
    await event(editor, second["runId"], "started")
    assert second["pid"] == waiting
    await event(editor, second["runId"], *ENDINGS)
    waiting = await idle_worker(editor)
    assert editor.process.stdin is not None
    editor.process.stdin.close()
    await asyncio.wait_for(editor.process.wait(), HANG)
    await gone(waiting)


async def test_runs_beyond_the_limit_wait_for_their_turn(session: Editor, folder: Path) -> None:
    started = [await chains(session, folder) for _ in range(AT_ONCE + 2)]
    assert ["pid" in one for one in started] == [True] * AT_ONCE + [False, False]
    listing = await command(session, "qvr.runs", {"uri": (folder / "mean.qvr").as_uri()})
    listed = {item["runId"]: item["status"] for item in listing}
    assert [listed[one["runId"]] for one in started[-2:]] == ["queued", "queued"]
    for one in reversed(started):
        await command(session, "qvr.cancelRun", {"runId": one["runId"]})
    assert [(await event(session, one["runId"], *ENDINGS))["event"] for one in started] == ["cancelled"] * len(started)
