"""`make demo`: QVR end to end, through a real session with the language server over stdio.

Shows the diagnostics of a broken program, a hover, a diagram it writes, and two language models fitted to a real text
with held-out bits per byte beside the entropies of the text.  Exit status 1 where a claim does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pydoc_data.topics
import shutil
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import BaseLanguageClient
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
BROKEN = EXAMPLES / "broken" / "widths_do_not_add_up.qvr"
MODELS = (("bidirectional_rnn_lm", "a masked byte from both sides"), ("vanilla_rnn_lm", "the next byte"))
TEXT = Path(pydoc_data.topics.__file__)
EARLY = 10.0

out = Console(highlight=False, soft_wrap=True)


class Claims:
    """What the demonstration promises, and whether it held."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def check(self, holds: bool, claim: str) -> None:
        out.print(f"  [{'bold green' if holds else 'bold red'}]{'✔' if holds else '✘'}[/] {claim}")
        if not holds:
            self.failed.append(claim)


class Editor(BaseLanguageClient):
    """The smallest editor: it opens files, keeps what the server publishes, and hands on the events of runs."""

    def __init__(self) -> None:
        super().__init__("qvr-demo", "1")
        self.diagnostics: dict[str, asyncio.Future[list[types.Diagnostic]]] = {}
        self.events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            waiting = self.diagnostics.get(params.uri)
            if waiting is not None and not waiting.done():
                waiting.set_result(list(params.diagnostics))

        self.feature("qvr/runEvent")(lambda params: self.events.put_nowait(plain(params)))
        self.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)(lambda params: None)
        for unheeded in (types.PROGRESS, types.WINDOW_LOG_MESSAGE, "qvr/status"):
            self.feature(unheeded)(lambda params: None)

    async def open(self, path: Path) -> list[types.Diagnostic]:
        """Open a file; the diagnostics that the server publishes for it."""
        uri = path.as_uri()
        self.diagnostics[uri] = asyncio.get_running_loop().create_future()
        item = types.TextDocumentItem(uri=uri, language_id="qvr", version=1, text=path.read_text(encoding="utf-8"))
        self.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
        return await asyncio.wait_for(self.diagnostics[uri], 10)

    async def command(self, name: str, **argument: Any) -> dict[str, Any]:
        params = types.ExecuteCommandParams(command=name, arguments=[argument])
        return plain(await self.workspace_execute_command_async(params))


def plain(value: Any) -> Any:
    """A custom message as dicts and lists: pygls makes named tuples of what it does not know."""
    if hasattr(value, "_asdict"):
        return {key: plain(item) for key, item in value._asdict().items()}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def heading(text: str) -> None:
    out.print(f"\n[bold]{text}[/bold]")


async def show_diagnostics(editor: Editor, claims: Claims) -> None:
    heading(f"Diagnostics of {BROKEN.relative_to(ROOT)}, as published to an editor")
    text = BROKEN.read_text(encoding="utf-8").splitlines()
    found = await editor.open(BROKEN)
    errors = [item for item in found if item.severity == types.DiagnosticSeverity.Error]
    for item in errors:
        start, end = item.range.start, item.range.end
        out.print(f"  error[{item.code}] line {start.line + 1}: {item.message}", markup=False)
        out.print(f"    {text[start.line]}", markup=False)
        marks = max(end.character - start.character, 1) if end.line == start.line else 1
        out.print("    " + " " * start.character + "^" * marks, style="red")
        for related in item.related_information or []:
            out.print(f"      line {related.location.range.start.line + 1}: {related.message}", markup=False)
    claims.check(len(errors) == 1, "one mistake gives one error")
    claims.check(
        all("96" in item.message and "128" in item.message for item in errors), "its message spells both sums out"
    )
    claims.check(any(item.related_information for item in errors), "the declarations involved are pointed at")


async def show_hover(editor: Editor, claims: Claims, path: Path) -> None:
    heading(f"Hover of `backbone` in {path.name}")
    lines = path.read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(lines) if text.startswith("let backbone"))
    position = types.Position(line=line, character=lines[line].index("backbone") + 1)
    document = types.TextDocumentIdentifier(uri=path.as_uri())
    answer = await editor.text_document_hover_async(types.HoverParams(text_document=document, position=position))
    content = getattr(answer.contents, "value", str(answer.contents)) if answer else ""
    out.print(textwrap.indent(content, "  "), markup=False)
    claims.check("backbone" in content and "Combined" in content, "the inferred type of `backbone` is shown")


async def show_diagram(editor: Editor, claims: Claims, path: Path, folder: Path) -> None:
    heading("Diagram")
    for suffix in (".mmd", ".dot", ".svg"):
        if suffix == ".svg" and shutil.which("dot") is None:
            out.print("  (no SVG: the program `dot` is not installed)")
            continue
        target = folder / f"{path.stem}{suffix}"
        await editor.command("qvr.exportDiagram", uri=path.as_uri(), path=str(target))
        out.print(f"  wrote {target.relative_to(ROOT)} ({target.stat().st_size:,} bytes)")
    mermaid = (folder / f"{path.stem}.mmd").read_text(encoding="utf-8")
    out.print(textwrap.indent(mermaid, "    "), markup=False, style="dim")
    parts = ("tok_embed", "fwd_cell", "bwd_cell", "combine", "lm_head", "masked_token")
    claims.check(
        all(part in mermaid for part in parts), "one embedding feeds two scans, combine, lm_head, masked_token"
    )


