"""A program as a stand-alone torch module: `forward` is its log density at given values of its latents."""

from __future__ import annotations

import re
from collections.abc import Sequence

from qvr_core.export.arrays.marginalized import Block
from qvr_core.export.arrays.module import about, changed, data_lines, docstring, helpers, labels
from qvr_core.export.arrays.steps import Steps
from qvr_core.export.arrays.tables_torch import TORCH
from qvr_core.export.exported import Exported
from qvr_core.export.names import PYTHON_WORDS
from qvr_core.export.python_layout import laid_out
from qvr_core.export.reading import Reading, ends_of
from qvr_core.lowered.axes import event_dims
from qvr_core.semantics.language.sum_to_zero import SUM_TO_ZERO
from qvr_core.semantics.types.model.expressions import Expr
from qvr_core.semantics.types.model.families import FamilyDraw
from qvr_core.semantics.types.model.steps import IndexedValue, LetModel, Site
from qvr_core.semantics.types.spaces import Constrained, Dim

OF_A_MODULE = (
    "T_destination", "add_module", "apply", "bfloat16", "buffers", "call_super_init", "children", "compile", "cpu",
    "cuda", "double", "dump_patches", "eval", "extra_repr", "float", "forward", "get_buffer", "get_extra_state",
    "get_parameter", "get_submodule", "half", "ipu", "load_state_dict", "modules", "mtia", "named_buffers",
    "named_children", "named_modules", "named_parameters", "parameters", "register_backward_hook",
    "register_buffer", "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
    "register_full_backward_pre_hook", "register_load_state_dict_post_hook", "register_load_state_dict_pre_hook",
    "register_module", "register_parameter", "register_state_dict_post_hook", "register_state_dict_pre_hook",
    "requires_grad_", "set_extra_state", "set_submodule", "shapes", "share_memory", "state_dict", "to", "to_empty",
    "train", "training", "type", "xpu", "zero_grad",
)  # fmt: skip
"""Attributes of a torch.nn.Module, and of what is exported, which data must not be named as."""
RESERVED = (
    *(*PYTHON_WORDS, *TORCH.helpers, *OF_A_MODULE),
    *("self", "data", "values", "total", "torch", "dist", "nn", "json"),
)


def torch_module(reading: Reading) -> Exported:
    """The module."""
    steps = TorchSteps(reading)
    body = steps.body()
    names, sizes = steps.names, steps.expressions.sizes
    title = names.fresh("".join(word.capitalize() for word in reading.program.name.split("_")) or "Program")
    notes = [*labels(reading), *changed(names)]
    head = docstring([*about(reading, "torch"), *(["", *notes] if notes else [])])
    data = ["Data by name:", "", *data_lines(reading, steps.expressions, names)] if reading.data else []
    own = [*sizes.values(), *(names[item.name] for item in reading.data)]
    known = [f"        {name} = self.{name}" for name in own]
    read = set(re.findall(r"\w+", " ".join(steps.known)))
    lines = [
        *head, "", "import json", "", "import torch", "from torch import distributions as dist", "from torch import nn",
        "", "torch.set_default_dtype(torch.float64)", "", "",
        *helpers(steps.expressions.used, TORCH.helpers),
        *steps.densities.families.lines,
        "def read_data(path):",
        *docstring(["The data of a file that `qvr export --data` wrote."], 4),
        "    with open(path) as file:",
        "        return json.load(file)",
        "", "",
        f"class {title}(nn.Module):",
        *docstring([f"The log density of `{reading.program.name}`.", "", *(x.rstrip() for x in data)], 4),
        "",
        "    def __init__(self, data):",
        "        super().__init__()",
        *(f'        self.{size} = data["{size}"]' for size in sizes.values()),
        *(line for item in reading.data for line in _buffer(names[item.name], item.kind == "index")),
        "",
        "    def shapes(self):",
        *docstring(["The shape of each latent."], 8),
        *(line for line in known if line.split()[0] in read),
        *steps.known,
        "        return {",
        *steps.shapes,
        "        }",
        "",
        "    def forward(self, values):",
        *docstring(["The log density at values of the latents, by name, where they live."], 8),
        *known,
        "        total = 0.0",
        *body,
        "        return total",
    ]  # fmt: skip
    return steps.exported(lines)


def _buffer(name: str, whole: bool) -> list[str]:
    dtype = "" if whole else ", dtype=torch.float64"
    line = f'        self.register_buffer("{name}", torch.tensor(data["{name}"]{dtype}))'
    if len(line) <= 88:
        return [line]
    return [
        "        self.register_buffer(",
        f'            "{name}", torch.tensor(data["{name}"]{dtype})',
        "        )",
    ]


