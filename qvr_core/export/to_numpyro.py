"""A program as a NumPyro model: a function of its data."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.export.arrays.marginalized import Block
from qvr_core.export.arrays.module import about, changed, data_lines, docstring, helpers, labels
from qvr_core.export.arrays.steps import Steps
from qvr_core.export.arrays.tables_numpyro import NUMPYRO
from qvr_core.export.exported import Exported
from qvr_core.export.names import PYTHON_WORDS
from qvr_core.export.python_layout import laid_out
from qvr_core.export.reading import Reading, ends_of
from qvr_core.lowered.axes import entry_axes
from qvr_core.semantics.language.sum_to_zero import SUM_TO_ZERO
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import IndexedValue, LetModel, Site
from qvr_core.semantics.types.spaces import Constrained, Dim

RESERVED = (
    *PYTHON_WORDS, *NUMPYRO.helpers, "data", "predict", "np", "jax", "jnp", "numpyro", "diffrax", "dist", "json",
    "read_data", "before", "now", "here", "table",
)  # fmt: skip


def numpyro_model(reading: Reading) -> Exported:
    """The model's file."""
    steps = NumpyroSteps(reading)
    body = steps.body()
    names, sizes = steps.names, steps.expressions.sizes
    own = steps.own
    notes = [*labels(reading), *changed(names)]
    head = docstring([*about(reading, "numpyro"), *(["", *notes] if notes else [])])
    data = ["", "Data by name:", "", *data_lines(reading, steps.expressions, names)] if reading.data else []
    later = ["", "With `predict`, what the program predicts is drawn as well."] if steps.predicts else []
    uses_jax = any("jax." in line for line in [*body, *steps.densities.families.lines, *NUMPYRO.helpers.values()])
    reparam = []
    if steps.centred:
        config = ", ".join(f'"{name}": LocScaleReparam(0)' for name in steps.centred)
        reparam = [
            "",
            "",
            f"# The program moves the standardised values of {', '.join(steps.centred)}: sample this one.",
            *laid_out(f"{own}_noncentred = numpyro.handlers.reparam({own}, config={{{config}}})", 0),
        ]
    lines = [
        *head, "", "import json", "",
        *(["import jax"] if uses_jax else []),
        "import jax.numpy as jnp",
        *(["import diffrax"] if any("diffrax." in line for line in body) else []),
        *(["import numpy as np"] if steps.completes else []), "import numpyro",
        "from numpyro import distributions as dist",
        *(["from numpyro.infer.reparam import LocScaleReparam"] if steps.centred else []),
        "", "numpyro.enable_x64()", "", "",
        *helpers(steps.expressions.used, NUMPYRO.helpers),
        *steps.densities.families.lines,
        "def read_data(path):",
        *docstring(["The data of a file that `qvr export --data` wrote."], 4),
        "    with open(path) as file:",
        "        data = json.load(file)",
        "    return {",
        "        name: jnp.array(value) if isinstance(value, list) else value",
        "        for name, value in data.items()",
        "    }",
        "", "",
        f"def {own}(data{', predict=False' if steps.predicts else ''}):",
        *docstring([f"The model `{own}`.", *data, *later], 4),
        *(f'    {size} = data["{size}"]' for size in sizes.values()),
        *(f'    {names[item.name]} = data["{names[item.name]}"]' for item in reading.data),
        *body,
        *reparam,
    ]  # fmt: skip
    return steps.exported(lines)


