"""What a fit has found of the deductions that its program parses with: the weights of their rules and entries."""

from __future__ import annotations

import math

from qvr_core.runs.record.protocol import Message, PosteriorRow
from qvr_core.runtime.programs.program import ProgramModule

MOST = 1_000
"""Numbers that are worth a table; of a larger deduction its rules alone."""


def fitted_weights(model: ProgramModule) -> tuple[tuple[PosteriorRow, ...], list[Message]]:
    """A row for each rule and each entry of a lexicon, points without a spread, and what they are: probabilities where
    the deduction is `normalised`, else log weights.  None of a deduction that has nothing to learn."""
    rows: list[PosteriorRow] = []
    told: list[Message] = []
    for name, deduction in model.deductions.items():
        if not any(True for _ in deduction.parameters()):
            continue
        kind = "probabilities" if deduction.deduction.normalised else "log weights"
        rules = {", ".join(key): weight for key, weight in deduction.rule_weights().items()}
        entries = {f'"{word}" : {category}': weight for (word, category), weight in deduction.entry_weights().items()}
        left = ""
        if len(rules) + len(entries) > MOST:
            left = f" of its rules; those of its {len(entries):,} entries: `entry_weights()` in Python"
            entries = {}
        told.append(Message(level="info", text=f"`{name}[…]` are the fitted {kind}{left}"))
        for key, weight in (rules | entries).items():
            value = math.exp(weight) if deduction.deduction.normalised else weight
            rows.append(PosteriorRow(name=f"{name}[{key}]", mean=value if math.isfinite(value) else None))
    return tuple(rows), told
