"""A hidden chain in the block of another: for each value of the outer state, all that the inner one explains.

The values of the outer state become rows of a frame of their own (`Frame.inner`), in which the inner block is what it
is anywhere; each inner chain, or each of its places where they do not depend on one another, then adds to the place of
the outer chain that it belongs to.

Shapes: B rows, K states of the outer chain, (*sizes) the places of the inner one, the last of which is along it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.runtime.programs.arithmetic import Parts
from qvr_core.runtime.programs.chains.hidden_elements import ObservedElements, Reader
from qvr_core.runtime.programs.frame import Frame
from qvr_core.runtime.values.cells import Cell, as_one
from qvr_core.runtime.values.layout import Where
from qvr_core.semantics.types.density import MOST_SUMMED
from qvr_core.semantics.types.model.expressions import Expr


class Chain(Protocol):
    """What is asked of the inner chain."""

    name: str
    where: Where
    sizes: tuple[int, ...]
    lagging: bool
    observes: list[ObservedElements]

    def opened(self, frame: Frame) -> AbstractContextManager[None]:
        """While it is open, its block can be evaluated on the frame."""
        ...

    def many(self, frame: Frame) -> int:
        """How many values its state has."""
        ...

    def by_chain(self, frame: Frame) -> Tensor:
        """log p of what each of its chains explains, (B, …)."""
        ...

    def path(self, frame: Frame) -> Tensor:
        """Its states drawn from the prior, int64 (B, *sizes)."""
        ...


class Nested(Reader):
    """The inner block as the outer one sees it: elements that read a place of the outer chain each."""

    def __init__(self, chain: Chain, outer: str, places: Sequence[Expr], parts: Parts) -> None:
        super().__init__(chain.sizes[:-1] if chain.lagging else chain.sizes, places, chain.where, parts)
        self.chain = chain
        self.outer = outer

    def terms(self, frame: Frame, states: int) -> Tensor:
        with self._inside(frame, states) as inner:
            found = self.chain.by_chain(inner)
        return found.reshape(frame.rows, states, *self.sizes).movedim(1, -1).unsqueeze(-2)

    def known(self, frame: Frame) -> bool:
        return all(reader.known(frame) for reader in self.chain.observes)

    def place(self, frame: Frame, chain: Sequence[int]) -> Tensor:
        flat = arrays.zeros((), dtype=arrays.long, device=frame.device)
        for place, size in zip(self.places, chain, strict=True):
            index = as_one(place(frame)).value.long()
            if self.chain.lagging and index.ndim == len(self.chain.sizes):
                index = index.select(-1, 0)  # the same all along a chain
            self._check(index, size)
            flat = flat * size + index
        return flat.expand(self.sizes).reshape(-1)

    @contextmanager
    def _inside(self, frame: Frame, states: int) -> Generator[Frame]:
        """A frame with the values of the outer state as rows, (B · K)."""
        inner = frame.inner(states)
        values = arrays.arange(states, device=frame.device).expand(frame.rows, states).reshape(-1)
        inner.bound[self.outer] = Cell(values, True)
        with self.chain.opened(inner):
            together = states * self.chain.many(inner)
            if together > MOST_SUMMED:
                found = f"{states:,} × {together // states:,} of `{self.outer}` and `{self.chain.name}`"
                raise self.where.misfit(f"at most {MOST_SUMMED:,} values to sum over", found)
            yield inner

    def draw(self, path: Tensor, frame: Frame, states: int, outer: Sequence[int]) -> None:
        """Draw what the inner block observes and nothing gives, for a path (B, *outer) of the outer chain: for each
        value of its state, of which the one of the path is then taken."""
        missing = [reader for reader in self.chain.observes if frame.supplied(reader.name) is None]
        if not missing:
            return
        own, flat = self.place(frame, outer), path.reshape(frame.rows, -1)
        with self._inside(frame, states) as inner:
            inner_path = self.chain.path(inner)
            for reader in missing:
                each = reader.drawn(inner_path, inner, self.chain.sizes)
                element = reader.place(inner, self.chain.sizes)
                state = flat[:, own[element // self.chain.sizes[-1] if self.chain.lagging else element]]
                event = each.shape[1 + len(reader.sizes) :]
                each = each.reshape(frame.rows, states, len(element), *event)
                index = state.reshape(frame.rows, 1, -1, *(1,) * len(event)).expand(frame.rows, 1, len(element), *event)
                frame.drawn.add(reader.name)
                value = each.gather(1, index).squeeze(1).reshape(frame.rows, *reader.sizes, *event)
                frame.given[reader.name] = Cell(value, True)
