"""The parameter counts of hovers are those of the loaded modules."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from qvr_core.analysis import analyse
from qvr_core.data.needs import open_sets
from qvr_core.dsl import loads
from qvr_core.semantics.arrows.parameters import parameter_shapes
from qvr_core.semantics.file.open_sets import KnownSet
from qvr_core.semantics.programs.parameter_count import parameter_count
from tests.standalone import standalone

torch.set_num_threads(1)

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "examples").glob("?*.qvr"))

ARROWS = """\
object Token : FinSet 11
object Kind : FinSet 3
object X : Real 6
object Y : Real 4
object Image : Real 3 5
object Positive : Real 4 [low=0.0]
object Weights : Simplex 5
object Factor : CholeskyFactor 3
object Spread : Covariance 3
morphism embed : Token -> X [role=embed]
morphism mixed : Token * X * Kind -> Y ~ Normal
morphism table : Token -> Y ~ Normal
morphism small : X -> Y [param_source=linear] ~ Normal
morphism wide : X -> Y [hidden_dim=32, scale=0.1] ~ StudentT
morphism rate : X -> Positive ~ Gamma
morphism share : X -> Weights ~ Dirichlet
morphism logistic : X -> Weights ~ LogisticNormal
morphism joint : X -> Y ~ MultivariateNormal
morphism lean : X -> Y [rank=2] ~ LowRankMultivariateNormal
morphism mix : X -> Y [components=3] ~ MixtureNormal
morphism picture : X -> Image ~ MatrixNormal
morphism factor : X -> Factor ~ LKJCholesky
morphism spread : X -> Spread ~ Wishart
morphism kind : X -> Kind ~ Categorical
morphism level : X -> Kind ~ OrderedLogistic
morphism step : Kind -> Kind
morphism fixed : X -> X ~ Normal(0.0, 1.0)
morphism map : X -> Y [role=linear, bias=false]
morphism low : X -> Y [role=linear, rank=2]
morphism even : X -> X [role=norm]
morphism look : X -> X [role=attention, heads=2]
morphism place : X -> X [role=position, max_length=9]
morphism weights : Token -> Kind [role=latent]
morphism cell : X * Y -> Y ~ Normal
morphism copies : X -> X [role=linear, replicate=3]
let folded = scan(cell, init=learned)
let deep = stack(residual(even), 3)
let again = repeat(even, 3)
let fanned = fan(copies)
let shared = fan(even, even)
"""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_programs_of_the_examples(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    model = standalone(text).model
    loaded = loads(text, known={name: KnownSet(2) for name in open_sets(model)})
    assert loaded.programs
    for name, module in loaded.programs.items():
        assert parameter_count(model, model.programs[name]) == sum(p.numel() for p in module.parameters()), name


NAMES = [
    line.split()[1] for line in ARROWS.splitlines() if line.startswith(("morphism", "let")) and "replicate" not in line
]


@pytest.mark.parametrize("name", NAMES)
def test_each_role_family_and_combinator(name: str) -> None:
    text = f"{ARROWS}export {name}\n"
    model = analyse(text).model
    arrow = model.lets[name].arrow if name in model.lets else model.arrows[name]
    assert parameter_count(model, arrow) == sum(p.numel() for p in loads(text).morphism.parameters())


@pytest.mark.parametrize("name", [name for name in NAMES if f"morphism {name} :" in ARROWS])
def test_names_and_shapes_are_those_of_the_module(name: str) -> None:
    text = f"{ARROWS}export {name}\n"
    module = loads(text).morphism
    wanted = [
        (key.removeprefix(f"{name}_.").removeprefix(f"{name}."), tuple(weight.shape))
        for key, weight in module.named_parameters()
    ]
    assert list(parameter_shapes(analyse(text).model.arrows[name]).items()) == wanted
