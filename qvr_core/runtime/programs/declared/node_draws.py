"""What the nodes of a batch of terms draw, while an encoder goes over them.

Each draw of a case is made once by every node of its constructor, and their noise is one tensor (B, nodes, …): each row
has as many entries as the row with the most nodes of that constructor.  An entry of no node is noise like any other,
drawn and scored with an argument of 0.5: so all noise has one density, which adds up to 1, and a chain may move all of
it; nothing reads the entry.  A root's own draw has noise of its own, `…@last`: given all below it, its density is that
of the term's code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from qvr_core.arrays.engine import Generator, Tensor, arrays
from qvr_core.runtime.arrows.normal_chain import standard_density
from qvr_core.runtime.families import standard_noise
from qvr_core.runtime.programs.declared.collected_parts import CollectedParts
from qvr_core.runtime.programs.declared.term_levels import Group, Levels
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Value
from qvr_core.runtime.values.drawing import Parts
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.layout import dummy, from_parts, parts
from qvr_core.runtime.values.precision import precision
from qvr_core.semantics.terms.written import CONSTRUCTOR
from qvr_core.semantics.types.model.expressions import Apply
from qvr_core.semantics.types.model.terms import EncoderCase
from qvr_core.semantics.types.walk import draws_of

LAST = "@last"


class Draw:
    """One draw of a case.  `root` is the arrow where the case ends in it, as the density of the code is that of this
    draw at the root; `inner` is the arrow where others read what it gives."""

    def __init__(self, arrow: ArrowModule, constructor: int, *, last: bool) -> None:
        self.inner = arrow.as_innovation()
        self.root = arrow if last and arrow.has_density else None
        self.constructor = constructor

    def as_innovation(self) -> Draw:
        """This draw where nothing is summed out at the root either."""
        return Draw(self.inner, self.constructor, last=self.root is not None)

    @cached_property
    def specs(self) -> list[NoiseSpec]:
        """The noise of one node, (1, …)."""
        return self.inner.noise_specs(dummy(self.inner.domain.space, (1,)))

    @cached_property
    def root_specs(self) -> list[NoiseSpec]:
        """The noise of one root, (1, …)."""
        return [] if self.root is None else self.root.noise_specs(dummy(self.root.domain.space, (1,)))


class Draws:
    """All draws of an encoder's cases by the identity of what applies the arrow, with the names of their noise."""

    def __init__(self, each: Mapping[int, Draw]) -> None:
        self.each = each
        named = Parts([one.inner for one in each.values()])
        self._inner: dict[int, dict[str, str]] = {}
        self._root: dict[int, dict[str, str]] = {}
        for number, (key, one) in enumerate(each.items()):
            paths, ends = one.inner.paths, () if one.root is None else one.root.paths
            self._inner[key] = dict(zip(paths, named.outer_paths(number, paths), strict=True))
            self._root[key] = {path: self._inner[key][path] + LAST for path in ends}
        self.paths = tuple(name for names in (*self._inner.values(), *self._root.values()) for name in names.values())
        self.dense = frozenset(one.constructor for one in each.values() if one.root is not None)
        """The constructors whose cases end in a draw that has a density."""

    def inner_names(self, key: int) -> Mapping[str, str]:
        """What the noise of a draw is called, by its path in the arrow."""
        return self._inner[key]

    def root_names(self, key: int) -> Mapping[str, str]:
        """What the noise of a draw is called that a root makes, by its path in the arrow."""
        return self._root[key]

    def noise_specs(self, levels: Levels) -> list[NoiseSpec]:
        """The noise of all draws on these terms."""
        rows = len(levels.flat) // levels.nodes
        found: list[NoiseSpec] = []
        for key, one in self.each.items():
            count = most_entries(entries(one, levels))
            for spec in one.specs:
                name = self._inner[key][spec.path]
                found.append(NoiseSpec(name, (rows, count, *spec.shape[1:]), spec.base, final=False))
            made = levels.flat[:: levels.nodes, CONSTRUCTOR] == one.constructor
            for spec in one.root_specs:
                name = self._root[key][spec.path]
                found.append(NoiseSpec(name, (rows, *spec.shape[1:]), spec.base, spec.final, made))
        return found

    def as_innovation(self) -> Draws:
        """These draws where nothing is summed out at the root either; themselves where nothing is."""
        if all(one.root is None or one.root is one.inner for one in self.each.values()):
            return self
        return Draws({key: one.as_innovation() for key, one in self.each.items()})


def draws_of_cases(cases: Sequence[EncoderCase], constructors: Sequence[str], made: CollectedParts) -> Draws:
    """The draws of an encoder of a type with these constructors."""
    found: dict[int, Draw] = {}
    for case in cases:
        for one in draws_of(case.body):
            place = constructors.index(case.constructor)
            found[id(one)] = Draw(made.arrow(one.arrow), place, last=one is case.body)
    return Draws(found)


