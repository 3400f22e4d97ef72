"""Run inside Pyodide at build time: packs modules as bytecode of the Python that will load them.

Nothing is compressed: what serves the files does that better over a whole archive.
"""

import importlib.util
import marshal
import posixpath
import zipfile

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


def pack(sources: list[str], target: str, without: list[str], level: int) -> int:
    """Pack archives as one, but for what begins with one of `without`, and for tests; how many files it has.  `level`
    as in `compile`: at 2 asserts and texts for programmers are left out."""
    count = 0
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for source in sources:
            for name, content in entries(source):
                if name.startswith(tuple(without)) or ".dist-info/" in name or posixpath.basename(name) == "py.typed":
                    continue
                if "/tests/" in name:
                    continue
                if name.endswith(".py"):
                    name, content = f"{name}c", bytecode(content, name, level)
                archive.writestr(zipfile.ZipInfo(name, DATE), content)
                count += 1
    return count
