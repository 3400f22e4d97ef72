"""How often each feature of programs occurred, and each pair of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations


@dataclass
class Coverage:
    """Counts of features and of their pairs."""

    programs: int = 0
    single: Counter[str] = field(default_factory=Counter[str])
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def add(self, features: Iterable[str]) -> None:
        """One program's features."""
        names = sorted(features)
        self.programs += 1
        self.single.update(names)
        self.pairs.update(combinations(names, 2))

    def merge(self, other: Coverage) -> None:
        """Those of other programs."""
        self.programs += other.programs
        self.single.update(other.single)
        self.pairs.update(other.pairs)

    def lines(self) -> list[str]:
        """A table: each feature, how often, with how many of the others, and which it never met."""
        names = sorted(self.single)
        never = {pair for pair in combinations(names, 2) if pair not in self.pairs}
        found = [f"{'feature':40} {'programs':>9} {'beside':>7}  never beside"]
        for name in names:
            alone = sorted({a if b == name else b for a, b in never if name in (a, b)})
            shown = ", ".join(alone[:4]) + (f" and {len(alone) - 4} more" if len(alone) > 4 else "")
            found.append(f"{name:40} {self.single[name]:9} {len(names) - 1 - len(alone):7}  {shown}")
        possible = len(names) * (len(names) - 1) // 2
        found.append(f"{len(names)} features, {possible - len(never)} of {possible} pairs")
        return found
