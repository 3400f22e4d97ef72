"""Programs in the cells of a notebook: `%%qvr NAME` checks, draws and binds one; `progress()` shows how chains go."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from qvr_core.analysis import Snapshot, analyse
from qvr_core.cli.console import PlainConsole
from qvr_core.cli.output.diagnostics_text import Finding, rendered
from qvr_core.diagrams import NoDiagram, NoDot, build, to_mermaid, to_svg
from qvr_core.disk import Disk, location_of_file
from qvr_core.extras import lacking, remedy
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.workspace import Workspace

if TYPE_CHECKING:
    from qvr_core.dsl import Program
    from qvr_core.inference.mcmc.collected import Progress

USAGE = "%%qvr NAME [--data EXPRESSION]"
PARTS = 50
"""A bar is drawn anew at most so often a chain."""


class NotChecked(Exception):
    """The program of a cell has errors, or lacks what it needs to run: that stands below the cell, no traceback."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


@magics_class
class Programs(Magics):
    @cell_magic
    def qvr(self, line: str, cell: str) -> None:
        """Check the program in this cell, draw it, and bind what it exports to NAME, a torch module.

        `--data` is an expression: a mapping, a frame, an xarray.Dataset, as `qvr.loads(…, data=)` takes them.
        Imports start from the working directory.
        """
        name, data = asked(line)
        snapshot = analyse(cell, None, location_of_file("-"), Workspace(Disk()))
        found = [Finding(name, cell, each) for each in snapshot.diagnostics() if each.severity is not Severity.HINT]
        if any(each.diagnostic.severity is Severity.ERROR for each in found):
            raise NotChecked(shown(found))
        if found:
            print(shown(found))
        if (picture := Picture.of(snapshot)) is not None:
            display(picture)
        shell: Any = self.shell
        shell.user_ns[name] = loaded(cell, None if data is None else shell.ev(data))


def asked(line: str) -> tuple[str, str | None]:
    """The name and the expression behind `--data`."""
    words = shlex.split(line)
    match words:
        case [name]:
            data = None
        case [name, "--data", data] | ["--data", data, name]:
            pass
        case _:
            raise UsageError(USAGE)
    if not name.isidentifier():
        raise UsageError(f"{USAGE}: `{name}` is no name of Python")
    return name, data


def loaded(text: str, data: Any) -> Any:
    """What the program of a cell stands for: what it exports, else (templates, deductions) the file itself."""
    try:
        from qvr_core.dsl import loads
        from qvr_core.runtime.values.errors import RuntimeProblem
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise NotChecked(f"the program is checked; to bind it needs {lacking(package)}: {remedy()}") from error
    program = loads(text, data=data, folder=Path.cwd())
    try:
        return program.morphism
    except RuntimeProblem:
        return program


def shown(findings: list[Finding]) -> str:
    """As in the terminal."""
    colours: dict[str, Any] = {"force_terminal": True, "force_jupyter": False, "color_system": "standard"}
    console = PlainConsole(file=StringIO(), highlight=False, soft_wrap=True, **colours)
    for finding in findings:
        for row in rendered(finding):
            console.print(row)
    file: Any = console.file
    return file.getvalue().rstrip()


class Picture:
    """A diagram as SVG where Graphviz is installed, and as Mermaid text everywhere."""

    def __init__(self, text: str, svg: str | None) -> None:
        self._text, self._svg = text, svg

    @classmethod
    def of(cls, snapshot: Snapshot) -> Picture | None:
        """The diagram of what a file exports; None where there is nothing to draw."""
        try:
            graph = build(snapshot, fold=True)
        except NoDiagram:
            return None
        try:
            return cls(to_mermaid(graph), to_svg(graph))
        except NoDot:
            return cls(to_mermaid(graph), None)

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        bundle = {"text/plain": self._text}
        return bundle if self._svg is None else {**bundle, "image/svg+xml": self._svg}


def drawing(program: Program) -> str | None:
    """A file as a picture, where there is something to draw, and Graphviz to do it."""
    try:
        return to_svg(build(program.snapshot, fold=True))
    except (NoDiagram, NoDot):
        return None


class Bar:
    """How far chains are: hand it to `MCMC.run` as `watch`."""

    def __init__(self) -> None:
        self._chain, self._divergences = 0, 0
        self._last: Progress | None = None
        self._handle: Any = display(self, display_id=True)

    def __call__(self, now: Progress) -> None:
        if self._last is None or now.draw < self._last.draw:
            self._chain += 1
        self._divergences += 0 if now.warmup else int(now.diverging.sum())
        self._last = now
        if self._handle is not None and (now.draw % max(now.total // PARTS, 1) == 0 or now.draw + 1 == now.total):
            self._handle.update(self)

    def _words(self) -> Iterator[str]:
        now = self._last
        if now is None:
            yield "before the first draw"
            return
        together = len(now.acceptance)
        yield f"chain {self._chain}" if together == 1 else f"{together} chains"
        yield f"{'warm-up' if now.warmup else 'sampling'} {now.draw + 1:,} of {now.total:,}"
        yield f"step size {float(now.step_size.mean()):.3g}"
        yield f"{self._divergences:,} divergences"

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        words = ", ".join(self._words())
        done, total = (0, 1) if self._last is None else (self._last.draw + 1, self._last.total)
        return {"text/plain": words, "text/html": f'<progress value="{done}" max="{total}"></progress> {escape(words)}'}


def progress() -> Bar:
    """A bar below the cell: `mcmc.run(model, x, data, watch=progress())`."""
    return Bar()
