"""The language models as a PyTorch user would write them by hand: what `benchmarks.runtime` compares with."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Network(nn.Module):
    """Linear · tanh · Linear · tanh · Linear, and a draw from the Normal that it parameterises."""

    def __init__(self, inside: int, out: int, scale: float = 1.0) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(inside, 64), nn.Linear(64, 64), nn.Linear(64, out)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return self.c(torch.tanh(self.b(torch.tanh(self.a(x)))))

    def normal(self, x: Tensor) -> Tensor:
        mean, raw = self(x).chunk(2, -1)
        return mean + (F.softplus(raw + 0.541325) + 0.001) * self.scale * torch.randn_like(mean)


class VanillaRnn(nn.Module):
    """The example `vanilla_rnn_lm`."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(256, 64), Network(192, 256, 0.1), Network(128, 256)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        items = self.embed(x)
        state = torch.zeros(len(x), 128)
        for t in range(x.shape[1]):
            state = self.cell.normal(torch.cat([items[:, t], state], -1))
        return F.cross_entropy(self.head(state), y)


class BidirectionalRnn(nn.Module):
    """The example `bidirectional_rnn_lm`."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(256, 64)
        self.forwards, self.backwards = Network(128, 128, 0.1), Network(128, 128, 0.1)
        self.combine, self.head = Network(128, 256, 0.1), Network(128, 256)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        items = self.embed(x)
        left, right = torch.zeros(len(x), 64), torch.zeros(len(x), 64)
        length = x.shape[1]
        for t in range(length):
            left = self.forwards.normal(torch.cat([items[:, t], left], -1))
        for t in range(length):
            right = self.backwards.normal(torch.cat([items[:, length - 1 - t], right], -1))
        return F.cross_entropy(self.head(self.combine.normal(torch.cat([left, right], -1))), y)


class Block(nn.Module):
    """Four heads and five kernels of `seq2seq`."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Network(16, 8, 0.1) for _ in range(4))
        widths = [(16, 32, 0.1), (16, 32, 0.01), (16, 64, 1.0), (32, 32, 0.1), (16, 32, 0.01)]
        self.rest = nn.ModuleList(Network(inside, out, scale) for inside, out, scale in widths)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.cat([head.normal(x) for head in self.heads], -1)
        for kernel in self.rest:
            x = kernel.normal(x)
        return x


class Seq2Seq(nn.Module):
    """The example `seq2seq`."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(32, 16), nn.Embedding(32, 16)
        self.encoder, self.decoder = nn.Sequential(Block(), Block()), nn.Sequential(Block(), Block())
        self.cross, self.head = Network(32, 64, 0.1), Network(32, 32)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        both = [self.encoder(self.source(x[:, 0])), self.decoder(self.target(x[:, 1]))]
        return F.cross_entropy(self.head(self.cross.normal(torch.cat(both, -1))), y)


class LanguageModel(nn.Module):
    """An embedding, states, and a head at every position."""

    def __init__(self, states: nn.Module) -> None:
        super().__init__()
        self.embed, self.states, self.head = nn.Embedding(256, 64), states, Network(64, 256)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        states = self.states(self.embed(x))
        states = states[0] if isinstance(states, tuple) else states
        return F.cross_entropy(self.head(states).flatten(0, 1), y.flatten())


class Unrolled(nn.Module):
    """A cell from an item and (h, c) to (h, c), in a loop over the positions; every h."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, items: Tensor) -> Tensor:
        h = c = items.new_zeros(items.shape[0], 64)
        states: list[Tensor] = []
        for item in items.unbind(1):
            h, c = self.cell(item, h, c)
            states.append(h)
        return torch.stack(states, 1)


class RewiredCell(nn.Module):
    """The cell of the example `rlstm_lm`, a Rewired LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.write, self.forget, self.output = nn.Linear(128, 128), nn.Linear(128, 64), nn.Linear(64, 64)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        i, j = self.write(torch.cat([x, h], -1)).chunk(2, 1)
        i, j = torch.sigmoid(i), torch.tanh(j)
        f = torch.sigmoid(self.forget(torch.cat([i * j, h], -1)))
        c = f * c + torch.min(i, 1 - f) * j
        return torch.sigmoid(self.output(c)) * torch.tanh(c), c


class MogrifierCell(RewiredCell):
    """Four rounds of mutual gating in front of it, with full matrices, as in the example `mogrifier_rlstm_lm`."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.r = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        for round_ in range(1, 5):
            if round_ % 2:
                x = (2 * torch.sigmoid(self.q(h))) * x
            else:
                h = (2 * torch.sigmoid(self.r(x))) * h
        return super().forward(x, h, c)
