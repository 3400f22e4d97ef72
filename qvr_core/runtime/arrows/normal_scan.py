"""Scans of tanh-network cells with a Normal head as compiled loops; scans of one shape side by side run as one."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.arrays.engine import Generator, Tensor, arrays, is_tensor
from qvr_core.runtime.arrows.combinators import ParallelArrow
from qvr_core.runtime.arrows.kernel import KernelArrow
from qvr_core.runtime.arrows.layers import EmbedArrow
from qvr_core.runtime.arrows.normal_chain import standard_density
from qvr_core.runtime.arrows.scan import LAST, ScanArrow, StartState
from qvr_core.runtime.families.densities import LOG_SQRT_2PI
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, Value
from qvr_core.runtime.values.drawing import plus, require_innovations
from qvr_core.runtime.values.leaves import adopt
from qvr_core.semantics.types.model.arrows import Scan
from qvr_core.semantics.types.spaces import Named, sequence_of


def normal_kernel(cell: ArrowModule) -> bool:
    """True for a kernel with a tanh network and a Normal head whose state is the last columns of its input."""
    if not isinstance(cell, KernelArrow) or cell.fixed is not None or not cell.head.family.affine:
        return False
    return cell.net.tanh and not layout.blocks(cell.domain.space)[-1].finite


class NormalScan(ScanArrow):
    """A scan of a tanh-network Normal kernel; with `embedding` it reads elements of a finite set through that table."""

    def __init__(
        self,
        node: Scan,
        cell: KernelArrow,
        start: StartState | None,
        start_name: str,
        embedding: EmbedArrow | None = None,
    ) -> None:
        super().__init__(node, cell, start, start_name)
        self.kernel = (cell,)
        self.embedding = (embedding,)
        self.size = layout.width(self.state)
        self.inside = cell.net.input.in_features - self.size
        # the kernel, the width of an item, all states or the last: scans of equal shape can run side by side
        from qvr_core.runtime.loops.cells import NormalKernel, normal_cell

        kernel = NormalKernel(self.inside + self.size, cell.net.hidden.out_features, self.size, cell.head.scale)
        self.shape = (kernel, self.inside, self.emit_all)
        self.loop = normal_cell(kernel, self.inside)
        if embedding is not None:
            own = {start_name: start} if start is not None else None
            adopt(self, [embedding, cell], own)
            self.domain = Named(sequence_of(embedding.domain.space), embedding.domain.written)

    def after(self, embedding: EmbedArrow) -> NormalScan:
        """This scan with the table in front of it made part of it."""
        return NormalScan(self.node, self.kernel[0], self.start[0], self.start_name, embedding)

    def items(self, x: Value) -> list[Value]:
        return super().items(self._embedded(x))

    def _embedded(self, x: Value) -> Value:
        embedding = self.embedding[0]
        return x if embedding is None else embedding(x)

    def features(self, x: Value) -> Tensor:
        """What the first layer reads of the items, (B, L, m)."""
        return self.kernel[0].net.item_features(self._embedded(x))

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        return draw_side_by_side([self], x, [noise], generator, want_log_prob)[0]

    def draw_inside(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        drawn = draw_side_by_side([self], x, [noise], generator, False)[0]
        drawn.log_noise = standard_density(drawn.noise) if want_log_prob else None
        return drawn

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        if self.emit_all:
            return super().densities(self._embedded(x), y, innovations)
        require_innovations(self, x, innovations)
        return densities_side_by_side([self], x, [y], [innovations])[0]


class ScansSideBySide(ParallelArrow):
    """A fan of such scans of one shape, such as a forward and a backward one, run as one."""

    def __init__(self, scans: Sequence[NormalScan], domain: Named, codomain: Named) -> None:
        super().__init__(scans, domain, codomain, shared_input=True)
        self.scans = tuple(scans)

    def draw(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        each = draw_side_by_side(self.scans, x, [noise] * len(self.scans), generator, want_log_prob)
        total = _joined(each)
        for drawn in each:
            total.log_prob = plus(total.log_prob, drawn.log_prob)
            total.log_innovations = plus(total.log_innovations, drawn.log_innovations)
            total.log_noise = plus(total.log_noise, drawn.log_noise)
        return total

    def draw_inside(
        self,
        x: Value,
        noise: Noise | None = None,
        *,
        generator: Generator | None = None,
        want_log_prob: bool = True,
    ) -> Drawn:
        drawn = _joined(draw_side_by_side(self.scans, x, [noise] * len(self.scans), generator, False))
        drawn.log_noise = standard_density(drawn.noise) if want_log_prob else None
        return drawn

    def densities(self, x: Value, y: Value, innovations: Noise | None = None) -> tuple[Tensor, Tensor | None]:
        if self.scans[0].emit_all:
            return super().densities(x, y, innovations)
        require_innovations(self, x, innovations)
        values = layout.regroup(y, [scan.codomain.space for scan in self.scans])
        log_prob: Tensor | None = None
        log_innovations: Tensor | None = None
        for term, inner in densities_side_by_side(self.scans, x, values, [innovations] * len(self.scans)):
            log_prob, log_innovations = plus(log_prob, term), plus(log_innovations, inner)
        assert log_prob is not None
        return log_prob, log_innovations


def _joined(each: Sequence[Drawn]) -> Drawn:
    made = {path: u for drawn in each for path, u in drawn.noise.items()}
    return Drawn(layout.join([drawn.value for drawn in each]), made, None, None)


def side_by_side(branches: Sequence[ArrowModule], domain: Named, codomain: Named) -> ArrowModule:
    """A fan of arrows: scans of one shape run as one."""
    scans = [branch for branch in branches if isinstance(branch, NormalScan)]
    distinct = len({scan.kernel[0].path for scan in scans}) == len(branches) > 1
    if distinct and len({scan.shape for scan in scans}) == 1:
        return ScansSideBySide(scans, domain, codomain)
    return ParallelArrow(branches, domain, codomain, shared_input=True)


def draw_side_by_side(
    scans: Sequence[NormalScan],
    x: Value,
    noises: Sequence[Noise | None],
    generator: Generator | None,
    want_log_prob: bool,
) -> list[Drawn]:
    """A draw of each of several scans of one shape on the same sequence."""
    rows, length = layout.parts(x)[0].shape[:2]
    emit_all = scans[0].emit_all
    fresh = _noise(scans, noises, rows, length, generator)
    if emit_all or not want_log_prob:
        states = _advance(scans, x, fresh, length)
        made = [_drawn(scan, state, own) for scan, state, own in zip(scans, states, fresh.unbind(0), strict=True)]
        if want_log_prob:
            for scan, drawn in zip(scans, made, strict=True):
                drawn.log_prob = scan.log_prob(x, drawn.value, drawn.noise)
                drawn.log_noise = _standard(drawn.noise[scan.kernel[0].path])
        return made
    states = _advance(scans, x, fresh, length - 1) if length > 1 else [scan.start_state(rows, fresh) for scan in scans]
    made: list[Drawn] = []
    for scan, state, own in zip(scans, states, fresh.unbind(0), strict=True):
        last = own[-1]
        loc, scale = scan.kernel[0].params(_last_input(scan, x, state))
        drawn = _drawn(scan, loc + scale * last, own)
        final = _standard(last)
        drawn.log_prob = final - scale.log().sum(-1)
        if length > 1:
            drawn.log_innovations = _standard(own[:-1].transpose(0, 1))
        drawn.log_noise = plus(final, drawn.log_innovations)
        made.append(drawn)
    return made


def densities_side_by_side(
    scans: Sequence[NormalScan], x: Value, values: Sequence[Value], innovations: Sequence[Noise | None]
) -> list[tuple[Tensor, Tensor | None]]:
    """Densities of the final states of several scans of one shape on the same sequence."""
    rows, length = layout.parts(x)[0].shape[:2]
    result: list[tuple[Tensor, Tensor | None]] = []
    given = [(noise or {}).get(scan.kernel[0].path) for scan, noise in zip(scans, innovations, strict=True)]
    if length > 1:
        each = [u.transpose(0, 1) for u in given if u is not None]
        states = _advance(scans, x, arrays.stack(each), length - 1)
    else:
        states = [scan.start_state(rows, layout.parts(values[0])[0]) for scan in scans]
    for scan, state, y, u in zip(scans, states, values, given, strict=True):
        log_prob, _ = scan.kernel[0].densities(_last_input(scan, x, state), y)
        result.append((log_prob, None if length == 1 or u is None else _standard(u)))
    return result


def _standard(noise: Tensor) -> Tensor:
    """log density of standard normal noise by row."""
    flat = noise.flatten(1)
    return -0.5 * flat.square().sum(1) - flat.shape[1] * LOG_SQRT_2PI


def _last_input(scan: NormalScan, x: Value, state: Value) -> Value:
    """The cell's input at the last step in reading order."""
    position = 0 if scan.backward_ else -1
    item = layout.from_parts([part[:, position] for part in layout.parts(x)])
    embedding = scan.embedding[0]
    return layout.join([item if embedding is None else embedding(item), state])


