"""What the steps of a program mean: shapes, plates, groups, masks, weights, rows, and the errors they give."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.distributions import Bernoulli, Categorical, Gamma, Normal

from qvr_core.dsl import CheckFailed, loads
from qvr_core.inference import trace
from qvr_core.runtime.programs.handlers import by_rows, condition, substitute
from qvr_core.runtime.values.errors import InputProblem, MissingData, NoDensity


def program(body: str, head: str = "program p : Row -> Row", declarations: str = "") -> Any:
    steps = "\n".join("    " + line for line in body.strip().splitlines())
    return loads(f"object Row : FinSet 6\nobject Group : FinSet 3\n{declarations}\n{head}\n{steps}\n").morphism


def test_scalars_and_plates_have_the_row_axis_first() -> None:
    model = program("sample mu <- Normal(0.0, 1.0)\nsample t : Group <- Normal(mu, 1.0)\nreturn t")
    one = trace(model)
    assert one.sites["mu"].value.shape == (1,)
    assert one.sites["t"].value.shape == (1, 3)
    many = model.execute(None, by_rows(5))
    assert many.sites["t"].value.shape == (5, 3)
    assert many.log_joint().shape == (5,)
    mu, t = many.sites["mu"].value, many.sites["t"].value
    expected = Normal(0.0, 1.0).log_prob(mu) + Normal(mu[:, None], 1.0).log_prob(t).sum(-1)
    torch.testing.assert_close(many.log_joint(), expected)


def test_a_real_ascription_is_the_shape_of_the_value() -> None:
    model = program("sample b : Real 4 <- Normal(0.0, 1.0)\nreturn b")
    assert model.rsample().shape == (1, 4)
    assert model.rsample(sample_shape=(7,)).shape == (7, 1, 4)


def test_via_looks_each_row_s_group_up() -> None:
    model = program("sample t : Group <- Normal(0.0, 1.0)\nobserve y : Row <- Normal(t, 0.5) [via=g]\nreturn t")
    t, g, y = torch.randn(1, 3), torch.tensor([0, 2, 1, 1, 0, 2]), torch.randn(6)
    run = model.execute(None, substitute({"t": t}), condition({"y": y, "g": g}))
    torch.testing.assert_close(run.sites["y"].log_prob, Normal(t[0, g], 0.5).log_prob(y).sum()[None])


def test_what_a_program_with_via_draws_can_be_given_back() -> None:
    model = program("sample t : Group <- Normal(0.0, 1.0)\nobserve y : Row <- Normal(t, 0.5) [via=g]\nreturn t")
    g = torch.tensor([0, 2, 1, 1, 0, 2])
    drawn = {name: site.value for name, site in model.execute(None, condition({"g": g})).sites.items()}
    whole, row = (model.log_joint(None, {**drawn, "g": g, "y": y}) for y in (drawn["y"], drawn["y"][0]))
    torch.testing.assert_close(whole, row)


def test_a_gather_is_the_same_as_via() -> None:
    model = program("sample t : Group <- Normal(0.0, 1.0)\nobserve y : Row <- Normal(t[g], 0.5)\nreturn t")
    t, g, y = torch.randn(4, 3), torch.tensor([0, 2, 1, 1, 0, 2]), torch.randn(6)
    run = model.execute(None, substitute({"t": t}), condition({"y": y, "g": g}))
    torch.testing.assert_close(run.sites["y"].log_prob, Normal(t[:, g], 0.5).log_prob(y).sum(-1))


def test_mask_and_weight_act_on_each_term() -> None:
    model = program("sample m <- Normal(0.0, 1.0)\nobserve y : Row <- Normal(m, 1.0) [mask=keep, weight=w]\nreturn m")
    y, w, keep = torch.randn(6), torch.rand(6), torch.tensor([1, 0, 1, 1, 0, 1])
    y[1] = float("nan")
    m = torch.tensor([0.3, -0.2])
    run = model.execute(None, substitute({"m": m}), condition({"y": y, "w": w, "keep": keep}))
    each = Normal(m[:, None], 1.0).log_prob(torch.nan_to_num(y)) * w * keep
    torch.testing.assert_close(run.sites["y"].log_prob, each.sum(-1))


def test_at_selects_rows() -> None:
    model = program("sample t : Row <- Normal(0.0, 1.0)\nobserve y : Row <- Normal(t, 1.0) [at=rows]\nreturn t")
    t, rows = torch.randn(1, 6), torch.tensor([1, 4])
    whole, part = torch.randn(6), torch.randn(2)
    for y in (whole, part):
        run = model.execute(None, substitute({"t": t}), condition({"y": y, "rows": rows}))
        seen = y[rows] if len(y) == 6 else y
        torch.testing.assert_close(run.sites["y"].log_prob, Normal(t[0, rows], 1.0).log_prob(seen).sum()[None])


def test_over_sizes_a_dirichlet() -> None:
    model = program("sample w : Group <- Dirichlet(0.5) [over=Kind]\nreturn w", declarations="object Kind : FinSet 4")
    drawn = model.rsample()
    assert drawn.shape == (1, 3, 4)
    torch.testing.assert_close(drawn.sum(-1), torch.ones(1, 3))


def test_iid_over_is_the_plate() -> None:
    model = program("sample v : Real 2 <- Normal(0.0, 1.0) [iid_over=Group]\nreturn v")
    assert model.rsample().shape == (1, 3, 2)


def test_scores_add_to_the_joint() -> None:
    model = program("sample x <- Normal(0.0, 1.0)\nscore s = -x * x\nreturn x")
    run = model.execute(None, by_rows(3))
    x = run.sites["x"].value
    torch.testing.assert_close(run.log_joint(), Normal(0.0, 1.0).log_prob(x) - x * x)


def test_factor_tables() -> None:
    model = program(
        "sample a : Row <- Normal(0.0, 1.0)\nsample b : Group <- Normal(0.0, 1.0)\n"
        "let t = factor i : Row, j : Group in a[i] - 2.0 * b[j]\n"
        "let u = factor j : Group in { 0 -> 1.0, 1 -> 2.0, 2 -> 4.0 }\nlet v = t * u\nreturn v"
    )
    run = model.execute(None, by_rows(2))
    a, b = run.sites["a"].value, run.sites["b"].value
    expected = (a[:, :, None] - 2.0 * b[:, None, :]) * torch.tensor([1.0, 2.0, 4.0])
    torch.testing.assert_close(run.output, expected)


ROWS = "object X : Real 3\nobject Y : Real 1\nmorphism f : X -> Y [role=linear]\n"


def test_rows_are_independent() -> None:
    model = program(
        "let m = f(x)\nsample s <- Gamma(2.0, 2.0)\nobserve y : Y <- Normal(m, s)\nreturn y",
        "program p(x) : X -> Y",
        ROWS,
    )
    x, y = torch.randn(5, 3), torch.randn(5)
    run = model.execute(x, condition({"y": y}))
    assert run.sites["s"].value.shape == (5,)
    s = run.sites["s"].value
    m = model.get_submodule("f")(x).squeeze(-1)
    torch.testing.assert_close(run.sites["y"].log_prob, Normal(m, s).log_prob(y))
    torch.testing.assert_close(run.sites["s"].log_prob, Gamma(2.0, 2.0).log_prob(s))
    assert model.rsample(x).shape == (5, 1)
    assert model.rsample(x, sample_shape=(2, 4)).shape == (2, 4, 5, 1)


def test_discrete_values_per_row_and_for_a_plate() -> None:
    model = program(
        "let m = f(x)\nobserve y : Two <- Bernoulli(logits=m)\nreturn y",
        "program p(x) : X -> Two",
        ROWS + "object Two : FinSet 2\n",
    )
    x, y = torch.randn(4, 3), torch.tensor([0, 1, 1, 0])
    run = model.execute(x, condition({"y": y}))
    logits = model.get_submodule("f")(x).squeeze(-1)
    torch.testing.assert_close(run.sites["y"].log_prob, Bernoulli(logits=logits).log_prob(y.float()))
    plate = program("sample p <- Beta(1.0, 1.0)\nobserve y : Row <- Bernoulli(p)\nreturn p")
    seen = torch.tensor([0, 1, 1, 0, 1, 1])
    run = plate.execute(None, condition({"y": seen}))
    expected = Bernoulli(run.sites["p"].value).log_prob(seen.float()).sum()
    torch.testing.assert_close(run.sites["y"].log_prob, expected[None])


def test_a_discrete_latent_is_drawn_and_scored() -> None:
    model = program(
        "sample z : Row <- Categorical([0.2, 0.3, 0.5])\nlet m = z * 1.0\nobserve y : Row <- Normal(m, 1.0)\nreturn z"
    )
    run = model.execute(None, by_rows(3), condition({"y": torch.randn(6)}))
    z = run.sites["z"].value
    assert z.dtype == torch.int64 and z.shape == (3, 6)
    torch.testing.assert_close(run.sites["z"].log_prob, Categorical(torch.tensor([0.2, 0.3, 0.5])).log_prob(z).sum(-1))


LSTM = """
object Token : FinSet 11
object E : Real 4
object H : Real 3
object M : Real 3
object Gates : Real 12
morphism embed : Token -> E [role=embed]
morphism gates : E * H -> Gates [role=linear]
program cell(x, h, c) : E * H * M -> H * M
    let (i, j, f, o) = chunk(gates(x, h), 4)
    let c2 = sigmoid(f) * c + sigmoid(i) * tanh(j)
    let h2 = sigmoid(o) * tanh(c2)
    return (h: h2, c: c2)
