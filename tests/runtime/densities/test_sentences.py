"""A program for each sentence of the language's third edition: its density by scipy at five points, and
as machine code.

Each has a wrong variant, whose error stands at the token.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as st
import torch
from scipy import linalg
from scipy.integrate import solve_ivp
from scipy.interpolate import BSpline

from qvr_core import dsl
from qvr_core.inference import MCMC, NUTSKernel, Predictive
from qvr_core.semantics.types.diagnostics import Severity
from tests.runtime.densities.data_outcomes import COUNTS, DATA_OUTCOMES
from tests.runtime.densities.families_and_equations import EQUATIONS, FAMILIES
from tests.runtime.densities.nested import NESTED
from tests.runtime.densities.ragged import RAGGED
from tests.runtime.densities.supports import (
    GROUP,
    HEAD,
    SEEN,
    SERIES,
    SUPPORTS,
    TABLE,
    M,
    Sentence,
    Values,
    Y,
    mixed,
    normal,
    positive,
    real,
    total,
    unit,
)
from tests.runtime.densities.wrong_variants import VARIANTS
from tests.standalone import standalone

RATE = """def rate(t, z, theta) = [theta[0] * z[hare] - theta[1] * z[hare] * z[lynx],
    -theta[2] * z[lynx] + theta[3] * z[hare] * z[lynx]]
