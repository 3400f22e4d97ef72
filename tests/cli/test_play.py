"""`qvr play` as a process of its own: who gets in, what it serves, what it reads and saves, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from qvr_core.runs.record.store import RunStore
from qvr_lsp.play import requests
from tests.patience import HANG, wait_gone

ROOT = Path(__file__).resolve().parents[2]
BROKEN = "object A : Real 2\nlet f = identity(Aa)  # </script>\n"
LONG = """\
program p : Real 1 -> Real 1
    sample mu <- Normal(0.0, 1.0)
    observe y <- Normal(mu, 1.0)
    return mu
export p
"""

# Any page: what it holds is the build's, who may have it is ours.
PLACE = '<script type="application/json" id="qvr-play">{}</script>'
INDEX, SCRIPT = f"<!doctype html><title>QVR</title>{PLACE}", "export const page = 1;\n"


class Play:
    """A running `qvr play`."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, token: str, folder: Path) -> None:
        self.process, self.port, self.token, self.folder = process, port, token, folder

    @classmethod
    async def start(cls, place: Path) -> Play:
        page, folder = place / "page", place / "folder"
        (page / "assets").mkdir(parents=True)
        (page / "index.html").write_text(INDEX)
        (page / "assets" / "main.js").write_text(SCRIPT)
        (page / "assets" / "escape.js").symlink_to(place / "secret.qvr")
        (place / "secret.qvr").write_text("# outside\n")
        folder.mkdir()
        (folder / "broken.qvr").write_text(BROKEN)
        (folder / "long.qvr").write_text(LONG)
        (folder / "d.csv").write_text("y\n1.0\n2.0\n")
        (folder / "link.qvr").symlink_to(place / "secret.qvr")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "qvr_core.cli", "play", str(folder), "--no-open",
            stdout=asyncio.subprocess.PIPE, cwd=place, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "QVR_PAGE": str(page), "QVR_LOG_FILE": os.devnull},
        )  # fmt: skip
        assert process.stdout is not None
        said = ""
        while (found := re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", said)) is None:
            line = (await asyncio.wait_for(process.stdout.readline(), HANG)).decode()
            assert line, f"it ended: {said}"
            said += line
        return cls(process, int(found[1]), found[2], folder)

    async def get(self, path: str, host: str | None = None, more: str = "", method: str = "GET") -> tuple[int, str]:
        """Status and text of one request, written by hand: clients would tidy the path up."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        host = f"127.0.0.1:{self.port}" if host is None else host
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode())
        raw = (await asyncio.wait_for(reader.read(), HANG)).decode()
        writer.close()
        head, _, body = raw.partition("\r\n\r\n")
        return (int(head.split()[1]) if head else 0), body

    async def told(self, more: str = "") -> dict[str, Any]:
        """What the page is told by its process."""
        status, text = await self.get(f"/?token={self.token}{more}")
        before, _, rest = text.partition('<script type="application/json" id="qvr-play">')
        inside, _, after = rest.partition("</script>")
        assert (status, before, after) == (200, INDEX.replace(PLACE, ""), "")
        return json.loads(inside)

    def address(self, token: str | None = None) -> str:
        return f"ws://127.0.0.1:{self.port}/lsp?token={self.token if token is None else token}"

    async def page(self) -> Page:
        socket = await connect(self.address(), origin=f"http://127.0.0.1:{self.port}", proxy=None)  # type: ignore[arg-type]
        page = Page(socket)
        found = await page.ask("initialize", {"processId": None, "capabilities": {}, "rootUri": self.folder.as_uri()})
        assert found["serverInfo"]["name"] == "qvr-lsp"
        await page.tell("initialized", {})
        return page


class Page:
    """The page's end of the WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.told: list[dict[str, Any]] = []
        self._count = 0

    async def tell(self, method: str, params: Any) -> None:
        await self.socket.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    async def ask(self, method: str, params: Any) -> Any:
        """The answer; an error as its message.  The server's own questions get null."""
        self._count += 1
        await self.socket.send(json.dumps({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}))
        while True:
            message = await self.next()
            if "method" not in message and message.get("id") == self._count:
                return message["result"] if "result" in message else message["error"]["message"]

    async def next(self) -> dict[str, Any]:
        message = json.loads(await asyncio.wait_for(self.socket.recv(), HANG))
        if "method" in message and "id" in message:
            await self.socket.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": None}))
        elif "method" in message:
            self.told.append(message)
        return message

    async def event(self, name: str) -> dict[str, Any]:
        """The next event of that name of any run."""
        while True:
            message = await self.next()
            if message.get("method") == "qvr/runEvent" and message["params"]["event"]["event"] == name:
                return message["params"]["event"]

    async def command(self, name: str, argument: Any) -> Any:
        return await self.ask("workspace/executeCommand", {"command": name, "arguments": [argument]})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def play(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Play]:
    running = await Play.start(tmp_path_factory.mktemp("play"))
    yield running
    if running.process.returncode is None:
        running.process.kill()
        await running.process.wait()


async def test_the_page_and_its_files(play: Play) -> None:
    told = await play.told()
    assert told["socket"] == f"ws://127.0.0.1:{play.port}/lsp?token={play.token}"
    assert (told["path"], told["text"]) == ("broken.qvr", BROKEN)
    assert (await play.told("&file=long.qvr"))["uri"] == (play.folder / "long.qvr").as_uri()
    for other in ("../secret.qvr", "link.qvr", "d.csv", "nothing.qvr"):
        assert (await play.get(f"/?token={play.token}&file={other}"))[0] == 404
    assert await play.get("/assets/main.js") == (200, SCRIPT)
    assert await play.get("/assets/main.js", host=f"localhost:{play.port}") == (200, SCRIPT)


@pytest.mark.parametrize("address", ["/", "/?token=", "/?token=wrong", "/?other={token}", "/index.html", "/lsp"])
async def test_without_the_token_there_is_no_page(address: str, play: Play) -> None:
    status, text = await play.get(address.format(token=play.token))
    assert (status, text) == (403, "This page wants its token: open the address that `qvr play` has printed.\n")


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.qvr", "/assets/../../secret.qvr", "/%2e%2e/secret.qvr", "/..%2fsecret.qvr", "/assets/escape.js",
        "//etc/passwd", "/etc/passwd", "/assets/", "/folder/long.qvr", "/assets/main.js%00", "/..\\secret.qvr",
    ],
)  # fmt: skip
async def test_only_files_of_the_page(path: str, play: Play) -> None:
    assert await play.get(f"{path}?token={play.token}") == (404, "The page has no such file.\n")


