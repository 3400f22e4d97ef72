"""`batch_size` with declared data: parts of the rows, scaled up, stand for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from qvr_core.analysis import analyse
from qvr_core.data.binding import Whole
from qvr_core.inference import ELBO, AutoNormalGuide
from qvr_core.runs.fit.stop import Stop
from qvr_core.runs.fit.svi import SviFit
from qvr_core.runs.prepare.failures import Refused
from qvr_core.runs.prepare.parts_of_rows import parts_of
from qvr_core.runs.prepare.prepare import Prepared, prepare
from tests.runs.jobs import make_job

MODEL = """\
object Row, G : FinSet _
object F : FinSet 2
program p : Row -> Row
    data g : Row -> G
    data x : Row * F
    data z, w : G
    data y, n : Row
    sample u[k : G] <- Normal(0.3 * z[k], 1.0)
    sample b : F <- Normal(0.0, 1.0)
    sample s <- HalfNormal(1.0)
    let m[i : Row] = u[g[i]] + sum(b[f] * x[i, f] for f : F)
    marginalize c : Row <- Bernoulli(0.3)
        observe y : Row <- Normal(m + c, s)
    observe n : Row <- Normal(b[0] * m, 2.0)
    observe w[k : G] <- Normal(u[k], s)
    score far = -3.0 * (s - 1.0)^2
    return u
"""
ROWS = 12


def prepared(folder: Path, text: str, batch_size: int | None = 4, **config: object) -> Prepared:
    rows = [f"{'abc'[at % 3]},{at % 5 - 2},{at * at % 7},{at % 4 - 1.5},{at % 3}" for at in range(ROWS)]
    (folder / "d.csv").write_text("\n".join(["g,x_0,x_1,y,n", *rows]))
    (folder / "g.csv").write_text("G,z,w\na,1,0\nb,-2,1\nc,0.5,2\n")
    tables = {"G": f"csv:{folder}/g.csv"}
    job = make_job(folder, text, data="csv:d.csv", tables=tables, batch_size=batch_size, **config)
    return prepare(job, analyse(job.text))


@pytest.mark.parametrize("declared_size", [False, True])
@pytest.mark.parametrize("size", [1, 3, 4, 6])
def test_the_mean_over_all_parts_is_the_bound_of_all_rows(tmp_path: Path, size: int, declared_size: bool) -> None:
    text = MODEL
    if declared_size:
        text = text.replace("Row, G : FinSet _", "G : FinSet _").replace(
            "object F", f"object Row : FinSet {ROWS}\nobject F"
        )
    made = prepared(tmp_path, text, size)
    parts, train = parts_of(made), made.train
    assert parts is not None and isinstance(train, Whole)
    guide = AutoNormalGuide(made.model, observed_names={"y", "n", "w"})

    def loss(model: object, data: object, *handlers: object) -> float:
        torch.manual_seed(3)
        bound = ELBO(2, handlers=handlers)  # pyright: ignore[reportArgumentType]
        return float(bound(model, guide, None, data).detach())  # pyright: ignore[reportArgumentType]

    whole = loss(made.model, train.observations)
    order = torch.randperm(ROWS, generator=torch.Generator().manual_seed(1)).reshape(-1, size)
    found = [loss(parts.model, parts.batch(rows)[1], parts.scaled) for rows in order]
    assert sum(found) / len(found) == pytest.approx(whole, rel=1e-4)
    assert size == ROWS or max(found) - min(found) > 0.1


@pytest.mark.long
def test_a_fit_in_parts_ends_with_the_posterior_of_all_rows(tmp_path: Path) -> None:
    text = """\
object Row : FinSet _
program p : Row -> Row
    data y : Row
    sample m <- Normal(0.0, 2.0)
    observe y[i : Row] <- Normal(m, 1.0)
    return m
"""
    ys = torch.linspace(-1.0, 3.0, 40)
    (tmp_path / "d.csv").write_text("\n".join(["y", *(f"{y:.6f}" for y in ys.tolist())]))
    job = make_job(tmp_path, text, data="csv:d.csv", batch_size=10, steps=1500, learning_rate=0.05)
    fit = SviFit(prepare(job, analyse(job.text)), Stop())
    rows = next(event for event in fit.run() if event.event == "finished").posterior  # pyright: ignore
    [row] = [one for one in rows if one.name == "m"]  # pyright: ignore
    precision = 40 + 1 / 4
    assert row.mean == pytest.approx(float(ys.sum()) / precision, abs=0.05)  # pyright: ignore
    assert row.sd == pytest.approx(precision**-0.5, rel=0.15)  # pyright: ignore


def test_as_many_rows_as_there_are_is_no_part(tmp_path: Path) -> None:
    text = MODEL
    assert parts_of(prepared(tmp_path, text, ROWS)) is None
    assert parts_of(prepared(tmp_path, text, None)) is None


REFUSED = {
    "earlier elements of `Row`": "    observe y[i : Row] <- Normal(u[g[i]] + 0.5 * y[i - 1], s)",
    "`w` is a latent for every element": "    sample w : Row <- Normal(0.0, 1.0)\n    observe y : Row <- Normal(w, s)",
    "missing cells of `y`": "    observe y : Row <- Normal(u[g], s) [missing=impute]",
    "`t` depends on the rows and is no sum": "    let w[i : Row] = 0.1 * i * y[i]\n    score t = sum(w)",
    "`t` depends on the rows": "    score t = -size(Row) * s",
    "`y` depends on the rows and is no sum": "    observe y[i : Row] <- Normal(s * i, s)",
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_is_no_sum_over_rows_is_refused(tmp_path: Path, said: str) -> None:
    text = """\
object Row, G : FinSet _
program p : Row -> Row
    data g : Row -> G
    data y : Row
    sample u : G <- Normal(0.0, 1.0)
    sample s <- HalfNormal(1.0)
STEP
    return u
"""
    with pytest.raises(Refused, match=said):
        parts_of(prepared(tmp_path, text.replace("STEP", REFUSED[said])))


def test_a_latent_of_each_row_is_told_the_form_that_has_no_entry_for_each(tmp_path: Path) -> None:
    text = """\
object Row : FinSet _
program p : Row -> Row
    data y : Row
    sample w[i : Row] <- Normal(0.0, 1.0)
    observe y[i : Row] <- Normal(w[i], 1.0)
    return w
"""
    with pytest.raises(Refused) as refused:
        parts_of(prepared(tmp_path, text))
    first, *_ = refused.value.fixes
    assert "`program p(x) : A -> B` with `sample w <- f(x)`" in first
    assert "`program encoder : A -> B [guide=p]` (an amortised guide" in first
    assert refused.value.fixes[-1] == "Leave batch_size out"


@pytest.mark.parametrize("guide", ["pathfinder", "dais"])
def test_guides_that_read_all_data_are_refused_a_part_of_them(guide: str, tmp_path: Path) -> None:
    made = prepared(tmp_path, MODEL, guide=guide)
    with pytest.raises(Refused, match=f"guide = {guide} needs all rows in each step: leave batch_size out"):
        SviFit(made, Stop())