"""
WHEN = np.arange(1.0, 6.0)
ANIMALS = np.array([[1.0, 2.0], [1.2, 1.8], [1.5, 1.6], [1.9, 1.5], [2.2, 1.5]])


def _lynx(t: float, z: Any, theta: Any) -> Any:
    return [theta[0] * z[0] - theta[1] * z[0] * z[1], -theta[2] * z[1] + theta[3] * z[0] * z[1]]


def _solved(v: Values) -> Any:
    made = solve_ivp(_lynx, (0.0, 5.0), [1.0, 2.0], "DOP853", WHEN, args=(v["th"],), rtol=1e-12, atol=1e-12)
    return [
        st.lognorm.logpdf(v["th"], 0.3, 0, np.exp(-1.5)),
        st.lognorm.logpdf(ANIMALS, 0.5, 0, made.y.T),
    ]


def _spline() -> Any:
    knots = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 4.0, 4.0, 4.0])
    return BSpline.design_matrix(Y, knots, 2).toarray()


def _two_chains(v: Values) -> Any:
    found = []
    for states in ((0, 0), (0, 1), (1, 0), (1, 1)):
        a, b = states
        found.append(np.log([0.4, 0.6][a] * [0.3, 0.7][b]) + normal(Y, v["m"] + a + 2.0 * b).sum())
    return [normal(v["m"], 0.0), np.logaddexp.reduce(found)]


ROWS = {
    "one": Sentence(
        M + "observe y <- Normal(m, 1.0)", {"m": real()}, {"y": 1.0},
        lambda v: [normal(v["m"], 0), normal(1.0, v["m"])],
    ),
    "one state for all, and one more": Sentence(
        M + "marginalize a : State <- Categorical([0.4, 0.6])\n    marginalize b : State <- Categorical([0.3, 0.7])\n"
        "        observe y[i : Row] <- Normal(m + a + 2.0 * b, 1.0)",
        {"m": real()}, {"y": Y}, _two_chains,
    ),
    "each name of a group has its own lag": Sentence(
        "sample a <- Beta(2.0, 2.0)\n"
        "let (l, s)[t : Time] = (a * (y[t] - s[t - 2]) + (1 - a) * l[t - 1], "
        "(1 - a) * (y[t] - l[t - 1]) + a * s[t - 2]) from (1.0, (0.1, 0.2))\n"
        "observe y[t : Time] <- Normal(l[t - 1] + s[t - 2], 1.0)",
        {"a": unit()}, {"y": SERIES}, lambda v: [st.beta.logpdf(v["a"], 2.0, 2.0), _seasons(float(v["a"]))],
    ),
    "ragged within limits": Sentence(
        "data n : G -> Nat\n" + M
        + "observe z[g : G, t : Time] : Real 1 [low=-1.0] <- Normal(m, 1.0) [lengths=n]",
        {"m": real()}, {"z": np.stack([SERIES, SERIES]), "n": [5, 2]},
        lambda v: [
            normal(v["m"], 0.0), normal(SERIES, v["m"]), normal(SERIES[:2], v["m"]), -7 * st.norm.logsf(-1.0, v["m"]),
        ],
    ),
    "neighbours": Sentence(
        "data x : Row * Time\n" + M + "let d[i : Row, k : Row] = x[i, k + 1] - x[i, k]\n"
        "observe y[i : Row] <- Normal(m + sum(d[i, k] * k for k : Row), 1.0)",
        {"m": real()}, {"y": Y, "x": np.arange(20.0).reshape(4, 5) ** 1.5 / 10},
        lambda v: [
            normal(v["m"], 0.0),
            normal(Y, v["m"] + np.diff(np.arange(20.0).reshape(4, 5) ** 1.5 / 10) @ np.arange(4.0)),
        ],
    ),
    "a row for each state": Sentence(
        "sample P[s : State] <- Dirichlet(2.0) [over=State]\n"
        "marginalize z[t : Time] : State <- Categorical(P[z[t - 1]]) from Categorical([0.3, 0.7])\n"
        "    observe y[t : Time] <- Normal(2.0 * z[t], 1.0)",
        {"P": lambda random: random.dirichlet([2.0, 2.0], size=2)}, {"y": SERIES},
        lambda v: [*(st.dirichlet.logpdf(row, [2.0, 2.0]) for row in v["P"]), _forward(v["P"])],
    ),
}  # fmt: skip


def _seasons(a: float) -> float:
    """`l` begins at its second element, `s` at its third; before that a read of it is the one of the cycle given."""
    level, season, found = [1.0], [0.1, 0.2], 0.0
    for t in range(1, 5):
        earlier = season[t - 2] if t >= 2 else season[t]
        found += float(normal(SERIES[t], level[t - 1] + earlier))
        level.append(a * (SERIES[t] - earlier) + (1 - a) * level[t - 1])
        if t >= 2:
            season.append((1 - a) * (SERIES[t] - level[t - 1]) + a * earlier)
    return found


def _forward(rows: Any) -> float:
    seen = np.exp(normal(SERIES[:, None], [0.0, 2.0]))
    alpha = np.array([0.3, 0.7]) * seen[0]
    for t in range(1, 5):
        alpha = (alpha @ rows) * seen[t]
    return float(np.log(alpha.sum()))


def _by_group(v: Values) -> Any:
    return np.asarray(v["a"])[GROUP]


def _falling(v: Values, seen: int) -> Any:
    """Of the first `seen` elements 2 − √y is Normal(m, 1), of the others it is at most that."""
    first, last = Y[:seen], Y[seen:]
    known = normal(2.0 - np.sqrt(first), v["m"]) - np.log(2.0 * np.sqrt(first))
    return [normal(v["m"], 0.0), known, st.norm.logcdf(2.0 - np.sqrt(last), v["m"])]


SHARES = np.array([0.1, 0.25, 0.6, 0.9])

OUTCOMES = {
    "log of y": Sentence(
        M + "observe log(y)[i : Row] <- Normal(m, 1.5)", {"m": real()}, {"y": Y},
        lambda v: [normal(v["m"], 0), st.lognorm.logpdf(Y, 1.5, 0, np.exp(v["m"]))],
    ),
    "logit of y": Sentence(
        M + "observe logit(y)[i : Row] <- Normal(m, 1.5)", {"m": real()}, {"y": SHARES},
        lambda v: [
            normal(v["m"], 0),
            normal(np.log(SHARES / (1 - SHARES)), v["m"], 1.5) - np.log(SHARES * (1 - SHARES)),
        ],
    ),
    "exp, expm1, sigmoid and minus": Sentence(
        M + "observe exp(y)[i : Row] <- Exponential(1.0)\nobserve expm1(u)[i : Row] <- Gumbel(m, 1.0)\n"
        "observe (-sigmoid(w))[i : Row] <- Laplace(m, 1.0)",
        {"m": real()}, {"y": Y / 4, "u": Y / 4, "w": Y},
        lambda v: [
            normal(v["m"], 0), -np.exp(Y / 4) + Y / 4, st.gumbel_r.logpdf(np.expm1(Y / 4), v["m"]) + Y / 4,
            st.laplace.logpdf(-1 / (1 + np.exp(-Y)), v["m"]) - Y - 2 * np.log1p(np.exp(-Y)),
        ],
    ),
    "an affine map with latents": Sentence(
        "data g : Row -> G\nsample a[k : G] <- Normal(0.0, 1.0)\nsample b <- HalfNormal(1.0)\n"
        "observe ((y - a[g[i]]) / b)[i : Row] <- StudentT(4.0, 0.0, 1.0)",
        {"a": real(2), "b": positive()}, {"y": Y, "g": GROUP},
        lambda v: [normal(v["a"], 0), st.halfnorm.logpdf(v["b"]), st.t.logpdf(Y, 4.0, _by_group(v), v["b"])],
    ),
    "a latent slope of either sign, truncated": Sentence(
        M + "observe (y * m + 1)[i : Row] : Real 1 [low=0.2] <- Normal(0.0, 1.0)", {"m": real()}, {"y": Y},
        lambda v: [
            normal(v["m"], 0),
            normal(Y * v["m"] + 1, 0) + np.log(abs(v["m"])) - st.norm.logcdf(-np.sign(v["m"]) * (0.2 * v["m"] + 1)),
        ],
    ),
    "log behind a latent shift": Sentence(
        "sample m <- Exponential(1.0)\nobserve log(y + m)[i : Row] <- Normal(0.0, 1.0) [left_censored=c]",
        {"m": positive()}, {"y": Y, "c": [0, 0, 0, 1]},
        lambda v: [
            -v["m"], st.lognorm.logpdf(Y[:3] + v["m"], 1.0), st.norm.logcdf(np.log(Y[3:] + v["m"])),
        ],
    ),
    "of the name that no other line binds": Sentence(
        "data c : Real 1\ndata w : Row\nsample k <- Exponential(1.0)\n"
        "observe log(k * y)[i : Row] <- Normal(0.5, 2.0)\nobserve (c - k * w)[i : Row] <- Gumbel(0.0, 1.0)",
        {"k": positive()}, {"y": Y, "w": Y, "c": 0.3},
        lambda v: [
            -v["k"], normal(np.log(Y * v["k"]), 0.5, 2.0) - np.log(Y),
            st.gumbel_r.logpdf(0.3 - v["k"] * Y) + np.log(v["k"]),
        ],
    ),
    "a falling function, censored": Sentence(
        M + "observe (2 - sqrt(y))[i : Row] <- Normal(m, 1.0) [right_censored=c]",
        {"m": real()}, {"y": Y, "c": [0, 0, 0, 1]}, lambda v: _falling(v, 3),
    ),
    "an interval of y": Sentence(
        M + "observe log1p(y)[i : Row] <- Normal(m, 1.0) [interval=b]",
        {"m": real()}, {"y": Y, "b": [0.4, 1.5, 2.0, 4.0]},
        lambda v: [
            normal(v["m"], 0), normal(np.log1p(Y[:3]), v["m"]) - np.log1p(Y[:3]),
            np.log(st.norm.cdf(np.log(5.0), v["m"]) - st.norm.cdf(np.log(4.5), v["m"])),
        ],
    ),
    "reads of earlier elements are the data": Sentence(
        M + "observe log(y)[t : Time] <- Normal(m * y[t - 1], 1.0)", {"m": real()}, {"y": np.exp(SERIES)},
        lambda v: [normal(v["m"], 0), normal(SERIES[1:], v["m"] * np.exp(SERIES[:-1])) - SERIES[1:]],
    ),
    "of a hidden state": Sentence(
        M + "marginalize z[i : Row] : State <- Categorical([0.4, 0.6])\n"
        "    observe ((log(y) - z[i]) / (1.0 + z[i]))[i : Row] <- Normal(m, 1.0)",
        {"m": real()}, {"y": Y},
        lambda v: [
            normal(v["m"], 0),
            mixed([0.4, 0.6], normal(np.log(Y)[:, None], [v["m"], 2 * v["m"] + 1], [1.0, 2.0]) - np.log(Y)[:, None]),
        ],
    ),
    "a family of the file": Sentence(
        M + "observe log(y)[i : Row] <- Bell(m)", {"m": real()}, {"y": Y},
        lambda v: [normal(v["m"], 0), normal(np.log(Y), v["m"]) - np.log(Y)],
        "family Bell(loc) : Real 1\n    density(x) = -(x - loc)^2 / 2 - 0.9189385332046727\n",
    ),
}  # fmt: skip

FUNCTIONS = {
    "eigh": Sentence(
        "data A : G * G\n" + M + "let (values, vectors) = eigh(A * exp(m))\n"
        + SEEN + "Normal(values[0] + vectors[0, 1], 1.0)",
        {"m": real()}, {"y": Y, "A": TABLE},
        lambda v: [normal(v["m"], 0), normal(Y, np.linalg.eigh(TABLE)[0][0] * np.exp(v["m"]) + _vectors()[0, 1])],
    ),
    "matrix_exp": Sentence(
        "data A : G * G\n" + M + "let B = matrix_exp(A * m)\n" + SEEN + "Normal(B[0, 1], 1.0)",
        {"m": real()}, {"y": Y, "A": TABLE},
        lambda v: [normal(v["m"], 0), normal(Y, linalg.expm(TABLE * v["m"])[0, 1])],
    ),
    "solve_triangular": Sentence(
        "data L : G * G\ndata b : G\n" + M + "let x = solve_triangular(L, b * m)\n" + SEEN + "Normal(x[0] + x[1], 1.0)",
        {"m": real()}, {"y": Y, "L": np.tril(TABLE), "b": [1.0, 2.0]},
        lambda v: [normal(v["m"], 0), normal(Y, np.linalg.solve(np.tril(TABLE), [1.0, 2.0]).sum() * v["m"])],
    ),
    "cumulative_trapezoid": Sentence(
        "data a, x : Row\n" + M + "let c = cumulative_trapezoid(a * m, x)\n" + SEEN + "Normal(c[i], 1.0)",
        {"m": real()}, {"y": Y, "a": [1.0, 2.0, 3.0, 1.0], "x": [0.0, 1.0, 2.0, 4.0]},
        lambda v: [normal(v["m"], 0), normal(Y, np.array([0.0, 1.5, 4.0, 8.0]) * v["m"])],
    ),
    "bspline": Sentence(
        "data x : Row\nlet B = bspline(x, knots=[0.0, 1.0, 2.0, 4.0], degree=2)\n"
        "sample w : Real 5 <- Normal(0.0, 1.0)\n"
        "observe y[i : Row] <- Normal(sum(B[i] * w), 1.0)",
        {"w": real(5)}, {"y": Y, "x": Y}, lambda v: [normal(v["w"], 0.0), normal(Y, _spline() @ v["w"])],
    ),
    "a function whose arguments have labels": Sentence(
        "sample k[q : Animal] <- Normal(0.0, 1.0)\n" + SEEN + "Normal(gap(k), 1.0)",
        {"k": real(2)}, {"y": Y}, lambda v: [normal(v["k"], 0.0), normal(Y, v["k"][0] - 2.0 * v["k"][1])],
        'def gap(k) = k["hare"] - 2.0 * k[lynx]\n',
    ),
    "solve": Sentence(
        "data when : Time\nsample th : Real 4 <- LogNormal(-1.5, 0.3)\n"
        "let z[t : Time, a : Animal] = solve(rate, [1.0, 2.0], th, start=0.0, at=when, rtol=1e-8, atol=1e-8)\n"
        "observe y[t : Time, a : Animal] <- LogNormal(log(z[t, a]), 0.5)",
        {"th": lambda random: np.exp(-1.5 + 0.3 * random.normal(size=4))}, {"y": ANIMALS, "when": WHEN}, _solved, RATE,
    ),
}  # fmt: skip


def _vectors() -> Any:
    vectors = np.linalg.eigh(TABLE)[1]
    return vectors * np.sign(vectors[np.abs(vectors).argmax(0), [0, 1]])


SENTENCES = {
    **SUPPORTS, **OUTCOMES, **DATA_OUTCOMES, **COUNTS, **NESTED, **ROWS, **RAGGED, **FUNCTIONS, **EQUATIONS, **FAMILIES,
}  # fmt: skip
PLAIN = {"eigh"}
"""What has no loops: such a program runs step by step, and says so."""
EXACT = dict.fromkeys(SENTENCES, 1e-9) | {"solve": 1e-6, "labels in an equation": 1e-7, "a stiff method": 1e-6}

pytestmark = pytest.mark.usefixtures("double_precision")


def source(sentence: Sentence) -> str:
    lines = "".join(f"    {line}\n" for line in sentence.lines.splitlines())
    head = f"{HEAD}{sentence.declared}program p : One -> One\n"
    return f"{head}{lines}    return {next(iter(sentence.latents))}\nexport p\n"


def program(sentence: Sentence) -> Any:
    return dsl.loads(source(sentence)).morphism


def errors(text: str) -> list[tuple[str, int, str]]:
    """Code, line and token of all errors."""
    found = [one for one in standalone(text).diagnostics() if one.code.severity is Severity.ERROR]
    lines = text.splitlines()
    return [
        (
            one.code.name,
            one.range.start.line,
            lines[one.range.start.line][one.range.start.column : one.range.end.column],
        )
        for one in found
    ]


def tensors(values: Values) -> dict[str, torch.Tensor]:
    return {name: torch.as_tensor(value) for name, value in values.items()}


@pytest.mark.parametrize("name", SENTENCES)
@pytest.mark.sampled(2)
def test_the_density_is_the_one_by_hand(name: str) -> None:
    sentence = SENTENCES[name]
    model = program(sentence)
    for seed in range(5):
        random = np.random.default_rng(seed)
        point = {latent: drawn(random) for latent, drawn in sentence.latents.items()}
        found = model.log_joint(None, tensors({**point, **sentence.data})).sum().item()
        assert found == pytest.approx(total(*sentence.density(point)), rel=EXACT[name], abs=EXACT[name]), seed


@pytest.mark.parametrize("name", SENTENCES)
def test_one_mistake_is_one_error_at_its_token(name: str) -> None:
    right, made = source(SENTENCES[name]), VARIANTS[name]
    assert errors(right) == []
    assert right.count(made.right) == 1
    marked = right.replace(made.right, made.wrong)
    before, rest = marked.split("‹")
    token, after = rest.split("›")
    assert errors(before + token + after) == [(made.code, before.count("\n"), token)]


@pytest.mark.parametrize("name", [name for name in SENTENCES if name not in PLAIN])
@pytest.mark.sampled(3)
def test_chains_are_machine_code(name: str) -> None:
    """Code is used only where the referee has the same density, which is what the engine's name says."""
    sentence = SENTENCES[name]
    mcmc = MCMC(NUTSKernel(), num_warmup=5, num_samples=2, num_chains=1, seed=2, engine="compiled")
    assert mcmc.run(program(sentence), None, tensors(sentence.data)).engine == "compiled"