class _Made(NamedTuple):
    """Nodes that have drawn: their entries, (n,) each, and their noise by its name, (n, …)."""

    rows: Tensor
    entries: Tensor
    noise: Mapping[str, Tensor]


class NodeDraws:
    """One evaluation of an encoder: noise that is given or drawn, and the densities so far, each (B,).

    `log_prob` is that of the codes of roots that end in a draw, `log_innovations` that of all noise below them,
    `log_final` that of the roots' own; `score` is that of draws without reparameterisation.
    """

    def __init__(
        self,
        draws: Draws,
        levels: Levels,
        noise: Noise | None,
        generator: Generator | None,
        *,
        scored: bool,
        codes: Tensor | None = None,
    ) -> None:
        """`codes` (B, width) are the roots' codes where they are known, and to be scored.  Raises `InputProblem` where
        noise has too few entries."""
        self.draws, self.levels, self.noise, self.generator = draws, levels, noise or {}, generator
        self.scored, self.codes = scored, codes
        self.rows = len(levels.flat) // levels.nodes
        self._made: dict[tuple[int, bool], list[_Made]] = {}
        self._entries = {key: entries(draw, levels) for key, draw in draws.each.items()}
        self.log_prob = self.log_innovations = self.log_final = arrays.zeros(
            self.rows, dtype=precision(), device=levels.flat.device
        )
        self.score: Tensor | None = None
        for key, draw in draws.each.items():
            self._check(draw.specs, draws.inner_names(key), self._count(key))
            self._check(draw.root_specs, draws.root_names(key), None)

    def _count(self, key: int) -> int:
        """How many entries a row has for a draw below the root."""
        return most_entries(self._entries[key])

    def _check(self, specs: Sequence[NoiseSpec], names: Mapping[str, str], count: int | None) -> None:
        for spec in specs:
            given = self.noise.get(names[spec.path])
            wanted = (self.rows, *(() if count is None else (count,)), *spec.shape[1:])
            if given is None or tuple(given.shape) == wanted:
                continue
            longer = count is not None and given.ndim == len(wanted) and given.shape[1] >= count
            if not longer or (given.shape[0], *given.shape[2:]) != (wanted[0], *wanted[2:]):
                message = f"the noise `{names[spec.path]}` is {tuple(given.shape)}, and these terms want {wanted}"
                raise InputProblem(message)

    # ------------------------------------------------------------ while the nodes are gone over

    def draw(self, group: Group, level: int, one: Apply, x: Value) -> Value:
        """What the nodes of a group draw; where they are roots whose codes are known, these."""
        key = id(one)
        draw, rows = self.draws.each[key], group.nodes // self.levels.nodes
        root = draw.root if level == 0 else None
        arrow = root or draw.inner
        names = self.draws.inner_names(key) if root is None else self.draws.root_names(key)
        entries = self._entries[key][group.nodes] if root is None else arrays.zeros_like(rows)
        given: dict[str, Tensor] = {}
        for path, name in names.items():
            if name in self.noise:
                given[path] = self.noise[name][rows] if root is not None else self.noise[name][rows, entries]
        if root is not None and self.codes is not None:
            self._made.setdefault((key, True), []).append(_Made(rows, entries, {}))
            log_prob, inner = root.densities(x, self.codes[rows], given)
            self.log_prob = _added(self.log_prob, rows, log_prob)
            self.log_innovations = _added(self.log_innovations, rows, inner)
            return self.codes[rows]
        call = arrow.draw if root is not None else arrow.draw_inside
        drawn = call(x, given, generator=self.generator, want_log_prob=self.scored)
        made = {names[path]: u for path, u in drawn.noise.items()}
        self._made.setdefault((key, root is not None), []).append(_Made(rows, entries, made))
        if root is not None:
            self.log_prob = _added(self.log_prob, rows, drawn.log_prob)
        self._add_noise(rows, drawn, root=root is not None)
        if drawn.score_log_prob is not None:
            zeros = arrays.zeros(self.rows, dtype=precision(), device=rows.device)
            self.score = _added(zeros if self.score is None else self.score, rows, drawn.score_log_prob)
        return drawn.value

    def _add_noise(self, rows: Tensor, drawn: Drawn, *, root: bool) -> None:
        if not root:
            self.log_innovations = _added(self.log_innovations, rows, drawn.log_noise)
            return
        self.log_innovations = _added(self.log_innovations, rows, drawn.log_innovations)
        if drawn.log_noise is not None:
            own = drawn.log_noise if drawn.log_innovations is None else drawn.log_noise - drawn.log_innovations
            self.log_final = _added(self.log_final, rows, own)

    # ------------------------------------------------------------ after all nodes

    def finish(self) -> dict[str, Tensor]:
        """All noise by its name.  Entries of no node are drawn, and their density is added, once all nodes have been
        gone over."""
        noise: dict[str, Tensor] = {}
        for key, draw in self.draws.each.items():
            noise |= self._filled(key, draw.inner, draw.specs, self.draws.inner_names(key), root=False)
            # a code that is known has no noise of its own
            specs = [spec for spec in draw.root_specs if self.codes is None or not spec.final]
            if draw.root is not None and specs:
                noise |= self._filled(key, draw.root, specs, self.draws.root_names(key), root=True)
        return noise

    def _filled(
        self, key: int, arrow: ArrowModule, specs: Sequence[NoiseSpec], names: Mapping[str, str], *, root: bool
    ) -> dict[str, Tensor]:
        """The noise of one draw, (B, entries, …), or (B, …) at the root."""
        made = self._made.get((key, root), [])
        given = {spec.path: self.noise[names[spec.path]] for spec in specs if names[spec.path] in self.noise}
        given = {path: u.unsqueeze(1) for path, u in given.items()} if root else given
        count = 1 if root else max([self._count(key), *(u.shape[1] for u in given.values())])
        free = arrays.ones((self.rows, count), dtype=arrays.bool, device=self.levels.flat.device)
        for one in made:
            free[one.rows, one.entries] = False
        rows, entries = free.nonzero().unbind(1)
        spare = self._spare(rows, {path: u[rows, entries] for path, u in given.items()}, arrow, specs, root=root)
        found: dict[str, Tensor] = {}
        for spec in specs:
            name, whole = names[spec.path], given.get(spec.path)
            pieces = [(one.rows, one.entries, one.noise[name]) for one in made if name in one.noise]
            pieces += [(rows, entries, spare[spec.path])] if spec.path in spare else []
            if whole is None and pieces:
                whole = arrays.zeros(
                    (self.rows, count, *spec.shape[1:]), dtype=pieces[0][2].dtype, device=self.levels.flat.device
                )
                for at, entry, u in pieces:
                    whole[at, entry] = u.to(whole.dtype)
            if whole is not None:
                found[name] = whole.squeeze(1) if root else whole
        return found

    def _spare(
        self, rows: Tensor, given: dict[str, Tensor], arrow: ArrowModule, specs: Sequence[NoiseSpec], *, root: bool
    ) -> dict[str, Tensor]:
        """The noise of the entries of no node that stand in these rows; its density is added."""
        if not len(rows):
            return {}
        if any(spec.base not in ("normal", "uniform") for spec in specs):
            like = next(arrow.parameters(), arrays.zeros((), dtype=precision()))
            empty = parts(dummy(arrow.domain.space, (len(rows),), rows))
            x = from_parts([half(part, like.dtype) for part in empty])
            drawn = arrow.draw(x, given, generator=self.generator, want_log_prob=self.scored)
            if self.scored:
                self._add_noise(rows, drawn, root=root)
            return drawn.noise
        like = next(arrow.parameters(), arrays.zeros((), dtype=precision(), device=rows.device))
        noise = {
            spec.path: given[spec.path]
            if spec.path in given
            else standard_noise(spec.base, (len(rows), *spec.shape[1:]), like, self.generator)
            for spec in specs
        }
        for spec in specs if self.scored else ():
            if spec.base == "normal":
                density = standard_density({spec.path: noise[spec.path]})
                if root and spec.final:
                    self.log_final = _added(self.log_final, rows, density)
                else:
                    self.log_innovations = _added(self.log_innovations, rows, density)
        return noise