class TorchSteps(Steps):
    """Adds log densities to `total`."""

    dialect = TORCH
    indent = 8
    reserved = RESERVED
    discrete = True

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self.shapes: list[str] = []
        self.known: list[str] = []
        """What the shapes are computed of, lines of `shapes`."""

    def _declared(self, site: Site, name: str, shape: str) -> None:
        note = support_words(site)
        self.shapes.append(f'            "{name}": {shape},' + (f"  # {note}" if note else ""))
        sizes = [f"self.{size}" for size in self.expressions.sizes.values()]
        for size, own in zip(self.expressions.sizes.values(), sizes, strict=True):
            self.shapes[-1] = _whole_word(self.shapes[-1], size, own)
        self.write(f'{name} = values["{name}"]')

    def latent(self, site: Site, draw: FamilyDraw, shape: tuple[Dim, ...]) -> None:
        name = self.names[site.name]
        self._declared(site, name, self.expressions.shape((*shape, *event_dims(site))))
        self.add(name, self.densities.total(draw, site, name))

    def free(self, site: Site, name: str, shape: str) -> None:
        self._declared(site, name, shape)

    def observed(self, site: Site, draw: FamilyDraw, value: str) -> None:
        self.add(site.name, self.densities.total(draw, site, value))

    def add(self, name: str, density: str) -> None:
        self.write(f"total += {density}")

    def completed(self, site: Site, name: str, there: str) -> None:
        own = self.names[site.name]
        missing, count = f"torch.isnan({own})", f"torch.isnan(self.{own})"
        if there:
            made, missing = f"{missing} & ({there})", self.names.fresh(f"{own}_is_missing")
            count = missing
            self.write(f"{missing} = {made}")
            self.known += laid_out(f"{missing} = {made}", self.indent)
        self._declared(site, name, f"(int({count}.sum()),)")
        self.write(f"{own} = {own}.masked_scatter({missing}, {name})")

    def recursion(self, step: LetModel, indexed: IndexedValue, starts: Sequence[Sequence[Expr]]) -> None:
        index = indexed.indices[0]
        expressions = self.expressions
        size = expressions.size(getattr(index.space, "size", 0))
        at = self.names[index.name]
        for place, name in enumerate(step.names):
            first = self.starts(indexed, place)
            behind = indexed.lag(place) - index.lag
            # a place before the first counts from the last, as lists do
            self.write(f"{self.names[name]} = [{', '.join([*first[behind:], *first[:behind]])}]")
        self.write(f"for {at} in range({index.lag}, {size}):")
        expressions.along, expressions.growing = index.name, {name: self.names[name] for name in step.names}
        expressions.earlier = lambda name, shift: f"{self.names[name]}[{at}{f' - {shift}' if shift else ''}]"
        for place, (name, value) in enumerate(zip(step.names, indexed.values, strict=True)):
            lag = indexed.lag(place)
            if lag > index.lag:
                self.write(f"if {at} >= {lag}:", 4)
            self.write(f"{self.names[name]}.append({expressions.text(value)})", 8 if lag > index.lag else 4)
        expressions.along, expressions.growing, expressions.earlier = None, {}, None
        for name in step.names:
            self.write(f"{self.names[name]} = torch.stack({self.names[name]})")

    def forward(self, block: Block, terms: str) -> str:
        name = self.names[block.name]
        seen, table, last = (self.names.fresh(f"{name}_{word}") for word in ("seen", "steps", "last"))
        at = self.names.fresh("t")
        now = f"[..., {at} - 1, :, :]" if block.timed else ""
        self.write(f"{seen} = {terms}")
        self.write(f"{table} = {block.later}")
        self.write(f"{last} = {block.first} + {seen}[..., 0, :]")
        self.write(f"for {at} in range(1, {block.length}):")
        self.write(f"{last} = torch.logsumexp({last}[..., None] + {table}{now}, -2) + {seen}[..., {at}, :]", 4)
        return last


def support_words(site: Site) -> str:
    """Where a latent lives, in words; '' for all numbers."""
    space = site.bound[0][1].space
    if isinstance(space, Constrained):
        return {
            "Simplex": "probabilities that add up to 1", "Ordered": "ascending",
            "CholeskyFactor": "lower triangular, rows of length 1",
        }.get(space.kind, space.kind.lower())  # fmt: skip
    draw = site.draw
    if isinstance(draw, FamilyDraw) and draw.family in ("ICAR", SUM_TO_ZERO):
        return "adds up to 0"
    match ends_of(site):
        case (None, None):
            return ""
        case (0.0, None):
            return "positive"
        case (low, None):
            return f"from {low:g}"
        case (None, high):
            return f"up to {high:g}"
        case (low, high):
            return f"from {low:g} to {high:g}"


def _whole_word(text: str, word: str, by: str) -> str:
    head, _, tail = text.partition(": ")
    inner = tail.partition("  #")
    found = ", ".join(by if part.strip("(),") == word else part for part in inner[0].strip("(),").split(", "))
    return text if word not in tail else f"{head}: ({found}{',' if ', ' not in found else ''}),{inner[1]}{inner[2]}"
