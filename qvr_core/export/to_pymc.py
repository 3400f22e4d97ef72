"""A program as a PyMC model: a function of its data that gives the model."""

from __future__ import annotations

from collections.abc import Sequence

from qvr_core.export.arrays.expressions import is_constant
from qvr_core.export.arrays.marginalized import Block
from qvr_core.export.arrays.module import about, changed, data_lines, docstring, helpers, labels
from qvr_core.export.arrays.steps import Steps, more_of, orders
from qvr_core.export.arrays.tables_pymc import PYMC
from qvr_core.export.data_arrays import DataArray
from qvr_core.export.exported import Exported
from qvr_core.export.names import PYTHON_WORDS
from qvr_core.export.reading import Reading, ends_of, is_flat
from qvr_core.export.refusals import Refused
from qvr_core.lowered.axes import event_dims, plate_dims
from qvr_core.semantics.language.sum_to_zero import SUM_TO_ZERO
from qvr_core.semantics.types.model.expressions import Bound, Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import IndexedValue, LetModel, ObserveModel, Site
from qvr_core.semantics.types.spaces import Constrained, Dim
from qvr_core.semantics.types.walk import sites, until_arrows, walk

RESERVED = (
    *PYTHON_WORDS,
    *PYMC.helpers,
    "data",
    "model",
    "pm",
    "pt",
    "np",
    "pytensor",
    "json",
    "read_data",
    "before",
    "now",
    "table",
)


def pymc_model(reading: Reading) -> Exported:
    """The model's file."""
    steps = PymcSteps(reading)
    body = steps.body()
    names, sizes = steps.names, steps.expressions.sizes
    own = steps.own
    notes = [*labels(reading), *changed(names)]
    head = docstring([*about(reading, "pymc"), *(["", *notes] if notes else [])])
    data = ["", "Data by name:", "", *data_lines(reading, steps.expressions, names)] if reading.data else []
    lines = [
        *head, "", "import json", "",
        "import numpy as np", "import pymc as pm", "import pytensor",
        "import pytensor.tensor as pt", "",
        "# plain numbers are of double precision, as everything else",
        'pytensor.config.cast_policy = "numpy+floatX"',
        "", "",
        *helpers(steps.expressions.used, PYMC.helpers),
        *steps.densities.families.lines,
        "def read_data(path):",
        *docstring(["The data of a file that `qvr export --data` wrote."], 4),
        "    with open(path) as file:",
        "        data = json.load(file)",
        "    return {",
        "        name: np.array(value) if isinstance(value, list) else value",
        "        for name, value in data.items()",
        "    }",
        "", "",
        f"def {own}(data):",
        *docstring([f"The model `{own}`.", *data], 4),
        *(f'    {size} = data["{size}"]' for size in sizes.values()),
        "    with pm.Model() as model:",
        *(line for item in reading.data for line in steps.data(item)),
        *body,
        "    return model",
    ]  # fmt: skip
    return steps.exported(lines)