class NumpyroSteps(Steps):
    """Sample statements, factors and deterministic sites."""

    dialect = NUMPYRO
    reserved = RESERVED

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self.predicts = self.completes = False
        self.centred: list[str] = []

    def latent(self, site: Site, draw: FamilyDraw, shape: tuple[Dim, ...]) -> None:
        made = self.densities.distribution(draw, site)
        dims = (*shape, *(axis.size for axis in entry_axes(site)))
        wide = f".expand({self.expressions.shape(dims)})" if dims else ""
        self.write(f'{self.names[site.name]} = numpyro.sample("{site.name}", {made}{wide})')
        if site.noncentred and not draw.declared and {"loc", "scale"} <= {name for name, _ in draw.args}:
            self.centred.append(site.name)

    def free(self, site: Site, name: str, shape: str) -> None:
        label = site.name if name == self.names[site.name] else name
        self.write(f'{name} = numpyro.sample("{label}", dist.ImproperUniform({constraint(site)}, (), {shape}))')

    def observed(self, site: Site, draw: FamilyDraw, value: str) -> None:
        made = self.densities.distribution(draw, site)
        if made is None:
            self.add(f"{site.name}_density", self.densities.total(draw, site, value))
        else:
            self.write(f'numpyro.sample("{site.name}", {made}, obs={value})')

    def add(self, name: str, density: str) -> None:
        self.write(f'numpyro.factor("{name}", {density})')

    def keep(self, name: str, value: str, *, derived: bool) -> None:
        made = f'numpyro.deterministic("{name}", {value})' if derived else value
        self.write(f"{self.names[name]} = {made}")

    def predicted(self, site: Site, draw: FamilyDraw) -> None:
        made = self.densities.distribution(draw, site)
        if made is None or site.chain is not None:
            super().predicted(site, draw)
            return
        self.predicts = True
        self.write("if predict:")
        self.write(f'numpyro.sample("{site.name}", {made})', 4)

    def completed(self, site: Site, name: str, there: str) -> None:
        own = self.names[site.name]
        missing = self.names.fresh("missing")
        self.completes = True
        if there:
            # how many there are is known while the model is traced
            self.write("with jax.ensure_compile_time_eval():")
            self.write(f"{missing} = np.nonzero(np.isnan({own}) & ({there}))", 4)
        else:
            self.write(f"{missing} = np.nonzero(np.isnan({own}))")
        self.free(site, name, f"({missing}[0].size,)")
        self.write(f"{own} = {own}.at[{missing}].set({name})")

    def recursion(self, step: LetModel, indexed: IndexedValue, starts: Sequence[Sequence[Expr]]) -> None:
        index = indexed.indices[0]
        expressions, names = self.expressions, self.names
        size = expressions.size(getattr(index.space, "size", 0))
        before = {name: names.fresh(f"{names[name]}_before") for name in step.names}
        move = names.fresh(f"{names[step.names[0]]}_step")
        for place, name in enumerate(step.names):
            self.write(f"{before[name]} = jnp.array([{', '.join(self.starts(indexed, place))}], float)")
        together = _together(list(before.values()))
        self.lines.append("")
        self.write(f"def {move}(before, {names[index.name]}):")
        self.write(f"{together} = before", 4)
        expressions.along, expressions.growing = index.name, {name: names[name] for name in step.names}
        expressions.earlier = lambda name, shift: f"{before[name]}[-{shift}]" if shift else names[name]
        for at, name in enumerate(step.names):
            self.write(f"{names[name]} = {self.later(indexed, at, before[name])}", 4)
        expressions.along, expressions.growing, expressions.earlier = None, {}, None
        after = _together([f"jnp.append({before[name]}[1:], {names[name]})" for name in step.names])
        made = _together([names[name] for name in step.names])
        self.write(f"return {after}, {made}", 4)
        self.lines.append("")
        self.write(f"_, {made} = jax.lax.scan({move}, {together}, jnp.arange({index.lag}, {size}))")
        for at, name in enumerate(step.names):
            first = before[name] + (f"[-{index.lag}:]" if indexed.lag(at) > index.lag else "")
            whole = f"jnp.append({first}, {names[name]})"
            self.keep(name, whole, derived=name in self.reading.derived)

    def forward(self, block: Block, terms: str) -> str:
        names = self.names
        name = names[block.name]
        seen, table, last = (names.fresh(f"{name}_{word}") for word in ("seen", "steps", "last"))
        move = names.fresh(f"{name}_step")
        self.write(f"{seen} = jnp.moveaxis({terms}, -2, 0)")
        if block.timed:
            self.write(f"{table} = jnp.moveaxis({block.later}, -3, 0)")
        else:
            self.write(f"{table} = {block.later}")
        self.lines.append("")
        self.write(f"def {move}(before, now):")
        if block.timed:
            self.write("table, here = now", 4)
        here, one = ("here", "table") if block.timed else ("now", table)
        self.write(f"return jax.nn.logsumexp(before[..., None] + {one}, -2) + {here}, None", 4)
        self.lines.append("")
        over = f"({table}, {seen}[1:])" if block.timed else f"{seen}[1:]"
        self.write(f"{last}, _ = jax.lax.scan({move}, {block.first} + {seen}[0], {over})")
        return last


def constraint(site: Site) -> str:
    """The support of a latent without a density of its own."""
    space = site.bound[0][1].space
    if isinstance(space, Constrained):
        names = {
            "Simplex": "simplex", "Ordered": "ordered_vector", "CholeskyFactor": "corr_cholesky",
            "Correlation": "corr_matrix", "Covariance": "positive_definite",
        }  # fmt: skip
        return f"dist.constraints.{names[space.kind]}"
    draw = site.draw
    if isinstance(draw, FamilyDraw) and draw.family in ("ICAR", SUM_TO_ZERO):
        return "dist.constraints.zero_sum(1)"
    match ends_of(site):
        case (None, None):
            return "dist.constraints.real"
        case (0.0, None):
            return "dist.constraints.positive"
        case (low, None):
            return f"dist.constraints.greater_than({low})"
        case (None, high):
            return f"dist.constraints.less_than({high})"
        case (low, high):
            return f"dist.constraints.interval({low}, {high})"


def _together(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