def entries(draw: Draw, levels: Levels) -> Tensor:
    """For each node of the draw's constructor, which of those of its row it is, int64 (B · nodes,), −1 for all others.
    Roots are left out where they draw apart."""
    flat = levels.flat
    counted = flat[:, CONSTRUCTOR] == draw.constructor
    if draw.root is not None:
        counted = counted & (arrays.arange(len(flat), device=flat.device) % levels.nodes != 0)
    nodes = counted.nonzero().squeeze(1)
    rows = nodes // levels.nodes
    found = arrays.full((len(flat),), -1, dtype=arrays.int64, device=flat.device)
    found[nodes] = arrays.arange(len(nodes), device=flat.device) - arrays.searchsorted(rows, rows)
    return found


def half(part: Tensor, dtype: arrays.dtype) -> Tensor:
    """An argument that most arrows can take: 0.5 lies among positive numbers and among shares."""
    return arrays.full_like(part, 0.5, dtype=dtype) if part.is_floating_point() else arrays.zeros_like(part)


def most_entries(found: Tensor) -> int:
    """How many entries a row has: one at least, as a guide asks for the shape of one."""
    return max(1, int(found.max()) + 1) if len(found) else 1


def _added(total: Tensor, rows: Tensor, terms: Tensor | None) -> Tensor:
    return total if terms is None else total.to(terms.dtype).index_add(0, rows, terms)
