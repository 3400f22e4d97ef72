"""What checks without an error builds, is drawn from and is scored: every clean block of the spec and of the docs.

A block may need what stands beside it, or data of sizes that nothing says: `REFUSED` lists what a run may say then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from qvr_core import dsl
from qvr_core.data.needs import needs_of
from qvr_core.data.synthetic import synthetic
from qvr_core.inference import trace
from qvr_core.runtime.programs.handlers import condition, densities
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.tensors.tensors import TensorArrow
from qvr_core.runtime.values.errors import MissingData, RuntimeProblem
from qvr_core.semantics.types.model.programs import Program
from qvr_core.semantics.types.spaces import Finite, Product, Real, Seq, Space
from tests.spec.cases import read_cases

ROOT = Path(__file__).resolve().parents[3]
OF_MISTAKES = ROOT / "docs" / "mistakes.md"
"""Shows programs that are wrong; its own test compares what is said of them."""
PAGES = [path for folder in ("tests/spec", "docs") for path in sorted((ROOT / folder).rglob("*.md"))]
CASES = {case.source: case for page in PAGES if page != OF_MISTAKES for case in read_cases(page) if not case.wrong}

NOT_HERE = re.compile(
    "|".join(
        (
            r"open sets?: (its|their) elements come with the data",
            r"reads data `\w+`, which is missing",
            r"there is no lexicon file",
            r"weights of [\d,]+ bytes, which the memory does not hold",
        )
    )
)
"""What cannot be built from a block alone."""

REFUSED = re.compile(
    "|".join(
        (
            # No density to draw from.
            r"nothing says how the first \d+ of `\w+` are drawn",
            r"`\w+` does not say how it is drawn: add a line",
            r"Flat has a density everywhere and no draws",
            # Data made at random: 64 rows, positive or not, where nothing says how many and which.
            r"\d+ entries meet \d+",
            r"a product over \d+ and \d+ entries",
            r"does not fit a value of shape",
            r"expected arguments that fit together",
            r"expected \d+ values, one per row",
            r"expected whole numbers \(int64\)",
            r"expected numbers of shape .* found missing at",
            r"must be (above 0|between 0 and 1): draw it from",
            r"lengths must lie between",
            r"for its element \[\d+\], that does not exist",
            r"there are words 0 to \d+, but no word \d+",
            r"it is a table of two columns, one row a pair of neighbours",
            r"a matrix is not positive definite",
            r"the times of `solve` ascend from its start on",
        )
    )
)
"""What cannot be drawn without data of one's own."""


def drawn_and_scored(module: ProgramModule, program: Program, *, warned: bool) -> None:
    """Draw from a program on data made for it, and score the draw."""
    needs = needs_of(program)

    def draw(x: Any, data: Mapping[str, Tensor]) -> dict[str, Any]:
        run = module.execute(x, condition(data), densities(False))
        return {need.name: run.sites[need.name].value for need in needs.observed}

    rows = synthetic(needs, draw, rows=3, length=4, seed=1)
    x, observations = rows.batch(torch.arange(rows.rows))
    found = trace(module, x, observations).log_joint
    # Arguments that a family cannot take have no density: the checker has warned of them, or they are data.
    assert warned or needs.data or not found.isnan().any()
    module.rsample(x, observations={need.name: observations[need.name] for need in needs.data})


def observed_of(program: Program) -> set[str]:
    return {need.name for need in needs_of(program).observed}


def elements(space: Space, *shape: int) -> Any:
    """Elements of a space: a tensor, or a tuple of those of its factors."""
    match space:
        case Product(factors=factors):
            return tuple(elements(factor, *shape) for factor in factors)
        case Seq(item=item):
            return elements(item, *shape, 4)
        case Finite(size=int(size)):
            return torch.randint(size, shape)
        case Real(shape=sizes):
            return torch.rand(*shape, *(size for size in sizes if isinstance(size, int)))
        case _:
            raise AssertionError(f"how are elements of {space} made?")


