"""What goes wrong is said at run time: program, place, what was expected and what came; nothing is changed by it."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from qvr_core.dsl import load, loads
from qvr_core.inference import ELBO, MCMC, SVI, AutoNormalGuide, AutoPriorGuide, NUTSKernel, bayesian_lift_parameters
from qvr_core.runtime.programs.handlers import condition
from qvr_core.runtime.values.errors import InputProblem, MissingData, NonFinite, RuntimeProblem
from tests.inference import posteriors


def statistical(body: str) -> Any:
    steps = "\n".join("    " + line for line in body.strip().splitlines())
    return loads(f"object Row : FinSet 6\nobject Group : FinSet 3\nprogram p : Row -> Row\n{steps}\n").morphism


TOKENS = """
object Token : FinSet 5
object E : Real 3
object Y : Real 1
morphism embed : Token -> E [role=embed]
morphism head : E -> Y [role=kernel] ~ Normal
let path = embed >> head
program p : Token -> Y
    observe y <- path
    return y
"""


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.tensor([1.0, 2.0]), r"`p`, the input: expected int64 \(B,\) \(Token, FinSet 5\), found float32 \(2,\)"),
        (torch.tensor([[1, 2]]), r"`p`, the input: expected int64 \(B,\) .*found int64 \(1, 2\)"),
        (torch.tensor([1, 7]), r"`p`, the input: expected indices 0 … 4 .*found index 7"),
        (torch.tensor([1, -1]), r"found index -1"),
    ],
)
def test_an_input_of_indices(x: torch.Tensor, message: str) -> None:
    with pytest.raises(InputProblem, match=message):
        loads(TOKENS).morphism.rsample(x)


def test_whole_numbers_beside_reals_may_stand_in_one_float_tensor() -> None:
    text = TOKENS.replace("program p : Token -> Y", "program p(t, z) : Token * E -> Y").replace(
        "observe y <- path", "observe y <- path(t)"
    )
    model = loads(text).morphism
    x = torch.cat([torch.tensor([[1.0], [3.0]]), torch.randn(2, 3)], -1)
    assert model.rsample(x).shape == (2, 1)
    with pytest.raises(InputProblem, match="expected int64"):
        model.rsample(x + 0.5)


INDICES = {
    "gather": "sample t : Group <- Normal(0.0, 1.0)\nobserve y : Row <- Normal(t[g], 0.5)\nreturn t",
    "via": "sample t : Group <- Normal(0.0, 1.0)\nobserve y : Row <- Normal(t, 0.5) [via=g]\nreturn t",
}


@pytest.mark.parametrize("kind", INDICES)
@pytest.mark.parametrize(
    ("g", "message"),
    [
        (torch.zeros(6), r"`p`, data `g`: expected whole numbers \(int64\), found float32 \(6,\)"),
        (torch.tensor([0, 1, 2, 3, 0, 0]), "`p`, data `g`: expected indices 0 … 2, found index 3"),
        (torch.tensor([0, 1, 2, -1, 0, 0]), "`p`, data `g`: expected indices 0 … 2, found index -1"),
    ],
)
def test_data_of_indices(kind: str, g: torch.Tensor, message: str) -> None:
    model = statistical(INDICES[kind])
    with pytest.raises(InputProblem, match=message):
        model.execute(None, condition({"y": torch.randn(6), "g": g}))


def test_groups_of_a_marginalised_latent_are_counted() -> None:
    data = {"y": torch.randn(11), "n": torch.ones(11), "g": torch.full((11,), 4)}
    with pytest.raises(InputProblem, match="data `g`: expected indices 0 … 3, found index 4"):
        loads(posteriors.GROUPED_MIXTURE).morphism.execute(None, condition(data))


@pytest.mark.parametrize(("value", "found"), [(2.0, "2.0"), (0.5, "0.5"), (-1.0, "-1.0")])
def test_categories_outside_their_set(value: float, found: str) -> None:
    model = statistical("observe y : Row <- Categorical([0.2, 0.8])\nreturn y")
    with pytest.raises(InputProblem, match=f"`p`, site `y`: expected values 0 … 1, found {found}"):
        model.execute(None, condition({"y": torch.full((6,), value)}))


def test_data_of_unequal_lengths_and_missing_data() -> None:
    model = statistical("sample m <- Normal(0.0, 1.0)\nobserve y : Row <- Normal(m * z, 1.0)\nreturn m")
    with pytest.raises(InputProblem, match="site `y`"):
        model.execute(None, condition({"y": torch.randn(6), "z": torch.randn(5)}))
    with pytest.raises(MissingData, match="program `p` needs data `z`"):
        model.execute(None, condition({"y": torch.randn(6)}))


def test_another_length_of_a_plain_plate_is_noted_once() -> None:
    model = statistical("sample m <- Normal(0.0, 1.0)\nobserve y : Row <- Normal(m, 1.0)\nreturn m")
    with pytest.warns(UserWarning, match="`p`, site `y`: `: Row` declares 6 rows, and the data has 9"):
        run = model.execute(None, condition({"y": torch.randn(9)}))
    assert run.sites["y"].log_prob.shape == (1,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.execute(None, condition({"y": torch.randn(8)}))
        shared = statistical("sample m : Row <- Normal(0.0, 1.0)\nobserve y : Row <- Normal(m, 1.0)\nreturn m")
        with pytest.raises(InputProblem, match="site `y`"):
            shared.execute(None, condition({"y": torch.randn(9)}))


def test_data_called_x_goes_by_keyword() -> None:
    model = statistical("sample m <- Normal(0.0, 1.0)\nobserve y : Row <- Normal(m * x, 0.01)\nreturn y")
    x = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 50.0])
    drawn = model.rsample(None, x=x)
    torch.manual_seed(0)
    by_name = model.rsample(None, observations={"x": x})
    assert torch.equal(torch.manual_seed(0) and model.rsample(x=x), by_name)
    assert float(drawn.abs()[0, :5].max()) < 0.1
    with pytest.raises(InputProblem, match="no data and no site `z`; it has `m`, `x`, `y`"):
        model.rsample(None, z=x)
    assert loads(TOKENS).morphism.rsample(x=torch.tensor([1, 2])).shape == (2, 1)


def test_literals_lie_where_the_data_or_the_parameters_lie() -> None:
    """`meta` tensors refuse to meet those of another device."""
    model = statistical(
        "sample m : Group <- Normal([0.0, 1.0, 2.0], 1.0)\nlet s = [1.0, 2.0, 3.0] * 2.0\n"
        "observe y : Group <- Normal(m + sum(s), 1.0)\nreturn m"
    )
    run = model.execute(None, condition({"y": torch.zeros(3, device="meta")}))
    assert run.log_joint().device.type == run.sites["m"].value.device.type == "meta"
    assert model.execute(None, condition({"y": torch.zeros(3)})).log_joint().device.type == "cpu"
    text = """
