"""Simulated rows of truth tables for `formula_truth`: `python formulas.py FILE COUNT SEED [DEEPEST]`.

Formulas of propositional logic over p, q and r with 1 to DEEPEST levels (4), each with one of the eight rows of its
truth table and what it says there.  A formula is false in about half of the rows.
"""

import random
import sys

ATOMS = "pqr"

Formula = tuple


def drawn(numbers: random.Random, levels: int) -> Formula:
    """A formula of at most so many levels."""
    kind = "atom" if levels == 1 else numbers.choice(("atom", "not", "not", "and", "or", "and", "or"))
    if kind == "atom":
        return (kind, numbers.choice(ATOMS))
    return (kind, *(drawn(numbers, levels - 1) for _ in range(1 if kind == "not" else 2)))


def holds(formula: Formula, world: int) -> bool:
    """Whether it is true where atom i is bit i of `world`."""
    match formula:
        case ("atom", name):
            return bool(world >> ATOMS.index(name) & 1)
        case ("not", inner):
            return not holds(inner, world)
        case ("and", left, right):
            return holds(left, world) and holds(right, world)
        case (_, left, right):
            return holds(left, world) or holds(right, world)


def written(formula: Formula) -> str:
    """`(and (atom p) (not (atom q)))`."""
    return f"({' '.join(part if isinstance(part, str) else written(part) for part in formula)})"


def save(path: str, count: int, seed: int, deepest: int = 4) -> None:
    """Write formulas, worlds and truth values, one a row."""
    numbers = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        file.write("formula,world,truth\n")
        for _ in range(count):
            formula, world = drawn(numbers, numbers.randint(1, deepest)), numbers.randrange(8)
            file.write(f"{written(formula)},{world},{('no', 'yes')[holds(formula, world)]}\n")


if __name__ == "__main__":
    save(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *map(int, sys.argv[4:]))
