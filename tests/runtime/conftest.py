from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread_and_a_seed() -> None:
    torch.set_num_threads(1)
    torch.default_generator.manual_seed(0)  # `torch.manual_seed` keeps its stack for GPUs that may come: 0.4 ms


@pytest.fixture
def double_precision() -> Iterator[None]:
    """Numbers of 64 bits where a test or a program says no dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)