object Row : FinSet 4
object X : Real 2
object Y : Real 1
morphism f : X -> Y [role=linear]
program q : Row -> Row
    sample h : X <- Normal(0.0, 1.0)
    sample k <- Normal(f(h), 1.0)
    return k
"""
    moved = loads(text).morphism.to("meta")
    assert moved.rsample(None).device.type == "meta"


# ---------------------------------------------------------------- what is not finite

ROOT = """
object Row : FinSet 2
program p : Row -> Row
    sample m <- Normal(0.0, 1.0)
    observe y : Row <- Normal(sqrt(abs(m - m)), 1.0)
    return m
"""


def test_a_gradient_that_is_not_finite_is_named_and_nothing_moves() -> None:
    """sqrt(|m − m|) is 0, and its slope there is 0 · ∞."""
    model = loads(ROOT).morphism
    guide = AutoNormalGuide(model, observed_names={"y"})
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.1), ELBO())
    before = [p.clone() for p in guide.parameters()]
    with pytest.raises(
        NonFinite, match=r"step 1: `p`: site `y`: its log density is finite, but the gradient of `guide\."
    ):
        svi.step(None, {"y": torch.tensor([0.3, -0.2])})
    assert all(torch.equal(a, b) for a, b in zip(before, guide.parameters(), strict=True))


def test_the_step_is_counted() -> None:
    model = loads(posteriors.NORMAL_NORMAL).morphism
    guide = AutoNormalGuide(model, observed_names={"y"})
    svi = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.01), ELBO())
    good, bad = torch.zeros(8), torch.tensor([0.0] * 7 + [math.inf])
    for _ in range(3):
        svi.step(None, {"y": good})
    with pytest.raises(NonFinite, match="step 4: `location`: site `y`: the observed value has 1 infinite of 8"):
        svi.step(None, {"y": bad})
    assert math.isfinite(svi.step(None, {"y": good}))


def test_a_failed_step_draws_no_more_numbers_than_a_good_one() -> None:
    model = loads(posteriors.NORMAL_NORMAL).morphism
    guide = AutoNormalGuide(model, observed_names={"y"})
    states = []
    for y in (torch.zeros(8), torch.full((8,), math.nan)):
        svi = SVI(model, guide, torch.optim.SGD(guide.parameters(), lr=0.0), ELBO())
        torch.manual_seed(2)
        with contextlib.suppress(NonFinite):
            svi.step(None, {"y": y})
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


def test_an_observed_value_outside_the_support_is_named() -> None:
    """The log density of a Weibull of shape 2 at time 0 is log 0; a time 0 that is censored has survival 1."""
    model = loads(
        "object Row : FinSet 3\nprogram p : Row -> Row\n    data late : Row -> Bool\n"
        "    sample k <- LogNormal(0.0, 0.5)\n"
        "    observe time[i : Row] <- Weibull(k, 2.0) [right_censored=late]\n    return k\n"
    ).morphism
    given = {"time": torch.tensor([0.0, 1.0, 0.0]), "late": torch.tensor([1, 0, 0])}
    with pytest.raises(NonFinite, match=r"outside the support, .*: `time\[2\]` is 0, counted from 0"):
        MCMC(NUTSKernel(), 5, 5).run(model, None, given)


def test_a_chain_without_a_start_names_the_site() -> None:
    model = loads(posteriors.GAMMA_POISSON).morphism
    with pytest.raises(NonFinite, match=r"no start .* site `y`: its log density has .* outside the support") as caught:
        MCMC(NUTSKernel(), 5, 5).run(model, None, {"y": torch.tensor([1.5] * 9)})
    assert caught.value.site == "y"
    lifted, x, given = bayesian_lift_parameters(loads(TOKENS).morphism, torch.tensor([1, 2]), {"y": torch.ones(2, 1)})
    with torch.no_grad():
        next(iter(lifted.model.parameters())).fill_(math.nan)
    with pytest.raises(NonFinite, match="no start"):
        MCMC(NUTSKernel(), 5, 5).run(lifted, x, given)


def test_a_lost_parameter_is_named() -> None:
    model = loads(TOKENS).morphism
    with torch.no_grad():
        model.get_submodule("embed").weight[0, 0] = math.nan
    svi = SVI(model, AutoPriorGuide(model), torch.optim.SGD(model.parameters(), lr=0.1), ELBO())
    with pytest.raises(NonFinite, match=r"the parameter `embed\.weight` is no longer finite"):
        svi.step(torch.tensor([0, 1]), {"y": torch.ones(2, 1)})


SCHOOLS = """\
object School : FinSet 8

