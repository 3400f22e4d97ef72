"""A mistake of a new user is one problem, at the token to fix, and its fix leaves none."""

from __future__ import annotations

import pytest

from qvr_core.analysis import analyse
from qvr_core.ide.edits.fixes import actions_of
from qvr_core.semantics.types.diagnostics import Severity
from tests.ide.cases import applied

HEAD = "object Row : FinSet 60\nobject Feature : FinSet 3\n"
REGRESSION = (
    HEAD
    + """\
program p : Row -> Row
    sample s <- HalfNormal(1.0)
    sample beta : Feature <- Normal(0.0, 1.0)
    observe y : Row <- Normal(matmul(X, beta), s)
    return y
"""
)

WITH_LET = REGRESSION.replace("matmul(X, beta)", "mu").replace("    obs", "    let mu = matmul(X, beta)\n    obs")

BETA = "    sample beta : Feature <- Normal(0.0, 1.0)\n"
MU = "    let mu = matmul(X, beta)\n"

BODY = """\
        let chosen = words[z]

        # what is seen
        observe word : Token <- Categorical(
            words[z])
"""
MIXTURE = f"""\
object Topic : FinSet 3
object Word : FinSet 50
object Token : FinSet 400
program mixture : Token -> Word
    sample weights <- Dirichlet(1.0) [over=Topic]
    sample words : Topic <- Dirichlet(0.5) [over=Word]
    marginalize z : Token <- Categorical(weights)
{BODY}    return words
"""
RECURRENT = """\
object Token : FinSet 60
object E : Real 8
object H : Real 16
morphism embed : Token -> E [role=embed]
morphism cell : E * H -> H [role=kernel] ~ Normal
let encoder = embed >> scan(cell)
"""
CHANCE = """\
object Row : FinSet 60
program p : Row -> Row
    sample q <- StudentT(3.0)
    observe y : Row <- Bernoulli(sigmoid(q))
    return y
"""

# a program without problems, what stands there, what the mistake makes of it, the marked text
MISTAKES = [
    (REGRESSION, "HalfNormal(1.0)", "HalfNormal(0.0, 1.0)", "0.0"),
    (REGRESSION, "Normal(0.0, 1.0)", "Normal(0.0, 1.0, 2.0)", "2.0"),
    (HEAD + "object Q : Real 3\n", "Real", "Reel", "Reel"),
    (HEAD + "object Q : Real 3 3\n", "Real", "Vector", "Vector"),
    (HEAD + "object Q : Row * Real 3\n", "Real", "Reals", "Reals"),
    (HEAD + "object Q : FinSet 3\n", "Q : FinSet", "Q : Finset", "Finset"),
    (HEAD + "object Q : FinSet 3\n", "Q : FinSet", "Q : FinSett", "FinSett"),
    (HEAD + "object Q : Seq Row\n", "Seq", "Sqe", "Sqe"),
    (HEAD + "object Q : Seq (Real 3)\n", "Seq", "Sequence", "Sequence"),
    (WITH_LET, "matmul(X, beta)", "X @ beta", "@"),
    (REGRESSION, "matmul(X, beta)", "X @ beta", "X @ beta"),
    (WITH_LET.replace("X, beta", "matmul(X.f, A[1]), (beta + 1.0)"), "matmul(matmul(X.f, A[1]), (beta + 1.0))",
     "X.f @ A[1] @ (beta + 1.0)", "@"),
    (REGRESSION, "sample beta : Feature <- Normal(0.0, 1.0)", "beta : Feature ~ Normal(0.0, 1.0)", "beta"),
    (MIXTURE, BODY, BODY.replace("        ", "    "), "marginalize"),
    (REGRESSION.replace("HalfNormal(1.0)", "InverseGamma(1.0, 1.0)"), "InverseGamma", "InvGamma", "InvGamma"),
    (RECURRENT, "E * H", "H * E", "cell"),
    (REGRESSION.replace("y : Row <- Normal(", "y : Row <- Normal(log(s) + "), "log(s)", "log(s, beta)", "beta"),
    (REGRESSION.replace("s <- HalfNormal(1.0)", "s <- Normal(0.0, 1.0)").replace("s)", "exp(s))"), "exp(s)", "s", "s"),
    (CHANCE, "sigmoid(q)", "q", "q"),
    (REGRESSION, "sample s <- HalfNormal(1.0)", "let s = HalfNormal(1.0)", "HalfNormal"),
    (WITH_LET, f"{BETA}{MU}", f"{MU}{BETA}", "beta"),
    (REGRESSION, "Normal(0.0, 1.0)", "Normal(0.0)", "Normal"),
    (REGRESSION, "HalfNormal(1.0)", "HalfNormal", "HalfNormal"),
    (REGRESSION.replace("Normal(0.0, 1.0)", "Normal(scale=2.0, loc=0.0)"), ", loc=0.0", "", "Normal"),
    (REGRESSION.replace("matmul(X, beta)", "beta[k]"), "beta[k]", "beta[k, j]", "j"),
    (REGRESSION, "beta), s)", "beta), s[k])", "s[k]"),
    (RECURRENT, "[role=embed]", "[role=embed, heads=2]", "heads"),
    (RECURRENT + "morphism gain : H -> H [role=norm]\n", "[role=norm]", "[role=norm] ~ Normal", "Normal"),
    (RECURRENT + "morphism pick : H -> Token ~ Categorical\n", "Token ~", "Token [scale=0.1] ~", "scale"),
    (REGRESSION, "HalfNormal(1.0)", "HalfNormal(1.0) [reduction=logsumexp]", "reduction"),
    (REGRESSION.replace("beta), s)", "beta), s.sigmoid())"), "sigmoid", "sigmod", "sigmod"),
    (CHANCE.replace("q <- StudentT(3.0)", "q <- Uniform(-1.0, 2.0)"), "-1.0, 2.0", "2.0, -1.0", "2.0, -1.0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "right", "wrong", "marked"), MISTAKES)
def test_a_mistake_is_one_problem_whose_fix_leaves_none(text: str, right: str, wrong: str, marked: str) -> None:
    assert not [found for found in analyse(text).diagnostics() if found.severity is not Severity.HINT]
    damaged = text.replace(right, wrong, 1)
    assert damaged != text
    snapshot = analyse(damaged)
    (found,) = [found for found in snapshot.diagnostics() if found.severity is not Severity.HINT]
    start, end = found.range
    assert snapshot.lines[start.line][start.column : end.column] == marked
    assert applied(damaged, actions_of(found)[0].edits) == text
