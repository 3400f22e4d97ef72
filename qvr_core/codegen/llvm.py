"""From LLVM text to functions in memory, with the objects kept on disk.

An object holds shapes and operations but no data, so one serves every run of a program on tables of the same shape.  It
is kept under a name made of its source, LLVM's version and all of the processor: a home that unlike machines share
holds an object for each.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib.util
import os
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qvr_core.codegen import object_cache

LEVEL = 2
MISSING = "llvmlite is not installed (pip install llvmlite)"
_lock = threading.RLock()
_told: list[Callable[[], None]] = []
_loaded: dict[str, Loaded] = {}


@contextlib.contextmanager
def told(begins: Callable[[], None]) -> Generator[None]:
    """Inside, `begins` is called where the compiler begins to work; not where its code is only read from disk."""
    _told.append(begins)
    try:
        yield
    finally:
        _told.remove(begins)


def tell() -> None:
    """The compiler begins to work."""
    for begins in _told:
        begins()


def available() -> bool:
    """Whether there is a compiler."""
    return importlib.util.find_spec("llvmlite") is not None


@dataclass(frozen=True, slots=True)
class Loaded:
    """Machine code in memory: addresses by name, and what keeps them alive."""

    addresses: dict[str, int]
    engine: Any
    held: bytes


def loaded(kind: str, parts: Sequence[str], text: Callable[[], str], names: Sequence[str]) -> Loaded:
    """The code of `text`, which `parts` decide, with the addresses of `names`: from memory, from disk, or compiled."""
    with _lock:
        name = f"{kind}_{_name((*parts, *_surroundings()))}"
        if name not in _loaded:
            held = object_cache.kept(name)
            if held is None:
                tell()
                held = compiled(text())
                object_cache.keep(name, held)
            _loaded[name] = _load(held, names)
        return _loaded[name]


def optimised(text: str, machine: Any) -> Any:
    """The module of a text, as LLVM has improved it for a machine."""
    llvm = _llvm()
    module = llvm.parse_assembly(text)
    module.verify()
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=LEVEL)
    options.loop_vectorization = True
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def compiled(text: str) -> bytes:
    """The object of a module for this processor."""
    machine = target()
    return machine.emit_object(optimised(text, machine))


def _load(held: bytes, names: Sequence[str]) -> Loaded:
    llvm = _llvm()
    # a target machine of its own: an engine takes it over, and a second one that shared it would crash
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target())
    engine.add_object_file(llvm.ObjectFileRef.from_data(held))
    engine.finalize_object()
    return Loaded({name: engine.get_function_address(name) for name in names}, engine, held)


def target() -> Any:
    """A target machine for this processor."""
    llvm = _llvm()
    target = llvm.Target.from_default_triple()
    _, name, features = processor()
    return target.create_target_machine(cpu=name, features=features, opt=LEVEL, jit=True)


@functools.cache
def _llvm() -> Any:
    import llvmlite.binding as llvm  # pyright: ignore[reportMissingTypeStubs]

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, address in _libm().items():
        llvm.add_symbol(name, address)
    return llvm


def _libm() -> dict[str, int]:
    """Functions of the C library by name: on some systems an engine does not find them by itself."""
    from qvr_core.codegen.expressions import LIBM

    library = ctypes.CDLL("ucrtbase" if os.name == "nt" else None)
    found = {name: getattr(library, name, None) for name in (*LIBM, "floor", "ceil", "memset", "memcpy", "memmove")}
    return {name: int(ctypes.cast(f, ctypes.c_void_p).value or 0) for name, f in found.items() if f is not None}


@functools.cache
def processor() -> tuple[str, str, str]:
    """This machine: its triple, the processor's name, and its features."""
    llvm = _llvm()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _surroundings() -> tuple[str, ...]:
    """What decides machine code beside its source."""
    version = ".".join(map(str, _llvm().llvm_version_info))
    return (version, str(LEVEL), *processor(), _own())


@functools.cache
def _own() -> str:
    """This compiler and what it compiles, to the letter."""
    made = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        made.update(file.read_bytes())
    return made.hexdigest()


def _name(parts: Sequence[str]) -> str:
    made = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        made.update(len(encoded).to_bytes(8, "little"))
        made.update(encoded)
    return made.hexdigest()[:32]
