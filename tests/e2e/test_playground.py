"""The built playground in a real Chromium, and its server in Node beside the one here."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

from qvr_core.inference import MCMC, NUTSKernel
from qvr_core.inference.diagnostics.convergence import mcse_mean
from tests.e2e import fetch
from tests.examples.statistics.programs import given, prepared
from tests.lsp.test_page import Page
from tests.spec.cases import read_cases

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.environ.get("QVR_E2E") == "skip", reason="QVR_E2E=skip"),
]
HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def posterior(name: str) -> dict[str, dict[str, float]]:
    """What chains of the command line say of an example: the mean of each number with its error."""
    program = prepared(name, "examples", ROOT)
    result = MCMC(NUTSKernel(), 1000, 1000, 4, seed=2).run(program.model, None, given(program))
    found: dict[str, dict[str, float]] = {}
    for site, value in result.samples.items():
        draws = np.asarray(value).reshape(*value.shape[:2], -1)
        errors = mcse_mean(draws)
        for place, index in enumerate(np.ndindex(*value.shape[2:])):
            number = f"{site}[{','.join(map(str, index))}]" if index else site
            found[number] = {"mean": float(draws[..., place].mean()), "error": float(errors[place])}
    return found


def test_playground(tmp_path: Path) -> None:
    fetch.chromium()
    posteriors = {name: posterior(name) for name in ("eight_schools", "radon")}
    done = subprocess.run(
        ["node", HERE / "playground" / "drive.mjs"],
        capture_output=True, text=True, timeout=850, check=False,
        env={**os.environ, "POSTERIORS": json.dumps(posteriors), "SAVED": str(tmp_path)},
    )  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok all steps" in done.stdout
    # what the page saved is what xarray reads of a run
    with xarray.open_datatree(tmp_path / "posterior.nc", engine="h5netcdf") as tree:
        saved, wanted = tree["posterior"], posteriors["radon"]
        assert saved["z"].dims == ("chain", "draw", "z_dim_0") and saved["z"].shape == (4, 1000, 12)
        assert abs(float(saved["by_floor"].mean()) - wanted["by_floor"]["mean"]) < 0.05
        assert abs(float(saved["z"][:, :, 5].mean()) - wanted["z[5]"]["mean"]) < 0.2
        assert not tree["sample_stats"]["diverging"].any() and (tree["sample_stats"]["n_steps"] > 0).all()


EVERYWHERE = {"start": {"line": 0, "character": 0}, "end": {"line": 100_000, "character": 0}}
METHODS: dict[str, dict[str, Any]] = {
    "textDocument/documentSymbol": {},
    "textDocument/semanticTokens/full": {},
    "textDocument/inlayHint": {"range": EVERYWHERE},
    "textDocument/formatting": {"options": {"tabSize": 4, "insertSpaces": True}},
    "textDocument/codeAction": {"range": EVERYWHERE, "context": {"diagnostics": []}},
    "qvr/diagram": {},
}


def texts() -> dict[str, str]:
    """Every example, every file of the library, every block of the specification."""
    files = [*(ROOT / "examples").rglob("?*.qvr"), *(ROOT / "qvr_core" / "std").glob("?*.qvr")]
    found = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(files)}
    pages = sorted((ROOT / "tests" / "spec").rglob("*.md"))
    return found | {case.name: case.source for page in pages for case in read_cases(page)}


def without_places(value: Any) -> Any:
    """JSON whose addresses do not say where the package lies."""
    text = re.sub(r'file://[^"]*?/(?:qvr_core/)?(docs/diagnostics|std)/', r"\1/", json.dumps(value))
    return json.loads(text)


async def answers_here(sources: list[str]) -> list[dict[str, Any]]:
    """The same that answers.mjs finds."""
    page, found = Page(), []
    await page.ask("initialize", {"capabilities": {}, "initializationOptions": {"codeLens": {"enable": False}}})
    page.tell("initialized", {})
    for number, text in enumerate(sources):
        document = {"uri": f"playground:/text{number}.qvr"}
        page.messages.clear()
        page.tell(
            "textDocument/didOpen", {"textDocument": {**document, "version": 1, "languageId": "qvr", "text": text}}
        )
        published = await page.first(lambda message: message.get("method") == "textDocument/publishDiagnostics")
        one = {"diagnostics": published["params"]["diagnostics"]}
        for method, params in METHODS.items():
            answer = await page.ask(method, {"textDocument": document, **params})
            one[method] = answer["error"] if "error" in answer else answer["result"]
        found.append(one)
        page.tell("textDocument/didClose", {"textDocument": document})
    return found


async def test_webassembly_says_the_same() -> None:
    """Diagnostics, tokens, hints, fixes, formatting and diagrams of every text that there is."""
    known = texts()
    asked = json.dumps({"texts": list(known.values()), "methods": METHODS})
    done = subprocess.run(
        ["node", HERE / "playground" / "answers.mjs"],
        input=asked,
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    there, here = json.loads(done.stdout), await answers_here(list(known.values()))
    pairs = list(zip(known, here, there, strict=True))
    different = [
        f"{name}, {what}"
        for name, one, other in pairs
        for what in one
        if without_places(one[what]) != without_places(other[what])
    ]
    assert len(pairs) > 500 and not different, different[:20]
