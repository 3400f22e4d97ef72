"""One cluster for the tests that leave all of it alive."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.processes import NO_NANNY, Started, started


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """A scheduler and two workers; with nannies they are in test_recipes.py."""
    with started(tmp_path_factory.mktemp("cluster"), 2, NO_NANNY) as found:
        yield found
