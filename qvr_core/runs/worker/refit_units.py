"""A refit, here or as a unit of a cluster: which observations are left out, and how well they are predicted back."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qvr_core.cluster.address import Address
from qvr_core.cluster.packing import answered, packed, unpacked
from qvr_core.inference.folds import Folds
from qvr_core.inference.leaving_out import Flags, LeavingOut, predicted_without
from qvr_core.inference.mcmc import MCMC
from qvr_core.inference.pointwise import Given
from qvr_core.runs.evaluation.refitted import Refit
from qvr_core.runs.fit.nuts import chains_asked
from qvr_core.runs.record.protocol import Job
from qvr_core.runs.worker.sent_programs import archive_of, arrived
from qvr_core.semantics.file.open_sets import KnownSet

KIND = "refits"
AGAIN = (
    "Go on here with the same command and --cluster none: the refits that are done are kept",
    "Go on there, or on another one: --cluster tcp://HOST:PORT in its place",
)


def refit(potential: LeavingOut, chains: MCMC, seed: int, left_out: Flags, number: int) -> Refit:
    """The chains of a run without the observations of these flags; a function of the run's seed and the number."""
    own = copy.copy(chains)
    own.seed = int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
    found = predicted_without(potential, own, left_out)
    return Refit(tuple(found.elpd.tolist()), tuple(found.mcse.tolist()), found.divergences, found.warnings)


def on_cluster(
    address: Address,
    job: Job,
    known: Mapping[str, KnownSet],
    observations: Mapping[str, Any],
    folds: Folds,
    wanted: Sequence[int],
) -> Iterator[tuple[int, Refit]]:
    """The refits without the folds of these numbers, as they come.  Raises `Refused`, `TorchWanted`."""
    from qvr_core.runs.fit.clusters import on_cluster as opened  # which refits without a cluster do not load

    archive = archive_of(KIND, job, known, observations)
    with opened(address, len(wanted), AGAIN, warnings.warn) as dealer:
        for number in wanted:
            dealer.send(number, archive, packed({"number": number}, {"left_out": folds.of(number)}))
        for number, answer in dealer.answers():
            head, arrays = answered(answer)
            yield number, Refit(
                tuple(arrays["elpd"].tolist()), tuple(arrays["mcse"].tolist()), head["divergences"],
                tuple(head["warnings"]),
            )  # fmt: skip


class RefitUnits:
    """The other end."""

    def __init__(self, head: Mapping[str, Any], values: Mapping[str, NDArray[Any]]) -> None:
        sent = arrived(head, values)
        self.seed = sent.job.config.seed
        self.chains = chains_asked(sent.job.config)
        self.potential = LeavingOut(Given(sent.model, None, sent.data))

    def answer(self, asked: bytes) -> bytes:
        """What a refit finds."""
        head, arrays = unpacked(asked)
        found = refit(self.potential, self.chains, self.seed, arrays["left_out"], int(head["number"]))
        figures = {"elpd": np.array(found.elpd), "mcse": np.array(found.mcse)}
        return packed({"divergences": found.divergences, "warnings": list(found.warnings)}, figures)
