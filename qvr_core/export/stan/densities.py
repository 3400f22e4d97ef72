"""Families in Stan: the log density of one element of a draw."""

from __future__ import annotations

import re

from qvr_core.export.refusals import Refused, no_gate, no_outcome, no_tails
from qvr_core.export.stan.elements import Elements, Places, number
from qvr_core.export.stan.family_functions import FamilyFunctions
from qvr_core.export.stan.places import ALL, BEFORE, EQUAL, PRODUCT, SUM, TERNARY, Text
from qvr_core.export.stan.tables import FAMILIES, HELPERS
from qvr_core.lowered.axes import event_dims
from qvr_core.lowered.censoring_and_truncation import limited
from qvr_core.lowered.declared_families import family_of_file, given
from qvr_core.lowered.factors import Factor
from qvr_core.lowered.gates import gated, is_gated
from qvr_core.lowered.mixtures import components
from qvr_core.lowered.outcomes import imaged, unsaid
from qvr_core.semantics.language.declared_families import facts_of_draw
from qvr_core.semantics.language.families import FAMILIES as LANGUAGE
from qvr_core.semantics.language.mixtures import component_names
from qvr_core.semantics.types.model.expressions import Arrange, Bound, Data, Expr, Window
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import Site
from qvr_core.semantics.types.spaces import Constrained


