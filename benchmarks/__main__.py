"""`make bench`: every benchmark of this folder, one after the other; status 1 where a budget is missed.

`python -m benchmarks runs server` runs only those; `--quick` measures less often.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks


def main(argv: list[str]) -> int:
    """Run the benchmarks named, or all."""
    flags = [word for word in argv if word.startswith("-")]
    names = [word for word in argv if not word.startswith("-")]
    found = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__")
    unknown = sorted(set(names) - set(found))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(found)}", file=sys.stderr)
        return 2
    status = 0
    for name in names or found:
        module = importlib.import_module(f"benchmarks.{name}")
        if not hasattr(module, "main"):
            continue
        print(f"\n== {name}", flush=True)
        status = max(status, module.main(flags))
    return status


sys.exit(main(sys.argv[1:]))
