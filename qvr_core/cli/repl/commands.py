"""What begins with a colon: a table of commands, each with its word, what may stand behind it, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from qvr_core.cli.files import read_program, write_program
from qvr_core.cli.repl import fits
from qvr_core.cli.repl.expressions import explained
from qvr_core.cli.repl.names import info, near
from qvr_core.cli.repl.session import Session
from qvr_core.diagrams import NoDiagram, build, to_text
from qvr_core.semantics.language.spelling import closest
from qvr_core.syntax.printable import printable
from qvr_core.syntax.source import split_lines

Do = Callable[[Session, str], None]


@dataclass(frozen=True)
class Command:
    """A command; `reads` is what stands behind it: 'expression', 'name', 'file', 'flags' or ''."""

    word: str
    usage: str
    summary: str
    reads: str
    do: Do


def run_command(session: Session, word: str, argument: str) -> bool:
    """Do a command; False where it ends the session."""
    command = named(word)
    if command is None:
        like = closest(word, (one.word for one in COMMANDS))
        guess = f"did you mean {like}?" if like else ":help lists what there is"
        session.refuse(f"there is no command {word}; {guess}")
        return True
    if argument and not command.reads:
        session.refuse(f"{command.word} stands alone")
        return True
    command.do(session, argument)
    return command.word != QUIT


def named(word: str) -> Command | None:
    """The command of a word, or the first that begins so: `:t` is `:type`."""
    return next((one for one in COMMANDS if len(word) > 1 and one.word.startswith(word)), None)


def _type(session: Session, argument: str) -> None:
    if not argument:
        session.refuse("say of what: :type EXPRESSION")
        return
    known = info(session.document, argument) if argument.isidentifier() else []
    if known:
        # of a name more is known than of an expression of it
        for place, content in known:
            session.explain(place, content)
        return
    probe, shown = session.probed(tuple(split_lines(argument)[0]))
    if probe is not None:
        session.explain("", explained(probe, shown))


def _info(session: Session, name: str) -> None:
    if not name:
        session.refuse("say of what: :info NAME")
        return
    said = info(session.document, name)
    if not said:
        like = near(session.document, name)
        session.refuse(f"nothing is called `{name}`" + (f"; did you mean `{like}`?" if like else ""))
    for place, content in said:
        session.explain(place, content)


def _diagram(session: Session, name: str) -> None:
    try:
        graph = build(session.document.snapshot(), name or None, fold=True)
    except NoDiagram as problem:
        session.refuse(str(problem))
        return
    session.out.print(Text(printable(to_text(graph, session.out.width))), no_wrap=True, crop=False)


def _run(session: Session, flags: str) -> None:
    session.run_id = fits.run(session.document, flags) or session.run_id


def _posterior(session: Session, names: str) -> None:
    fits.posterior(session.document, session.run_id, names)


def _watch(session: Session, argument: str) -> None:
    if argument not in ("", "off"):
        session.refuse(":watch follows the file, :watch off no more")
    elif argument == "off":
        session.unfollow()
    elif session.follow():
        session.say(f"{session.document.name} is taken over whenever it changes; :watch off ends that", "dim")
    else:
        session.refuse("the document has no file yet: :save FILE gives it one")


def _load(session: Session, argument: str) -> None:
    path = Path(argument).expanduser() if argument else session.document.path
    if path is None:
        session.refuse("say which: :load FILE")
        return
    session.load(path, read_program(str(path)))


def _save(session: Session, argument: str) -> None:
    document = session.document
    force = argument.startswith("!")
    argument = argument.removeprefix("!").strip()
    path = Path(argument).expanduser() if argument else document.path
    if path is None:
        session.refuse("say where: :save FILE")
        return
    if not force and path.exists() and (path != document.path or session.stale()):
        what = "has changed since it was read" if path == document.path else "is there already"
        session.refuse(f"{path} {what}: :save ! {path} writes over it")
        return
    write_program(str(path), document.text)
    session.saved(path)
    session.say(f"{path}: {len(document.lines)} lines", "dim")


def _undo(session: Session, argument: str) -> None:
    state = session.document.undo()
    if state is None:
        session.refuse("there is nothing to undo")
    else:
        session.say(f"undone: {state.what}", "dim")


def _list(session: Session, argument: str) -> None:
    width = len(str(len(session.document.lines)))
    for number, line in enumerate(session.document.lines, 1):
        session.out.print(Text.assemble((f"{number:>{width}} | ", "blue"), printable(line)))


def _help(session: Session, argument: str) -> None:
    session.say("A declaration is added to the document; an expression says its type, and its value where it has one.")
    width = max(len(one.usage) for one in COMMANDS)
    for one in COMMANDS:
        session.out.print(Text.assemble(f"  {one.usage:{width}}  ", (one.summary, "dim")))
    session.say("The beginning of a command is enough (:t). An empty line ends a block. In a terminal: Tab completes,")
    session.say("F2 applies the fix that is shown, Ctrl-C drops the line or cancels the run, Ctrl-D leaves.")


def _quit(session: Session, argument: str) -> None:
    pass


QUIT = ":quit"
COMMANDS = (
    Command(":type", ":type EXPRESSION", "what it is, as an editor's hover says it", "expression", _type),
    Command(
        ":info", ":info NAME", "what a name of the document, a word of the language or a diagnostic is", "name", _info
    ),
    Command(
        ":diagram", ":diagram [NAME]", "a let or a program drawn; else what the document exports", "name", _diagram
    ),
    Command(":run", ":run [nuts|svi] [FLAGS]", "fit, as `qvr run` does; :run nuts --help has the flags", "flags", _run),
    Command(":posterior", ":posterior [NAMES]", "the numbers of the last fit; NAMES as b_*,sigma", "name", _posterior),
    Command(":watch", ":watch [off]", "take the file over whenever it changes on disk", "flags", _watch),
    Command(":list", ":list", "the document with the numbers of its lines", "", _list),
    Command(":load", ":load [FILE]", "go on with a file; the same one as it is now", "file", _load),
    Command(":save", ":save [FILE]", "write the document; `:save ! FILE` over another file", "file", _save),
    Command(":undo", ":undo", "take the last change back", "", _undo),
    Command(":help", ":help", "this", "", _help),
    Command(QUIT, QUIT, "leave, as Ctrl-D does", "", _quit),
)
"""Of two that begin alike the upper one is meant."""
