"""The figure on held-out text: bits per token by K draws of the latents from the model (docs/reference.md#text)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from qvr_core.arrays.engine import Tensor, arrays
from qvr_core.arrays.random_state import random_state_kept
from qvr_core.data.text import TextWindows
from qvr_core.runs.prepare.prepare import Prepared
from qvr_core.runtime.programs.handlers import condition, densities
from qvr_core.runtime.programs.program import ProgramModule

ROWS_AT_ONCE = 1024


def held_out_figure(prepared: Prepared, *, rows: int, draws: int, seed: int) -> tuple[float, float, int]:
    """(bits per token, its one-sample bound, rows used).

    Per row −log₂(1/K Σ p(y | h_k)) with h_k drawn from the model; `bound` is the mean of −log₂ p(y | h_k).  Rows are
    spread evenly over the held-out stretch and the draws have a seed of their own, so two runs compare the same thing;
    the generators of the fit are left as they were.
    """
    windows = prepared.held_out
    assert isinstance(windows, TextWindows)
    model, site = prepared.model, windows.task.site.name
    numbers = windows.spread(rows)
    total = total_bound = 0.0
    training = model.training
    model.eval()
    with arrays.no_grad(), random_state_kept(prepared.device):
        arrays.manual_seed(seed)
        for chunk in arrays.split(numbers, ROWS_AT_ONCE):
            x, observations = prepared.move(windows.batch(chunk, arrays.Generator().manual_seed(seed)))
            log_p = _log_probs(model, site, x, observations, draws).double()
            total += float((math.log(len(log_p)) - log_p.logsumexp(0)).sum())
            total_bound += float(-log_p.mean(0).sum())
    model.train(training)
    per_bit = math.log(2) * len(numbers) * windows.tokens_per_row
    return total / per_bit, total_bound / per_bit, len(numbers)


def _log_probs(model: ProgramModule, site: str, x: Any, observations: Mapping[str, Any], draws: int) -> Tensor:
    """log p(y | h) by draw and row, with the latents h drawn from the model; one draw where nothing is drawn."""
    found: list[Tensor] = []
    for _ in range(draws):
        sites = model.execute(x, condition(observations), densities("observed")).sites
        log_prob = sites[site].log_prob
        assert log_prob is not None
        found.append(log_prob)
        if not any(record.noise for record in sites.values()):
            break
    return arrays.stack(found)
