"""A printed table whose rows have goals."""

from __future__ import annotations


class Table:
    """Rows of measure, figure and goal; knows whether one was missed."""

    def __init__(self) -> None:
        self.missed = False

    def row(
        self, name: str, figures: str, ratio: float, goal: float, *, at_most: bool = False, error: float = 0.0
    ) -> None:
        """A goal is missed where the ratio is off it by more than two standard errors."""
        slack = 2.0 * error
        good = ratio <= goal + slack if at_most else ratio >= goal - slack
        self.missed |= not good
        word = "at most" if at_most else "at least"
        said = f"{ratio:6.2f}" + (f" ± {error:.2f}" if error else "")
        print(f"{name:44} {figures:34} ratio {said}  ({word} {goal:g}) {'' if good else 'MISSED'}", flush=True)

    def skip(self, name: str, package: str) -> None:
        print(f"{name:44} skipped: {package} is not installed (pip install -e '.[bench]')", flush=True)
