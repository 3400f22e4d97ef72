"""What crosses between machines is data: it comes back as it was, and nothing in it runs."""

from __future__ import annotations

import pickle
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from qvr_core.cluster.dispatch import seconds_each
from qvr_core.cluster.packing import UnitFailed, answered, failure, packed, read_frame, unpacked, write_frame


def test_numbers_come_back_to_the_last_bit() -> None:
    state = np.random.default_rng(3).bit_generator.state
    arrays = {"q": np.array([0.1, -np.inf, np.nan]), "empty": np.empty((0, 7)), "whole": np.arange(4)}
    head, back = unpacked(packed({"generator": state, "draw": 3}, arrays))
    assert [*back] == [*arrays]
    assert head == {"generator": state, "draw": 3}
    assert {name: (a.tobytes(), a.shape, a.dtype) for name, a in back.items()} == {
        name: (a.tobytes(), a.shape, a.dtype) for name, a in arrays.items()
    }
    back["q"][0] = 1.0


class Planted:
    """What leaves a file where it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> object:
        return (Path.touch, (self.file,))


@pytest.mark.parametrize("cut", [0, 4, 9, 30])
def test_damaged_bytes_are_told(cut: int) -> None:
    whole = packed({"draw": 3}, {"q": np.zeros(3)})
    with pytest.raises(ValueError, match="damaged"):
        unpacked(whole[:cut])


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    for content in (pickle.dumps(Planted(tmp_path / "it-ran")), packed({})[:8] + pickle.dumps(Planted(tmp_path / "x"))):
        with pytest.raises(ValueError, match="damaged"):
            unpacked(content)
    assert not [*tmp_path.iterdir()]


def test_an_answer_that_is_a_failure_says_why() -> None:
    with pytest.raises(UnitFailed, match="the matrix is singular"):
        answered(failure("the matrix is singular"))


def test_a_pipe_that_ends_in_a_frame_has_none() -> None:
    pipe = BytesIO()
    write_frame(pipe, b"whole")
    write_frame(pipe, b"cut short")
    pipe = BytesIO(pipe.getvalue()[:-3])
    assert read_frame(pipe) == b"whole"
    assert read_frame(pipe) is None


def test_units_are_longer_where_more_are_done_at_a_time() -> None:
    """A scheduler must have the time to deal them out."""
    assert [seconds_each(1.0, busy) for busy in (1, 16, 200, 1000)] == [1.0, 1.0, 1.0, 5.0]