class Densities:
    """Log densities of draws, one element at a time."""

    def __init__(self, elements: Elements) -> None:
        self.elements = elements
        self.families = FamilyFunctions(elements)

    def of(self, draw: FamilyDraw, site: Site, value: str, at: Places, *, summed: bool = False) -> Text:
        """The log density of an element: `value` as a text, `at` the places of the arguments' elements.  Where its
        hidden values are summed out (`summed`), a probability of 0 stays finite."""
        if is_gated(draw):
            return self._gated(draw, site, value, at)
        if component_names(draw.family):
            return self._mixed(draw, site, value, at)
        if (own := family_of_file(draw)) is not None:
            texts = ", ".join(self.elements.text(one, at) for one in given(draw, own))
            return Text(f"{self.families.called(own)}({value} | {texts})")
        key, template, more = self._entry(draw, site)
        arguments = self._arguments(draw, site, at)
        if key == "Categorical(probs)" and (summed or not _is_simplex(draw.args[0][1])):
            return Text(f"{self.elements.helped('log_normalised', arguments['probs'])}[{value}]")
        if key == "Bernoulli(probs)" and summed:
            p = arguments["probs"]
            chance = Text(f"{value} == 1 ? {p} : 1 - ({p})", TERNARY)
            return Text(self.elements.helped("log_clamped", chance.text))
        text = template.format(value=value, **arguments)
        elements = self.elements
        elements.used |= {name for name in HELPERS if f"{name}(" in template}
        elements.used |= {"log_clamped"} if "normal_mixture_lpdf" in elements.used else set()
        return Text(f"{text} + {more}", SUM) if more else Text(text)

    def _mixed(self, draw: FamilyDraw, site: Site, value: str, at: Places) -> Text:
        """That of a mixture of families."""
        elements = self.elements
        (key, expr), parts = components(draw)
        row = elements.row(expr, (*at, ALL), str(len(parts)))
        weights = f"log_softmax({row})" if key == "logits" else elements.helped("log_normalised", row)
        each = [
            f"{weights}[{number}] + {self.of(part, site, value, at).at(SUM)}" for number, part in enumerate(parts, 1)
        ]
        return Text(f"log_sum_exp({{{', '.join(each)}}})")

    def _gated(self, draw: FamilyDraw, site: Site, value: str, at: Places) -> Text:
        """That of counts behind a gate."""
        known, elements = gated(draw), self.elements
        if known is None:
            raise no_gate(draw, site, "Stan")
        counts = f"{self.of(known.counts, site, value, at).at(SUM)} + {elements.of(known.more, at).at(SUM)}"
        return Text(f"{value} == 0 ? {elements.of(known.zero, at).at(SUM)} : {counts}", TERNARY)

    def added(self, factor: Factor, at: Places, target: str, *, summed: bool = False) -> list[str]:
        """Lines that add the density of an element to a target, as far as it counts."""
        if (what := unsaid(factor)) is not None:
            raise no_outcome(factor, what)
        factor, slope = imaged(factor)
        elements, limits = self.elements, limited(factor)
        if limits is None:
            raise no_tails(factor)

        def line(text: Text) -> str:
            if limits.mass is not None:
                text = Text(f"{text.at(SUM)} - {elements.of(limits.mass, at).at(PRODUCT)}", SUM)
            if factor.weight is not None:
                text = Text(f"{elements.of(factor.weight, at).at(PRODUCT)} * ({text.text})", PRODUCT)
            return f"{target} += {text.text};"

        with elements.apart() as before:
            exact = self.of(factor.draw, factor.site, self._value(factor, at), at, summed=summed)
            if slope is not None:
                exact = Text(f"{exact.at(SUM)} + {elements.of(slope, at).at(SUM)}", SUM)
            lines = [line(exact)]
            for case in limits.cases:
                known = line(elements.of(case.density, at))
                lines = _branched(self._truth(case.when, at), [known], lines)
            if limits.within is not None:
                lines = _branched(self._truth(limits.within, at), lines, [f"{target} += negative_infinity();"])
            if factor.where is not None:
                lines = _branched(self._truth(factor.where, at), lines, [])
        return [*before, *lines]

    def _truth(self, condition: Expr, at: Places) -> str:
        """A condition, of which data say 0 or 1."""
        text = self.elements.of(condition, at)
        return text.text if self.elements.shapes.is_truth(condition) else f"{text.at(EQUAL)} != 0"

    def _value(self, factor: Factor, at: Places) -> str:
        """An element that has a density: a number, or all of a vector."""
        vector = facts_of_draw(factor.draw).event
        if self.elements.shapes.is_code(factor.value):
            return str(self.elements.code(factor.value, at))
        text = self.elements.text(factor.value, (*at, *[ALL] * vector))
        return re.sub(r"\[\0(, \0)*\]|(, \0)+(?=\])", "", text)

    def along(self, draw: FamilyDraw, site: Site, name: str, at: Places, count: str) -> str | None:
        """The log density of all elements in one call, where each argument is a vector or one number."""
        if is_gated(draw) or draw.declared or component_names(draw.family):
            return None
        _, template, more = self._entry(draw, site)
        family = LANGUAGE[draw.family]
        name_of = re.match(r"(\w+_lp[dm]f)\(", template)
        if name_of is None or name_of[1] in HELPERS or family.event:
            return None
        if draw.family in ("Categorical", "OrderedLogistic"):
            return None
        with self.elements.apart() as lines:
            arguments = self._arguments(draw, site, at)
        if lines:
            return None
        for key, text in arguments.items():
            if len(at) == 1 and (plain := text.removesuffix(f"[{at[0]}]")).isidentifier():
                arguments[key] = plain
            if any(_mentions(arguments[key], str(place)) for place in at):
                return None
        text = template.format(value=name, **arguments)
        return f"{text} + {count} * {more}" if more else text

    def probabilities(self, draw: FamilyDraw, site: Site, at: Places, count: str) -> str:
        """log p of each value that a hidden name may have, as a vector; `at` are the places, and the value before."""
        elements = self.elements
        at = (*at, BEFORE)  # the axis of the values, which a probability of them does not read
        (key, expr), *_ = draw.args
        if draw.family == "Categorical":
            row = elements.row(expr, (*at, ALL), count)
            if key == "probs":
                return elements.helped("log_normalised", row)
            return f"log_softmax({row})"
        if draw.family == "Bernoulli":
            p = elements.of(expr, at)
            chance = f"inv_logit({p.text})" if key == "logits" else p.at(SUM + 1)
            return elements.helped("log_normalised", f"[1 - {chance}, {chance}]'")
        if draw.family == "DiscreteUniform":
            low, high = (elements.of(dict(draw.args)[name], at).text for name in ("low", "high"))
            return elements.helped("uniform_counts", f"{low}, {high}, {count}")
        raise Refused(site.origin, f"`{site.name}`: only Categorical and Bernoulli are summed out in Stan")

    def possible(self, factor: Factor, at: Places) -> str | None:
        """What must hold for an element to have a density where Stan would stop: a count at most its total."""
        name = facts_of_draw(factor.draw).counts_to
        if name is None:
            return None
        total = self._arguments(factor.draw, factor.site, at)[name]
        return f"{self._value(factor, at)} <= {total}"

    # ------------------------------------------------------------ arguments

    def _entry(self, draw: FamilyDraw, site: Site) -> tuple[str, str, str]:
        given = [name for name, _ in draw.args]
        given += [p.name for p in LANGUAGE[draw.family].parameters if p.name not in given and _default(draw, p.name)]
        key = f"{draw.family}({', '.join(sorted(given))})"
        found = FAMILIES.get(key)
        if found is None:
            raise Refused(draw.origin, f"`{site.name}`: {key} is not exported to Stan")
        return key, *found

    def _arguments(self, draw: FamilyDraw, site: Site, at: Places) -> dict[str, str]:
        elements = self.elements
        parameters = LANGUAGE[draw.family].parameters
        ranks = {name: p.rank for p in parameters for name in (p.name, *(other for other, _ in p.alternatives))}
        event = event_dims(site)
        found: dict[str, str] = {}
        for name, expr in draw.args:
            match ranks.get(name, 0):
                case 0:
                    found[name] = elements.text(expr, at) if draw.family != "ICAR" else _plain(expr, elements)
                case 1 if draw.family == "ICAR":
                    found[name] = _plain(expr, elements)
                case 1:
                    size = (elements.shapes.of(expr) or ("1",))[-1]
                    if size == "1" and event:
                        size = elements.shapes.size(event[-1])
                    found[name] = elements.row(expr, (*at, ALL), size)
                case _:
                    found[name] = _plain(expr, elements)
        for parameter in parameters:
            default = _default(draw, parameter.name)
            if parameter.name not in found and default:
                found[parameter.name] = default
        return found


