"""What a chart costs: sentences of about 10, 20 and 40 words, whose uses of rules grow as their third power.

The agenda's work is linear in them: its time for each use is that of the shortest, or less.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch

from qvr_core.dsl import loads

GRAMMAR = """
deduction english : FinSet 4 -> FinSet 1 [start=S]
    atoms S, NP, VP, N, PP, Det, V, P, the, dog, saw, with
    rule s : span(I, K, NP), span(K, J, VP) |- span(I, J, S) #[learnable]
    rule np : span(I, K, Det), span(K, J, N) |- span(I, J, NP) #[learnable]
    rule npp : span(I, K, NP), span(K, J, PP) |- span(I, J, NP) #[learnable]
    rule vp : span(I, K, V), span(K, J, NP) |- span(I, J, VP) #[learnable]
    rule vpp : span(I, K, VP), span(K, J, PP) |- span(I, J, VP) #[learnable]
    rule pp : span(I, K, P), span(K, J, NP) |- span(I, J, PP) #[learnable]
    lexicon
        "the" : Det = the
        "dog" : N = dog
        "saw" : V = saw
        "with" : P = with
"""
ANY = """
deduction any : FinSet 1 -> FinSet 1 [start=S]
    atoms S, a
    rule join : span(I, J, S), span(J, K, S) |- span(I, K, S) #[learnable]
    lexicon
        "a" : S = a
"""
REPEATS = 5


def main() -> int:
    """A row a sentence: the first chart, and one whose uses are known, with its gradient."""
    torch.set_num_threads(1)
    sentences = [
        (name, text, words)
        for name, text, rows in (
            ("english", GRAMMAR, [("the dog saw the dog" + " with the dog" * n).split() for n in (2, 5, 12)]),
            ("any", ANY, [["a"] * n for n in (10, 20, 40)]),
        )
        for words in rows
    ]
    print("| grammar | words | items | uses | first chart, ms | µs a use | again, with its gradient, ms |")
    print("|---|---|---|---|---|---|---|")
    for name, text, words in sentences:
        first, again = [], []
        for _ in range(REPEATS):
            d: Any = loads(text).deductions[name]
            chart, spent = timed(d, words)
            first.append(spent)
            again.append(timed(d, words)[1])
        uses, fastest = len(chart.graph.edges), statistics.median(first)
        print(
            f"| {name} | {len(words)} | {len(chart.graph.items)} | {uses} | {1e3 * fastest:.1f} | "
            f"{1e6 * fastest / uses:.0f} | {1e3 * statistics.median(again):.1f} |",
            flush=True,
        )
    return 0


def timed(d: Any, words: list[str]) -> tuple[Any, float]:
    start = time.process_time()
    chart = d.parse(words)
    chart.goal_weight().backward()
    return chart, time.process_time() - start


if __name__ == "__main__":
    raise SystemExit(main())