class PymcSteps(Steps):
    """Random variables, potentials and deterministic variables."""

    dialect = PYMC
    indent = 8
    reserved = RESERVED

    def data(self, item: DataArray) -> list[str]:
        """The line that takes a data name; what is observed has its own name later."""
        name = self.names[item.name]
        kept, self.lines = self.lines, []
        observed = [site for site in sites(self.reading.program.steps, ObserveModel) if site.name == item.name]
        if item.missing or any(site.lengths is not None for site in observed):
            self.write(f'{name} = data["{name}"]')
        else:
            self.write(f'{name} = pm.Data("{item.name}{"_data" if observed else ""}", data["{name}"])')
        made, self.lines = self.lines, kept
        return made

    def _named(self, name: str, made: str, more: str = "") -> str:
        """A distribution as a random variable of a name."""
        return made.replace(".dist(", f'("{name}", ', 1)[:-1] + more + ")"

    def latent(self, site: Site, draw: FamilyDraw, shape: tuple[Dim, ...]) -> None:
        name = self.names[site.name]
        if draw.family == "LKJCholesky":
            if shape:
                raise Refused(site.origin, f"`{site.name}`: PyMC has one correlation matrix a site")
            made = self.densities.distribution(draw, site) or ""
            whole = self.names.fresh(f"{name}_correlation")
            self.write(f"{whole} = {self._named(whole, made, ', return_matrix=True')}")
            self.write(f'{name} = pm.Deterministic("{site.name}", pt.linalg.cholesky({whole}))')
            return
        dims = (*shape, *event_dims(site))
        arguments = dict(draw.args)
        if site.noncentred and set(arguments) == {"loc", "scale"} and draw.family == "Normal":
            whole = f", shape={self.expressions.shape(dims)}" if dims else ""
            loc, scale = (self.expressions.text(arguments[key]) for key in ("loc", "scale"))
            free = self.names.fresh(f"{name}_standard")
            self.write(f'{free} = pm.Normal("{free}", 0.0, 1.0{whole})')
            self.write(f'{name} = pm.Deterministic("{site.name}", {loc} + {scale} * {free})')
            return
        made = self.densities.distribution(draw, site) or ""
        whole = f", shape={self.expressions.shape(dims)}" if dims else ""
        self.write(f"{name} = {self._named(site.name, made, whole)}")

    def ordered(self, site: Site, draw: FamilyDraw) -> None:
        name = self.names[site.name]
        dims = (*plate_dims(site), *event_dims(site))
        made = self.densities.distribution(draw, site)
        if len(dims) != 1 or not isinstance(dims[0], int) or made is None:
            raise Refused(site.origin, f"`{site.name}`: ordered vectors over a plate are not exported")
        size = int(dims[0])
        start = f", initval=np.linspace(-1.0, 1.0, {size})"
        kind = ", transform=pm.distributions.transforms.ordered"
        self.write(f"{name} = {self._named(site.name, made, f', shape={self.expressions.shape(dims)}{kind}{start}')}")
        if more_of(site):
            self.add(f"{name}_orders", f"pt.as_tensor({orders(size)})")

    def free(self, site: Site, name: str, shape: str) -> None:
        label = site.name if name == self.names[site.name] else name
        draw = site.draw
        space = site.bound[0][1].space
        if isinstance(space, Constrained) and isinstance(draw, FamilyDraw) and is_flat(draw):
            raise Refused(site.origin, f"`{site.name}`: PyMC has no flat density on `{space.kind}`")
        whole = "" if shape == "()" else f", shape={shape}"
        low, high = ends_of(site)
        if (low, high) == (0.0, None):
            self.write(f'{name} = pm.HalfFlat("{label}"{whole})')
            return
        kind = ""
        if low is not None or high is not None:
            first, last = (high or 0.0) - 2.0 if low is None else low, (low or 0.0) + 2.0 if high is None else high
            start = 0.5 * (first + last)
            kind = f", transform=pm.distributions.transforms.Interval({low}, {high}), initval=np.full({shape}, {start})"
        elif isinstance(draw, FamilyDraw) and draw.family in ("ICAR", SUM_TO_ZERO):
            kind = ", transform=pm.distributions.transforms.ZeroSumTransform([-1])"
        self.write(f'{name} = pm.Flat("{label}"{whole}{kind})')

    def observed(self, site: Site, draw: FamilyDraw, value: str) -> None:
        made = self.densities.distribution(draw, site)
        if made is None:
            self.add(f"{site.name}_density", self.densities.total(draw, site, value))
        else:
            self.write(self._named(site.name, made, f", observed={value}"))

    def add(self, name: str, density: str) -> None:
        self.write(f'pm.Potential("{name}", {density})')

    def keep(self, name: str, value: str, *, derived: bool) -> None:
        made = f'pm.Deterministic("{name}", {value})' if derived else value
        self.write(f"{self.names[name]} = {made}")

    def completed(self, site: Site, name: str, there: str) -> None:
        own = self.names[site.name]
        missing = self.names.fresh("missing")
        drawn = f" & ({there}).eval()" if there else ""
        self.write(f"{missing} = np.nonzero(np.isnan({own}){drawn})")
        self.free(site, name, f"({missing}[0].size,)")
        self.write(f"{own} = pt.set_subtensor(pt.as_tensor({own})[{missing}], {name})")

    def recursion(self, step: LetModel, indexed: IndexedValue, starts: Sequence[Sequence[Expr]]) -> None:
        index = indexed.indices[0]
        expressions, names = self.expressions, self.names
        size = expressions.size(getattr(index.space, "size", 0))
        before = {name: names.fresh(f"{names[name]}_before") for name in step.names}
        move = names.fresh(f"{names[step.names[0]]}_step")
        for place, name in enumerate(step.names):
            # a state of whole numbers could not become one of others
            real = "1.0 * " if any(map(is_constant, indexed.starts[place])) else ""
            self.write(f"{before[name]} = {real}pt.stack([{', '.join(self.starts(indexed, place))}])")
        found = {one.name for value in indexed.values for one in walk(value, until_arrows) if isinstance(one, Bound)}
        read = [names[name] for name in self.reading.names if name in found - set(step.names)]
        self.lines.append("")
        self.write(f"def {move}({', '.join([names[index.name], *before.values(), *read])}):")
        expressions.along, expressions.growing = index.name, {name: names[name] for name in step.names}
        expressions.earlier = lambda name, shift: f"{before[name]}[-{shift}]" if shift else names[name]
        for at, name in enumerate(step.names):
            self.write(f"{names[name]} = {self.later(indexed, at, before[name])}", 4)
        expressions.along, expressions.growing, expressions.earlier = None, {}, None
        after = [f"pt.concatenate([{before[name]}[1:], {names[name]}[None]])" for name in step.names]
        self.write(f"return {after[0]}" if len(after) == 1 else f"return [{', '.join(after)}]", 4)
        self.lines.append("")
        made = ", ".join(f"{names[name]}" for name in step.names)
        outputs = f"outputs_info=[{', '.join(before.values())}], non_sequences=[{', '.join(read)}]"
        outputs += ", return_updates=False"
        self.write(f"{made} = pytensor.scan({move}, sequences=pt.arange({index.lag}, {size}), {outputs})")
        for at, name in enumerate(step.names):
            first = before[name] + (f"[-{index.lag}:]" if indexed.lag(at) > index.lag else "")
            whole = f"pt.concatenate([{first}, {names[name]}[:, -1]])"
            self.keep(name, whole, derived=name in self.reading.derived)

    def forward(self, block: Block, terms: str) -> str:
        names = self.names
        name = names[block.name]
        seen, table, last = (names.fresh(f"{name}_{word}") for word in ("seen", "steps", "last"))
        move = names.fresh(f"{name}_step")
        self.write(f"{seen} = pt.moveaxis({terms}, -2, 0)")
        if block.timed:
            self.write(f"{table} = pt.moveaxis({block.later}, -3, 0)")
        else:
            self.write(f"{table} = {block.later}")
        self.lines.append("")
        self.write(f"def {move}({'table, now, before' if block.timed else 'now, before, table'}):")
        self.write("return pt.logsumexp(before[..., None] + table, -2) + now", 4)
        self.lines.append("")
        over = f"sequences=[{table}, {seen}[1:]]" if block.timed else f"sequences={seen}[1:], non_sequences={table}"
        first = f"outputs_info={block.first} + {seen}[0]"
        self.write(f"{last} = pytensor.scan({move}, {over}, {first}, return_updates=False)")
        return f"{last}[-1]"
