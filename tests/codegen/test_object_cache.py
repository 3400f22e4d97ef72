"""Compiled code on disk: taken only where this user wrote it, for this processor; anything else is made anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from qvr_core.codegen import build, llvm, object_cache
from qvr_core.codegen.source import Text
from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[2]
DENSITY = Text("def log_density(q, g, w, d, k):\n    g[0] = -q[0]\n    return -0.5 * q[0] * q[0]\n", 1, [], [])
posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv(object_cache.CACHE_VARIABLE, str(folder))
    return folder


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one each time that LLVM works."""
    found: list[int] = []
    really = llvm.compiled

    def counted(text: str) -> bytes:
        found.append(1)
        return really(text)

    monkeypatch.setattr(llvm, "compiled", counted)
    return found


def value(monkeypatch: pytest.MonkeyPatch, x: float = 3.0) -> float:
    """The density there, as a new process would have it."""
    monkeypatch.setattr(llvm, "_loaded", {})
    address, _keeps = build.address_of(DENSITY)
    q, g, w = np.array([x]), np.zeros(1), np.zeros(1)
    from qvr_core.codegen.intrinsics import DENSITY as SIGNATURE

    found = SIGNATURE(address)(*(array.ctypes.data for array in (q, g, w, w, w)))
    assert g[0] == -x
    return found


def entry(folder: Path) -> Path:
    (file,) = folder.glob("density_*.bin")
    return file


def test_a_second_process_compiles_nothing(monkeypatch: pytest.MonkeyPatch, compiled: list[int]) -> None:
    assert value(monkeypatch) == value(monkeypatch) == -4.5
    assert len(compiled) == 1


@pytest.mark.parametrize("harm", ["cut", "changed", "empty", "planted", "unkeyed", "of another name"])
def test_what_this_user_did_not_write_is_dropped_and_made_anew(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, compiled: list[int], harm: str
) -> None:
    assert value(monkeypatch) == -4.5
    file = entry(own_folder)
    held = file.read_bytes()
    body = held[object_cache.DIGEST_BYTES :]
    match harm:
        case "cut":
            file.write_bytes(held[: len(held) // 2])
        case "changed":
            file.write_bytes(held[:-40] + bytes([held[-40] ^ 1]) + held[-39:])
        case "empty":
            file.write_bytes(b"")
        case "planted":
            file.write_bytes(b"\x7fELF" + os.urandom(2000))
        case "unkeyed":
            import hashlib

            file.write_bytes(hashlib.sha256(body).digest() + body)
        case _:
            object_cache.keep("density_other", body)
            file.write_bytes((own_folder / "density_other.bin").read_bytes())
            (own_folder / "density_other.bin").unlink()
    assert value(monkeypatch) == -4.5 and len(compiled) == 2
    # and what was made stands there again
    assert value(monkeypatch) == -4.5 and len(compiled) == 2
    assert entry(own_folder).read_bytes() == held


def test_another_processor_or_llvm_never_takes_it(monkeypatch: pytest.MonkeyPatch, own_folder: Path) -> None:
    """A home that unlike machines share holds an object for each."""
    value(monkeypatch)
    triple, name, features = llvm.processor()
    for other in ((triple, "x86-64", features), (triple, name, features + ",-avx"), ("aarch64-linux", name, features)):
        before = set(own_folder.glob("density_*.bin"))
        with monkeypatch.context() as here:
            here.setattr(llvm, "processor", lambda other=other: other)
            here.setattr(llvm, "compiled", lambda _: (_ for _ in ()).throw(RuntimeError("compiled anew")))
            with pytest.raises(RuntimeError, match="compiled anew"):
                value(here)
        assert set(own_folder.glob("density_*.bin")) == before


@posix
@pytest.mark.parametrize("mode", [0o755, 0o777, 0o750])
def test_a_folder_that_was_open_is_closed_and_its_entries_made_anew(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, compiled: list[int], mode: int
) -> None:
    value(monkeypatch)
    assert own_folder.stat().st_mode & 0o777 == 0o700
    own_folder.chmod(mode)
    assert value(monkeypatch) == -4.5 and len(compiled) == 2
    assert own_folder.stat().st_mode & 0o777 == 0o700


@posix
def test_the_key_is_the_users_alone(own_folder: Path, monkeypatch: pytest.MonkeyPatch, compiled: list[int]) -> None:
    value(monkeypatch)
    key = own_folder / object_cache.KEY
    assert key.stat().st_mode & 0o777 == 0o600 and entry(own_folder).stat().st_mode & 0o777 == 0o600
    first = key.read_bytes()
    key.chmod(0o644)
    assert value(monkeypatch) == -4.5 and len(compiled) == 2
    assert key.stat().st_mode & 0o777 == 0o600 and key.read_bytes() != first
    # a key that leads elsewhere, or has not the length of one, is none
    elsewhere = own_folder.parent / "elsewhere"
    elsewhere.write_bytes(bytes(object_cache.KEY_BYTES))
    elsewhere.chmod(0o600)
    key.unlink()
    key.symlink_to(elsewhere)
    assert (
        value(monkeypatch) == -4.5 and not key.is_symlink() and elsewhere.read_bytes() == bytes(object_cache.KEY_BYTES)
    )
    key.write_bytes(b"short")
    assert value(monkeypatch) == -4.5 and len(key.read_bytes()) == object_cache.KEY_BYTES


@posix
def test_the_folder_of_another_user_is_neither_read_nor_written(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, compiled: list[int]
) -> None:
    value(monkeypatch)
    before = sorted(path.name for path in own_folder.iterdir())
    monkeypatch.setattr(object_cache.os, "getuid", lambda: own_folder.stat().st_uid + 1)
    assert value(monkeypatch) == -4.5 and value(monkeypatch) == -4.5
    assert len(compiled) == 3 and sorted(path.name for path in own_folder.iterdir()) == before


def test_where_nothing_can_be_written_code_is_compiled_all_the_same(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_folder.write_text("a file stands where the folder would")
    assert value(monkeypatch) == -4.5


def test_only_so_much_is_kept(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_cache, "MOST_IN_ALL", 1000)
    for number in range(8):
        object_cache.keep(f"x_{number}", bytes(300))
        os.utime(own_folder / f"x_{number}.bin", (number, number))
    assert sum(path.stat().st_size for path in own_folder.glob("*.bin")) <= 1000
    assert object_cache.kept("x_7") == bytes(300) and object_cache.kept("x_0") is None
    object_cache.keep("large", bytes(object_cache.MOST_BYTES + 1))
    assert object_cache.kept("large") is None


def test_the_sampler_loads_neither_torch_nor_numba() -> None:
    code = """
import sys
from qvr_core.inference.machine.chain import compile_sampler
compile_sampler()
print([name for name in ("torch", "numba", "scipy") if name in sys.modules])
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, timeout=HANG
    )
    assert found.stdout.strip() == "[]"
