"""The objective as a module whose forward pass is the loss: what one process differentiates, and what several share."""

from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch._C._distributed_c10d import GradBucket
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

from qvr_core.inference.guides.base import Guide
from qvr_core.inference.svi import Objective
from qvr_core.runtime.arrows.training import in_training, training_layers
from qvr_core.runtime.programs.program import ProgramModule


class Bound(nn.Module):
    """Model, guide and objective; the loss of a batch in training."""

    def __init__(self, model: ProgramModule, guide: Guide, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.guide = guide
        self.objective = objective
        self._training = tuple(training_layers((model, guide)))

    def forward(self, x: Any, observations: Any) -> Tensor:
        with in_training(self._training):
            return self.objective(self.model, self.guide, x, observations)


class Noted(nn.Module):
    """A bound, and three numbers that all processes must agree on.

    They are the gradient of a parameter that is always zero, so they travel with the gradients: a message of their own
    would cost as much as those.
    """

    def __init__(self, bound: Bound) -> None:
        super().__init__()
        self.bound = bound
        self.notes = nn.Parameter(torch.zeros(3, dtype=torch.float32, device=next(bound.parameters()).device))

    def forward(self, x: Any, observations: Any, weight: float, notes: tuple[float, float]) -> Tensor:
        loss = self.bound(x, observations)
        if weight != 1.0:
            loss = weight * loss
        said = torch.tensor((0.0, *notes), dtype=torch.float32, device=self.notes.device)
        said[0] = loss.detach()
        return loss + self.notes.dot(said)


def mean_of_two(received: dict[int, list[Tensor]], bucket: GradBucket) -> Future[Tensor]:
    """The mean of a bucket over two processes, by one message each: gloo's all_reduce sends several that wait for one
    another.  `received` holds the buffers of the buckets, by their number."""
    own = bucket.buffer()
    both = received.setdefault(bucket.index(), [])
    if not both or both[0].numel() != own.numel():
        both[:] = [torch.empty_like(own), torch.empty_like(own)]
    distributed.all_gather(both, own)
    torch.add(*both, out=own).mul_(0.5)
    done: Future[Tensor] = Future()
    done.set_result(own)
    return done


class SharedBound:
    """The bound of a team: every process calls it with its rows, and after `backward` all have the same gradients."""

    def __init__(self, bound: Bound) -> None:
        self._noted = Noted(bound)
        # One bucket, and gradients that are views of it: nothing is copied on the way.
        self._replica = DistributedDataParallel(self._noted, static_graph=True, gradient_as_bucket_view=True)
        if distributed.get_world_size() == 2 and distributed.get_backend() == "gloo":
            self._replica.register_comm_hook({}, mean_of_two)

    def __call__(self, x: Any, observations: Any, weight: float, notes: tuple[float, float]) -> Tensor:
        """`weight` times the loss of this process' rows; gradients of the call before must have been zeroed."""
        return self._replica(x, observations, weight, notes)

    def means(self) -> tuple[float, float, float]:
        """After `backward`: the means of the weighted loss and of the notes over all processes."""
        said = self._noted.notes.grad
        assert said is not None
        loss, first, second = (float(number) for number in said)
        said.zero_()
        return loss, first, second
