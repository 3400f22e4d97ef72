"""D1: a loop that was pasted with a block in it is one error.

Not a case of the specification: editors that read by the grammar of tree-sitter cut such lines otherwise.
"""

from __future__ import annotations

from qvr_core.dsl import check

TEXT = """object Row : FinSet 30
program p : Row -> Row
    sample mu <- Normal(0.0, 1.0)
    for i in range(30):
        y[i] = mu
        if mu > 3:
            z[i] = mu
        z[i] ~ mu;
    observe y[i : Row] <- Normal(mu, 1.0)
    return mu
"""


def test_d1_a_loop_with_a_block_in_it_is_one_error() -> None:
    errors = [one for one in check(TEXT) if one.severity.name == "ERROR"]
    assert [(one.code.name, one.range.start.line) for one in errors] == [("unknown-statement", 3)]
