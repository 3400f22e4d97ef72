"""What a program looks like in Stan, and what Stan cannot say."""

from __future__ import annotations

import re

import pytest

from qvr_core.analysis import analyse
from qvr_core.export import Refused, export
from tests.examples.statistics.programs import NAMES
from tests.export.exports import exported
from tests.export.test_text import program

RADON = """parameters {
  real mu;
  real gamma;
  real upstairs;
  real<lower=0> tau;
  real<lower=0> sigma;
  vector[n_county] level;
}
model {
  target += normal_lpdf(mu | 0.0, 2.0);
  target += normal_lpdf(gamma | 0.0, 1.0);
  target += normal_lpdf(upstairs | 0.0, 1.0);
  target += normal_lpdf(tau | 0, 1.0) + log(2);
  target += normal_lpdf(sigma | 0, 1.0) + log(2);
  for (c in 1:n_county) {
    target += normal_lpdf(level[c] | mu + gamma * log_uranium[c], tau);
  }
  for (i in 1:n_house) {
    target += normal_lpdf(log_radon[i] | level[county[i]] + upstairs * floor[i], sigma);
  }
}
"""


def stan(body: str) -> str:
    """The export of a program with these steps."""
    return export(analyse(program(body)), "p", "stan").text


def test_a_hierarchy_reads_as_one_writes_it() -> None:
    assert exported("radon", "stan").text.endswith(RADON)


@pytest.mark.parametrize("name", NAMES)
def test_thirty_programs_are_said_in_whole_blocks(name: str) -> None:
    text = exported(name, "stan").text
    code = re.sub(r"//.*", "", text)
    assert code.count("{") == code.count("}") and code.count("(") == code.count(")")
    assert "data {" in code and "parameters {" in code and "model {" in code
    assert all(line.isprintable() for line in text.split("\n"))


def test_codes_count_from_1_in_the_file_and_in_its_data() -> None:
    made = exported("radon", "stan")
    assert "array[n_house] int<lower=1, upper=n_county> county;  // codes of County from 1" in made.text
    assert "Codes of sets count from 1." in made.text
    data = made.data({"county": [0, 8], "floor": [0.0, 1.0]}, {"House": 2, "County": 9})
    assert data == {"n_house": 2, "n_county": 9, "county": [1, 9], "floor": [0.0, 1.0]}


def test_places_as_numbers_count_from_0_and_compared_places_stay() -> None:
    made = stan(
        "data y : Row\nsample m <- Normal(0.0, 1.0)\nobserve y[i : Row] <- Normal(m * i + where(i > 0, 1.0, 2.0), 1.0)"
    )
    assert "m * (i - 1) + (i > 1 ? 1.0 : 2.0)" in made


def test_whole_numbers_divide_as_numbers() -> None:
    made = stan("data n, k : Row -> Nat\nsample m <- Normal(0.0, 1.0)\nobserve k[i : Row] <- Poisson(n[i] / 2)")
    assert "poisson_lpmf(k[i] | 1.0 * n[i] / 2)" in made


def test_reserved_names_get_an_underscore() -> None:
    made = stan("sample lower <- HalfNormal(1.0)\nsample data <- Normal(0.0, lower)\nsample _x <- Normal(data, 1.0)")
    for name, given in (("lower", "lower_"), ("data", "data_"), ("_x", "x")):
        assert f"`{name}` of the program is `{given}` here" in made
    assert "target += normal_lpdf(x | data_, 1.0);" in made


def test_a_function_is_a_name_where_it_is_not_called() -> None:
    assert "real floor;" in stan("sample floor <- Normal(0.0, 1.0)")
    assert "real floor_;" in stan("sample floor <- Normal(0.0, 1.0)\nlet y = floor(floor)")


def test_lets_stand_where_they_are_known() -> None:
    made = stan(
        "data x : Row\nlet far[i : Row] = x[i] * 2.0\nsample m <- Normal(0.0, 1.0)\nlet half = m / 2\n"
        "predict again <- Normal(half, 1.0)"
    )
    places = [
        made.index(part)
        for part in ("transformed data {", "far[i] = ", "transformed parameters {", "real half = m / 2;",
                     "generated quantities {", "again = normal_rng(half, 1.0);")
    ]  # fmt: skip
    assert places == sorted(places)


EQUATION = """\
object Time : FinSet 3
object Pool : {fast, slow}
object Open : FinSet _
def growth(t, z, x) = x * z * exp(-t)
def pools(t, z, k) = [-k * z[fast], k * z[fast] - z[slow]]
def wide(t, z, x) = z * sum(x[i]^t for i : Open)
program p : Time -> Time
    data when : Time
    data x : Open
    sample z <- HalfNormal(1.0)
    let a[t : Time] = solve(growth, z, 0.5, start=0.0, at=when)
    let b[t : Time, s : Pool] = solve(pools, [z, 0.0], 2, start=0, at=when, method=stiff)
    observe y[t : Time] <- Normal(a[t] + b[t, slow], 1.0)
    return z
"""


def test_an_equation_is_a_function_and_a_call_of_an_integrator() -> None:
    text = export(analyse(EQUATION), "p", "stan").text
    # a single number is a vector of one in Stan
    assert "vector growth(real t, vector z, real x) {\n    return [x * z[1] * exp(-t)]';" in text
    assert "vector pools(real t, vector z, real k) {" in text
    assert "ode_rk45_tol(growth, [z]', " in text and "ode_bdf_tol(pools, [z, 0.0]', " in text
    for target, place, message in (
        ("stan", "wide", "an equation that reads `n_open`, a size that comes with the data,"),
        ("pymc", "growth", "`solve` by `rk45` is not exported to PyMC; export to Stan or NumPyro, or say `method=rk4`"),
    ):
        with pytest.raises(Refused, match=re.escape(message)):
            export(
                analyse(EQUATION.replace("growth, z, 0.5", f"{place}, z, {'x' if place == 'wide' else 0.5}")),
                "p",
                target,
            )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("data y : Row -> Nat\nsample n <- Poisson(3.0)\nobserve y[i : Row] <- Poisson(n + 1.0)",
         "`n`: Stan has no discrete parameters; sum it out"),
        ("data y : Row * State\nsample s <- HalfNormal(1.0)\n"
         "observe y[i : Row] <- MultivariateNormal([0.0, 0.0], scale_tril=eye(2)) [over=State]",
         "a matrix without a name cannot be said in Stan; give it one"),
    ],
)  # fmt: skip
def test_what_stan_cannot_say_is_refused(body: str, message: str) -> None:
    with pytest.raises(Refused) as refused:
        stan(body)
    assert message in str(refused.value)


def test_a_parameter_begins_where_its_density_does() -> None:
    text = stan("sample s <- Pareto(1.5, 3.0)\n    sample a <- VonMises(0.0, 1.0)\n    observe y <- Normal(s + a, 1.0)")
    assert "real<lower=1.5> s;" in text
    assert "real<lower=-3.1415926535897931, upper=3.1415926535897931> a;" in text
