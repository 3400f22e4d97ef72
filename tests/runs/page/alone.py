"""Run as a process without torch, numpy and polars, as a page is: modules of the programs that it is asked for."""

from __future__ import annotations

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    for missing in ("torch", "numpy", "polars", "llvmlite", "scipy", "h5py", "pandas", "xarray", "safetensors"):
        sys.modules[missing] = None  # type: ignore[assignment]
    from qvr_core.runs.page import alone

    alone()
    from qvr_core.runs.page.answers import prepared

    folder = Path(sys.argv[1])
    for number, asked in enumerate(json.loads((folder / "asked.json").read_text(encoding="utf-8"))):
        told, parts, compared = prepared(json.dumps(asked))
        (folder / f"{number}.json").write_text(told, encoding="utf-8")
        if asked.get("wrong") and compared is not None:
            said = compared(lambda *position: [0.0] * (1 + len(position)))
            (folder / f"{number}.refused").write_text(said, encoding="utf-8")
        for name, held in parts.items():
            (folder / f"{number}.{name}").write_bytes(held)