let path = embed >> scan(cell)
export path
"""


def test_a_program_is_a_cell() -> None:
    model = loads(LSTM).morphism
    x = torch.randint(0, 11, (2, 5))
    found = model.rsample(x)
    embed, gates = model.get_submodule("embed"), model.get_submodule("gates")
    h = c = torch.zeros(2, 3)
    for t in range(5):
        i, j, f, o = gates(torch.cat([embed(x[:, t]), h], -1)).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * j.tanh()
        h = o.sigmoid() * c.tanh()
    torch.testing.assert_close(found, torch.cat([h, c], -1))


def test_a_sampled_program_is_an_arrow_with_innovations() -> None:
    text = """
object X : Real 2
object H : Real 2
morphism a : X -> H [role=kernel] ~ Normal
morphism b : H -> H [role=kernel] ~ Normal
program inner(x) : X -> H
    sample u <- a(x)
    sample v <- b(u)
    return v
program outer : X -> H
    sample h <- inner
    observe y : H <- b(h)
    return y
"""
    model = loads(text).morphism
    x = torch.randn(3, 2)
    h, y = torch.randn(3, 2), torch.randn(3, 2)
    u = model.innovations(x)
    assert {name: {k: tuple(v.shape) for k, v in noise.items()} for name, noise in u.items()} == {"h": {"u/a": (3, 2)}}
    found = model.log_joint(x, {"h": h, "y": y}, u)
    a, b = model.get_submodule("a"), model.get_submodule("b")
    inner = a.draw(x, {"a": u["h"]["u/a"]}).value
    torch.testing.assert_close(found, b.log_prob(inner, h) + b.log_prob(h, y))


def test_repeat_takes_its_count_at_run_time() -> None:
    text = """