def _default(draw: FamilyDraw, name: str) -> str:
    """The text of an argument that is left out; '' where there is none."""
    (parameter,) = (one for one in LANGUAGE[draw.family].parameters if one.name == name)
    replaced = {alternative for alternative, _ in parameter.alternatives}
    if replaced & {given for given, _ in draw.args} or parameter.default is None:
        return ""
    return number(parameter.default).text


def _plain(expr: Expr, elements: Elements) -> str:
    """A matrix or table that has a name."""
    base = expr
    while isinstance(base, Arrange | Window):
        if isinstance(base, Window) and (base.first or base.shift):
            raise elements.shapes.refused(expr, "a matrix that changes with its element")
        if isinstance(base, Arrange) and [axis for axis in base.axes if axis is not None] != [0, 1]:
            raise elements.shapes.refused(expr, "a matrix that is turned")
        base = base.base
    if not isinstance(base, Bound | Data) or len(elements.shapes.known.get(base.name, ())) != 2:
        raise Refused(expr.origin, "a matrix without a name cannot be said in Stan", "give it one: `let C[i, j] = …`")
    return elements.names[base.name]


def _is_simplex(expr: Expr) -> bool:
    space = expr.type.space
    return isinstance(space, Constrained) and space.kind == "Simplex"


def _mentions(text: str, word: str) -> bool:
    return re.search(rf"\b{word}\b", text) is not None


def _branched(condition: str, then: list[str], other: list[str]) -> list[str]:
    lines = [f"if ({condition}) {{", *(f"  {line}" for line in then)]
    return [*lines, "} else {", *(f"  {line}" for line in other), "}"] if other else [*lines, "}"]
