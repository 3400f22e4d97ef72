"""How long the sequences are that an arrow reads, and how many arrows it is made of."""

from __future__ import annotations

from qvr_core.syntax.immutable import immutable


@immutable
class Extent:
    """How an arrow goes through a sequence: `positions` is the longest one that the learned positions of `place` allow
    (None: any); `scans` where it folds one."""

    positions: int | None = None
    place: str = ""
    scans: bool = False


ANY_LENGTH = Extent()


@immutable
class Stages:
    """How many declared arrows an arrow is made of, each counted as often as it is applied; not `sure` where something
    in it could not be typed."""

    count: int = 1
    sure: bool = True

    def __add__(self, other: Stages) -> Stages:
        return Stages(self.count + other.count, self.sure and other.sure)

    def times(self, count: int) -> Stages:
        return Stages(self.count * count, self.sure)


NO_STAGES, ONE_STAGE = Stages(0), Stages()