program schools : School -> School
    sample mu <- Normal(0.0, 5.0)
    sample k <- Poisson(2.0)
    sample z : School <- Normal(mu, 1.0)
    observe y : School <- Normal(z, sd)
    return y
"""
Y = {"y": torch.zeros(8), "sd": torch.ones(8)}


@pytest.mark.parametrize(
    ("act", "line"),
    [
        (lambda m: MCMC(NUTSKernel(), num_samples=2, num_warmup=2).run(m, None, Y), 5),
        (lambda m: m.rsample(observations={"y": torch.zeros(8)}), 7),
        (lambda m: m.rsample(observations={"y": torch.zeros(7), "sd": torch.ones(5)}), 7),
        (lambda m: m.rsample(bogus=3), 3),
    ],
)
def test_python_hears_the_line_of_the_site(tmp_path: Path, act: Callable[[Any], object], line: int) -> None:
    file = tmp_path / "schools.qvr"
    file.write_text(SCHOOLS)
    with pytest.raises(RuntimeProblem) as caught:
        act(load(file).morphism)
    assert caught.value.__notes__ == [f"at {file}:{line}"]
    assert caught.value.place == f"{file}:{line}"


def test_the_line_is_that_of_the_innermost_program() -> None:
    text = (
        "object R : Real 2\nprogram inner(x) : R -> R\n    sample y : R <- Poisson(log(x))\n    return y\n"
        "program outer(x) : R -> R\n    sample z <- inner(x)\n    return z\nexport outer\n"
    )
    with pytest.raises(NonFinite) as caught:
        loads(text).morphism.rsample(torch.zeros(3, 2))
    assert caught.value.place == "<text>:3"


def test_a_start_without_a_density_names_the_line() -> None:
    model = loads(SCHOOLS.replace("    sample k <- Poisson(2.0)\n", "")).morphism
    with pytest.raises(NonFinite) as caught:
        MCMC(NUTSKernel(), num_samples=2, num_warmup=2).run(model, None, {**Y, "y": torch.full((8,), math.nan)})
    assert caught.value.place == "<text>:6"


def test_an_instance_of_a_template_and_an_exported_let_know_their_lines() -> None:
    program = loads("program p(n : Nat) : FinSet 2 -> FinSet 2\n    observe y <- Normal(0.0, sd)\n    return y\n")
    with pytest.raises(MissingData) as caught:
        program.p(n=3).morphism.rsample()
    assert caught.value.place == "<text>:2"
    let = loads("object R : Real 2\nmorphism f : R -> R [role=linear]\nlet g = f >> f\nexport g\n").morphism
    with pytest.raises(InputProblem) as refused:
        let.rsample(torch.zeros(3, 5))
    assert refused.value.place == "<text>:3"


def _logarithm(a: torch.Tensor, body: str = "") -> tuple[Any, dict[str, torch.Tensor]]:
    lines = (
        f"sample b <- Normal(0.0, 1.0)\nlet mu = log(a - 100.0)\n{body}observe y : Row <- Normal(mu + b, 1.0)\nreturn b"
    )
    return statistical(lines), {"a": a, "y": torch.zeros(6)}


@pytest.mark.parametrize(
    ("a", "message"),
    [
        (
            torch.tensor([-12.0, 0.0, 20.0, 50.0, 90.0, 96.0]),
            r"`log\(a - 100.0\)` is NaN in 6 of 6 rows: `a - 100.0` is between -112 and -4 there",
        ),
        (
            torch.tensor([101.0, 102.0, 103.0, 99.0, 104.0, 105.0]),
            r"is NaN in 1 of 6 rows, the first in row 4, counted from 1: `a - 100.0` is -1 there",
        ),
        (
            torch.tensor([101.0, 102.0, 100.0, 103.0, 104.0, 105.0]),
            r"is infinite in 1 of 6 rows, the first in row 3, counted from 1",
        ),
    ],
)
def test_the_expression_that_made_a_number_infinite_or_nan_first_is_named(a: torch.Tensor, message: str) -> None:
    model, data = _logarithm(a)
    guide = AutoNormalGuide(model, observed_names={"y"})
    fit = SVI(model, guide, torch.optim.Adam(guide.parameters()), ELBO())
    for act in (
        lambda: fit.step(None, data),
        lambda: MCMC(NUTSKernel(), 2, 2, seed=0).run(model, None, data),
    ):
        with pytest.raises(NonFinite, match=message) as caught:
            act()
        assert caught.value.site == "mu"


def test_an_infinity_that_nothing_takes_over_is_not_blamed() -> None:
    lines = """