def _noise(
    scans: Sequence[NormalScan], noises: Sequence[Noise | None], rows: int, length: int, generator: Generator | None
) -> Tensor:
    """Noise (G, L, B, S) in reading order: what is given, and fresh where nothing is."""
    weight = scans[0].kernel[0].net.weights()[0]
    made = [_given_noise(scan, noise, length) for scan, noise in zip(scans, noises, strict=True)]

    def fresh(*shape: int) -> Tensor:
        size = scans[0].size
        return arrays.randn((*shape, rows, size), generator=generator, dtype=weight.dtype, device=weight.device)

    if all(pieces is None for pieces in made):
        return fresh(len(scans), length)
    columns: list[Tensor] = []
    for pieces in made:
        steps, last = pieces if pieces is not None else (None, None)
        if steps is None:
            steps = fresh(length if last is None else length - 1)
        if steps.shape[0] < length:
            steps = arrays.cat([steps, fresh(1) if last is None else last.unsqueeze(0)])
        columns.append(steps)
    return columns[0].unsqueeze(0) if len(columns) == 1 else arrays.stack(columns)


def _given_noise(scan: NormalScan, noise: Noise | None, length: int) -> tuple[Tensor | None, Tensor | None] | None:
    """The given noise of the steps (time first) and of the last step."""
    if noise is None:
        return None
    path = scan.kernel[0].path
    steps, last = noise.get(path), noise.get(path + LAST)
    if steps is None and last is None:
        return None
    if steps is None and length == 1:
        assert last is not None
        return last.unsqueeze(0), None
    return (None if steps is None else steps.transpose(0, 1)), last


