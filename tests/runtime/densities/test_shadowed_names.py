"""A file that declares a name which the language has, or will have, means its own: each built-in name in turn."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import scipy.stats as st
import torch

from qvr_core.analysis import analyse
from qvr_core.dsl import load, loads
from qvr_core.ide.hover import hover
from qvr_core.ide.navigation import definition
from qvr_core.ide.prose import markdown
from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.semantics.language.builtins import BUILTINS
from qvr_core.semantics.language.families import FAMILIES
from qvr_core.semantics.language.gates import GATED
from qvr_core.semantics.language.mixtures import MIXTURE
from qvr_core.syntax.lexer import COMBINATORS, keyword_kinds
from tests.ide.cases import at

Y = [0.4, 1.5, 2.0]
FUNCTIONS = sorted(name for name in BUILTINS if name not in COMBINATORS and name not in keyword_kinds())

pytestmark = pytest.mark.usefixtures("double_precision")


def other(name: str) -> str:
    """A family for the prior that is not hidden."""
    return "Laplace" if name == "Normal" else "Normal"


def family(name: str) -> str:
    return (
        f"object Row : FinSet 3\nfamily {name}(middle) : Real 1\n    density(x) = -(x - middle)^2 - 0.5723649429247\n"
        f"program p : One -> One\n    sample m <- {other(name)}(0.0, 1.0)\n    observe y[i : Row] <- {name}(m)\n"
        "    return m\nexport p\n"
    )


def function(name: str) -> str:
    return (
        f"object Row : FinSet 3\ndef {name}(x) = 3 * x - 1\nprogram p : Row -> Row\n    sample m <- Normal(0.0, 1.0)\n"
        f"    observe y[i : Row] <- Normal({name}(m), 1.0)\n    return m\nexport p\n"
    )


def density(text: str) -> float:
    given = {"m": torch.tensor(0.7), "y": torch.as_tensor(Y)}
    return float(loads(text).morphism.log_joint(None, given))


def codes(text: str) -> set[str]:
    return {one.code.name for one in analyse(text).diagnostics()} - {"unused"}


@pytest.mark.parametrize("name", [*FAMILIES, *GATED, MIXTURE, "Gompertz", "One", "solve"])
def test_a_family_of_the_file_hides_the_languages(name: str) -> None:
    text = family(name).replace("One -> One", "Row -> Row")
    prior = st.laplace if name == "Normal" else st.norm
    assert density(text) == pytest.approx(prior.logpdf(0.7) + st.norm.logpdf(Y, 0.7, 0.5**0.5).sum(), abs=1e-9)
    assert codes(text) == ({"hidden-builtin"} if name in FAMILIES else set())


@pytest.mark.parametrize("name", [*FUNCTIONS, *GATED, MIXTURE, "Gompertz", "cube", "solve", "param", "encoder"])
def test_a_function_of_the_file_hides_the_languages(name: str) -> None:
    assert density(function(name)) == pytest.approx(st.norm.logpdf(0.7) + st.norm.logpdf(Y, 1.1).sum(), abs=1e-9)
    reserved = name in BUILTINS and BUILTINS[name].reserved
    assert codes(function(name)) == ({"hidden-builtin"} if reserved else set())


@pytest.mark.parametrize("name", [*FAMILIES, *FUNCTIONS, *GATED, MIXTURE, "One", "solve", "encoder"])
def test_a_set_of_the_file_may_have_such_a_name(name: str) -> None:
    drawn = other(name)
    text = (
        f"object {name} : FinSet 2\nobject Row : FinSet 3\nprogram p : Row -> Row\n"
        f"    sample m[k : {name}] <- {drawn}(0.0, 1.0)\n    observe y[i : Row] <- {drawn}(m[0] - m[1], 1.0)\n"
        "    return m\nexport p\n"
    )
    given = {"m": torch.tensor([0.7, 0.2]), "y": torch.as_tensor(Y)}
    reference = st.laplace if name == "Normal" else st.norm
    expected = reference.logpdf([0.7, 0.2]).sum() + reference.logpdf(Y, 0.5).sum()
    assert float(loads(text).morphism.log_joint(None, given)) == pytest.approx(expected, abs=1e-9)


IN_A_PROGRAM = """object Row : FinSet 3
object K : FinSet 2
program p : One -> One
    data {data} : Row
    sample {latent} <- Normal(0.3, 1.5)
    sample {plate} : K <- Normal(0.0, 1.0)
    let {number} = exp({latent}) + sum({plate})
    let {indexed}[{index} : Row] = {number} * {data}[{index}] + {plate}[0]
    marginalize {state}[r : Row] : K <- Categorical([0.4, 0.6])
        observe {outcome}[r : Row] <- Normal({indexed}[r] + {plate}[{state}[r]], exp({latent}))
    return {latent}
