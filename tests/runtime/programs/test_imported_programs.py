"""Programs made of several files are built as the one file that they would be."""

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from qvr_core.analysis import analyse
from qvr_core.dsl import CheckFailed, Program, load, loads
from qvr_core.inference import trace
from qvr_core.workspace import Bundle, Workspace

CELLS = """\
object Token : FinSet 7
object Embedded : Real 6
object Hidden : Real 5
morphism embed : Token -> Embedded [role=embed]
morphism cell : Embedded * Hidden -> Hidden [role=kernel, scale=0.1] ~ Normal
let encode = embed >> scan(cell)
def half(x) = _times(x, 0.5)
def _times(x, k) = x * k
program shifted(by : Real, x) : Hidden -> Hidden
    let y = x + half(by)
    return y

program regression : Row -> Row
    data offset : Row
    sample s <- HalfNormal(1.0)
    observe y : Row <- Normal(offset, s)
    return y

object Row : FinSet 4
"""
BODY = """\
morphism head : {c}Hidden -> {c}Token [role=kernel] ~ Categorical
program tagger : {c}Token -> {c}Token
    sample h <- {c}encode
    let a = {c}shifted(h, by=2.0)
    let b = {c}shifted(a, by=-6.0)
    observe y <- head(b)
    return y
export tagger
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cells.qvr").write_text(CELLS)
    (tmp_path / "more.qvr").write_text('from "cells.qvr" import encode\nlet again = encode\n')
    return tmp_path


def loaded(folder: Path, imports: str, body: str) -> Program:
    (folder / "main.qvr").write_text(imports + body)
    torch.manual_seed(3)
    return load(folder / "main.qvr")


def test_an_imported_program_computes_what_the_whole_text_does(folder: Path) -> None:
    torch.manual_seed(3)
    whole = loads(CELLS + BODY.format(c="")).morphism
    x = torch.tensor([[1, 2, 3], [4, 5, 6]])

    def drawn(model: Any) -> tuple[Any, torch.Tensor]:
        torch.manual_seed(5)
        run = trace(model, x, {"y": torch.tensor([1, 2])})
        return run.sites["h"].value, run.log_joint

    for imports, prefix in (('import "cells.qvr" as c\n', "c."), ('import "cells.qvr"\n', "")):
        parted = loaded(folder, imports, BODY.format(c=prefix)).morphism
        torch.testing.assert_close(drawn(parted), drawn(whole), rtol=0, atol=0)


def test_parameters_are_called_by_the_way_to_them(folder: Path) -> None:
    def names(imports: str, prefix: str) -> set[str]:
        model = loaded(folder, imports, BODY.format(c=prefix)).morphism
        return {name.rpartition(".cell.")[0] + ".cell" for name, _ in model.named_parameters() if "cell." in name}

    assert names('import "cells.qvr" as c\n', "c.") == {"c.cell"}
    plain = loaded(folder, 'import "cells.qvr"\n', BODY.format(c="")).morphism
    assert "cell.hidden.weight" in dict(plain.named_parameters())
    body = "morphism head : Hidden -> Token [role=kernel] ~ Categorical\nlet all = read >> head\n"
    some = loaded(folder, 'from "cells.qvr" import encode as read, Hidden, Token\n', body).morphism
    assert "cells.qvr.cell.hidden.weight" in dict(some.named_parameters())


def test_a_morphism_imported_twice_is_the_same_weights(folder: Path) -> None:
    imports = 'import "cells.qvr" as c\nimport "cells.qvr" as d\nfrom "more.qvr" import again\n'
    body = "let both = fan(c.encode, d.encode, again)\nexport both\n"
    model = loaded(folder, imports, body).morphism
    embedded = [name for name, _ in model.named_parameters() if name.endswith("embed.weight")]
    assert embedded == ["c.embed.weight"]


def test_only_what_the_file_declares_itself_is_a_program_of_it(folder: Path) -> None:
    program = loaded(folder, 'import "cells.qvr" as c\n', BODY.format(c="c."))
    assert list(program.programs) == ["tagger"]
    assert not program.templates


def test_a_template_is_filled_in_from_python(folder: Path) -> None:
    body = "program mine(k : Real, x) : c.Hidden -> c.Hidden\n    let y = c.shifted(x, by=k)\n    return y\n"
    program = loaded(folder, 'import "cells.qvr" as c\n', body)
    x = torch.zeros(2, 5)
    torch.testing.assert_close(program.mine(k=3.0).morphism.rsample(x), torch.full((2, 5), 1.5))


def test_a_data_name_of_another_file_is_not_a_name_of_this_one() -> None:
    body = "object offset : Real 3\nmorphism f : offset -> offset [role=linear]\n"
    body += "program outer : c.Row -> c.Row\n    sample z <- c.regression\n    return z\nexport outer\n"
    files = Workspace(Bundle({"cells.qvr": CELLS}))
    inner = analyse('import "cells.qvr" as c\n' + body, None, "main.qvr", files).model.programs["c.regression"]
    assert [item.name for item in inner.data] == ["offset"]


def test_a_text_imports_from_a_folder_that_is_given(folder: Path) -> None:
    text = 'import "cells.qvr" as c\n' + BODY.format(c="c.")
    assert loads(text, folder=folder).programs
    with pytest.raises(CheckFailed, match="give `folder=`"):
        loads(text)


def test_errors_of_an_imported_file_stop_the_build(folder: Path) -> None:
    (folder / "cells.qvr").write_text(CELLS.replace("Token -> Embedded [role=embed]", "Tokn -> Embedded [role=embed]"))
    with pytest.raises(CheckFailed, match=r"import-error.*cells.qvr has errors: line 4: there is no object `Tokn`"):
        loaded(folder, 'import "cells.qvr" as c\n', BODY.format(c="c."))


def test_a_pickled_program_brings_what_it_imports(folder: Path) -> None:
    program = loaded(folder, 'import "cells.qvr" as c\n', BODY.format(c="c."))
    stored = pickle.dumps(program)
    (folder / "cells.qvr").unlink()
    again = pickle.loads(stored)
    torch.testing.assert_close(list(again.parameters()), list(program.parameters()), rtol=0, atol=0)
