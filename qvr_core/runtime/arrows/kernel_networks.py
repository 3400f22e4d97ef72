"""The networks of kernels: from the input to the raw parameters of a family (docs/reference.md#kernel-networks)."""

from __future__ import annotations

from typing import Protocol

from qvr_core.arrays.engine import Tensor, arrays, nn
from qvr_core.arrays.engine import functional as F
from qvr_core.runtime.values import layout
from qvr_core.runtime.values.arrow import Value
from qvr_core.semantics.arrows.parameters import Shape, Shapes
from qvr_core.semantics.types.spaces import Space

TANH_GAIN = 5.0 / 3.0
EMBED_SPREAD = 0.5


def linear_layer(shape: Shape, gain: float) -> nn.Linear:
    """A linear layer (out, in), Xavier-uniform with `gain`, bias zero."""
    out, inside = shape
    layer = nn.Linear(inside, out)
    nn.init.xavier_uniform_(layer.weight, gain=gain)
    nn.init.zeros_(layer.bias)
    return layer


def _table(shape: Shape) -> nn.Embedding:
    rows, width = shape
    return nn.Embedding(rows, width)


class WithMatrix(Protocol):
    """An arrow that applies one matrix, (out, in)."""

    def matrix(self) -> Tensor:
        """The matrix as it is now."""
        ...


class Matrix:
    """The matrix of another arrow, which stays its own: read at each call, and no part of a module."""

    def __init__(self, arrow: WithMatrix, transposed: bool) -> None:
        self.arrow, self.transposed = arrow, transposed

    def __call__(self) -> Tensor:
        found = self.arrow.matrix()
        return found.mT if self.transposed else found


class TiedLayer(nn.Module):
    """A linear layer of which only the bias, zero at the start, is its own."""

    def __init__(self, matrix: Matrix, bias: Shape | None) -> None:
        super().__init__()
        self.matrix = matrix
        self.bias = None if bias is None else nn.Parameter(arrays.zeros(bias))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.matrix(), self.bias)


class Network(nn.Module):
    """Raw parameters (…, P) from a value of `domain`.

    An all-finite domain is a table over its (joint) elements (`table`); a real one `input` · tanh · `hidden` · tanh ·
    `output`, or `output` alone for `param_source=linear`; in a mixed one each finite factor is looked up in a table of
    width 16 first (`lookup_0`, …).  `shapes` are those of `parameter_shapes`; `zero_rows` are the raw parameters that
    start at zero: scales.  With the matrix of another arrow, `tied`, there is `output` alone, which has a bias.
    """

    def __init__(self, domain: Space, shapes: Shapes, zero_rows: list[int], tied: Matrix | None = None) -> None:
        super().__init__()
        self.domain = domain
        self.blocks = layout.blocks(domain)
        self.finite = all(block.finite for block in self.blocks)
        self.mixed = not self.finite and any(block.finite for block in self.blocks)
        self.tanh = "hidden.weight" in shapes
        if tied is not None:
            self.output = TiedLayer(tied, shapes.get("output.bias"))
            return
        if self.finite:
            self.table = _table(shapes["table.weight"])
            nn.init.xavier_uniform_(self.table.weight)
            with arrays.no_grad():
                self.table.weight[:, zero_rows] = 0.0
            return
        self.lookups = [name.removesuffix(".weight") for name in shapes if name.startswith("lookup_")]
        for name in self.lookups:
            lookup = _table(shapes[f"{name}.weight"])
            nn.init.normal_(lookup.weight, std=EMBED_SPREAD)
            self.add_module(name, lookup)
        if self.tanh:
            self.input = linear_layer(shapes["input.weight"], TANH_GAIN)
            self.hidden = linear_layer(shapes["hidden.weight"], TANH_GAIN)
        self.output = linear_layer(shapes["output.weight"], 1.0)
        with arrays.no_grad():
            self.output.weight[zero_rows] = 0.0
        self.look_up("_parameters")

    def look_up(self, table: str) -> None:
        """Where the layers' weights are: `_parameters`, or `_buffers` where they are drawn."""
        # attribute access on modules costs a microsecond; this is the way to a layer's current weights without it
        layers = (self.input, self.hidden, self.output) if self.tanh else (self.output,)
        self.tables: tuple[dict[str, Tensor], ...] = tuple(vars(layer)[table] for layer in layers)

    def weights(self) -> list[Tensor]:
        """Weight and bias of each layer, in order."""
        return [weight for table in self.tables for weight in table.values()]

    def forward(self, x: Value) -> Tensor:
        if self.finite:
            return self.table(layout.flat_index(x, self.domain))
        hidden = self.features(x)
        if self.tanh:
            hidden = arrays.tanh(self.input(hidden))
            hidden = arrays.tanh(self.hidden(hidden))
        return self.output(hidden)

    def item_features(self, item: Value) -> Tensor:
        """The features of the leading factors of the domain alone (…, m): those of a scan's item."""
        lookups = iter(self.lookups)
        columns = [
            part if part.is_floating_point() else self.get_submodule(next(lookups))(part) for part in layout.parts(item)
        ]
        return columns[0] if len(columns) == 1 else arrays.cat(columns, dim=-1)

    def features(self, x: Value) -> Tensor:
        """The real input of the layers: finite factors looked up, all concatenated."""
        if not self.mixed:
            return layout.parts(x)[0]
        lookups = iter(self.lookups)
        columns = [
            self.get_submodule(next(lookups))(part) if block.finite else part
            for part, block in zip(layout.parts(x), self.blocks, strict=True)
        ]
        return arrays.cat(columns, dim=-1)