@pytest.mark.parametrize("path", ["/?token={token}", "/lsp?token={token}", "/assets/main.js"])
@pytest.mark.parametrize(
    ("host", "more"),
    [
        ("evil.example", ""),
        ("evil.example:{port}", ""),
        ("127.0.0.1", ""),
        ("", ""),
        ("127.0.0.1:{port}", "Host: evil.example\r\n"),
        ("127.0.0.1:{port}", "Origin: https://evil.example\r\n"),
        ("127.0.0.1:{port}", "Origin: null\r\n"),
        ("127.0.0.1:{port}", "Origin: http://127.0.0.1:1\r\n"),
        ("127.0.0.1:{port}", "Origin: http://127.0.0.1:{port}.evil.example\r\n"),
    ],
)
async def test_other_pages_and_other_names_are_refused(host: str, more: str, path: str, play: Play) -> None:
    filled = [text.format(port=play.port, token=play.token) for text in (path, host, more)]
    status, text = await play.get(*filled)
    assert status == 403 and "token" not in text


async def test_only_get(play: Play) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
        status, text = await play.get(f"/?token={play.token}", method=method)
        assert status != 200 and INDEX not in text


@pytest.mark.parametrize("wrong", ["", "wrong", "{token}x", "%00", "é"])
async def test_a_socket_wants_the_token(wrong: str, play: Play) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        await connect(play.address(wrong.format(token=play.token)), proxy=None)


async def test_the_server_answers(play: Play) -> None:
    page = await play.page()
    uri = (play.folder / "broken.qvr").as_uri()
    document = {"uri": uri, "languageId": "qvr", "version": 1, "text": BROKEN}
    await page.tell("textDocument/didOpen", {"textDocument": document})
    while not (found := [one for one in page.told if one["method"] == "textDocument/publishDiagnostics"]):
        await page.next()
    assert "unknown-name" in {one["code"] for one in found[0]["params"]["diagnostics"]}
    hover = await page.ask(
        "textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 7}}
    )
    assert "A : Real 2" in json.dumps(hover)
    await page.socket.close()


