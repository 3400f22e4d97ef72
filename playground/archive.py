"""Run inside Pyodide at build time: packs modules as bytecode of the Python that will load them.

Nothing is compressed: what serves the files does that better over a whole archive.
"""

import importlib.util
import marshal
import posixpath
import sys
import zipfile
from hashlib import blake2b

# Fixed, so that the same sources give the same archive.
DATE = (1980, 1, 1, 0, 0, 0)


def bytecode(source: bytes, name: str, level: int) -> bytes:
    """A .pyc that is taken as it is: no date and no hash is looked at when it is loaded."""
    code = compile(source, name, "exec", dont_inherit=True, optimize=level)
    return importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + marshal.dumps(code)


def entries(path: str):
    """Names and contents of a wheel or a library's archive, without folders."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if not name.endswith("/"):
                yield name, archive.read(name)


def generated(sources: list[str]) -> bytes:
    """The code of the methods that attrs generates while lsprotocol is imported from wheels, by its source's digest:
    what `compiled.py` reads."""
    sys.path[:0] = sources
    import attr._make

    code = {}

    def kept(source, filename, mode):
        code[blake2b(source.encode(), digest_size=12).digest()] = made = compile(source, filename, mode)
        return made

    attr._make.compile = kept
    import lsprotocol.types  # noqa: F401

    return marshal.dumps(code)


def pack(
    sources: list[str],
    target: str,
    without: list[str],
    level: int,
    bare: list[str],
    more: dict[str, bytes],
    only: list[str] | None = None,
    plain: list[str] | None = None,
) -> int:
    """Pack archives as one, but for what begins with one of `without`, and for tests; how many files it has.  Where
    `only` is given, what begins with one of it; what begins with one of `plain` stays source.  `level`
    as in `compile`: at 2 asserts and texts for programmers are left out, as they are of what begins with one of `bare`.
    `more` are other files, by name."""
    count = 0
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for source in sources:
            for name, content in entries(source):
                if name.startswith(tuple(without)) or ".dist-info/" in name or posixpath.basename(name) == "py.typed":
                    continue
                if "/tests/" in name or (only and not name.startswith(tuple(only))):
                    continue
                if name.endswith(".py") and not name.startswith(tuple(plain or ())):
                    name, content = f"{name}c", bytecode(content, name, 2 if name.startswith(tuple(bare)) else level)
                archive.writestr(zipfile.ZipInfo(name, DATE), content)
                count += 1
        for name, content in more.items():
            archive.writestr(zipfile.ZipInfo(name, DATE), content)
    return count + len(more)


def pack_server(sources: list[str], target: str, without: list[str], bare: list[str], helper: str) -> int:
    """Pack the server with what it imports, and `helper`, the source of `compiled.py`, with what that reads."""
    more = {"compiled.pyc": bytecode(helper.encode(), "compiled.py", 0), "compiled.bin": generated(sources)}
    return pack(sources, target, without, 0, bare, more)
