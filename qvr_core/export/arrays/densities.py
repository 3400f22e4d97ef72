"""Families in an array target: the distribution of a draw, and the log density of a value."""

from __future__ import annotations

from qvr_core.export.arrays.expressions import Expressions, is_constant, is_truth, rank
from qvr_core.export.arrays.family_functions import FamilyFunctions
from qvr_core.export.refusals import Refused, no_gate, no_outcome, no_tails
from qvr_core.lowered.axes import event_dims
from qvr_core.lowered.censoring_and_truncation import limited
from qvr_core.lowered.declared_families import family_of_file, given
from qvr_core.lowered.factors import Factor
from qvr_core.lowered.gates import gated, is_gated
from qvr_core.lowered.mixtures import components
from qvr_core.lowered.outcomes import imaged, unsaid
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.mixtures import component_names
from qvr_core.semantics.types.model.expressions import Arrange, Constant, Expr
from qvr_core.semantics.types.model.families import DeclaredFamily, FamilyDraw
from qvr_core.semantics.types.model.steps import Site
from qvr_core.semantics.types.spaces import Constrained


class Densities:
    """Distributions and log densities of draws."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.dialect = expressions.dialect
        self.families = FamilyFunctions(expressions)

    def distribution(self, draw: FamilyDraw, site: Site) -> str | None:
        """The distribution of one element; None where the target has only its log density."""
        own = is_gated(draw) or draw.declared or component_names(draw.family)
        template = "" if own else self._template(draw, site)
        if not template or "{value}" in template:
            return None
        return self.expressions.template(template, **self._arguments(draw, site))

    def log_density(self, draw: FamilyDraw, site: Site, value: str) -> str:
        """The log density of each element of a value."""
        if is_gated(draw):
            return self._gated(draw, site, value)
        if component_names(draw.family):
            return self._mixed(draw, site, value)
        if (own := family_of_file(draw)) is not None:
            return self._of_file(own, draw, value)
        template = self._template(draw, site)
        arguments = self._arguments(draw, site)
        if "{value}" in template:
            return self.expressions.template(template, value=value, **arguments)
        made = self.expressions.template(template, **arguments)
        return self.expressions.template(self.dialect.log_prob, made, value)

    def _of_file(self, family: DeclaredFamily, draw: FamilyDraw, value: str) -> str:
        """That of a family which the file declares: the call of its function."""
        texts = [
            self.dialect.number.format(self.expressions.text(one)) if is_constant(one) else self.expressions.text(one)
            for one in given(draw, family)
        ]
        return f"{self.families.called(family)}({', '.join([value, *texts])})"

    def _mixed(self, draw: FamilyDraw, site: Site, value: str) -> str:
        """That of a mixture of families."""
        expressions = self.expressions
        weights, parts = components(draw)
        text = expressions.text(weights[1])
        if weights[0] == "logits":
            log_weights = expressions.template(self.dialect.functions["log_softmax"], text, axis="-1")
        else:
            log_weights = expressions.template("log_normalised({0})", text)
        each = ", ".join(self.log_density(part, site, value) for part in parts)
        return expressions.template("mixed({0}, {1})", log_weights, each)

    def _gated(self, draw: FamilyDraw, site: Site, value: str) -> str:
        """That of counts behind a gate."""
        known, expressions = gated(draw), self.expressions
        if known is None:
            raise no_gate(draw, site, self.dialect.target)
        none, more = (expressions.number(one, expressions.text(one)) for one in (known.zero, known.more))
        counts = f"{self.log_density(known.counts, site, value)} + {more}"
        return expressions.template(self.dialect.where, expressions.compared("eq", value, "0"), none, counts)

    def of(self, factor: Factor) -> str:
        """The log density of each element of a factor, as far as it counts."""
        expressions, where = self.expressions, self.dialect.where
        if (what := unsaid(factor)) is not None:
            raise no_outcome(factor, what)
        factor, slope = imaged(factor)
        density = self.log_density(factor.draw, factor.site, expressions.text(factor.value))
        if slope is not None:
            density = f"{density} + {expressions.text(slope)}"
        limits = limited(factor)
        if limits is None:
            raise no_tails(factor)
        for case in limits.cases:
            density = expressions.template(where, self.truth(case.when), expressions.text(case.density), density)
        if limits.within is not None and limits.mass is not None:
            inside = f"{density} - {expressions.text(limits.mass)}"
            density = expressions.template(where, self.truth(limits.within), inside, 'float("-inf")')
        if factor.where is not None:
            density = expressions.template(where, self.truth(factor.where), density, "0.0")
        if factor.weight is not None:
            density = f"({expressions.number(factor.weight, expressions.text(factor.weight))} * ({density}))"
        return density

    def truth(self, condition: Expr) -> str:
        """A condition, of which data say 0 or 1."""
        text = self.expressions.text(condition)
        return text if is_truth(condition) else self.expressions.compared("ne", text, "0")

    def total(self, draw: FamilyDraw, site: Site, value: str) -> str:
        """The log density of all elements of a value together."""
        made = self.distribution(draw, site)
        if made is None:
            return self.summed(self.log_density(draw, site, value))
        return self.expressions.template(self.dialect.total_log_prob, made, value)

    def summed(self, density: str) -> str:
        """The sum of log densities."""
        return self.expressions.template(self.dialect.total, density)

    def categories(self, draw: FamilyDraw, site: Site, count: int | str, text: str) -> str:
        """log p of each of the values that a hidden name may have, along a last axis."""
        expressions = self.expressions
        if draw.family == "Categorical":
            (key, _), *_ = draw.args
            if key == "probs":
                expressions.used.add("log_normalised")
                return f"log_normalised({text})"
            return f"({text} - {expressions.template(self.dialect.logsumexp, text, '-1')}[..., None])"
        values = f"(1.0 * {expressions.arange(0, str(count))})"
        template = self._template(draw, site)
        made = expressions.template(template, **{draw.args[0][0]: text})
        return expressions.template(self.dialect.log_prob, made, values)

    def counts(self, low: str, high: str, count: str) -> str:
        """log p of the values of a hidden count from a DiscreteUniform between two bounds, along a last axis."""
        expressions, dialect = self.expressions, self.dialect
        values = f"(1.0 * {expressions.arange(0, count)})"
        inside = f"(({values} >= {low}) & ({values} <= {high}))"
        each = expressions.template(dialect.functions["log"], f"({high} - {low} + 1.0 + 0.0 * {values})")
        return expressions.template(dialect.where, inside, f"(-{each})", '-float("inf")')

    # ------------------------------------------------------------ arguments

    def _template(self, draw: FamilyDraw, site: Site) -> str:
        given = [name for name, _ in draw.args]
        family = FAMILIES[draw.family]
        given += [p.name for p in family.parameters if p.name not in given and self._default(draw, p.name) is not None]
        key = f"{draw.family}({', '.join(sorted(given))})"
        template = self.dialect.families.get(key)
        if template is None:
            raise Refused(draw.origin, f"`{site.name}`: {key} is not exported to {self.dialect.target}")
        return template

    def _of_arrays(self, template: str) -> bool:
        """Whether a template calls functions that take arrays alone."""
        return f"{self.dialect.arrays}." in template or any(f"{name}(" in template for name in self.dialect.helpers)

    @staticmethod
    def _default(draw: FamilyDraw, name: str) -> float | None:
        family = FAMILIES[draw.family]
        (parameter,) = (one for one in family.parameters if one.name == name)
        replaced = {alternative for alternative, _ in parameter.alternatives}
        return None if replaced & {given for given, _ in draw.args} else parameter.default

    def _arguments(self, draw: FamilyDraw, site: Site) -> dict[str, str]:
        family = FAMILIES[draw.family]
        expressions = self.expressions
        found: dict[str, str] = {}
        ranks = {name: p.rank for p in family.parameters for name in (p.name, *(alt for alt, _ in p.alternatives))}
        event = event_dims(site)
        for name, expr in draw.args:
            own = ranks.get(name, 0)
            text = expressions.text(expr)
            if own == 1 and is_constant(expr) and isinstance(expr, Constant) and event:
                text = self.dialect.full.format(expressions.size(event[-1]), text)
            elif name == "probs" and own == 1 and not _is_simplex(expr):
                expressions.used.add("normalised")
                text = f"normalised({text})"
            elif is_constant(expr) and self._of_arrays(self._template(draw, site)):
                text = self.dialect.number.format(text)
            found[name] = text
        for parameter in family.parameters:
            default = self._default(draw, parameter.name)
            if parameter.name not in found and default is not None:
                found[parameter.name] = repr(default)
                if self._of_arrays(self._template(draw, site)):
                    found[parameter.name] = self.dialect.number.format(repr(default))
        found["size"] = expressions.size(event[-1]) if event else "1"
        found["rows"] = expressions.size(event[0]) if event else "1"
        return found


def _is_simplex(expr: Expr) -> bool:
    space = expr.type.space
    return isinstance(space, Constrained) and space.kind == "Simplex"


def stripped(expr: Expr, place: int) -> Expr:
    """An expression without the new axis that stands `place` from its end."""
    if isinstance(expr, Arrange) and len(expr.axes) >= place and expr.axes[-place] is None:
        axes = expr.axes[:-place] + expr.axes[len(expr.axes) - place + 1 :]
        moved = [at for at in axes if at is not None]
        if moved == list(range(len(axes))):
            return expr.base
        return Arrange(type=expr.type, origin=expr.origin, base=expr.base, axes=axes)
    return expr


def axes_of(expr: Expr) -> int:
    """How many axes an argument within a block has, those of the hidden values included."""
    return len(expr.axes) if isinstance(expr, Arrange) else (rank(expr) or 0)
