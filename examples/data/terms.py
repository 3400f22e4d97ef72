"""Simulated arithmetic terms for `term_autoencoder`: `python terms.py FILE COUNT SEED [DEEPEST]`.

Terms of 1 to DEEPEST levels (4) over the digits and the names x, y and z; as many of each number of levels as of any
other, as far as chance goes.
"""

import random
import sys

Term = tuple


def drawn(numbers: random.Random, levels: int) -> Term:
    """A term of at most so many levels."""
    kind = "leaf" if levels == 1 else numbers.choice(("leaf", "add", "mul", "add", "mul"))
    if kind == "leaf":
        number = numbers.randrange(13)
        return ("num", str(number)) if number < 10 else ("var", "xyz"[number - 10])
    return (kind, drawn(numbers, levels - 1), drawn(numbers, levels - 1))


def written(term: Term) -> str:
    """`(add (num 3) (mul (var x) (num 0)))`."""
    return f"({' '.join(part if isinstance(part, str) else written(part) for part in term)})"


def save(path: str, count: int, seed: int, deepest: int = 4) -> None:
    """Write terms, one a row."""
    numbers = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        file.write("term\n")
        for _ in range(count):
            file.write(f"{written(drawn(numbers, numbers.randint(1, deepest)))}\n")


if __name__ == "__main__":
    save(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *map(int, sys.argv[4:]))
