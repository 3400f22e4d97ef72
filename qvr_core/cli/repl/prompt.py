"""The prompt in a terminal: prompt_toolkit asks `typing_help` at each key."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app, run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document as Buffer
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from qvr_core.cli.checking.watching import PAUSE
from qvr_core.cli.repl.colours import STYLE
from qvr_core.cli.repl.session import Session
from qvr_core.cli.repl.typed_lines import indentation, unfinished
from qvr_core.cli.repl.typing_help import WORD, Help, Typed, fitting, inserted
from qvr_core.syntax.cutter import INDENT
from qvr_core.syntax.printable import printable

MOST_OFFERED = 200
MOST_HISTORY = 1_000_000
"""Bytes of the history; of a larger file the last half is kept."""
FRAME = {
    "prompt": "bold ansigreen",
    "more": "ansibrightblack",
    "bottom-toolbar": "noreverse",
    "bottom-toolbar.text": "ansired",
}
"""The style of what stands around the line."""
PROMPT, MORE = "qvr> ", "...> "


def converse(session: Session, **terminal: Any) -> None:
    """Read and answer until Ctrl-D or `:quit`; `terminal` is another one than the process's, as prompt_toolkit's
    `input` and `output`."""
    asked = asking(session, **terminal)
    while True:
        try:
            text = ask(asked, session)
        except KeyboardInterrupt:
            continue
        except EOFError:
            break
        try:
            if not session.take(text):
                break
        except KeyboardInterrupt:
            session.say("interrupted", "dim")
    if session.document.lines != session.document.stored:
        session.say(f"not saved; what was typed is in the history, {history_file()}", "dim")


def asking(session: Session, **terminal: Any) -> PromptSession[str]:
    """The prompt of a session."""
    help = Help(session.document)
    return PromptSession(
        [("class:prompt", PROMPT)],
        multiline=True,
        prompt_continuation=[("class:more", MORE)],
        lexer=Colours(help),
        completer=Offers(help),
        complete_while_typing=True,
        history=_history(),
        key_bindings=_keys(help),
        bottom_toolbar=lambda: _toolbar(help),
        style=Style.from_dict({**STYLE, **FRAME}),
        enable_open_in_editor=True,
        reserve_space_for_menu=6,
        **terminal,
    )


def ask(asked: PromptSession[str], session: Session) -> str:
    """What is typed next.  A file that is followed is looked at meanwhile.  Raises KeyboardInterrupt, EOFError."""

    async def looking() -> None:
        while True:
            await asyncio.sleep(PAUSE)
            if session.news():
                await run_in_terminal(session.look)

    def watching() -> None:
        get_app().create_background_task(looking())

    return asked.prompt(pre_run=watching)


def _toolbar(help: Help) -> str:
    return printable(help.advice(get_app().current_buffer.text))


class Colours(Lexer):
    """What `Help.painted` says, line by line."""

    def __init__(self, help: Help) -> None:
        self._help = help

    def lex_document(self, document: Buffer) -> Callable[[int], StyleAndTextTuples]:
        lines = document.lines
        styles = [[""] * len(line) for line in lines]
        for number, start, end, kind in self._help.painted(document.text):
            if number < len(styles):
                end = min(end, len(lines[number]))
                styles[number][start:end] = [f"{one} class:{kind}" for one in styles[number][start:end]]

        def line(number: int) -> StyleAndTextTuples:
            if number >= len(lines):
                return []
            return list(zip(styles[number], lines[number], strict=True))

        return line


class Offers(Completer):
    """What `Help.completions` says, narrowed by the word that is begun; paths behind :load and :save."""

    def __init__(self, help: Help) -> None:
        self._help = help
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Buffer, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = Typed.of(document.text)
        if typed.command in (":load", ":save") and document.cursor_position >= len(typed.before):
            inner = Buffer(document.text_before_cursor[len(typed.before) :].lstrip("! "))
            yield from self._paths.get_completions(inner, complete_event)
            return
        before = document.text_before_cursor
        word = before.lstrip() if before.lstrip().startswith(":") and " " not in before else _word(before)
        if not word and not complete_event.completion_requested:
            return
        found = self._help.completions(document.text, document.cursor_position)
        for one in fitting(found, word)[:MOST_OFFERED]:
            detail = one.detail or one.kind
            yield Completion(inserted(one), -len(word), display=printable(one.label), display_meta=printable(detail))


def _word(before: str) -> str:
    found = WORD.search(before)
    return "" if found is None else found[0]


def _keys(help: Help) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        """Take what is whole; else a new line, as deep as what goes on."""
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
            return
        lines = buffer.text.split("\n")
        command = buffer.text.lstrip().startswith(":")
        last = buffer.document.is_cursor_at_the_end or not buffer.document.text_after_cursor.strip()
        if last and (command or not unfinished(lines, blank_ends=True)):
            buffer.validate_and_handle()
            return
        buffer.insert_text("\n" + " " * indentation(buffer.document.text_before_cursor.split("\n")))

    @keys.add("f2")
    def _(event: KeyPressEvent) -> None:
        """Apply the fix that is shown."""
        mended = help.mended(event.current_buffer.text)
        if mended is not None:
            event.current_buffer.document = Buffer(mended)

    @keys.add("tab")
    def _(event: KeyPressEvent) -> None:
        """Indent a line that has nothing yet, complete elsewhere."""
        buffer = event.current_buffer
        if "\n" in buffer.text and not buffer.document.current_line_before_cursor.strip():
            buffer.insert_text(INDENT)
        elif buffer.complete_state is not None:
            buffer.complete_next()
        else:
            buffer.start_completion(insert_common_part=True)

    return keys


def history_file() -> Path:
    """Where what was typed is kept, for its user alone."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "qvr" / "history"


def _history() -> History:
    """What was typed in earlier sessions; none is kept where that cannot be written."""
    path = history_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        held = path.read_bytes()
        if len(held) > MOST_HISTORY:
            # an entry begins with an empty line
            path.write_bytes(held[held.find(b"\n\n", len(held) - MOST_HISTORY // 2) + 1 :])
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
