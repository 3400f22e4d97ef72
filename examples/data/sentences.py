"""Makes the sentences of three grammars, each drawn from known probabilities under a fixed seed:
`python examples/data/sentences.py`.

`attachments.csv`: a context-free grammar, where a prepositional phrase belongs to the noun or to the verb before it.
`categories.csv`: a categorial grammar, some of whose words have two categories.
`clauses.csv`: clauses in the order of Swiss German's, whose objects stand in the order of the verbs that govern them.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

HERE = Path(__file__).parent
Choices = dict[str, list[tuple[float, tuple[str, ...]]]]
"""What each category may become, with its probability; what is no category is a word."""

ATTACHMENT: Choices = {
    "S": [(1.0, ("NP", "VP"))],
    "NP": [(0.6, ("Det", "N")), (0.2, ("NP", "PP")), (0.2, ("she",))],
    "VP": [(0.4, ("V", "NP")), (0.25, ("VP", "PP")), (0.35, ("slept",))],
    "PP": [(1.0, ("P", "NP"))],
    "Det": [(0.7, ("the",)), (0.3, ("a",))],
    "N": [(0.4, ("man",)), (0.3, ("telescope",)), (0.3, ("park",))],
    "V": [(0.8, ("saw",)), (0.2, ("painted",))],
    "P": [(0.55, ("with",)), (0.45, ("in",))],
}
CATEGORIES: Choices = {
    "S": [(1.0, ("NP", "VP"))],
    "NP": [(0.75, ("NP/N", "N")), (0.25, ("they",))],
    "VP": [(0.5, ("TV", "NP")), (0.2, ("sleep",)), (0.15, ("fish",)), (0.15, ("VP", "ADV"))],
    "N": [
        (0.24, ("N/N", "N")),
        (0.2, ("N", "that", "NP", "TV")),
        (0.19, ("boats",)),
        (0.14, ("old",)),
        (0.12, ("fish",)),
        (0.11, ("man",)),
    ],
    "NP/N": [(1.0, ("the",))],
    "N/N": [(0.6, ("old",)), (0.4, ("big",))],
    "TV": [(0.45, ("man",)), (0.35, ("see",)), (0.2, ("fish",))],
    "ADV": [(1.0, ("often",))],
}


def derived(category: str, choices: Choices, random: Random) -> list[str]:
    """The words of one derivation."""
    if category not in choices:
        return [category]
    weights = [weight for weight, _ in choices[category]]
    ((_, parts),) = random.choices(choices[category], weights)
    return [word for part in parts for word in derived(part, choices, random)]


def clause(random: Random) -> list[str]:
    """Objects, then as many verbs in the same order, each of which wants the case of its object."""
    objects: list[str] = []
    verbs: list[str] = []
    while True:
        dative = random.random() < 0.35
        objects += ["em" if dative else "de", *random.choices(["hans", "peter", "maler"], [0.5, 0.3, 0.2])]
        verbs += random.choices(*((["hälfe", "folge"], [0.8, 0.2]) if dative else (["laa", "gsee"], [0.6, 0.4])))
        if random.random() < 0.5:
            return [*objects, *verbs]


def save(name: str, sentences: int, longest: int, draw: Callable[[], list[str]]) -> None:
    """So many sentences that are not too long, each that differs with how often it came."""
    drawn: list[str] = []
    while len(drawn) < sentences:
        words = draw()
        if len(words) <= longest:
            drawn.append(" ".join(words))
    counts = sorted(Counter(drawn).items(), key=lambda pair: (-pair[1], pair[0]))
    lines = ["told,times", *(f"{sentence},{count}" for sentence, count in counts)]
    (HERE / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    random = Random(20261129)
    save("attachments", 400, 13, lambda: derived("S", ATTACHMENT, random))
    save("categories", 400, 14, lambda: derived("S", CATEGORIES, random))
    save("clauses", 200, 12, lambda: clause(random))


if __name__ == "__main__":
    main()