def test_cells_that_lack_are_imputed_on_the_own_scale() -> None:
    """Their logarithm moves, with its Jacobian: the cell has the density of a LogNormal."""
    model = dsl.loads(
        f"{HEAD}program p : One -> One\n    {M}    observe log(y)[i : Row] <- Normal(m, 1.0) [missing=impute]\n"
        "    return m\nexport p\n"
    ).morphism
    given = {"y": torch.tensor([0.4, torch.nan, 2.0, 3.5])}
    drawn = MCMC(NUTSKernel(), 200, 200, 1, seed=3, engine="compiled").run(model, None, given).samples["y"]
    assert bool((drawn > 0).all())
    assert 0.3 < float(drawn.median()) < 8.0


def test_draws_are_on_the_own_scale_and_within_what_the_function_has() -> None:
    lines = "sample m <- Normal(0.0, 0.001)\n    observe {}[i : Row] <- {}\n    return m\nexport p\n"
    text = f"object Row : FinSet 4\nprogram p : One -> One\n    {lines}"
    torch.manual_seed(1)

    def drawn(outcome: str, family: str) -> Any:
        model = dsl.loads(text.format(outcome, family)).morphism
        return Predictive(model, num_samples=500)(None, {})["y"].reshape(-1).numpy()

    assert st.kstest(drawn("log(y)", "Normal(m, 1.0)"), st.lognorm(1.0).cdf).pvalue > 1e-3
    assert st.kstest(drawn("(2 - 3 * y)", "Normal(m, 1.0)"), st.norm(2 / 3, 1 / 3).cdf).pvalue > 1e-3
    assert st.kstest(np.sqrt(drawn("sqrt(y)", "Normal(m, 1.0)")), st.halfnorm.cdf).pvalue > 1e-3


def test_a_parameter_of_the_files_own_family_is_no_number_of_the_function() -> None:
    text = """\
object Row : FinSet 3
family Odd(loc : Real 1, by_1 : Real 1 [low=0.0]) : Real 1
    density(x) = -0.5 * ((x - loc) / by_1)^2 - log(by_1) - 0.9189385332046727
program p : Row -> Row
    data y : Row -> Real 1 [low=0.0]
    sample k <- HalfNormal(1.0)
    observe log(y * k)[i : Row] <- Odd(0.5, 2.0)
    return k
"""
    y, k = np.array([1.0, 2.0, 3.0]), 1.7
    found = dsl.loads(text).morphism.log_joint(None, {"y": torch.tensor(y), "k": torch.tensor(k).double()})
    wanted = st.halfnorm.logpdf(k) + (st.norm.logpdf(np.log(y * k), 0.5, 2.0) - np.log(y)).sum()
    assert float(found) == pytest.approx(wanted, rel=1e-9)
