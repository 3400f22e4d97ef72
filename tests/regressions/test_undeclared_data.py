"""B5: names that nobody declares are looked for in every kind of file, and labels where no set is are no data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from qvr_core.cli import app

PROGRAM = """\
object Row : FinSet 3
program p : Row -> Row
    sample b <- Normal(0.0, 1.0)
    observe y : Row <- Normal(b * dose, 1.0)
    return b
"""


def write(folder: Path, kind: str, names: list[str]) -> str:
    values = {name: [1.0, 2.0, 3.0] for name in names}
    path = folder / f"d.{kind}"
    if kind == "json":
        path.write_text(json.dumps(values))
    elif kind == "npz":
        np.savez(path, **{name: np.array(found) for name, found in values.items()})
    else:
        path.write_text(",".join(names) + "\n" + "\n".join(",".join(["1.0"] * len(names)) for _ in range(3)))
    return f"{kind}:{path}"


@pytest.mark.parametrize("kind", ["json", "npz", "csv"])
def test_b5_a_name_that_a_file_lacks_is_told_before_the_run(kind: str, tmp_path: Path) -> None:
    (tmp_path / "p.qvr").write_text(PROGRAM)
    asked = ["check", str(tmp_path / "p.qvr"), "--data"]
    right = CliRunner().invoke(app, [*asked, write(tmp_path, kind, ["y", "dose"])])
    assert right.exit_code == 0, right.output
    wrong = CliRunner().invoke(app, [*asked, write(tmp_path, kind, ["y", "does"])])
    assert wrong.exit_code == 1
    assert "`dose`" in wrong.output and "does" in wrong.output and "p.qvr:4:35" in wrong.output
