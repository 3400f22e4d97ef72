"""What names a cluster, on the command line and in qvr.toml."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from qvr_core.cluster.address import Address, address_of
from qvr_core.runs.record.config import RunConfig


def test_clusters_by_name() -> None:
    assert address_of("none") is None
    assert address_of("local") == Address("local")
    assert address_of("local[4]") == Address("local", 4)
    assert address_of("slurm[20]") == Address("slurm", 20)
    assert address_of("tls://node7:8786") == Address("scheduler", place="tls://node7:8786")


@pytest.mark.parametrize("wrong", ["", "local[0]", "local[]", "tcp://node7", "http://node7:80", "slurm[x]", "loca"])
def test_what_is_no_cluster_is_told_with_what_is(wrong: str) -> None:
    with pytest.raises(ValidationError, match=r"`local\[N\]`, `tcp://HOST:PORT`"):
        RunConfig(cluster=wrong)
