"""Each name of a recursion has a lag of its own (finding A9): densities against loops over the elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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

Values = Mapping[str, Any]

HEAD = """\
object Quarter : FinSet 11
object Season : FinSet 4
object Two : FinSet 2
object Shop : FinSet 3
program seasons : Quarter -> Quarter
    sample level0 <- Normal(0.0, 1.0)
    sample season0[k : Season] <- Normal(0.0, 1.0)
    sample a <- Beta(2.0, 2.0)
"""


def _normal(x: float, mean: float) -> float:
    return -0.5 * (x - mean) ** 2 - 0.5 * math.log(2.0 * math.pi)


def additive(v: Values) -> float:
    y, level, season, total = v["y"], [v["level0"]], list(v["season0"]), 0.0
    for t in range(1, 11):
        last = season[t - 4] if t >= 4 else v["season0"][t]
        total += _normal(y[t], level[t - 1] + last)
        level.append(v["a"] * (y[t] - last) + (1 - v["a"]) * level[t - 1])
        if t >= 4:
            season.append(0.3 * (y[t] - level[t]) + 0.7 * last)
    return total


def multiplied(v: Values) -> float:
    """No affine recursion, and what is read of data begins later still."""
    y, level, season, total = v["y"], [v["level0"]], list(v["season0"]), 0.0
    for t in range(1, 11):
        last = season[t - 4] if t >= 4 else v["season0"][t]
        total += _normal(y[t], level[t - 1] * last)
        level.append(math.tanh(level[t - 1] * last) + 0.1 * t)
        if t >= 4:
            season.append(math.exp(-(level[t] ** 2)) * last + 0.1 * y[t - 2])
    return total


def summed(v: Values) -> float:
    """A lag that is an index of its own, read by the other name."""
    y, level, wave, total = v["y"], [v["level0"]], list(v["season0"][:3]), 0.0
    for t in range(1, 11):
        before = [wave[t - 1 - j] if t - 1 - j >= 0 else wave[t - 1 - j + 3] for j in range(2)]
        total += _normal(y[t], level[t - 1] + before[0])
        level.append(0.5 * level[t - 1] + a_third(before))
        if t >= 3:
            wave.append(-0.4 * wave[t - 3] + 0.2 * y[t - 1])
    return total


def a_third(before: list[float]) -> float:
    return sum(before) / 3.0


def apart(v: Values) -> float:
    """Nothing but data is read: each name begins where its own are there."""
    y = v["y"]
    first = [v["level0"], *(2.0 * y[t - 1] for t in range(1, 11))]
    third = [*v["season0"][:3], *(y[t - 2] * y[t - 3] for t in range(3, 11))]
    return sum(_normal(y[t], first[t] + third[t]) for t in range(11))


def of_plates(v: Values) -> float:
    total = 0.0
    for s in range(3):
        y, level, season = v["y"][s], [v["level0"]], list(v["season0"])
        for t in range(1, 11):
            last = season[t - 4] if t >= 4 else v["season0"][t]
            total += _normal(y[t], level[t - 1] + last)
            level.append(v["a"] * (y[t] - last) + (1 - v["a"]) * level[t - 1])
            if t >= 4:
                season.append(0.3 * (y[t] - level[t]) + 0.7 * last)
    return total


def of_separate_lets(v: Values) -> float:
    y, level, season, total = v["y"], [v["level0"]], list(v["season0"]), 0.0
    for t in range(1, 11):
        total += _normal(y[t], level[t - 1] + (season[t - 4] if t >= 4 else v["season0"][t]))
        level.append(v["a"] * y[t] + (1 - v["a"]) * level[t - 1])
        if t >= 4:
            season.append(0.3 * (y[t] - level[t]) + 0.7 * season[t - 4])
    return total


def reading_one_another(v: Values) -> float:
    y, level, season, total = v["y"], [v["level0"]], list(v["season0"]), 0.0
    for t in range(1, 11):
        last = season[t - 4] if t >= 4 else v["season0"][t]
        total += _normal(y[t], math.tanh(level[t - 1]) * last)
        level.append(v["a"] * (y[t] - last) + math.sin(level[t - 1]))
        if t >= 4:
            season.append(0.3 * (y[t] - y[t - 1]) + 0.7 * last)
    return total


def read_twice_back(v: Values) -> float:
    """One let is read further back by the other than by itself."""
    y, level, season, total = v["y"], [v["level0"], 0.5], list(v["season0"]), 0.0
    for t in range(2, 11):
        last = season[t - 4] if t >= 4 else v["season0"][t]
        total += _normal(y[t], level[t - 1] + last)
        level.append(v["a"] * y[t] + (1 - v["a"]) * level[t - 1])
        if t >= 4:
            season.append(0.3 * (y[t] - level[t - 2]) + 0.7 * last)
    return total


def separate_plates(v: Values) -> float:
    return sum(of_separate_lets({**v, "y": v["y"][s]}) for s in range(3))


CASES: dict[str, tuple[Callable[[Values], float], str]] = {
    "separate lets": (
        of_separate_lets,
        """\
    let level[t : Quarter] = a * y[t] + (1 - a) * level[t - 1] from level0
    let season[k : Quarter] = 0.3 * (y[k] - level[k]) + 0.7 * season[k - 4] from season0
    observe y[t : Quarter] <- Normal(level[t - 1] + season[t - 4], 1.0)
