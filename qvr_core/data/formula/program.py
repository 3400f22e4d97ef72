"""The whole program of a formula: data with their types, priors on the scale of the data, the draw of the outcome."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from qvr_core.data.column_names import nearest
from qvr_core.data.formula import additions, arithmetic, outcomes, series, syntax
from qvr_core.data.formula.centring import centred_group
from qvr_core.data.formula.columns import Column, Table, table
from qvr_core.data.formula.domains import Domain, domain
from qvr_core.data.formula.families import ALIASES, FAMILIES, Family, Part, moments
from qvr_core.data.formula.imputed import Imputed, imputed
from qvr_core.data.formula.numbers import exact, short
from qvr_core.data.formula.outcomes import TRANSFORMS, Outcome
from qvr_core.data.formula.predictor import Predictor, Scale
from qvr_core.data.formula.problems import LeftOut, WrongFormula
from qvr_core.data.formula.result import Program
from qvr_core.data.formula.syntax import Call, Name, Node, Number, written
from qvr_core.data.formula.terms import Sum, expanded
from qvr_core.data.formula.text import Text, label

WIDTH = 110


def program(formula: str, columns: Mapping[str, pl.Series], family: str | None, name: str) -> Program:
    """Raises `WrongFormula` with all that is wrong where there is no program."""
    known = table(columns)
    sides = syntax.formulas(formula, columns)
    writing = _Writing(formula, sides, known, family)
    made = writing.written(name)
    if known.problems:
        raise WrongFormula("; ".join(known.problems))
    return made


def family_named(name: str) -> tuple[str, str]:
    """The family that a user's word means, and its link where one is said: `bernoulli("probit")`.

    Raises `WrongFormula`.
    """
    head, _, inside = name.partition("(")
    link = inside.strip().rstrip(")").rpartition("=")[2].strip().strip("\"'")
    word = head.strip().lower()
    word = ALIASES.get(word, word)
    if word not in FAMILIES:
        near = nearest(word, [*FAMILIES, *ALIASES])
        guess = f"; did you mean {near}?" if near else ""
        raise WrongFormula(f"--family is one of {', '.join(FAMILIES)}, not {name}{guess}")
    usual = {"identity": "identity", "log": "log", "logit": "logit", "ordered": "logit"}[FAMILIES[word].link]
    if link and link != usual:
        raise WrongFormula(f"--family {word} has the link {usual}, and no program with the link {link} yet")
    return word, link


class _Writing:
    def __init__(self, formula: str, sides: list[tuple[Node, Node]], known: Table, family: str | None) -> None:
        self.formula, self.sides, self.table = " ".join(formula.split()), sides, known
        found = outcomes.outcome(sides[0][0], known)
        spoken = [one for side in sides for half in side for one in syntax.names(half)]
        parts = {"sigma", "nu", "shape", "phi", "zi", "hu", "dispersion"}
        for one in spoken:
            if one not in parts or one in known.columns:
                known.column(one)
        if found is None or known.problems:
            raise WrongFormula("; ".join(known.problems))
        self.outcome: Outcome = found
        self.kind = family_named(family)[0] if family is not None else outcomes.guessed(found)
        self.family: Family = FAMILIES[self.kind]
        if wrong := outcomes.problem(found, self.kind):
            raise WrongFormula(wrong)
        if self.kind == "binomial" and found.trials is None:
            raise WrongFormula(f"--family binomial wants the trials: `{found.column.word} | trials(n) ~ …`")
        self.text = Text(known)
        self.complete: list[Column] = []
        self.means = "mean" if self.family.link == "identity" else "eta"

    # The whole

    def written(self, name: str) -> Program:
        text, row = self.text, self.text.row
        y = self._declare_outcome()
        right = self._expanded(self.sides[0][1])
        also = dict[str, Node]()
        fills = list[tuple[Outcome, Node]]()
        for left, side in self.sides[1:]:
            if isinstance(left, Name) and left.text in self.family.parts:
                also[left.text] = side
            elif isinstance(left, syntax.Binary) and (found := outcomes.outcome(left, self.table)) is not None:
                fills.append((found, side))
            else:
                parts = ", ".join(self.family.parts) or "no other parameter"
                text.left_out.append(f"{written(left)} ~ …: --family {self.kind} has {parts}")
                text.steps.append(f"    # left out: {text.left_out[-1]}")
        if self.kind == "categorical":
            self._categories(right)
            draw = f"Categorical(logits=logits[{row}])"
        else:
            mean = Predictor(right, self._scale(right), text).written(intercept=self.kind != "cumulative")
            if self.kind == "cumulative":
                self._cuts()
            text.steps.append(_broken(f"    let {self.means}[{text.running}] = ", mean))
            draw = self._draw(self._parts(also), self._series(right, y))
        for found, side in fills:
            self._filled_by(found, side)
        self._filled()
        options = self._options()
        last = [f"    observe {y}[{text.running}] <- {draw}{options}", f"    return {y}"]
        return self._assembled(name, last)

    def _assembled(self, name: str, last: list[str]) -> Program:
        text = self.text
        head = f"# {self.formula}: {self.kind}. Every prior is stated; change what you know better."
        lines = [head, f"object {text.rows} : FinSet _", *text.objects.values(), ""]
        for one in text.defined:
            lines += [*one.rstrip("\n").split("\n"), ""]
        lines.append(f"program {name} : {text.rows} -> {text.rows} [keep=[{', '.join(dict.fromkeys(text.keep))}]]")
        plain = [word for word, (element, column) in text.data.items() if not element and column not in self._noted]
        for word, (element, column) in text.data.items():
            if word in plain:
                continue
            note = f"  # {self._noted[column]}" if column in self._noted else ""
            lines.append(f"    data {word} : {text.rows}{f' -> {element}' if element else ''}{note}")
        if plain:
            lines += [f"    data {', '.join(plain[at : at + 12])} : {text.rows}" for at in range(0, len(plain), 12)]
        lines += ["", *text.ordered_steps(), *last, "", f"export {name}", ""]
        renamed = {word: column for word, (_, column) in text.data.items() if word != column}
        incomplete = {one.name: one.gaps for one in self.complete if one.gaps}
        return Program(
            "\n".join(lines), renamed, tuple(text.told), tuple(text.left_out), incomplete, text.target_accept
        )

    @property
    def _noted(self) -> dict[str, str]:
        """Comments behind data, by column."""
        return {
            column.name: f"{column.gaps} of {self.table.rows} missing"
            for column in [*self.text.imputed.values(), self.outcome.column]
            if column.gaps
        }

    # The outcome

    def _declare_outcome(self) -> str:
        column, element = self.outcome.column, self.family.element
        if element == "levels":
            self.levels = column.labels
            element = self.text.enumerated(column, self.levels)
        elif self.kind == "bernoulli" and column.kind == "factor":
            element = self.text.enumerated(column, column.labels)
        elif self.outcome.transform in TRANSFORMS:
            element = "Real 1 [low=0.0]" if TRANSFORMS[self.outcome.transform].bound else ""
        return self.text.datum(column, element)

    def _expanded(self, right: Node) -> Sum:
        others = list[str]()
        if _has_dot(right):
            left = {one for half, _ in self.sides for one in syntax.names(half)}
            without = expanded(right)
            apart = [*(group.node for group in without.groups), *without.offsets, *without.series]
            spoken = left | {one for node in apart for one in syntax.names(node)}
            reasons = list[str]()
            for column in self.table.columns.values():
                if column.name in spoken:
                    continue
                if reason := column.identity:
                    reasons.append(f"{column.name} ({reason})")
                else:
                    others.append(column.name)
            if reasons:
                self.text.told.append(f"`.` does not stand for {', '.join(reasons)}")
        found = expanded(right, others)
        for group in found.groups:
            self.complete += [self.table.columns[one] for one in group.by if one in self.table.columns]
        for term in found.terms:
            for atom in term:
                self._complete_of(atom)
        for node in found.offsets:
            self.complete += [self.table.columns[one] for one in syntax.names(node) if one in self.table.columns]
        return found

    def _complete_of(self, atom: Node) -> None:
        """Factors and truth values have to be there in every row; numbers are filled in."""
        for one in syntax.names(atom):
            column = self.table.columns.get(one)
            factored = isinstance(atom, Call) and atom.name in ("factor", "C", "as.factor", "mo")
            if column is not None and (column.kind != "number" or column.binary or factored):
                self.complete.append(column)

    def _scale(self, right: Sum) -> Scale:
        found = outcomes.transformed(self.outcome, self.kind)
        offset = 0.0
        for node in right.offsets:
            try:
                offset += float(np.nanmean(arithmetic.values(node, self.table)))
            except LeftOut:
                continue
        if self.family.link == "identity":
            mean, sd = (0.0, 1.0) if self.outcome.transform in ("scale",) else moments(found)
            mean = 0.0 if self.outcome.transform == "center" else mean
            what = f"{self.outcome.transform}({self.outcome.column.word})" if self.outcome.transform else "the outcome"
            what = f"the log of {self.outcome.column.word}" if self.family.log_scale else what
            centre = mean - offset
            if not right.intercept:
                sd = max(sd, float(np.sqrt(mean**2 + sd**2)) / 2.5)
            return Scale(what, centre, 2.5 * sd, 2.5 * sd, sd, f"2.5 sd of {what}")
        if self.family.link == "log":
            mean, _ = moments(found)
            what = f"the log of the mean of {self.outcome.column.word}"
            if self.kind == "weibull":
                what = f"the log of the time by which 63 % of {self.outcome.column.word} have ended"
            return Scale(what, _log(mean) - offset, 1.5, 1.0, 0.5, "1 on the log scale (a factor of 2.7)")
        what = "the log odds of a higher level" if self.family.link == "ordered" else "the log odds"
        return Scale(what, -offset, 2.5, 2.5, 1.0, "2.5 log odds", self._centred(right))

    def _centred(self, right: Sum) -> frozenset[str]:
        """The one group of an outcome of many trials, where it is drawn about the intercept."""
        if self.kind != "binomial" or not right.intercept or self.outcome.trials is None:
            return frozenset()
        return centred_group(right, self.table, self.outcome.column, self.outcome.trials)

    def _parts(self, also: Mapping[str, Node]) -> dict[str, str]:
        """The other parameters of the family, as text at the row."""
        mean, sd = moments(outcomes.transformed(self.outcome, self.kind))
        if self.outcome.transform == "scale":
            mean, sd = 0.0, 1.0
        return {name: self._part(name, part, also.get(name), mean, sd) for name, part in self.family.parts.items()}

    def _part(self, name: str, part: Part, side: Node | None, mean: float, sd: float) -> str:
        text, row = self.text, self.text.row
        site = text.free(name)
        if side is None:
            text.steps.append(f"    # {site}: {part.meaning}")
            text.steps.append(f"    sample {site} <- {part.prior(mean, sd)}")
            return site
        right = self._expanded(side)
        odds = part.link == "logit"
        unit = "1.5 log odds" if odds else "1 on the log scale (a factor of 2.7)"
        what = f"the {'log odds' if odds else 'log'} of {site} ({part.meaning})"
        wide = 1.5 if odds else 1.0
        total = Predictor(right, Scale(what, part.start(mean, sd), wide, wide, 0.5, unit), text, site).written()
        link = "sigmoid" if odds else "exp"
        text.steps.append(_broken(f"    let {site}[{text.running}] = {link}(", total, ")"))
        return f"{site}[{row}]"

    def _draw(self, parts: Mapping[str, str], series: str) -> str:
        row = self.text.row
        mean = f"{self.means}[{row}]{series}"
        words = {"mean": mean, **parts}
        if self.kind == "binomial":
            words["trials"] = self._trials()
        draw = self.family.draw
        transform = self.outcome.transform
        if transform in TRANSFORMS and self.kind in ("normal", "student"):
            if (transform, self.kind) == ("log", "normal"):
                draw = "LogNormal({mean}, {sigma})"
            else:
                name, lines = outcomes.declared(TRANSFORMS[transform], self.kind)
                self.text.defined.append(lines)
                free = "{nu}, " if self.kind == "student" else ""
                draw = f"{name}({free}{{mean}}, {{sigma}})"
        elif transform in TRANSFORMS:
            self._leave_out(f"{transform}({self.outcome.column.word})", f"--family {self.kind} has its own scale")
        if transform in ("scale", "center"):
            middle, sd = moments(self.outcome.column.numbers)
            by = f"{exact(sd)} * " if transform == "scale" else ""
            words["mean"] = f"{exact(middle)} + {by}{mean if not series else f'({mean})'}"
            if by and "sigma" in words:
                words["sigma"] = f"{by}{words['sigma']}"
        if "se" in self.outcome.additions and self.kind in ("normal", "student"):
            node = self.outcome.additions["se"].arguments
            if node and isinstance(node[0], Name):
                column = self.table.columns[node[0].text]
                self.complete.append(column)
                words["sigma"] = f"sqrt({words['sigma']}^2 + {self.text.datum(column)}[{row}]^2)"
        if self.family.declared:
            self.text.defined.append(self.family.declared)
        return draw.format(**words)

    def _trials(self) -> str:
        match self.outcome.trials:
            case Number(value):
                return f"{value:.0f}"
            case Name(name):
                column = self.table.columns[name]
                self.complete.append(column)
                return f"{self.text.datum(column, 'Nat')}[{self.text.row}]"
            case other:
                raise WrongFormula(f"trials are a column or a number, not `{written(other) if other else ''}`")

    def _leave_out(self, what: str, reason: str) -> None:
        self.text.steps.append(f"    # left out: {what}: {reason}")
        self.text.left_out.append(f"{what}: {reason}")

    # Levels

    def _cuts(self) -> None:
        order = ", ".join(map(label, self.levels))
        column = self.outcome.column
        if column.kind == "factor":
            held = self.text.data[column.word][0]
            self.text.told.append(
                f"{column.name} ascends in the order of the alphabet, {order}: where another is meant, write the "
                f"labels in that order in `object {held}` of the program"
            )
        self.text.steps += [
            f"    # cuts: where one level of {self.outcome.column.word} ends and the next begins, in the order {order}",
            f"    sample cuts : Ordered {len(self.levels) - 1} <- Normal(0.0, 3.0)",
        ]

    def _categories(self, right: Sum) -> None:
        """A predictor for each level but the first, whose log odds are against the first."""
        text, row = self.text, self.text.row
        levels = self.text.data[self.outcome.column.word][0]
        value = "0.0"
        first, at = self.levels[0], text.letters[-1]
        for number, level in reversed(list(enumerate(self.levels))[1:]):
            from qvr_core.data.formula.columns import word_of

            suffix = f"_{word_of(level)}"
            scale = Scale(f"the log odds of {label(level)} against {label(first)}", 0.0, 2.5, 2.5, 1.0, "2.5 log odds")
            total = Predictor(right, scale, text, suffix=suffix).written()
            text.steps.append(_broken(f"    let eta{suffix}[{text.running}] = ", total))
            value = f"where({at} == {number}, eta{suffix}[{row}], {value})"
        text.steps.append(f"    let logits[{text.running}, {at} : {levels}] = {value}")

    # Series

    def _series(self, right: Sum, y: str) -> str:
        """What `ar(p=1)` adds to the mean: shares of the residuals before."""
        found = ""
        for node in right.series:
            try:
                found += series.autoregression(node, y, self.outcome, self.kind, self.means, self.text)
            except LeftOut as reason:
                self._leave_out(written(node), str(reason))
        return found

    # Missing cells, censoring

    def _filled_by(self, found: Outcome, side: Node) -> None:
        """`bmi | mi() ~ x`: missing cells by a regression of their own."""
        column, row = found.column, self.text.row
        family = self._imputed_as(column)
        right = self._expanded(side)
        steps, self.text.steps = self.text.steps, []
        scale = Scale(family.what, family.mean, 2.5 * family.sd, 2.5 * family.sd, family.sd, f"2.5 sd of {family.what}")
        name = self.text.free(f"{family.word}_mean")
        total = Predictor(right, scale, self.text, column.word).written()
        spread = self.text.free(f"{family.word}_sd")
        self.text.steps += [
            f"    sample {spread} <- HalfNormal({short(family.sd)})",
            _broken(f"    let {name}[{self.text.running}] = ", total),
            family.observed(self.text.running, f"{name}[{row}]", spread),
        ]
        self.text.datum(column)
        self.text.filled.append("\n".join(self.text.steps))
        self.text.steps = steps
        self.text.imputed.pop(column.word, None)

    def _filled(self) -> None:
        for word, column in self.text.imputed.items():
            family = self._imputed_as(column)
            centre, spread = self.text.free(f"{family.word}_mean"), self.text.free(f"{family.word}_sd")
            self.text.told.append(f"{column.gaps} missing cells of {column.name} are filled in (imputed)")
            self.text.filled.append(
                f"    # {word}: its {column.gaps} missing cells are drawn with everything else, like the others\n"
                f"    sample {centre} <- Normal({short(family.mean)}, {short(family.sd)})\n"
                f"    sample {spread} <- HalfNormal({short(family.sd)})\n"
                + family.observed(self.text.running, centre, spread)
            )

    def _imputed_as(self, column: Column) -> Imputed:
        where = domain(column, [side for _, side in self.sides], self.table)
        if where is Domain.NONE:
            self.complete.append(column)
        return imputed(column, where)

    def _options(self) -> str:
        found = list[str]()
        for name, node in self.outcome.additions.items():
            try:
                found += additions.options(name, node, self.complete, self.text)
            except LeftOut as reason:
                self._leave_out(written(node), str(reason))
        if gaps := self.outcome.column.gaps:
            found.append("missing=drop")
            self.text.told.append(f"{gaps} rows without {self.outcome.column.name} count for nothing ([missing=drop])")
        return f" [{', '.join(found)}]" if found else ""


def _log(value: float) -> float:
    return float(np.log(max(value, 1e-6)))


def _has_dot(node: Node) -> bool:
    match node:
        case Name(text):
            return text == "."
        case syntax.Binary(_, left, right):
            return _has_dot(left) or _has_dot(right)
        case _:
            return False


def _broken(start: str, total: str, end: str = "") -> str:
    """A sum over as many lines as it wants."""
    lines, line = list[str](), start
    for number, part in enumerate(_summands(total)):
        more = f"{' + ' if number else ''}{part}"
        if number and len(line) + len(more) > WIDTH:
            lines.append(f"{line} +")
            line = f"        {part}"
        else:
            line += more
    return "\n".join([*lines, f"{line}{end}"])


def _summands(total: str) -> list[str]:
    """The parts of a sum between plus signs that stand in no bracket."""
    found, depth, start = list[str](), 0, 0
    for at, mark in enumerate(total):
        depth += (mark in "([{") - (mark in ")]}")
        if depth == 0 and total.startswith(" + ", at):
            found.append(total[start:at])
            start = at + 3
    return [*found, total[start:]]
