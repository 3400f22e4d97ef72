"""Role `batch_norm`: each channel normalised over the batch while SVI trains, by stored statistics everywhere else."""

from __future__ import annotations

from math import prod

from qvr_core.arrays.engine import Tensor, arrays, is_tensor, nn
from qvr_core.arrays.engine import functional as F
from qvr_core.runtime.arrows.convolution import sizes_of
from qvr_core.runtime.arrows.training import sequence_lead
from qvr_core.runtime.values.arrow import ArrowModule, Value
from qvr_core.runtime.values.errors import InputProblem
from qvr_core.runtime.values.padding import valid_positions
from qvr_core.semantics.arrows.parameters import parameter_shapes
from qvr_core.semantics.types.model.arrows import BatchNorm


class BatchNormArrow(ArrowModule):
    """As `torch.nn.BatchNorm2d`, or `BatchNorm1d` of a plain vector (Ioffe and Szegedy 2015): `weight` and `bias` (c,),
    and what is stored, `running_mean` and `running_var` (c,).

    Where `training` is on, the statistics are those of all rows, of a sequence all positions that are valid; a share
    `momentum` of them goes into what is stored, unless they are not finite.
    """

    pointwise = True
    reads_batch = True

    def __init__(self, node: BatchNorm) -> None:
        super().__init__()
        self.domain, self.codomain = node.domain, node.codomain
        self.name, self.momentum = node.name, node.momentum
        shapes = parameter_shapes(node)
        self.weight = nn.Parameter(arrays.ones(shapes["weight"]))
        self.bias = nn.Parameter(arrays.zeros(shapes["bias"]))
        self.register_buffer("running_mean", arrays.zeros(shapes["weight"]))
        self.register_buffer("running_var", arrays.ones(shapes["weight"]))
        self.training = False

    running_mean: Tensor
    running_var: Tensor

    def forward(self, x: Value) -> Value:
        assert is_tensor(x)
        rows = x.reshape(-1, *sizes_of(self.domain))
        if not self.training:
            made = F.batch_norm(rows, self.running_mean, self.running_var, self.weight, self.bias)
            return made.reshape(x.shape)
        valid = self._valid(x)
        if valid is None:
            return self._normalised(rows).reshape(x.shape)
        made = arrays.zeros_like(rows)
        made[valid] = self._normalised(rows[valid])
        return made.reshape(x.shape)

    def _valid(self, x: Tensor) -> Tensor | None:
        """Which rows count, where those of a sequence are padded."""
        lead = tuple(x.shape[:2]) if x.ndim > 2 else sequence_lead(x.shape[0])
        mask = None if lead is None else valid_positions(*lead)
        return None if mask is None else mask.flatten()

    def _normalised(self, rows: Tensor) -> Tensor:
        """By the statistics of these rows, (N, c, …), which are stored."""
        if rows.shape[0] * prod(rows.shape[2:]) < 2:
            raise InputProblem(
                f"`{self.name}` normalises over its batch while it trains, and this one has a single value for each "
                "channel; take larger batches",
                site=self.name,
            )
        # Copies: torch writes into them, and they are kept only where they are sound.
        mean, variance = self.running_mean.clone(), self.running_var.clone()
        made = F.batch_norm(rows, mean, variance, self.weight, self.bias, True, self.momentum)
        sound = arrays.isfinite(arrays.cat((mean, variance))).all()
        arrays.where(sound, mean, self.running_mean, out=self.running_mean)
        arrays.where(sound, variance, self.running_var, out=self.running_var)
        return made

    def output_like(self, x: Value) -> Value:
        return x