@pytest.mark.parametrize("source", CASES, ids=[case.name for case in CASES.values()])
@pytest.mark.sampled(2)
def test_what_checks_builds_and_draws(source: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    for name, text in CASES[source].files:
        (tmp_path / name).write_text(text, encoding="utf-8")
    try:
        loaded = dsl.loads(source, folder=tmp_path)
    except RuntimeProblem as problem:
        assert NOT_HERE.search(str(problem)), problem
        return
    warned = any(found.code.name == "argument-support" for found in loaded.snapshot.diagnostics())
    for name, module in loaded.programs.items():
        try:
            drawn_and_scored(module, loaded.model.programs[name], warned=warned)
        except RuntimeProblem as problem:
            assert problem.place is not None
            # what is observed and read above its step, as the total of counts is, is data and cannot be drawn
            read = isinstance(problem, MissingData) and problem.site in observed_of(loaded.model.programs[name])
            assert read or REFUSED.search(str(problem)), problem
    exported = loaded._morphism  # pyright: ignore[reportPrivateUsage]
    if isinstance(exported, TensorArrow):
        exported(elements(exported.domain.space, 3))
    elif exported is not None and not isinstance(exported, ProgramModule):
        exported.rsample(elements(exported.domain.space, 3))


def test_a_draw_from_a_program_with_an_observed_step_of_its_own() -> None:
    """Inlined, its steps are the program's: what it observes counts with the value that it was given or drawn."""
    loaded = dsl.loads(
        """
program noisy(alpha : Real) : FinSet 2 -> FinSet 2
    sample mu <- Normal(alpha, 1.0)
    observe y <- Normal(mu, 1.0)
    return mu
program p : FinSet 2 -> FinSet 2
    sample m <- noisy(alpha=1.0)
    observe z <- Normal(m, 1.0)
    return m
"""
    )
    z = torch.tensor([0.5, -0.5])
    found = trace(loaded.programs["p"], None, {"z": z})
    m_ = found.sites["m"].value
    y = found.sites["m.y"].value
    assert isinstance(m_, Tensor)
    assert isinstance(y, Tensor)
    around = torch.distributions.Normal(m_, 1.0)
    expected = torch.distributions.Normal(1.0, 1.0).log_prob(m_) + around.log_prob(z).sum() + around.log_prob(y)
    assert torch.allclose(found.log_joint, expected)


@pytest.mark.parametrize("keyword", ["let", "sample"])
def test_a_scalar_beside_a_sequence_is_the_same_at_every_position(keyword: str) -> None:
    arrow = "=" if keyword == "let" else "<-"
    loaded = dsl.loads(
        f"""
program cell(x, a, h) : Real 1 * Real 1 * Real 1 -> Real 1
    let h2 = a * h + x
    return h2
let recursion = scan(cell, emit=all)
program p(lag) : Seq (Real 1) -> Real 1
    sample mu <- Normal(0.0, 1.0)
    sample a0 <- Normal(0.0, 1.0)
    {keyword} m {arrow} recursion(lag - mu, a0)
    observe y <- Normal(m, 1.0)
    return m
"""
    )
    lag, y = torch.randn(2, 5, 1), torch.randn(2, 5, 1)
    mu, a0 = torch.randn(2), torch.randn(2)
    state, states = torch.zeros(2), []
    for at in range(5):
        state = a0 * state + lag[:, at, 0] - mu
        states.append(state)
    normal = torch.distributions.Normal(0.0, 1.0)
    by_hand = normal.log_prob(y[..., 0] - torch.stack(states, 1)).sum(1) + normal.log_prob(mu) + normal.log_prob(a0)
    found = loaded.programs["p"].log_joint(lag, {"mu": mu, "a0": a0, "y": y})
    assert torch.allclose(found, by_hand, atol=1e-5)


def test_a_word_of_several_factors_beside_a_sequence() -> None:
    """Parts of other kinds are repeated as well, not only numbers beside numbers."""
    loaded = dsl.loads(
        """
object Word : FinSet 3
object Wide : Real 2
morphism embed : Word -> Wide [role=embed]
program both(w, v) : Word * Wide -> Real 2
    let e = embed(w) + v
    return e
program p(w, v) : Seq Word * Wide -> Real 2
    let m = both(w, v)
    return m
"""
    )
    module = loaded.programs["p"]
    w, v = torch.tensor([[0, 1, 2, 1], [2, 2, 0, 1]]), torch.randn(2, 2)
    table = dict(module.named_parameters())["embed.weight"]
    assert torch.allclose(module.rsample((w, v)), table[w] + v[:, None, :])


@pytest.mark.parametrize(
    "source",
    [
        "object A : FinSet 2\nmorphism f : A -> A [role=latent]\nlet g = f >> f\n",
        "object A : FinSet 2\nobject B : FinSet 3\nmorphism f : A -> B [role=latent]\nlet g = f @ f\n",
    ],
)
def test_a_matrix_is_not_drawn_from(source: str) -> None:
    with pytest.raises(RuntimeProblem, match="is a matrix of weights, not a distribution"):
        dsl.loads(source).morphism.rsample(None)


def test_sides_of_a_product_that_do_not_meet_are_reported() -> None:
    source = """
object F : FinSet 4
program p : FinSet 2 -> FinSet 2
    sample b : F <- Normal(0.0, 1.0)
    let m = matmul(x, b)
    observe y <- Normal(m, 1.0)
    return b
"""
    with pytest.raises(RuntimeProblem, match=r"program `p`, `m`: a product over \d entries? and|entries"):
        trace(dsl.loads(source).programs["p"], None, {"x": torch.zeros(5, 3), "y": torch.zeros(5)})
