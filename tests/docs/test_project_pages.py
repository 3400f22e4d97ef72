"""CHANGELOG, SECURITY and CITATION say what is so."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from qvr_core.codegen.object_cache import CACHE_VARIABLE
from qvr_core.disk import MOST_BYTES
from qvr_lsp.server import arguments
from scripts.versions import PACKAGES, PATTERNS, ROOT, disagreement, versions

SECURITY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_every_file_says_the_same_version() -> None:
    assert disagreement(versions()) == ""


def test_another_version_and_a_missing_one_are_told(tmp_path: Path) -> None:
    for name in (*PATTERNS, *PACKAGES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    cited = tmp_path / "CITATION.cff"
    cited.write_text(CITATION.replace("version: 0", "version: 9"), encoding="utf-8")
    assert "CITATION.cff 9" in disagreement(versions(tmp_path))
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n", encoding="utf-8")
    assert "CHANGELOG.md none" in disagreement(versions(tmp_path))


def test_the_citation_has_what_the_format_wants() -> None:
    keys = re.findall(r"^([a-z-]+):", CITATION, re.MULTILINE)
    assert {"cff-version", "message", "title", "authors"} <= set(keys) and len(keys) == len(set(keys))
    assert re.search(r"^cff-version: 1\.2\.0$", CITATION, re.MULTILINE)
    (licence,) = re.findall(r"^license: (\w+)$", CITATION, re.MULTILINE)
    assert f'license = "{licence}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_security_names_limits_options_and_variables_that_there_are() -> None:
    assert f"more than {MOST_BYTES // 1_000_000} MB" in SECURITY
    assert f"`{CACHE_VARIABLE}`" in SECURITY
    assert arguments(["--tcp", "0"]).host == "127.0.0.1" and "listen on 127.0.0.1 unless `--host`" in SECURITY
    assert arguments(["--tcp", "0", "--token", "t"]).token == "t" and "`QVR_LSP_TOKEN`" in SECURITY


def test_the_readme_leads_to_them() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CITATION.cff"):
        assert f"]({name})" in readme