sample b <- Normal(0.0, 1.0)
let safe = where(a > 100.0, log(a - 100.0), 0.0)
let steep = exp(a * 10.0)
observe y : Row <- Normal(safe + b * steep, 1.0)
return b
"""
    model = statistical(lines)
    guide = AutoNormalGuide(model, observed_names={"y"})
    fit = SVI(model, guide, torch.optim.Adam(guide.parameters()), ELBO())
    with pytest.raises(
        NonFinite, match=r"`exp\(a \* 10.0\)` is infinite in 1 of 6 rows, the first in row 6, counted from 1"
    ):
        fit.step(None, {"a": torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 90.0]), "y": torch.zeros(6)})


@pytest.mark.parametrize(
    "step", ["score s = sum(log(a - 100.0)) * b", "observe z : Row <- Normal(sqrt(a - 100.0), 1.0)"]
)
def test_scores_and_arguments_name_their_expressions(step: str) -> None:
    model = statistical(f"sample b <- Normal(0.0, 1.0)\n{step}\nreturn b")
    data = {"a": torch.arange(6.0), **({"z": torch.zeros(6)} if "z :" in step else {})}
    with pytest.raises(NonFinite, match=r"\(a - 100.0\)` is NaN in 6 of 6 rows: `a - 100.0` is between -100 and -95"):
        MCMC(NUTSKernel(), 2, 2, seed=0).run(model, None, data)


def test_the_slope_of_a_branch_that_is_not_taken_is_blamed() -> None:
    model = statistical("""
data x : Row
sample a <- HalfNormal(1.0)
let f[i : Row] = where(x[i] == 0, 0.0, x[i]^a * log(x[i]))
observe y[i : Row] <- Normal(f[i], 1.0)
return a
""")
    given = {"x": torch.arange(6.0).double(), "y": torch.zeros(6).double()}
    wanted = (
        r"finite gradient in \d+ attempts: .*site `y`: .*its gradient by `a` has 1 NaN of 1; of a `where` both branches"
    )
    with pytest.raises(NonFinite, match=wanted), pytest.warns(UserWarning, match="gradient is not finite"):
        MCMC(NUTSKernel(), 10, 10, 1, seed=1).run(model, None, given)
