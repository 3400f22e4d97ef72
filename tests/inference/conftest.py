"""Every test here starts from the same seed, on one thread."""

import pytest
import torch


@pytest.fixture(autouse=True)
def fixed() -> None:
    torch.set_num_threads(1)
    torch.default_generator.manual_seed(0)  # `torch.manual_seed` keeps its stack for GPUs that may come: 0.4 ms
