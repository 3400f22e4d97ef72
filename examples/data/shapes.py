"""Simulated pictures for `convolutional_classifier`: `python shapes.py FILE COUNT SEED`.

Pictures of 16 × 16 pixels, 0 to 15 as whole numbers, of one of four shapes of 5 to 7 pixels a side anywhere, in noise
and unequal light.
"""

import sys

import numpy as np

SHAPES = ("cross", "ring", "corner", "bar")
SIDE = 16


def drawn(kind: int, size: int) -> np.ndarray:
    """A shape of 0 and 1, size × size."""
    one = np.zeros((size, size))
    middle = size // 2
    match SHAPES[kind]:
        case "cross":
            one[middle] = one[:, middle] = 1.0
        case "ring":
            one[[0, -1]] = one[:, [0, -1]] = 1.0
        case "corner":
            one[0] = one[:, 0] = 1.0
        case _:
            one[middle] = 1.0
    return one


def pictures(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` pictures (count, 16, 16) and the numbers of their shapes."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, len(SHAPES), count)
    made = np.empty((count, SIDE, SIDE), np.uint8)
    for at in range(count):
        size = int(rng.integers(5, 8))
        top, left = rng.integers(0, SIDE - size + 1, 2)
        one = np.rot90(drawn(int(kind[at]), size), int(rng.integers(4)))
        picture = rng.uniform(2.0, 5.0) + rng.normal(size=(SIDE, SIDE))
        picture[top : top + size, left : left + size] += rng.uniform(4.0, 7.0) * one
        made[at] = np.clip(np.round(picture), 0, 15)
    return made, kind


def save(path: str, count: int, seed: int) -> None:
    """Write the pictures, as the input `x`, and what they show, `shape`."""
    made, kind = pictures(count, seed)
    np.savez_compressed(path, x=made, shape=kind.astype(np.uint8))


if __name__ == "__main__":
    save(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
