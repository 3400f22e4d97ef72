"""Rows of the posterior table go by the labels of the sets that a site runs over."""

from __future__ import annotations

import torch
from rich.console import Console

from qvr_core import dsl
from qvr_core.cli.display import posterior_table
from qvr_core.runs.figures.posterior import axes_of, table
from qvr_core.runs.record.protocol import Finished, PosteriorRow

SOURCE = """
object Row : FinSet 9
object County : FinSet 2
object Feature : {floor, "living area"}
program p : Row -> Real 1
    sample beta[f : Feature] <- Normal(0.0, 1.0)
    sample u[c : County, f : Feature] <- Normal(0.0, 1.0)
    sample w : Feature <- Dirichlet(2.0)
    sample s <- HalfNormal(1.0)
    observe y : Row <- Normal(beta[floor] + u[0, floor] + w[0], s)
    return beta
"""


def test_rows_are_named_by_labels() -> None:
    model = dsl.loads(SOURCE).programs["p"]
    draws = {"beta": torch.randn(5, 2), "u": torch.randn(5, 2, 2), "w": torch.rand(5, 2), "s": torch.rand(5)}
    assert [row.name for row in table(draws, axes_of(model))] == [
        "beta[floor]", "beta[living area]",
        "u[0, floor]", "u[0, living area]", "u[1, floor]", "u[1, living area]",
        "w[floor]", "w[living area]",
        "s",
    ]  # fmt: skip


def test_a_label_is_no_markup_of_the_terminal() -> None:
    row = PosteriorRow(name="beta[floor]", mean=0.0, sd=1.0, q05=-1.0, median=0.0, q95=1.0)
    console = Console(width=100)
    with console.capture() as shown:
        other = row.model_copy(update={"name": "a[\x1b[31mx]"})
        console.print(posterior_table(Finished(step=1, seconds=1.0, posterior=(row, other))))
    assert "beta[floor]" in shown.get()
    assert "\x1b" not in shown.get()
