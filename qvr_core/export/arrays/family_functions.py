"""Log densities of families that the file declares, as functions of an array target."""

from __future__ import annotations

import re

from qvr_core.export.arrays.expressions import Expressions
from qvr_core.export.arrays.module import docstring
from qvr_core.export.names import PYTHON_WORDS, Names
from qvr_core.export.python_layout import header, laid_out
from qvr_core.lowered.declared_families import lets_of_density, reads_value
from qvr_core.semantics.types.model.families import DeclaredFamily

_MODULES = ("torch", "jax", "jnp", "np", "pt", "pm", "dist", "nn", "json", "numpyro", "pytensor")


class FamilyFunctions:
    """A function for each family that is asked for: `bell_log_prob(x, loc, scale)`."""

    def __init__(self, expressions: Expressions) -> None:
        self._expressions = expressions
        self._names: dict[str, str] = {}
        self.lines: list[str] = []
        """All functions, two lines behind each."""

    def called(self, family: DeclaredFamily) -> str:
        """The name of a family's function."""
        if family.name not in self._names:
            plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", family.name).lower().replace(".", "_")
            self._names[family.name] = self._expressions.names.fresh(f"{plain}_log_prob")
            self._write(family, self._names[family.name])
        return self._names[family.name]

    def _write(self, family: DeclaredFamily, name: str) -> None:
        outer, argument = self._expressions, family.density.argument
        lets = lets_of_density(family)
        parameters = [one.name for one in family.parameters]
        reserved = (*PYTHON_WORDS, *_MODULES, *outer.dialect.helpers, name)
        names = Names([argument, *parameters, *(own for own, _ in lets)], reserved)
        inner = Expressions(outer.reading, names, outer.dialect)
        density = inner.text(family.density.value)
        if not reads_value(family):
            density = f"{density} + 0.0 * {names[argument]}"
        self.lines += header(f"def {name}({', '.join(names[own] for own in (argument, *parameters))}):", 0)
        self.lines += docstring([f"The log density of `{family.name}` at each element of `{names[argument]}`."], 4)
        for own, value in lets:
            self.lines += laid_out(f"{names[own]} = {inner.text(value)}", 4)
        self.lines += [*laid_out(f"return {density}", 4), "", ""]
        outer.used |= inner.used
