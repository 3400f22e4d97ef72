"""Log densities of families that the file declares, as functions of Stan."""

from __future__ import annotations

import re

from qvr_core.export.stan.elements import Elements
from qvr_core.export.stan.stan_names import StanNames, identifier
from qvr_core.export.stan.tables import reserved
from qvr_core.lowered.declared_families import lets_of_density
from qvr_core.semantics.language.builtins import canonical
from qvr_core.semantics.types.model.expressions import Builtin
from qvr_core.semantics.types.model.families import DeclaredFamily
from qvr_core.semantics.types.walk import until_arrows, walk

_OF_STAN = """
bernoulli bernoulli_logit beta beta_binomial beta_proportion binomial binomial_logit categorical cauchy chi_square
discrete_range double_exponential exp_mod_normal exponential frechet gamma gumbel hypergeometric inv_chi_square
inv_gamma loglogistic logistic lognormal neg_binomial neg_binomial_2 neg_binomial_2_log normal ordered_logistic
ordered_probit pareto pareto_type_2 poisson poisson_log rayleigh scaled_inv_chi_square skew_double_exponential
skew_normal std_normal student_t uniform von_mises weibull wiener
"""
"""Distributions of Stan, whose functions a program may not declare anew."""


class FamilyFunctions:
    """A function for each family that is asked for: `real bell_lpdf(real x, real loc, real scale)`."""

    def __init__(self, elements: Elements) -> None:
        self._elements = elements
        self._names: dict[str, str] = {}
        self.lines: list[str] = []

    def called(self, family: DeclaredFamily) -> str:
        """The name of a family's function, with what Stan wants behind it."""
        if family.name not in self._names:
            plain = identifier(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", family.name).lower()) or "family"
            kind = "lpmf" if family.numbers else "lpdf"
            while plain in _OF_STAN.split() or self._elements.names.is_taken(f"{plain}_{kind}"):
                plain += "_of_file"
            self._names[family.name] = self._elements.names.fresh(f"{plain}_{kind}")
            self._write(family, self._names[family.name])
        return self._names[family.name]

    def _write(self, family: DeclaredFamily, name: str) -> None:
        argument, lets = family.density.argument, lets_of_density(family)
        parameters = [one.name for one in family.parameters]
        local = [argument, *parameters, *(own for own, _ in lets)]
        bodies = [family.density.value, *(value for _, value in lets)]
        calls = {
            canonical(node.function)
            for body in bodies
            for node in walk(body, until_arrows)
            if isinstance(node, Builtin)
        }
        names = StanNames(local, {*reserved(calls), name})
        inner = Elements(self._elements.reading, names)
        shapes = inner.shapes
        shapes.known.update(dict.fromkeys(local, ()))
        shapes.whole -= set(local)
        shapes.codes -= set(local)
        shapes.whole |= {argument} if family.numbers else set()
        first = f"{'int' if family.numbers else 'real'} {names[argument]}"
        takes = ", ".join([first, *(f"real {names[own]}" for own in parameters)])
        lines = [f"real {name}({takes}) {{"]
        for own, value in lets:
            with inner.apart() as before:
                text = inner.text(value)
            lines += [f"  {line}" for line in (*before, f"real {names[own]} = {text};")]
        with inner.apart() as before:
            text = inner.text(family.density.value)
        self.lines += [*lines, *(f"  {line}" for line in (*before, f"return {text};")), "}"]
        self._elements.used |= inner.used