@pytest.mark.parametrize("lacking", ["torch", "numpy"])
def test_fits_are_offered_where_chains_can_run(lacking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of `qvr-lsp[sample]`, which has no torch, NUTS is not taken away."""
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, lacking, raising=False)
        patch.setattr(requests, "find_spec", lambda name: None if name == lacking else object())
        said = requests.lacks()
    assert said is None if lacking == "torch" else said is not None and "numpy" in said and "pip install" in said


async def test_the_folder_is_listed_read_and_saved(play: Play) -> None:
    page = await play.page()
    listed = await page.ask("play/folder", {})
    assert [one["path"] for one in listed["files"]] == ["broken.qvr", "long.qvr"]  # no link that leads outside (C12)
    assert [(one["path"], one["source"]) for one in listed["data"]] == [("d.csv", "csv")]
    assert listed["lacks"] is None
    read = await page.ask("play/read", {"path": "broken.qvr"})
    assert read["text"] == BROKEN and read["uri"] == (play.folder / "broken.qvr").as_uri()
    saved = await page.ask("play/save", {"path": "broken.qvr", "text": "# ü\n", "stamp": read["stamp"]})
    assert (play.folder / "broken.qvr").read_text(encoding="utf-8") == "# ü\n"
    (play.folder / "broken.qvr").write_text(BROKEN)
    changed = await page.ask("play/save", {"path": "broken.qvr", "text": "", "stamp": saved["stamp"]})
    assert changed == "broken.qvr has changed on the disk since it was opened"
    assert (play.folder / "broken.qvr").read_text() == BROKEN
    again = await page.ask("play/save", {"path": "broken.qvr", "text": "", "new": True})
    assert again == "broken.qvr is there already"
    await page.ask("play/save", {"path": "sub.qvr", "text": "# new\n", "new": True})
    assert (play.folder / "sub.qvr").read_text() == "# new\n"
    await page.socket.close()


@pytest.mark.parametrize("path", ["../secret.qvr", "sub/../../secret.qvr", "{outside}", "link.qvr", "", ".", "a\0.qvr"])
async def test_nothing_outside_the_folder(path: str, play: Play) -> None:
    page = await play.page()
    outside = play.folder.parent / "secret.qvr"
    path = path.format(outside=outside)
    for method, more in (("play/read", {}), ("play/save", {"text": "overwritten"})):
        answer = await page.ask(method, {"path": path, **more})
        assert isinstance(answer, str), answer
        assert re.search(r"is not in the folder|neither a program|the path is none", answer)
    drawn = {"uri": (play.folder / "long.qvr").as_uri(), "path": str(play.folder.parent / "drawn.dot")}
    assert "not for a page" in await page.command("qvr.exportDiagram", drawn)
    assert outside.read_text() == "# outside\n"
    await page.socket.close()


@pytest.mark.parametrize("path", ["d.csv", ".hidden.qvr", ".qvr/runs/a/program.qvr", "node_modules/a.qvr"])
async def test_only_programs_and_settings(path: str, play: Play) -> None:
    page = await play.page()
    for method, more in (("play/read", {}), ("play/save", {"text": "overwritten"})):
        answer = await page.ask(method, {"path": path, **more})
        assert re.search("neither a program|is hidden", answer)
    assert "y\n1.0" in (play.folder / "d.csv").read_text()
    await page.socket.close()


@pytest.mark.long
async def test_a_run_to_its_posterior_and_one_that_ctrl_c_ends(play: Play) -> None:
    page = await play.page()
    uri = (play.folder / "long.qvr").as_uri()
    options = {"warmup": 20, "samples": 20, "chains": 2, "data": "csv:d.csv"}
    finished = await page.command("qvr.run", {"uri": uri, "algorithm": "nuts", "options": options})
    await page.event("finished")
    record = await page.ask("play/run", {"uri": uri, "runId": finished["runId"]})
    events = [one["event"] for one in record["events"]]
    assert (events[0], events[-1]) == ("started", "finished")
    assert [site["name"] for site in record["summary"]["sites"]] == ["mu"]
    assert record["config"]["samples"] == 20 and record["program"] == LONG
    for other in ("", "../..", finished["runId"][:-1]):
        assert "no run" in await page.ask("play/run", {"uri": uri, "runId": other})

    started = await page.command("qvr.run", {"uri": uri, "algorithm": "svi", "options": {"steps": 10_000_000}})
    await page.event("progress")
    os.killpg(play.process.pid, signal.SIGINT)
    assert await asyncio.wait_for(play.process.wait(), HANG) == 0
    assert wait_gone(started["pid"])
    run = RunStore(play.folder).open(started["runId"])
    assert run.status() == "cancelled" and run.step() > 0


def test_what_cannot_be_served_is_said(tmp_path: Path) -> None:
    def said(*arguments: str, **environment: str) -> tuple[int, str]:
        described = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        command = [sys.executable, "-m", "qvr_core.cli", "play", "--no-open", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=described, capture_output=True, text=True, check=False)
        assert done.stdout == ""
        return done.returncode, done.stderr

    assert said("nowhere") == (2, "qvr: there is no folder nowhere\n")
    empty = said(QVR_PAGE=str(tmp_path))
    assert empty == (1, f"qvr: QVR_PAGE is {tmp_path}, which holds no page: it has no index.html\n")
