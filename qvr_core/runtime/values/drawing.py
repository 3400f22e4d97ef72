"""What the combinators share: naming the draws of their parts, and adding up log densities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qvr_core.arrays.engine import Generator, Tensor
from qvr_core.runtime.values.arrow import ArrowModule, Drawn, Noise, NoiseSpec, Value, missing_innovations


class Parts:
    """The parts of a combinator with their draws under names that are unique in the whole.

    A path keeps its name; where a part is used again its paths get `#2`, `#3`, ….
    """

    def __init__(self, arrows: Sequence[ArrowModule]) -> None:
        self.arrows = tuple(arrows)
        self.inner: list[dict[str, str] | None] = []
        taken: set[str] = set()
        for arrow in self.arrows:
            renamed = {path: _fresh(path, taken) for path in arrow.paths}
            taken.update(renamed.values())
            self.inner.append(None if all(a == b for a, b in renamed.items()) else renamed)
        self.paths = tuple(
            path if renamed is None else renamed[path]
            for arrow, renamed in zip(self.arrows, self.inner, strict=True)
            for path in arrow.paths
        )

    def noise_of(self, index: int, noise: Noise | None) -> Noise | None:
        """The noise of part `index` under the part's own names."""
        renamed = self.inner[index]
        if noise is None or renamed is None:
            return noise
        return {own: noise[outer] for own, outer in renamed.items() if outer in noise}

    def outer(self, index: int, noise: dict[str, Tensor]) -> dict[str, Tensor]:
        """Noise that part `index` made, under the names of the whole."""
        renamed = self.inner[index]
        return noise if renamed is None else {renamed[own]: value for own, value in noise.items()}

    def specs(self, index: int, x: Value, final: bool) -> list[NoiseSpec]:
        """The draws of part `index`; where `final` is False none of them is a last one."""
        renamed = self.inner[index]
        return [
            replace(spec, path=spec.path if renamed is None else renamed[spec.path], final=spec.final and final)
            for spec in self.arrows[index].noise_specs(x)
        ]

    def outer_paths(self, index: int, paths: Sequence[str]) -> tuple[str, ...]:
        """Paths of part `index` under the names of the whole."""
        renamed = self.inner[index]
        return tuple(paths) if renamed is None else tuple(renamed[path] for path in paths)

    def draw(
        self,
        index: int,
        x: Value,
        noise: Noise | None,
        generator: Generator | None,
        want_log_prob: bool,
        *,
        inside: bool = False,
    ) -> Drawn:
        """A draw of part `index`, its noise under the names of the whole; `inside` ones may leave log_prob out."""
        arrow = self.arrows[index]
        if not arrow.sampled:
            return Drawn(arrow(x), {}, None, None)
        call = arrow.draw_inside if inside else arrow.draw
        drawn = call(x, self.noise_of(index, noise), generator=generator, want_log_prob=want_log_prob)
        drawn.noise = self.outer(index, drawn.noise)
        return drawn


def _fresh(path: str, taken: set[str]) -> str:
    name, copy = path, 1
    while name in taken:
        copy += 1
        name = f"{path}#{copy}"
    return name


def plus(left: Tensor | None, right: Tensor | None) -> Tensor | None:
    """A sum in which None is zero."""
    if left is None:
        return right
    return left if right is None else left + right


def require_innovations(arrow: ArrowModule, x: Value, innovations: Noise | None) -> None:
    """Raise `MissingInnovations` naming every innovation of `arrow` on `x` that is not given."""
    missing = [
        spec
        for spec in arrow.noise_specs(x)
        if not spec.final and (innovations is None or spec.path not in innovations)
    ]
    if missing:
        raise missing_innovations(missing)
