"""The frames of plates: one for each set that steps run over, with all that differs along it, data as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from qvr_core.diagrams.drawing import Drawing
from qvr_core.diagrams.graph import Box
from qvr_core.diagrams.labels import columns
from qvr_core.semantics.types.diagnostics import Origin
from qvr_core.semantics.types.model.steps import IndexedValue, Site
from qvr_core.semantics.types.spaces import Finite, Space, factors_of


@dataclass(frozen=True, slots=True)
class Plate:
    """A set that something runs over, and the index that stands for its elements, '' where there is none."""

    name: str
    size: int | None
    index: str = ""

    def label(self, again: bool) -> str:
        """`County (85)`; with its index where the set stands inside itself."""
        index = f" · {self.index}" if again and self.index else ""
        size = "" if self.size is None or self.name.startswith("FinSet") else f" ({self.size:,})"
        return f"{self.name}{index}{size}"


@dataclass(slots=True)
class Plates:
    """The frames so far, by the frame that they stand in and the sets on the way to them, outermost first."""

    drawing: Drawing
    boxes: dict[tuple[str | None, tuple[str, ...]], str] = field(
        default_factory=dict[tuple[str | None, tuple[str, ...]], str]
    )

    def frame(self, plates: Sequence[Plate], origin: Origin | None) -> str | None:
        """The innermost of the frames of some sets, one in the other; those that are missing are made."""
        around = self.around()
        names = tuple(plate.name for plate in plates)
        known = self.boxes.get((around, names)) or self.turned(around, names)
        if known is not None:
            return known
        box = around
        for count, plate in enumerate(plates, 1):
            path = names[:count]
            made = self.boxes.get((around, path))
            if made is None:
                label = plate.label(again=plate.name in path[:-1])
                frame = Box(id=f"plate_{'_'.join(path)}", kind="plate", label=label, origin=origin)
                with self.drawing.within(box), self.drawing.inside(frame) as made:
                    self.boxes[around, path] = made
            box = made
        return box

    def turned(self, around: str | None, names: tuple[str, ...]) -> str | None:
        """The frame of the same sets in another order."""
        found = (box for (where, path), box in self.boxes.items() if where == around and sorted(path) == sorted(names))
        return next(found, None)

    def known(self, names: Iterable[str | None]) -> str | None:
        """The frame of some sets, where there is one already, here or in a frame around."""
        path = tuple(name.partition("#")[0] for name in names if name is not None)
        box = self.around()
        while path:
            found = self.boxes.get((box, path)) or self.turned(box, path)
            if found is not None or box is None:
                return found
            box = self.drawing.boxes[box].parent
        return None

    def around(self) -> str | None:
        """The innermost frame that is no plate."""
        box = self.drawing.box
        while box is not None and self.drawing.boxes[box].kind == "plate":
            box = self.drawing.boxes[box].parent
        return box


def of_site(site: Site) -> list[Plate]:
    """The sets that a site runs over."""
    if site.indices:
        return of_indices(site)
    return [] if site.plate is None else list(of_space(site.plate.space))


def of_indices(step: Site | IndexedValue) -> list[Plate]:
    """The sets of the indices that a step is written with."""
    return [replace(of_set(one.space), index=one.name) for one in step.indices if isinstance(one.space, Finite)]


def of_space(space: Space) -> Iterator[Plate]:
    """The finite sets of a product, each by itself."""
    for factor in factors_of(space):
        if isinstance(factor, Finite):
            yield of_set(factor)


def of_set(space: Finite) -> Plate:
    size = columns(space)
    return Plate(space.nominal or f"FinSet {'_' if size is None else size}", size)
