"""C9: an array whose header rules it out is refused by its header: none of its numbers is unpacked."""

from __future__ import annotations

import io
import resource
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

GB = 1 << 30
PROGRAM = """object Row : FinSet 8
program m : Row -> Row
    data x : Row -> Real 1
    sample a <- Normal(0.0, 1.0)
    observe y[r : Row] <- Normal(a + x[r], 1.0)
    return a
export m
"""


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2 * GB, 2 * GB))


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program over eight rows and an archive of 4 MB that unpacks to 4 GB."""
    folder = tmp_path_factory.mktemp("bomb")
    (folder / "m.qvr").write_text(PROGRAM)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (GB // 2,)})
    squeeze = zlib.compressobj(1, wbits=-zlib.MAX_WBITS)
    first = squeeze.compress(head.getvalue()) + squeeze.flush(zlib.Z_FULL_FLUSH)
    block = squeeze.compress(bytes(1 << 24)) + squeeze.flush(zlib.Z_FULL_FLUSH)
    with zipfile.ZipFile(folder / "d.npz", "w") as archive:
        archive.writestr("x.npy", first + block * (4 * GB >> 24) + squeeze.flush())
        (entry,) = archive.infolist()
        entry.compress_type, entry.file_size = zipfile.ZIP_DEFLATED, len(head.getvalue()) + 4 * GB
    return folder


@pytest.mark.parametrize("command", [["check"], ["run", "nuts"]])
def test_c9_an_array_of_another_shape_is_not_unpacked(command: list[str], bomb: Path) -> None:
    order = [sys.executable, "-m", "qvr_core.cli", *command, "m.qvr", "--data", "npz:d.npz"]
    room = limit if command == ["check"] else None
    done = subprocess.run(order, check=False, capture_output=True, text=True, cwd=bomb, preexec_fn=room)
    assert done.returncode == 1
    said = " ".join((done.stdout + done.stderr).split())
    assert "column `x`: the shape is 536870912, and `Row` takes 8 (for `x`)" in said
