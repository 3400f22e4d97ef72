"""How often a fitted program is right about held-out rows: per site observed from a finite arrow, beside the commonest
value."""

from __future__ import annotations

import math
from collections import Counter

from qvr_core.arrays.engine import arrays
from qvr_core.arrays.random_state import random_state_kept
from qvr_core.data.sentence_pairs import SentencePairs
from qvr_core.runs.prepare.prepare import Prepared
from qvr_core.runs.record.protocol import Accuracy
from qvr_core.runtime.programs.handlers import condition, densities, tables
from qvr_core.semantics.types.spaces import Finite, item_of

ROWS_AT_ONCE = 128
Z95 = 1.959964
"""The normal quantile of a two-sided 95 % interval."""


def accuracies(prepared: Prepared, *, rows: int, seed: int) -> tuple[tuple[Accuracy, ...], int]:
    """(accuracy of each observed site, rows used) on rows spread evenly over the held-out part.

    What is drawn for them has a seed of its own, so two runs compare the same thing; the generators of the fit are left
    as they were.
    """
    held_out = prepared.held_out
    assert isinstance(held_out, SentencePairs)
    numbers = held_out.spread(rows)
    generator = arrays.Generator().manual_seed(seed)
    sites = [need.name for need in prepared.needs.observed]
    right = dict.fromkeys(sites, 0)
    truths: dict[str, list[int]] = {name: [] for name in sites}
    model = prepared.model
    training = model.training
    model.eval()
    with arrays.no_grad(), random_state_kept(prepared.device):
        arrays.manual_seed(seed)
        for chunk in arrays.split(numbers, ROWS_AT_ONCE):
            x, observations = prepared.move(held_out.batch(chunk, generator))
            run = model.execute(x, condition(observations), densities("observed"), tables)
            for name in sites:
                table, counted = run.sites[name].log_table, run.sites[name].counted
                if table is None:
                    # what is drawn from a family has no table of its values
                    continue
                truth, best = observations[name], table.argmax(-1)
                if counted is not None:
                    truth, best = truth[counted], best[counted]
                right[name] += int((truth == best).sum())
                truths[name] += truth.tolist()
    model.train(training)
    found = tuple(_accuracy(prepared, name, right[name], truths[name]) for name in sites if truths[name])
    return found, len(numbers)


def _accuracy(prepared: Prepared, site: str, right: int, truths: list[int]) -> Accuracy:
    value, often = Counter(truths).most_common(1)[0]
    low, high = wilson(right, len(truths))
    return Accuracy(
        site=site,
        count=len(truths),
        accuracy=right / len(truths),
        low=low,
        high=high,
        baseline=often / len(truths),
        commonest=_written(prepared, site, value),
    )


def _written(prepared: Prepared, site: str, value: int) -> str:
    """A value of a site as people write it: its label, or its word."""
    held_out = prepared.held_out
    assert isinstance(held_out, SentencePairs)
    space = item_of(prepared.model.sites[site].site.bound[0][1].space)
    if isinstance(space, Finite) and space.labels is not None:
        return space.labels[value]
    masked = held_out.task.masked
    return held_out.text([value]).strip() if masked is not None and masked.name == site else str(value)


def wilson(right: int, count: int) -> tuple[float, float]:
    """The ends of Wilson's 95 % interval for a binomial share (Wilson 1927)."""
    share, squared = right / count, Z95 * Z95 / count
    middle = share + squared / 2
    half = Z95 * math.sqrt(share * (1 - share) / count + squared / (4 * count))
    return (middle - half) / (1 + squared), (middle + half) / (1 + squared)
