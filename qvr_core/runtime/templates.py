"""Templates from Python: `program.p(alpha=1.0).morphism`."""

from __future__ import annotations

from qvr_core.analysis import Snapshot, analyse
from qvr_core.runtime.arrow import ArrowModule
from qvr_core.runtime.build import Builder
from qvr_core.runtime.errors import InputProblem
from qvr_core.semantics.diagnostics import Severity
from qvr_core.semantics.model import Program


class Template:
    """A program with typed parameters; calling it fills them in.

    A `Real` or `Nat` parameter takes a number, an `Object`, `FinSet` or `Mor` one the name of a declaration.
    """

    def __init__(self, program: Program, snapshot: Snapshot, builder: Builder) -> None:
        self.program = program
        self.name = program.name
        self._text = "\n".join(snapshot.lines)
        self._builder = builder

    def __call__(self, **arguments: float | int | str) -> Instantiated:
        """The program with its parameters; every instance shares the file's arrows.

        Raises `InputProblem` in the checker's words where an argument does not fit.
        """
        written = ", ".join(f"{key}={value}" for key, value in arguments.items())
        call = f"{self.name}({written})" if written else self.name
        # the checker itself fills the parameters in: it reads the file with one export more
        snapshot = analyse(f"{self._text}\nexport {call}\n")
        last = len(self._text.splitlines())
        for item in snapshot.diagnostics():
            if item.severity is Severity.ERROR and item.range.start.line >= last:
                raise InputProblem(f"`{call}`: {item.message}")
        arrow = snapshot.model.exports[-1].arrow
        if arrow is None:
            raise InputProblem(f"`{call}` is not a program")
        return Instantiated(self._builder.arrow(arrow))


class Instantiated:
    """A template with its parameters filled in."""

    def __init__(self, morphism: ArrowModule) -> None:
        self.morphism = morphism
