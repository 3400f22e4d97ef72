"""What a line does: a declaration is added or refused, an expression says its type, `:` begins a command.

Nothing here knows a terminal: a pipe, the prompt and the tests hand in lines and read what is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import typer
from rich.text import Text

from qvr_core.cli.checking.watching import state
from qvr_core.cli.console import PlainConsole
from qvr_core.cli.files import read_program
from qvr_core.cli.output.diagnostics_text import MOST_SHOWN, Finding, rendered
from qvr_core.cli.repl.document import Document, Excerpt, Lines, new_problems
from qvr_core.cli.repl.expressions import Probe, best, typed_as
from qvr_core.cli.repl.typed_lines import declares
from qvr_core.extras import needs
from qvr_core.ide.outline_and_folding import statement_symbols
from qvr_core.ide.prose import Prose, plain
from qvr_core.ide.view import statements_between
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.syntax.layout import next_code
from qvr_core.syntax.printable import printable
from qvr_core.syntax.source import split_lines

MOST_LETTERS = 1_000_000
"""Of what is typed at once: a program is a thousandth of that."""

COMMANDS_ELSEWHERE = {"help": ":help", "?": ":help", "quit": ":quit", "exit": ":quit", "q": ":quit"}
"""What people type who know other prompts."""
SETTLED_LATER = ("unsolved-hole",)
"""Errors of what is added nevertheless: the next declaration may say how large a `_` is."""
Commands = Callable[["Session", str, str], bool]
"""Does the command of a word with what stands behind it; False where it ends the session."""


class Session:
    """A document, what is printed about it, and whether anything was refused."""

    def __init__(self, commands: Commands, out: PlainConsole | None = None) -> None:
        self.commands = commands
        self.out = out or PlainConsole(highlight=False, soft_wrap=True)
        self.document = Document()
        self.refused = False
        """Whether anything was: the exit status of a script."""
        self.run_id: str | None = None
        """The last run of this session."""
        self._read: dict[Path, tuple[int, int] | None] = {}
        """Files of the document as they were read or written last."""
        self._follows = False

    # ---------------------------------------------------------------- what is printed

    def say(self, text: str, style: str = "") -> None:
        """A line in plain text."""
        self.out.print(Text(printable(text), style))

    def refuse(self, message: str) -> None:
        """That something asked for cannot be."""
        self.refused = True
        self.out.print(Text.assemble(("error", "bold red"), (": ", "bold"), printable(message)))

    def explain(self, place: str, said: Prose) -> None:
        """What a hover says, below its place."""
        if place:
            self.say(place, "dim")
        self.say(plain(said))

    def show(self, findings: Iterable[Finding]) -> None:
        """Diagnostics, as `qvr check` prints them."""
        every = list(findings)
        for finding in every[:MOST_SHOWN]:
            for line in rendered(finding):
                self.out.print(line)
        if (more := len(every) - MOST_SHOWN) > 0:
            self.say(f"{more:,} more are not shown")

    # ---------------------------------------------------------------- lines

    def take(self, text: str) -> bool:
        """Do what is typed; False where that ends the session."""
        if len(text) > MOST_LETTERS:
            self.refuse(
                f"{len(text):,} characters at once, and no more than {MOST_LETTERS:,} are read: save them as a file"
            )
            return True
        typed = tuple(line.rstrip() for line in split_lines(text)[0])
        while typed and not typed[-1]:
            typed = typed[:-1]
        first = next_code(typed, 0)
        if first == len(typed):
            return True  # nothing, or a comment about nothing
        if typed[first].lstrip().startswith(":"):
            return self._command("\n".join(typed[first:]).strip())
        if declares(typed[first]):
            self.declare(typed)
        else:
            self.express(_dedented(typed[first:]))
        return True

    def _command(self, text: str) -> bool:
        word, _, argument = text.partition(" ")
        try:
            return self.commands(self, word, argument.strip())
        except typer.Exit as ended:  # it was said why
            self.refused = self.refused or ended.exit_code != 0
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package in ("qvr_core", "qvr_lsp"):
                raise
            self.refuse(needs(package))
        return True

    def declare(self, typed: Lines) -> bool:
        """Add declarations, unless that brings an error."""
        old = self.document.snapshot()
        excerpt = self.document.excerpt(typed)
        found = new_problems(old.diagnostics(), excerpt.snapshot.diagnostics())
        self.show(map(excerpt.finding, found))
        if any(one.severity is Severity.ERROR and one.code.name not in SETTLED_LATER for one in found):
            self.refused = True
            self.say("not added", "dim")
            return False
        said = list(_added(excerpt))
        earlier = {name.text for one in old.statements for name in one.header.unit.declares}
        self.document.take(excerpt, ", ".join(name for name, _ in said) or typed[0])
        for name, detail in said:
            what = "  (in place of the earlier one)" if name in earlier else ""
            self.out.print(Text.assemble((printable(name), "bold"), printable(detail), (what, "dim")))
        return True

    def express(self, typed: Lines) -> None:
        """Say the type of an expression, and its value where that is the same whatever is drawn."""
        probe, shown = self.probed(typed)
        if probe is None:
            return
        said = typed_as(probe, shown)
        self.out.print(Text.assemble((printable(shown), "bold"), printable(said.removeprefix(shown))))

    def probed(self, typed: Lines) -> tuple[Probe | None, str]:
        """An expression at its place, as it is shown; None where it is wrong, which is said."""
        from qvr_core.cli.repl.names import info

        probe, shown = best(self.document, typed), " ".join(line.strip() for line in typed)
        errors = probe.errors()
        if errors and shown.isidentifier() and (said := info(self.document, shown)):
            # a family, say, is no expression, and who types its name wants to know what it is
            for place, content in said:
                self.explain(place, content)
            return None, shown
        if errors:
            self.refused = True
            self.show(map(probe.excerpt.finding, errors))
            if shown in COMMANDS_ELSEWHERE:
                self.say(f"commands begin with a colon: {COMMANDS_ELSEWHERE[shown]}", "dim")
            return None, shown
        return probe, shown

    # ---------------------------------------------------------------- files

    def load(self, path: Path, text: str) -> None:
        """Go on with the text of a file, errors and all, and say what it holds."""
        self.document.load(path, text, f":load {path}")
        self._read |= state([path])
        self._report()

    def saved(self, path: Path) -> None:
        """The document was written to a file."""
        self.document.placed(path)
        self._read |= state([path])

    def stale(self) -> bool:
        """Whether the document's file is another one than when it was read or written last."""
        path = self.document.path
        return path is not None and path in self._read and state([path])[path] != self._read[path]

    def _report(self) -> None:
        snapshot = self.document.snapshot()
        found = [one for one in snapshot.diagnostics() if one.severity in (Severity.ERROR, Severity.WARNING)]
        text = "\n".join(self.document.lines)
        self.show(Finding(self.document.name, text, one) for one in found)
        count = len(snapshot.statements)
        errors = sum(one.severity is Severity.ERROR for one in found)
        wrong = f", {errors} error{'s' if errors > 1 else ''}" if errors else ""
        self.refused = self.refused or bool(errors)
        self.say(f"{self.document.name}: {count} declaration{'' if count == 1 else 's'}{wrong}", "dim")

    def follow(self) -> bool:
        """Look at the document's file from now on; False where it has none."""
        self._follows = self.document.path is not None
        return self._follows

    def unfollow(self) -> None:
        self._follows = False

    def news(self) -> bool:
        """Whether a file that is followed has changed."""
        return self._follows and self.stale()

    def look(self) -> None:
        """Take over a followed file that has changed."""
        path = self.document.path
        if path is None or not self.news():
            return
        self._read |= state([path])
        if not path.exists():
            self.say(f"{path} is gone; the document stays as it is", "dim")
            return
        typed = self.document.lines != self.document.stored
        with suppress(typer.Exit):  # it was said why
            self.document.load(path, read_program(str(path)), f"what {path} has become")
            self._report()
            if typed:
                self.say("what was typed here is not in the file: :undo brings it back", "dim")


def _dedented(typed: Lines) -> Lines:
    return (typed[0].lstrip(), *typed[1:])


def _added(excerpt: Excerpt) -> Iterable[tuple[str, str]]:
    """Each declaration of what was typed, with what is said of it."""
    snapshot = excerpt.snapshot
    for statement in statements_between(snapshot, excerpt.line, excerpt.line + len(excerpt.typed) - 1):
        if snapshot.layout.start_line(statement.uid) < excerpt.line:
            continue
        symbols = list(statement_symbols(snapshot, statement))
        yield from ((one.name, f" : {one.detail}" if one.detail else f" ({one.kind})") for one in symbols)
        if not symbols:
            yield statement.header.unit.text.splitlines()[0], ""