def _drawn(scan: NormalScan, state: Tensor, own: Tensor) -> Drawn:
    """`own` is the noise of this scan, (L, B, S)."""
    path = scan.kernel[0].path
    if scan.emit_all:
        return Drawn(state, {path: own.transpose(0, 1)}, None, None)
    noise = {path + LAST: own[-1]}
    if own.shape[0] > 1:
        noise[path] = own[:-1].transpose(0, 1)
    return Drawn(state, noise, None, None)


def _advance(scans: Sequence[NormalScan], x: Value, noise: Tensor, steps: int) -> list[Tensor]:
    """Run the first `steps` steps on noise (G, L, B, S): each scan's state (B, S), or all of them (B, L, S)."""
    single = len(scans) == 1
    rows = noise.shape[2]
    source, index = _items(scans, x, steps)
    start = None
    if any(scan.start[0] is not None for scan in scans):
        starts = [layout.parts(scan.start_state(rows, noise))[0] for scan in scans]
        start = starts[0] if single else arrays.stack(starts)
    if steps < noise.shape[1]:
        noise = noise[:, :steps]
    weights = [weight for scan in scans for weight in scan.kernel[0].net.weights()]
    from qvr_core.runtime.loops.engine import run_loop
    from qvr_core.runtime.loops.run import LoopRun

    run = LoopRun(scans[0].loop, 0 if single else len(scans), steps, scans[0].emit_all, (index, None))
    result = run_loop(run, start, [source, noise[0] if single else noise, *weights])
    groups = [result] if single else list(result.unbind(0))
    if not run.emit_all:
        return groups
    return [
        (states.flip(0) if scan.backward_ else states).transpose(0, 1)
        for scan, states in zip(scans, groups, strict=True)
    ]


def _items(scans: Sequence[NormalScan], x: Value, steps: int) -> tuple[Tensor, Tensor | None]:
    """The items in reading order: features ([G,] L, B, M), or a table and the rows to take ([G,] L, B)."""
    embeddings = [scan.embedding[0] for scan in scans]
    shared = embeddings[0]
    if shared is not None and is_tensor(x) and all(e is shared for e in embeddings):
        return shared.weight, _in_reading_order(scans, [x.mT] * len(scans), steps)
    if all(e is shared for e in embeddings):
        each = [scans[0].features(x).transpose(0, 1)] * len(scans)
    else:
        each = [scan.features(x).transpose(0, 1) for scan in scans]
    return _in_reading_order(scans, each, steps), None


def _in_reading_order(scans: Sequence[NormalScan], each: Sequence[Tensor], steps: int) -> Tensor:
    read = [(part.flip(0) if scan.backward_ else part)[:steps] for scan, part in zip(scans, each, strict=True)]
    return read[0] if len(read) == 1 else arrays.stack(read)