export p
"""
PLACES = ("data", "latent", "plate", "number", "indexed", "index", "state", "outcome")


def values_named(names: dict[str, str]) -> float:
    given = {"data": [1.0, 2.0, 3.0], "latent": 0.3, "plate": [0.2, -0.4], "outcome": Y}
    named = {names[place]: torch.tensor(value) for place, value in given.items()}
    return float(loads(IN_A_PROGRAM.format(**names)).morphism.log_joint(None, named))


def values_density() -> float:
    number = float(torch.tensor(0.3).exp()) - 0.2
    total = st.norm.logpdf(0.3, 0.3, 1.5) + st.norm.logpdf([0.2, -0.4]).sum()
    for x, y in zip((1.0, 2.0, 3.0), Y, strict=True):
        middle = number * x + 0.2
        scale = float(torch.tensor(0.3).exp())
        mass = 0.4 * st.norm.pdf(y, middle + 0.2, scale) + 0.6 * st.norm.pdf(y, middle - 0.4, scale)
        total += float(torch.tensor(mass).log())
    return total


@pytest.mark.parametrize("turn", range(len(PLACES)))
@pytest.mark.sampled(2)
def test_a_name_of_a_program_may_be_the_languages(turn: int) -> None:
    """Each in one of the places, in turn, and those that the program calls in all: called, they are the language's."""
    expected = values_density()
    every = [*FUNCTIONS, *FAMILIES, *GATED, MIXTURE, "solve", "Gompertz"]
    for name in [*every[turn :: len(PLACES)], "exp", "sum", "Normal", "Categorical"]:
        names = {**{place: f"{place}_" for place in PLACES}, PLACES[turn]: name}
        assert values_named(names) == pytest.approx(expected, abs=1e-9), name
        told = [one for one in analyse(IN_A_PROGRAM.format(**names)).diagnostics() if "unused" not in one.code.name]
        assert {one.code.name for one in told} <= {"hidden-builtin"}, name


def test_called_a_value_is_the_languages_function_and_a_lambda_is_itself() -> None:
    text = (
        "program p : One -> One\n    sample exp <- Normal(0.0, 1.0)\n    let log = x -> 2.0 * x\n"
        "    sample Normal <- Normal(exp(exp) + log(exp), 1.0)\n"
        "    observe ZeroInflated <- ZeroInflated(0.2, Poisson(3.0))\n"
        "    return Normal\nexport p\n"
    )
    given = {"exp": torch.tensor(0.5), "Normal": torch.tensor(1.2), "ZeroInflated": torch.tensor(2.0)}
    expected = st.norm.logpdf(0.5) + st.norm.logpdf(1.2, 2.718281828459045**0.5 + 1.0)
    expected += float(torch.tensor(0.8 * st.poisson.pmf(2, 3.0)).log())
    model = loads(text).morphism
    assert float(model.log_joint(None, given)) == pytest.approx(expected, abs=1e-9)
    found = MCMC(NUTSKernel(), 5, 5, 1, seed=1, engine="compiled").run(model, None, {"ZeroInflated": torch.tensor(2.0)})
    assert found.engine == "compiled"
    for place, shown, lines in (
        ("$0exp(exp)", "The exponential of x", []),
        ("exp(e$0xp)", "sample exp <-", [1]),
        ("$0log(exp)", "let log = x", [2]),
        ("<- $0Normal(exp", "Bell curve", []),
    ):
        asked = at(text.replace(place.replace("$0", ""), place, 1))
        answer = hover(*asked)
        assert answer is not None
        assert shown in markdown(answer.content)
        assert [one.start.line for one in definition(*asked)] == lines


