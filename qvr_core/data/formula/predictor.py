"""A linear predictor: the priors of its coefficients, stated in words, and their sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from qvr_core.data.formula import arithmetic, atoms, smooths
from qvr_core.data.formula.atoms import Numeric
from qvr_core.data.formula.coding import Piece, coded
from qvr_core.data.formula.columns import Column
from qvr_core.data.formula.numbers import short
from qvr_core.data.formula.problems import LeftOut
from qvr_core.data.formula.scale import Place, Scale
from qvr_core.data.formula.syntax import Call, Node, written
from qvr_core.data.formula.terms import Group, Sum, Term
from qvr_core.data.formula.text import Factor, Text, commented, label


class Predictor(Place):
    """One sum of terms as the steps that draw its coefficients, and its text at a row."""

    def __init__(self, formula: Sum, scale: Scale, text: Text, part: str = "", suffix: str = "") -> None:
        super().__init__(text, scale, f"{part}_" if part else "", suffix)
        self.formula = formula
        self.sum: list[str] = []
        self.middles: list[str] = []
        self.intercept: str | None = None
        """Its name, once it is taken."""
        self.present = [written(term[0]) for term in formula.terms if len(term) == 1]

    def written(self, *, intercept: bool = True) -> str:
        """The sum as text; its priors are steps.  `intercept` is False where cutpoints stand for it."""
        at = len(self.text.steps)
        smooth = [term for term in self.formula.terms if len(term) == 1 and _name(term[0]) in atoms.SMOOTH]
        plain = [term for term in self.formula.terms if term not in smooth]
        self._fixed(plain, intercept=self.formula.intercept or not intercept)
        for term in smooth:
            self._try(term[0], lambda one=term[0]: self.sum.append(smooths.written_out(one, self)))
        for node in self.formula.offsets:
            self._try(Call("offset", (node,)), lambda one=node: self.sum.append(self._offset(one)))
        for group in self.formula.groups:
            self._try(group.node, lambda one=group: self._varying(one))
        for node, reason in self.formula.unsaid:
            self._leave_out(written(node), reason)
        if self.formula.intercept and intercept:
            self.text.steps[at:at] = self._intercept()
        return " + ".join(self.sum) or "0.0"

    def _leave_out(self, what: str, reason: str) -> None:
        self.text.steps.append(f"    # left out: {what}: {reason}")
        self.text.left_out.append(f"{what}: {reason}")

    def _try(self, node: Node, write: Callable[[], object]) -> None:
        before = len(self.text.steps)
        try:
            write()
        except LeftOut as reason:
            del self.text.steps[before:]
            self._leave_out(written(node), str(reason))

    def _offset(self, node: Node) -> str:
        found = arithmetic.values(node, self.text.table)
        if np.isnan(found).any() and not self.text.table.problems:
            raise LeftOut("it has missing cells")
        there = arithmetic.said(node, lambda one: self.text.number(self.text.table.columns[one]))
        return there if " " not in there or there.endswith(")") else f"({there})"

    def _intercept(self) -> list[str]:
        at = f" at {', '.join(dict.fromkeys(self.middles))}" if self.middles else ""
        name = self.name(f"{self.part}intercept") if self.intercept is None else self.intercept
        self.sum.insert(0, name)
        prior = f"Normal({short(self.scale.centre)}, {short(self.scale.around)})"
        return [*commented(f"{name}: {self.scale.what}{at}"), f"    sample {name} <- {prior}"]

    # Terms

    def _fixed(self, terms: Sequence[Term], *, intercept: bool) -> None:
        split = [self._split(term) for term in terms]
        spans = [(frozenset(map(written, numbers)), tuple(factors)) for numbers, factors in split]
        level = intercept or any(not numeric and factors for numeric, factors in spans)
        for block in coded(spans, intercept=intercept):
            numbers, factors = split[block.term]
            by_name = dict(zip(spans[block.term][1], factors.values(), strict=True))
            term = terms[block.term]
            before = len(self.text.steps)
            try:
                made = {one: atoms.factor(node, self.text) for one, node in by_name.items()}
                columns = [
                    atoms.numeric(one, self.text, [p for p in self.present if p != written(one)], centred=level)
                    for one in numbers
                ]
                for piece in block.pieces:
                    for several in product(*columns):
                        self._block(several, piece, made)
            except LeftOut as reason:
                del self.text.steps[before:]
                self._leave_out(":".join(map(written, term)), str(reason))

    def _split(self, term: Term) -> tuple[list[Node], dict[str, Node]]:
        numbers = [one for one in term if not atoms.is_factor(one, self.text)]
        return numbers, {written(one): one for one in term if atoms.is_factor(one, self.text)}

    def _block(self, columns: Sequence[Numeric], piece: Piece, made: dict[str, Factor]) -> None:
        """Coefficients for one product of columns, one for each combination of levels."""
        scale = self.scale.wide / float(np.prod([one.sd for one in columns] or [1.0]))
        words = [one.label for one in columns] + [made[one].word for one in piece]
        cells = bool(piece) and not columns and all(piece.values())
        name = self.name("_".join(["mean" if cells else "b", *([self.part[:-1]] if self.part else []), *words]))
        self.middles += [one.middle for one in columns if len(columns) == 1]
        factor = [one.text for one in columns]
        centre = f"Normal({short(self.scale.centre)}, {short(self.scale.around)})"
        prior = centre if cells else f"Normal(0.0, {short(scale)})"
        self.text.say(f"{name}: {self._meaning(columns, piece, made, cells=cells)}")
        if not piece:
            self.text.steps.append(f"    sample {name} <- {prior}")
            self.sum.append(" * ".join([name, *factor]))
            return
        row = self.text.row
        indices, places, loops, tests = list[str](), list[str](), list[str](), list[str]()
        summed = list[tuple[int, Factor]]()
        for number, (one, full) in enumerate(piece.items()):
            letter, levels = self.text.letters[number], made[one]
            if not full:
                self.middles.append(f"{levels.word} {_shown(levels.reference)}") if not levels.summed else None
            if full or levels.summed:
                indices.append(f"{letter} : {levels.levels}")
                places.append(f"{levels.word}[{row}]")
                if levels.summed and not full:
                    summed.append((number, levels))
                continue
            self.text.contrasts(levels)
            indices.append(f"{letter} : {levels.contrast}")
            places.append(letter)
            loops.append(f"{letter} : {levels.contrast}")
            tests.append(f"({levels.word}[{row}] == {letter} + 1)")
        drawn = self.text.free(f"free_{name}") if summed else name
        self.text.steps.append(f"    sample {drawn}[{', '.join(indices)}] <- {prior}")
        for number, levels in summed:
            letters = self.text.letters[: len(indices)]
            other = self.text.letters[len(indices)]
            mean = ", ".join(other if at == number else one for at, one in enumerate(letters))
            here = name if (number, levels) == summed[-1] else self.text.free(f"{name}_free")
            value = f"{drawn}[{', '.join(letters)}] - mean({drawn}[{mean}] for {other} : {levels.levels})"
            self.text.steps.append(f"    let {here}[{', '.join(indices)}] = {value}")
            drawn = here
        if summed:
            self.text.keep.append(name)
        value = " * ".join([f"{name}[{', '.join(places)}]", *tests])
        value = f"sum({value} for {', '.join(loops)})" if loops else value
        self.sum.append(" * ".join([value, *factor]))

    def _meaning(self, columns: Sequence[Numeric], piece: Piece, made: dict[str, Factor], *, cells: bool) -> str:
        levels = [made[one] for one in piece]
        if cells:
            return f"{self.scale.what} at each level of {' and '.join(one.word for one in levels)}"
        against = list[str]()
        for one, full in zip(levels, piece.values(), strict=True):
            if full:
                against.append(f"for each level of {one.word}")
            elif one.summed:
                against.append(f"each level of {one.word} against the mean of all")
            else:
                against.append(f"each level of {one.word} against {_shown(one.reference)}")
        moved = " times ".join(one.size for one in columns)
        if not columns:
            return f"{' and '.join(against)}, by {self.scale.unit} or less, either way"
        far = f"{moved} may well add {self.scale.unit}, either way"
        if len(columns) > 1 and not piece:
            return f"how they go together: {far}"
        return far if not against else f"{far}; {' and '.join(against)}"

    # Groups

    def _effects(self, group: Group) -> list[Numeric]:
        """The columns whose coefficients differ between groups; of factors one for each level coded."""
        found: list[Numeric] = []
        if (
            group.effects.intercept and not any(not self._split(term)[0] for term in group.effects.terms if term)
        ) or group.effects.intercept:
            found.append(Numeric("", "intercept", 1.0, "", ""))
        split = [self._split(term) for term in group.effects.terms]
        spans = [(frozenset(map(written, numbers)), tuple(factors)) for numbers, factors in split]
        for block in coded(spans, intercept=group.effects.intercept):
            numbers, factors = split[block.term]
            made = {one: atoms.factor(node, self.text) for one, node in factors.items()}
            columns = [
                atoms.numeric(one, self.text, [p for p in self.present if p != written(one)], centred=True)
                for one in numbers
            ]
            for piece in block.pieces:
                for several in product(*columns):
                    found += self._indicators(several, piece, made)
        if group.effects.groups or group.effects.offsets or group.effects.series:
            raise LeftOut("groups within groups are written (1 | g/h)")
        return found

    def _indicators(self, columns: Sequence[Numeric], piece: Piece, made: dict[str, Factor]) -> list[Numeric]:
        levels = [
            [(made[one], number) for number in range(0 if full else 1, len(made[one].labels))]
            for one, full in piece.items()
        ]
        sd = float(np.prod([one.sd for one in columns] or [1.0]))
        found = list[Numeric]()
        for chosen in product(*levels):
            tests = [f"({one.word}[{self.text.row}] == {number})" for one, number in chosen]
            words = [one.label for one in columns] + [f"{one.word}_{_plain(one.labels[n])}" for one, n in chosen]
            found.append(Numeric(" * ".join([*(one.text for one in columns), *tests]), "_".join(words), sd, "", ""))
        return found

    def _varying(self, group: Group) -> None:
        """How the levels of a group differ: non-centred, and correlated where there are several effects."""
        columns = [self.text.table.column(one) for one in group.by]
        if any(one is None for one in columns):
            raise LeftOut("there is no such column")
        nested = self._innermost([one for one in columns if one is not None])
        effects = self._effects(group)
        if not effects:
            raise LeftOut("nothing differs between the levels")
        by = "_".join(one.word for one in columns if one is not None)
        there = [self.text.group(one) for one in nested]
        few = any(one.distinct < 6 for one in nested)
        crossed = any(set(other.by).isdisjoint(group.by) for other in self.formula.groups)
        self.text.small_steps(0.995 if few and crossed else 0.99 if few else 0.98 if len(effects) > 1 else 0.95)
        letters = self.text.letters[: len(there)]
        indices = ", ".join(f"{letter} : {levels}" for letter, (_, levels) in zip(letters, there, strict=True))
        place = ", ".join(f"{name}[{self.text.row}]" for name, _ in there)
        said = " and ".join(name for name, _ in there)
        base = f"{self.part}{by}"
        if len(effects) == 1 or not group.correlated:
            centred = len(effects) == 1 and [one.name for one in columns if one is not None] == [*self.scale.centred]
            for one in effects:
                name, sd = self.name(f"{base}_{one.label}"), self.name(f"sd_{base}_{one.label}")
                self.text.steps += [
                    f"    # {sd}: how much the {one.label} differs between levels of {said}",
                    f"    sample {sd} <- HalfNormal({short(self.scale.spread / one.sd)})",
                ]
                if centred and not one.text:
                    self.text.steps += self._about_the_intercept(name, sd, base, indices, letters[0])
                else:
                    self.text.steps.append(f"    sample {name}[{indices}] <- Normal(0.0, {sd}) [noncentred]")
                self.sum.append(" * ".join([f"{name}[{place}]", *([one.text] if one.text else [])]))
            return
        self._correlated(effects, base, said, indices, place, letters)

    def _about_the_intercept(self, name: str, sd: str, base: str, indices: str, letter: str) -> list[str]:
        """The levels of a group as the data tell them, and how they differ from the intercept."""
        self.intercept = self.intercept or self.name(f"{self.part}intercept")
        level = self.name(f"{base}_level")
        self.text.keep.append(name)
        return [
            *commented(f"{level}: drawn about the intercept, since the data tell each level by itself"),
            f"    sample {level}[{indices}] <- Normal({self.intercept}, {sd})",
            f"    let {name}[{indices}] = {level}[{letter}] - {self.intercept}",
        ]

    def _correlated(
        self, effects: list[Numeric], base: str, said: str, indices: str, place: str, letters: list[str]
    ) -> None:
        one, other = self.text.letters[len(letters) : len(letters) + 2]
        names = [self.text.free(f"{effect.label}_{base}") for effect in effects]
        group = "".join(part[:1].upper() + part[1:] for part in base.split("_")) + f"LevelsEffect{self.suffix}"
        self.text.objects[group] = f"object {group} : {{{', '.join(names)}}}"
        spreads = [self.name(f"sd_{base}_{effect.label}") for effect in effects]
        table, cor, z = (self.name(name) for name in (f"effect_{base}", f"cor_{base}", f"{base}_standard"))
        spread = self.name(f"sd_{base}")
        there = ", ".join(letters)
        inner = f"sum({cor}[{one}, {other}] * {z}[{there}, {other}] for {other} : {group})"
        shown = ", ".join(effect.label for effect in effects)
        self.text.steps += [
            f"    # how much {shown} differ between levels of {said}, and go together (LKJ)",
            *(
                f"    sample {name} <- HalfNormal({short(self.scale.spread / effect.sd)})"
                for name, effect in zip(spreads, effects, strict=True)
            ),
            f"    let {spread} = concat({', '.join(spreads)})",
            f"    sample {cor} <- LKJCholesky(2.0) [over={group}]",
            f"    sample {z}[{indices}, {one} : {group}] <- Normal(0.0, 1.0)",
            f"    let {table}[{indices}, {one} : {group}] = {spread}[{one}] * {inner}",
        ]
        self.text.keep.append(table)
        self.sum += [
            " * ".join([f"{table}[{place}, {name}]", *([effect.text] if effect.text else [])])
            for name, effect in zip(names, effects, strict=True)
        ]

    def _innermost(self, columns: list[Column]) -> list[Column]:
        """Of nested groups whose inner labels are nowhere twice the inner one alone: it says the outer."""
        if len(columns) == 1:
            return columns
        rows = list(zip(*(one.series.cast(str).to_list() for one in columns), strict=True))
        inner = {row[-1] for row in rows}
        return [columns[-1]] if len(inner) == len(set(rows)) else columns


def _name(node: Node) -> str:
    return node.name if isinstance(node, Call) else ""


def _plain(text: str) -> str:
    from qvr_core.data.formula.columns import word_of

    return word_of(text).removeprefix("x_") if text[:1].isdigit() else word_of(text)


def _shown(level: str) -> str:
    return label(level)