""",
    ),
    "separate lets, one reads the other": (
        reading_one_another,
        """\
    let season[t : Quarter] = 0.3 * (y[t] - y[t - 1]) + 0.7 * season[t - 4] from season0
    let level[t : Quarter] = a * (y[t] - season[t - 4]) + sin(level[t - 1]) from level0
    observe y[t : Quarter] <- Normal(tanh(level[t - 1]) * season[t - 4], 1.0)
""",
    ),
    "separate lets, read twice back": (
        read_twice_back,
        """\
    let level[t : Quarter] = a * y[t] + (1 - a) * level[t - 1] from (level0, 0.5)
    let season[t : Quarter] = 0.3 * (y[t] - level[t - 2]) + 0.7 * season[t - 4] from season0
    observe y[t : Quarter] <- Normal(level[t - 1] + season[t - 4], 1.0)
""",
    ),
    "separate lets of plates": (
        separate_plates,
        """\
    let level[s : Shop, t : Quarter] = a * y[s, t] + (1 - a) * level[s, t - 1] from level0
    let season[t : Quarter, s : Shop] = 0.3 * (y[s, t] - level[s, t]) + 0.7 * season[t - 4, s] from season0
    observe y[s : Shop, t : Quarter] <- Normal(level[s, t - 1] + season[t - 4, s], 1.0)
""",
    ),
    "additive": (
        additive,
        """\
    let (level, season)[t : Quarter] = (
        a * (y[t] - season[t - 4]) + (1 - a) * level[t - 1], 0.3 * (y[t] - level[t]) + 0.7 * season[t - 4]
    ) from (level0, season0)
    observe y[t : Quarter] <- Normal(level[t - 1] + season[t - 4], 1.0)
""",
    ),
    "multiplied": (
        multiplied,
        """\
    let (level, season)[t : Quarter] = (
        tanh(level[t - 1] * season[t - 4]) + 0.1 * t, exp(-level[t]^2) * season[t - 4] + 0.1 * y[t - 2]
    ) from (level0, season0)
    observe y[t : Quarter] <- Normal(level[t - 1] * season[t - 4], 1.0)
""",
    ),
    "summed": (
        summed,
        """\
    let (level, wave)[t : Quarter] = (
        0.5 * level[t - 1] + sum(wave[t - 1 - j] for j : Two) / 3, -0.4 * wave[t - 3] + 0.2 * y[t - 1]
    ) from (level0, (season0[0], season0[1], season0[2]))
    observe y[t : Quarter] <- Normal(level[t - 1] + wave[t - 1], 1.0)
""",
    ),
    "apart": (
        apart,
        """\
    let (first, third)[t : Quarter] = (2 * y[t - 1], y[t - 2] * y[t - 3])
        from (level0, (season0[0], season0[1], season0[2]))
    observe y[t : Quarter] <- Normal(first[t] + third[t], 1.0)
""",
    ),
    "of plates": (
        of_plates,
        """\
    let (level, season)[s : Shop, t : Quarter] = (
        a * (y[s, t] - season[s, t - 4]) + (1 - a) * level[s, t - 1],
        0.3 * (y[s, t] - level[s, t]) + 0.7 * season[s, t - 4]
    ) from (level0, season0)
    observe y[s : Shop, t : Quarter] <- Normal(level[s, t - 1] + season[s, t - 4], 1.0)
""",
    ),
}


SEPARATE = [name for name in CASES if name.startswith("separate") and "plates" not in name]


def _values(name: str) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(3)
    shape = (3, 11) if name.endswith("of plates") else (11,)
    numbers = {"level0": 0.4, "season0": rng.normal(size=4), "a": 0.3, "y": rng.normal(size=shape)}
    return {key: torch.tensor(value, dtype=torch.float64) for key, value in numbers.items()}


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
    values = _values(name)
    found = loads(f"{HEAD}{body}    return a\n").morphism.log_joint(None, values)
    plain = {key: value.numpy() for key, value in values.items()}
    assert float(found) == pytest.approx(density(plain) + _prior(values), rel=1e-9)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", ["additive", "multiplied", "apart", *SEPARATE])
def test_a9_an_export_has_the_same_density(name: str) -> None:
    density, body = CASES[name]
    values = _values(name)
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
    wanted = sum(_normal(one, 0.0) for one in z) + _normal(h[0], 0.0) + sum(map(_normal, y, h))
    for t in range(1, 9):
        last = season[t - 4] if t >= 4 else season[t]
        level.append(z[t] - last + 0.5 * level[t - 1])
        if t >= 4:
            season.append(z[t] * level[t] + 0.7 * last)
        wanted += _normal(h[t], 0.5 * h[t - 1] + last + level[t - 1])
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
        given = sum(_normal(float(one), 0.0) for one in drawn["y"][:first])
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
