"""C8: names of data and of indices that Stan takes, whatever they are called in the program."""

from __future__ import annotations

from qvr_core.analysis import analyse
from qvr_core.export import export

SETS = "object School : FinSet _\nobject Row : FinSet _\nprogram p : Row -> Row\n"
END = "    return a\nexport p\n"


def stan(steps: str) -> str:
    snapshot = analyse(SETS + steps + END)
    assert [item.message for item in snapshot.diagnostics() if item.severity.name == "ERROR"] == []
    return export(snapshot, "p", "stan").text


def test_c8_data_called_like_their_set_are_exported() -> None:
    text = stan(
        "    data School : Row -> School\n    sample a : School <- Normal(0.0, 1.0)\n"
        "    observe y[r : Row] <- Normal(a[School[r]], 1.0)\n"
    )
    assert "array[n_row] int<lower=1, upper=n_school> School;" in text
    assert "normal_lpdf(y[r] | a[School[r]], 1.0)" in text


def test_c8_numbers_called_like_a_set_are_exported() -> None:
    text = stan(
        "    data School : Row -> Real 1\n    sample a : School <- Normal(0.0, 1.0)\n"
        "    observe y[r : Row] <- Normal(sum(a) + School[r], 1.0)\n"
    )
    assert "vector[n_row] School;" in text
    assert "sum(a) + School[r]" in text or "sum(a) + School" in text


def test_c8_indices_that_stan_does_not_take_are_called_otherwise() -> None:
    text = stan(
        "    data school : Row -> School\n    sample a : School <- Normal(0.0, 1.0)\n"
        "    sample b[__name__ : School] <- Normal(a[__name__], 1.0)\n"
        "    observe y[lp__ : Row] <- Normal(b[school[lp__]], 1.0)\n"
    )
    code = "\n".join(line.partition("//")[0] for line in text.splitlines())
    assert "lp__" not in code
    assert "__name__" not in code
    assert "for (lp_ in 1:n_row)" in code
    assert "b[school[lp_]]" in code