async def fit(editor: Editor, claims: Claims, path: Path, what: str) -> None:
    heading(f"SVI of {path.stem}: {what}, on {TEXT.name} ({TEXT.stat().st_size:,} bytes)")
    options = {"data": f"text:{TEXT}", "held_out_after": [EARLY]}
    began = time.monotonic()
    run = await editor.command("qvr.run", uri=path.as_uri(), algorithm="svi", options=options)
    columns = (TextColumn("  {task.description}"), BarColumn(bar_width=28), TextColumn("{task.completed}/{task.total}"))
    figures: list[dict[str, Any]] = []
    with Progress(*columns, TimeElapsedColumn(), console=out, transient=True) as bar:
        task = bar.add_task("loading torch", total=None)
        printed = 0.0
        while True:
            event = (await editor.events.get())["event"]
            match event["event"]:
                case "started":
                    bar.console.print(f"  {event['parameters']:,} parameters; {event['data']}", markup=False)
                    bar.update(task, total=event["steps"])
                case "progress":
                    note = f"loss {event.get('smoothed_loss', float('nan')):.3f}"
                    bar.update(task, completed=event["step"], total=event["steps"], description=note)
                    if not out.is_terminal and event["seconds"] - printed >= 5:
                        printed = event["seconds"]
                        out.print(f"  step {event['step']:,} of {event['steps']:,}, {note}")
                case "held_out":
                    figures.append(event)
                    bar.console.print(
                        f"  after {event['seconds']:.1f} s: {event['bits_per_byte']:.3f} bits per byte held out "
                        f"(bound {event['bound']:.3f}, {event['rows']:,} rows, K = {event['draws']})"
                    )
                case "message":
                    bar.console.print(f"  {event['text']}", markup=False)
                case "finished" | "cancelled" | "failed" | "crashed" as ending:
                    break
                case _:
                    pass
    out.print(f"  {ending} after {time.monotonic() - began:.1f} s in all; everything is in {run['directory']}")
    claims.check(ending == "finished", "the run finished")
    if ending != "finished":
        out.print_json(json.dumps(event))
        return
    first, last = figures[0], figures[-1]
    unigram, bigram = last["unigram"], last["bigram"]
    out.print(f"  the text itself: unigram entropy {unigram:.3f}, order-1 (bigram) entropy {bigram:.3f} bits per byte")
    claims.check(
        first["bits_per_byte"] < unigram and first["seconds"] <= EARLY + 1,
        f"after {first['seconds']:.0f} s it is below the unigram entropy: {first['bits_per_byte']:.3f} < {unigram:.3f}",
    )
    claims.check(
        last["bits_per_byte"] < bigram,
        f"at the end it is below the bigram entropy: {last['bits_per_byte']:.3f} < {bigram:.3f}",
    )


def maps_without_torch(pid: int) -> bool:
    """Whether a process has nothing of torch mapped."""
    return "torch" not in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")


async def demonstrate(folder: Path) -> list[str]:
    claims = Claims()
    editor = Editor()
    began = time.monotonic()
    await editor.start_io(sys.executable, "-m", "qvr_lsp.server")
    workspace = types.WorkspaceFolder(uri=folder.as_uri(), name="demo")
    await editor.initialize_async(
        types.InitializeParams(
            capabilities=types.ClientCapabilities(), root_uri=folder.as_uri(), workspace_folders=[workspace]
        )
    )
    editor.initialized(types.InitializedParams())
    out.print(f"the language server answered {1000 * (time.monotonic() - began):.0f} ms after its process was started")
    paths = [Path(shutil.copy(EXAMPLES / f"{name}.qvr", folder)) for name, _ in MODELS]
    try:
        await show_diagnostics(editor, claims)
        for path in paths:
            await editor.open(path)
        await show_hover(editor, claims, paths[0])
        await show_diagram(editor, claims, paths[0], folder)
        for path, (_, what) in zip(paths, MODELS, strict=True):
            await fit(editor, claims, path, what)
        if sys.platform == "linux":
            heading("The server")
            server = editor._server
            claims.check(maps_without_torch(server.pid), "its process has never loaded torch")
    finally:
        await editor.shutdown_async(None)
        editor.exit(None)
        await editor.stop()
    return claims.failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "demo", help="where diagrams and runs go")
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    failed = asyncio.run(demonstrate(folder))
    out.print(f"\n{time.monotonic() - began:.0f} s in all.")
    if failed:
        out.print(f"[bold red]{len(failed)} claims do not hold:[/bold red] {'; '.join(failed)}")
        return 1
    out.print("[bold green]Everything holds.[/bold green]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