def test_what_is_imported_may_have_the_name_of_a_family_of_a_later_release(tmp_path: Path) -> None:
    (tmp_path / "own.qvr").write_text(
        "family Weibull(middle) : Real 1\n    density(x) = -(x - middle)^2 - 0.5723649429247001\ndef exp(x) = 3.0 * x\n"
    )
    for line in ('from "own.qvr" import Weibull, exp', 'import "own.qvr"'):
        main = tmp_path / "main.qvr"
        main.write_text(
            f"{line}\nprogram p : One -> One\n    sample m <- Normal(0.0, 1.0)\n    observe y <- Weibull(exp(m))\n"
            "    return m\nexport p\n"
        )
        found = float(load(main).morphism.log_joint(None, {"m": torch.tensor(0.7), "y": torch.tensor(1.0)}))
        assert found == pytest.approx(st.norm.logpdf(0.7) + st.norm.logpdf(1.0, 2.1, 0.5**0.5), abs=1e-9)


def test_what_is_hidden_is_no_family() -> None:
    text = "object Normal : FinSet 3\nprogram p : Normal -> Normal\n    sample m <- Normal(0.0, 1.0)\n    return m\n"
    assert codes(text) == {"hidden-builtin", "wrong-kind"}


def test_imported_files_mean_what_they_meant(tmp_path: Path) -> None:
    """`half` and the family of the library call the language's `exp` and Normal; the file has others of its own."""
    (tmp_path / "own.qvr").write_text(
        "def half(x) = exp(x) / 2\nprogram drawn(sd : Real) : FinSet 1 -> Real 1\n"
        "    let wide = exp(sd)\n    sample z <- Normal(0.0, wide)\n"
        "    return z\n"
    )
    main = tmp_path / "main.qvr"
    main.write_text(
        'import "own.qvr" as own\nfrom "std/families.qvr" import Logistic\nobject Row : FinSet 3\ndef exp(x) = 2 * x\n'
        "family Normal(middle) : Real 1\n    density(x) = -(x - middle)^2 - 0.5723649429247001\n"
        "program p : Row -> Row\n    sample u <- own.drawn(2.0)\n    sample m <- Normal(0.0)\n"
        "    observe y[i : Row] <- Logistic(exp(m) + own.half(m) + u, 1.0)\n    return m\nexport p\n"
    )
    given = {"m": torch.tensor(0.7), "u": torch.tensor(0.2), "y": torch.as_tensor(Y)}
    middle = 1.4 + float(torch.tensor(0.7).exp()) / 2 + 0.2
    expected = (
        st.norm.logpdf(0.2, 0.0, 7.38905609893065)
        + st.norm.logpdf(0.7, 0.0, 0.5**0.5)
        + st.logistic.logpdf(Y, middle).sum()
    )
    assert float(load(main).morphism.log_joint(None, given)) == pytest.approx(expected, abs=1e-9)


def test_chains_and_editors_know_it() -> None:
    text = family("Weibull")
    found = MCMC(NUTSKernel(), 10, 5, 1, seed=1, engine="compiled").run(
        loads(text).morphism, None, {"y": torch.as_tensor(Y)}
    )
    assert found.engine == "compiled"
    place = at(text.replace("<- Weibull(m)", "<- Wei$0bull(m)"))
    answer = hover(*place)
    assert answer is not None
    assert "family Weibull(middle)" in markdown(answer.content)
    assert [one.start.line for one in definition(*place)] == [1]


def test_names_of_the_table_are_tried() -> None:
    assert len(FUNCTIONS) > 80
    assert set(itertools.chain(FAMILIES, FUNCTIONS)).isdisjoint(keyword_kinds())