object H : Real 2
morphism f : H -> H [role=linear]
let many = repeat(f)
program p : H -> H
    sample h <- many
    return h
"""
    model = loads(text).morphism
    x = torch.randn(3, 2)
    f = model.get_submodule("f")
    torch.testing.assert_close(model.rsample(x), f(x))
    torch.testing.assert_close(model.rsample(x, n_steps=3), f(f(f(x))))


TEMPLATE = """
object Row : FinSet 4
program base(alpha : Real, k : Nat) : Row -> Row
    sample b : Row <- Normal(0.0, alpha)
    observe y : Row <- Normal(b, 1.0)
    return b
"""


def test_templates_are_filled_in_from_python() -> None:
    made = loads(TEMPLATE)
    model = made.base(alpha=3.0, k=2).morphism
    run = model.execute(None, condition({"y": torch.zeros(4)}))
    b = run.sites["b"].value
    torch.testing.assert_close(run.sites["b"].log_prob, Normal(0.0, 3.0).log_prob(b).sum(-1))
    with pytest.raises(InputProblem, match="`base` needs `alpha`"):
        made.base(k=2)
    with pytest.raises(Exception, match="template"):
        _ = made.morphism


def test_data_may_come_with_the_program() -> None:
    text = "object Row : FinSet 3\nprogram p : Row -> Row\n    sample m <- Normal(0.0, 1.0)\n"
    text += "    observe y : Row <- Normal(m * x, 1.0)\n    return m\n"
    x, y = torch.randn(3), torch.randn(3)
    inside = loads(text, data={"x": x}).morphism.log_joint(None, {"m": torch.tensor([0.5]), "y": y})
    outside = loads(text).morphism.execute(None, substitute({"m": torch.tensor([0.5])}), condition({"x": x, "y": y}))
    torch.testing.assert_close(inside, outside.log_joint())
    with pytest.raises(MissingData, match="`x`"):
        loads(text).morphism.rsample(None)


# ---------------------------------------------------------------- errors


def test_loading_a_file_with_errors_lists_them() -> None:
    with pytest.raises(CheckFailed, match=r"<text>:1:12: error\[.*`Nothing`"):
        loads("object A : Nothing\n")


@pytest.mark.parametrize(
    ("observations", "message"),
    [
        ({"y": torch.randn(5)}, "site `y`: expected 6 values, one per row of `via`, found 5 values"),
        ({"y": torch.randn(6, 2)}, "site `y`"),
    ],
)
def test_a_wrong_length_names_the_site(observations: dict, message: str) -> None:
    model = program("sample t : Group <- Normal(0.0, 1.0)\nobserve y : Row <- Normal(t, 0.5) [via=g]\nreturn t")
    with pytest.raises(InputProblem, match=message):
        model.execute(None, condition({**observations, "g": torch.tensor([0, 1, 2, 0, 1, 2])}))


def test_a_wrong_input_names_the_program_and_what_came() -> None:
    model = program("let m = f(x)\nobserve y : Y <- Normal(m, 1.0)\nreturn y", "program p(x) : X -> Y", ROWS)
    with pytest.raises(InputProblem, match=r"`p`.*float \(B, 3\).*float32 \(5, 4\)"):
        model.rsample(torch.randn(5, 4))
    with pytest.raises(InputProblem, match="uses its input"):
        model.rsample(None)
    with pytest.raises(InputProblem, match="5 rows"):
        model.execute(torch.randn(5, 3), condition({"y": torch.randn(4)}))


def test_an_index_out_of_range_is_reported() -> None:
    model = program("sample t : Group <- Normal(0.0, 1.0)\nobserve y : Row <- Normal(t[g], 0.5)\nreturn t")
    with pytest.raises(InputProblem, match="index"):
        model.execute(None, condition({"y": torch.randn(6), "g": torch.tensor([0, 1, 2, 3, 1, 2])}))


def test_a_deterministic_site_cannot_be_observed() -> None:
    model = program("sample m <- f\nreturn m", "program p : X -> Y", ROWS)
    with pytest.raises(NoDensity, match="deterministic"):
        model.execute(torch.randn(5, 3), condition({"m": torch.randn(5, 1)}))


def test_everything_is_reproducible_from_the_seed() -> None:
    model = program("sample a <- Gamma(2.0, 2.0)\nsample b : Row <- Poisson(a)\nreturn b")
    draws = []
    for _ in range(2):
        torch.manual_seed(7)
        draws.append(model.rsample())
    assert torch.equal(*draws)
    own = [model.rsample(generator=torch.Generator().manual_seed(3)) for _ in range(2)]
    assert torch.equal(*own)
