"""What the runtime and inference say when a value does not fit: every message names the program and the site."""

from __future__ import annotations

from typing import Self

from qvr_core.semantics.types.diagnostics import Origin


class RuntimeProblem(Exception):
    """Base of all errors that a user of a loaded program can cause.

    `site` is the name of the step that failed, where there is one; the runs put it beside the source line.  `place` is
    that line for Python, as `model.qvr:12`, and stands below the message of a traceback.
    """

    place: str | None = None

    def __init__(self, message: str, *, site: str | None = None) -> None:
        super().__init__(message)
        self.site = site

    def at(self, place: str | None) -> Self:
        """The same error with the place of its step, unless it has one: the innermost program's counts."""
        if place is not None and self.place is None:
            self.place = place
            self.add_note(f"at {place}")
        return self


class InputProblem(RuntimeProblem, ValueError):
    """The input `x`, an observed value or a data name has the wrong shape, dtype, range or support."""


class SequenceTooLong(InputProblem):
    """A sequence has more elements than the learned positions of the arrow `site`."""

    program: str | None = None

    def within(self, program: str) -> SequenceTooLong:
        """The error as one that names the program whose step failed; the innermost program counts."""
        if self.program is not None:
            return self
        named = SequenceTooLong(f"program `{program}`: {self}", site=self.site)
        named.program = program
        return named


class MissingData(RuntimeProblem, KeyError):
    """A data name, or the observed value of a site, was not supplied."""

    def __str__(self) -> str:
        return str(self.args[0])


class MissingInnovations(RuntimeProblem, ValueError):
    """A density was asked for without the innovations that it is conditional on."""


class TooLarge(RuntimeProblem, MemoryError):
    """An arrow has more weights than the memory holds."""


class NothingToFit(RuntimeProblem, ValueError):
    """The loss depends on no parameter of the program or of the guide."""


class NoDensity(RuntimeProblem, TypeError):
    """A site without a density was observed, guided or lifted."""


class NoDraws(RuntimeProblem, NotImplementedError):
    """A draw was asked for from a family that does not say how to draw."""


class CountOverflow(RuntimeProblem, OverflowError):
    """A count is drawn that is larger than any whole number of 64 bits."""


class DiscreteLatent(RuntimeProblem, TypeError):
    """A discrete latent where only continuous ones can move."""


class NonFinite(RuntimeProblem, ArithmeticError):
    """A density or a gradient is NaN or infinite; `origin` is the expression that made it so, where one did."""

    def __init__(self, message: str, *, site: str | None = None, origin: Origin | None = None) -> None:
        super().__init__(message, site=site)
        self.origin = origin


class Unobserved(UserWarning):
    """An `observe` step has no value: it is drawn from the model and says nothing about the latents."""


class OtherLength(UserWarning):
    """Data have another number of rows than the plate of their likelihood declares: allowed, and noted once."""
