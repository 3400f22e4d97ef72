"""Every test here starts from the same seed, on one thread."""

import pytest
import torch


@pytest.fixture(autouse=True)
def fixed() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
