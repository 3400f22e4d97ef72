"""Ways of wires over a page: from what is above to what is below, around whatever is no end of theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

Point = tuple[float, float]
Edges = tuple[float, float, float, float]
"""Left, top, right, bottom in centimetres, y downwards."""
BESIDE = 0.3
"""Between a wire and what it goes around; things stand twice as far from each other."""
DEEP = 6
"""Things that one wire goes around."""
POINTS = 48
"""Places of each part of a curve that are looked at."""
NEAR = 0.08
"""How near a wire comes to what it passes."""
TRIED = 10_000
"""Curves that are looked at for one picture; wires behind them go straight."""


class _Room:
    """What wires keep clear of, and how many curves may still be looked at."""

    def __init__(self) -> None:
        self.left = TRIED

    def met(self, curve: Sequence[Point], others: Sequence[Edges]) -> Edges | None:
        """The first of what a curve goes through, from its start on."""
        self.left -= 1
        for number in range(0, len(curve) - 1, 3):
            part = curve[number : number + 4]
            # a curve of Bézier stays between the points that make it
            left, right = min(x for x, _ in part) - NEAR, max(x for x, _ in part) + NEAR
            top, bottom = min(y for _, y in part), max(y for _, y in part)
            around = [o for o in others if o[0] < right and o[2] > left and o[1] < bottom and o[3] > top]
            for x, y in _points(part) if around else ():
                for one in around:
                    if one[0] - NEAR < x < one[2] + NEAR and one[1] < y < one[3]:
                        return one
        return None


def ways(flow: Sequence[tuple[str, str]], drawn: Mapping[str, Edges], titles: Sequence[Edges]) -> list[list[Point]]:
    """For each wire, by the names of its ends, its start and three points for each part of a curve of Bézier.  It goes
    through nothing that is `drawn` and no title, unless there is no other way, or finding one takes too long."""
    routes, room = list[list[Point]](), _Room()
    for source, target in flow:
        start, end = drawn[source], drawn[target]
        if source == target:
            routes.append(_loop(start))
            continue
        others = [*(one for name, one in drawn.items() if name not in (source, target)), *titles]
        if start[3] < end[1]:
            routes.append(_down(start, end, others, room))
        elif end[3] < start[1]:
            routes.append(_down(end, start, others, room)[::-1])
        else:
            routes.append(_sideways(start, end))
    return routes


def _down(above: Edges, below: Edges, others: Sequence[Edges], room: _Room) -> list[Point]:
    ends = ((above[0] + above[2]) / 2, above[3]), ((below[0] + below[2]) / 2, below[1])
    return _shortest(ends, others, room) or _through(ends)


def _loop(around: Edges) -> list[Point]:
    right, middle = around[2], (around[1] + around[3]) / 2
    return [
        (right - 0.08, middle - 0.18), (right + 0.6, middle - 0.45), (right + 0.6, middle + 0.45),
        (right - 0.08, middle + 0.18),
    ]  # fmt: skip


def _sideways(start: Edges, end: Edges) -> list[Point]:
    """From a side to a side of what stands in the same row."""
    first, last = (start[1] + start[3]) / 2, (end[1] + end[3]) / 2
    if start[2] < end[0]:
        middle = (start[2] + end[0]) / 2
        return [(start[2], first), (middle, first), (middle, last), (end[0], last)]
    middle = (start[0] + end[2]) / 2
    return [(start[0], first), (middle, first), (middle, last), (end[2], last)]


def _through(points: Sequence[Point]) -> list[Point]:
    """A curve through points, upright at each of them."""
    found = [points[0]]
    for (x, y), (right, below) in pairwise(points):
        bend = (below - y) / 2
        found += [(x, y + bend), (right, below - bend), (right, below)]
    return found


def _shortest(ends: tuple[Point, Point], others: Sequence[Edges], room: _Room) -> list[Point] | None:
    """The way between two ends that goes least to the side of all that are free."""
    free = list(_free(list(ends), others, DEEP, room))
    if not free:
        return None
    return _through(min(free, key=lambda way: sum(abs(a[0] - b[0]) for a, b in pairwise(way))))


def _free(way: list[Point], others: Sequence[Edges], deep: int, room: _Room) -> Iterator[list[Point]]:
    """Ways that meet nothing: this one, or those that go left and right around the first thing that it meets."""
    if room.left <= 0:
        return
    met = room.met(_through(way), others)
    if met is None:
        yield way
        return
    if deep == 0:
        return
    left, top, right, bottom = met
    above = [point for point in way if point[1] < top]
    below = [point for point in way if point[1] > bottom]
    if not above or not below:
        return
    for x in (left - BESIDE, right + BESIDE):
        yield from _free([*above, (x, top), (x, bottom), *below], others, deep - 1, room)


def _points(part: Sequence[Point]) -> Iterator[Point]:
    """Places of a curve by its four points."""
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = part
    for step in range(POINTS + 1):
        t = step / POINTS
        a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
        yield a * ax + b * bx + c * cx + d * dx, a * ay + b * by + c * cy + d * dy
