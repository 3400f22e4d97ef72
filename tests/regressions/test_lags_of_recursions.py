"""Each name of a recursion has a lag of its own (finding A9): densities against loops over the elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from qvr_core.analysis import Analyzer, analyse
from qvr_core.dsl import loads
from qvr_core.export import export
from qvr_core.ide.indices import order_note
from qvr_core.runtime.programs.handlers import by_rows, seed
from qvr_core.semantics.types.diagnostics import Severity
from qvr_core.semantics.types.model.steps import LetModel
from qvr_core.syntax.source import Cursor
from tests.regressions.lagged_recursions import CASES, EXPORTED, HEAD, SEPARATE, normal, values_of


def _prior(v: Mapping[str, torch.Tensor]) -> float:
    normal, beta = torch.distributions.Normal(0.0, 1.0), torch.distributions.Beta(2.0, 2.0)
    return float(normal.log_prob(v["level0"]) + normal.log_prob(v["season0"]).sum() + beta.log_prob(v["a"]))


@pytest.fixture
def double() -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", list(CASES))
def test_a9_the_density_is_that_of_a_loop_over_the_elements(name: str) -> None:
    density, body = CASES[name]
    model = loads(f"{HEAD}{body}    return a\n").morphism
    for point in (3, 4, 5, 6):
        values = values_of(name, point)
        plain = {key: value.numpy() for key, value in values.items()}
        assert float(model.log_joint(None, values)) == pytest.approx(density(plain) + _prior(values), rel=1e-9)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", EXPORTED)
def test_a9_an_export_has_the_same_density(name: str) -> None:
    density, body = CASES[name]
    values = values_of(name)
    scope: dict[str, Any] = {}
    exec(export(analyse(f"{HEAD}{body}    return a\n"), "seasons", "torch").text, scope)
    found = scope["Seasons"]({"y": values["y"].tolist()})({key: values[key] for key in ("level0", "season0", "a")})
    plain = {key: value.numpy() for key, value in values.items()}
    assert float(found) == pytest.approx(density(plain) + _prior(values), rel=1e-9)


FREE = """\
object Quarter : FinSet 9
program seasons : Quarter -> Quarter
    sample z[t : Quarter] <- Normal(0.0, 1.0)
    let (level, season)[t : Quarter] = (
        z[t] - season[t - 4] + 0.5 * level[t - 1], z[t] * level[t] + 0.7 * season[t - 4]
    ) from (0.25, (1.0, -2.0, 0.5, 0.75))
    sample h[t : Quarter] <- Normal(0.5 * h[t - 1] + season[t - 4] + level[t - 1], 1.0) from Normal(0.0, 1.0)
    observe y[t : Quarter] <- Normal(h[t], 1.0)
    return (level, season)
"""


@pytest.mark.usefixtures("double")
def test_a9_a_chain_begins_where_all_that_it_reads_is_there() -> None:
    (site,) = (one for one in analyse(FREE).model.programs["seasons"].steps if getattr(one, "site", None) is not None
               and one.site.name == "h")  # fmt: skip
    assert site.site.chain.indices[0].lag == 1
    rng = np.random.default_rng(0)
    z, h, y = (rng.normal(size=9) for _ in range(3))
    level, season = [0.25], [1.0, -2.0, 0.5, 0.75]
    wanted = sum(normal(one, 0.0) for one in z) + normal(h[0], 0.0) + sum(map(normal, y, h))
    for t in range(1, 9):
        last = season[t - 4] if t >= 4 else season[t]
        level.append(z[t] - last + 0.5 * level[t - 1])
        if t >= 4:
            season.append(z[t] * level[t] + 0.7 * last)
        wanted += normal(h[t], 0.5 * h[t - 1] + last + level[t - 1])
    for text in (FREE, FREE.replace("from Normal(0.0, 1.0)", "from Normal(0.0, 1.0) [noncentred]")):
        values = {key: torch.tensor(value) for key, value in (("z", z), ("h", h), ("y", y))}
        assert float(loads(text).morphism.log_joint(None, values)) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    ("start", "put"),
    [
        ("((level0, level0, level0, level0), season0)", "level0"),
        ("((level0, level0), season0)", "level0"),
    ],
)
def test_a9_first_elements_of_the_length_of_the_group_are_an_error_whose_fix_cuts_them(start: str, put: str) -> None:
    text = f"{HEAD}{CASES['additive'][1]}    return a\n".replace("(level0, season0)", start)
    (found,) = (one for one in analyse(text).diagnostics() if one.severity is not Severity.HINT)
    assert found.code.name == "missing-from"
    assert "`level` begins behind its first 1 element" in found.message
    assert [fix.title for fix in found.fixes] == [f"Change to `{put}`"]


def test_a9_a_hover_says_how_many_first_elements_each_name_has() -> None:
    program = analyse(f"{HEAD}{CASES['additive'][1]}    return a\n").model.programs["seasons"]
    (let,) = (step for step in program.steps if isinstance(step, LetModel))
    assert order_note(let) == "Runs in order. `from` gives the first elements: one of `level`, four of `season`."


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", SEPARATE)
def test_a9_what_a_group_draws_has_the_density_of_a_loop(name: str) -> None:
    density, body = CASES[name]
    first = 2 if "twice" in name else 1
    start = f"from ({', '.join(['Normal(0.0, 1.0)'] * first)})" if first > 1 else "from Normal(0.0, 1.0)"
    model = loads(f"{HEAD}{body.rstrip()} {start}\n    return a\n").morphism
    run = model.run(None, by_rows(3), seed(torch.Generator().manual_seed(5)))
    for row in range(3):
        drawn = {key: site.value[row] for key, site in run.sites.items()}
        assert drawn["y"].shape == (11,)
        given = sum(normal(float(one), 0.0) for one in drawn["y"][:first])
        wanted = density({key: value.numpy() for key, value in drawn.items()}) + given + _prior(drawn)
        assert float(run.log_joint()[row]) == pytest.approx(wanted, rel=1e-9)


def test_a9_an_edit_that_ties_lets_together_moves_where_they_begin() -> None:
    """As a fresh analysis says: the observed name, renamed and back, ties two lets and lets them go."""
    text = f"{HEAD}{CASES['separate lets'][1]}    return a\n"
    apart = text.replace("observe y[t", "observe w[t")
    analyzer = Analyzer(text)
    at = next(number for number, line in enumerate(text.splitlines()) if "observe y" in line)
    begins = Cursor(at, text.splitlines()[at].index("y["))
    for put, whole in (("w", apart), ("y", text)):
        analyzer.edit(begins, Cursor(at, begins.column + 1), put)
        now, fresh = (one.model.programs["seasons"].steps for one in (analyzer.snapshot(), analyse(whole)))
        assert [_lag(step) for step in now] == [_lag(step) for step in fresh]
    assert [_lag(step) for step in now][-3:] == [1, 4, 1]


def _lag(step: Any) -> int:
    indexed = getattr(step, "indexed", None)
    indices = indexed.indices if indexed is not None else step.site.indices if hasattr(step, "site") else ()
    return max((index.lag for index in indices), default=0)
