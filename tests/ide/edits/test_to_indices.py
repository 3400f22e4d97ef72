"""Plates become indices where they have one; what has none stays, and says why."""

from __future__ import annotations

import pytest

from qvr_core.analysis import analyse
from qvr_core.ide.to_indices.rewriting import Rewritten, rewritten

SETS = """object School : FinSet 8
object Pupil : FinSet 20
object Topic : FinSet 3
object Word : FinSet 5
"""


def fixed(steps: str, returned: str = "a", above: str = "") -> Rewritten:
    return rewritten(SETS + above + program(steps, returned), analyse)


def program(steps: str, returned: str = "a") -> str:
    lines = "".join(f"    {line}\n" for line in steps.strip("\n").split("\n"))
    return f"program model : Pupil -> Pupil\n{lines}    return {returned}\n"


def written(steps: str, returned: str = "a", above: str = "") -> str:
    """The steps then; all of them can be written with indices."""
    found = fixed(steps, returned, above)
    assert not found.kept, found.kept
    lines = found.text.removeprefix(SETS + above).splitlines()
    return "\n".join(line.removeprefix("    ") for line in lines[1:-1])


LATENTS = "sample a : School <- Normal(0.0, 1.0)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # a plate, and data that stand beside it
        (LATENTS, "sample a[s : School] <- Normal(0.0, 1.0)"),
        (
            f"{LATENTS}\nobserve y : Pupil <- Normal(a[school] + b * x, 1.0)  # marks",
            "sample a[s : School] <- Normal(0.0, 1.0)\n"
            "observe y[p : Pupil] <- Normal(a[school[p]] + b[p] * x[p], 1.0)  # marks",
        ),
        # several sets; what a family draws keeps its own
        (
            "sample a : School * Topic <- Normal(0.0, 1.0)",
            "sample a[s : School, t : Topic] <- Normal(0.0, 1.0)",
        ),
        (
            "sample a : Topic * Word <- Dirichlet(0.5)",
            "sample a[t : Topic] : Word <- Dirichlet(0.5)",
        ),
        (
            "sample a : Topic <- Dirichlet(0.5) [over=Word]",
            "sample a[t : Topic] <- Dirichlet(0.5) [over=Word]",
        ),
        (
            "sample m : Topic <- Normal(0.0, 1.0)\nsample a : School * Topic <- Normal(m, 1.0)",
            "sample m[t : Topic] <- Normal(0.0, 1.0)\nsample a[s : School, t : Topic] <- Normal(m[t], 1.0)",
        ),
        ("sample a : Topic <- Normal([1.0, 2.0, 3.0], 1.0)", "sample a[t : Topic] <- Normal([1.0, 2.0, 3.0][t], 1.0)"),
        # the plate beside a space
        (
            "sample a : Ordered 3 <- Normal(0.0, 1.0) [iid_over=School]",
            "sample a[s : School] : Ordered 3 <- Normal(0.0, 1.0)",
        ),
        # groups of rows
        (
            f"{LATENTS}\nobserve y : Pupil <- Normal(a, 1.0) [via=school, mask=there]",
            "sample a[s : School] <- Normal(0.0, 1.0)\nobserve y[p : Pupil] <- Normal(a[school[p]], 1.0) [mask=there]",
        ),
        (
            f"{LATENTS}\ndata school : Pupil -> School\nobserve y <- Normal(a, 1.0) [via=school]",
            "sample a[s : School] <- Normal(0.0, 1.0)\ndata school : Pupil -> School\n"
            "observe y[p : Pupil] <- Normal(a[school[p]], 1.0)",
        ),
        # lets that are written for rows
        (
            f"{LATENTS}\nlet eta = a[school] + x\nobserve y : Pupil <- Normal(eta, 1.0)",
            "sample a[s : School] <- Normal(0.0, 1.0)\n"
            "let eta[p : Pupil] = a[school[p]] + x[p]\n"
            "observe y[p : Pupil] <- Normal(eta[p], 1.0)",
        ),
        (
            f"{LATENTS}\nsample c : Topic <- Normal(0.0, 1.0)\nlet b : School * Topic = a + c",
            "sample a[s : School] <- Normal(0.0, 1.0)\nsample c[t : Topic] <- Normal(0.0, 1.0)\n"
            "let b[s : School, t : Topic] = a[s] + c[t]",
        ),
        (
            "sample a : Topic <- Normal(0.0, 1.0)\nobserve y : Pupil <- Normal(matmul(x, a), 1.0)",
            "sample a[t : Topic] <- Normal(0.0, 1.0)\n"
            "observe y[p : Pupil] <- Normal(sum(x[p, t] * a[t] for t : Topic), 1.0)",
        ),
        # a total is no element
        (
            f"{LATENTS}\nsample b : School <- Normal(mean(a), 1.0)",
            "sample a[s : School] <- Normal(0.0, 1.0)\nsample b[s : School] <- Normal(mean(a), 1.0)",
        ),
        # letters that mean something else are left alone
        (
            "sample s <- HalfNormal(1.0)\nsample a : School <- Normal(0.0, s)",
            "sample s <- HalfNormal(1.0)\nsample a[i : School] <- Normal(0.0, s)",
        ),
        # what is observed may be computed
        (
            "sample a <- Normal(0.0, 1.0)\ndata y : Pupil\nobserve log(y) : Pupil <- Normal(a, 1.0)",
            "sample a <- Normal(0.0, 1.0)\ndata y : Pupil\nobserve log(y)[p : Pupil] <- Normal(a, 1.0)",
        ),
        # sums over states
        (
            "sample a : Topic <- Normal(0.0, 1.0)\nsample w <- Dirichlet(1.0) [over=Topic]\n"
            "marginalize z : Pupil <- Categorical(w)\n    observe y : Pupil <- Normal(a[z], 1.0)",
            "sample a[t : Topic] <- Normal(0.0, 1.0)\nsample w <- Dirichlet(1.0) [over=Topic]\n"
            "marginalize z[p : Pupil] : Topic <- Categorical(w)\n    observe y[p : Pupil] <- Normal(a[z[p]], 1.0)",
        ),
        (
            "sample a : Topic <- Normal(0.0, 1.0)\nsample w <- Dirichlet(1.0) [over=Topic]\n"
            "marginalize z : Topic <- Categorical(w) [over=School, reduction=logsumexp]\n"
            "    observe y : Pupil <- Normal(a[z], 1.0) [via=school]",
            "sample a[t : Topic] <- Normal(0.0, 1.0)\nsample w <- Dirichlet(1.0) [over=Topic]\n"
            "marginalize z[s : School] : Topic <- Categorical(w)\n"
            "    observe y[p : Pupil] <- Normal(a[z[school[p]]], 1.0)",
        ),
        # nothing to do
        ("sample a : Real 1 [low=0.0] <- Normal(0.0, 1.0)", "sample a : Real 1 [low=0.0] <- Normal(0.0, 1.0)"),
        ("sample a : Topic <- Dirichlet([1.0, 1.0, 1.0]) [over=Topic]",) * 2,
    ],
)
def test_a_program_is_written_with_indices(old: str, new: str) -> None:
    assert written(old) == new


@pytest.mark.parametrize(
    ("steps", "line", "reason"),
    [
        (
            "sample a <- Normal(0.0, 1.0)\nobserve y <- Normal(a, 1.0) [at=rows]",
            1,
            "over which set the rows of `at` run",
        ),
        (f"{LATENTS}\nobserve y : Pupil <- Normal(a[school], 1.0) [at=rows]", 1, "`at` selects rows"),
        (
            "sample a <- HalfNormal(1.0)\nmarginalize q : Pupil <- Beta(a, a)\n    observe y : Pupil <- Bernoulli(q)",
            1,
            "only the states of a finite set have an index",
        ),
        (f"{LATENTS}\nobserve y : Pupil <- Normal(centred(x), 1.0)", 1, "`centred` may read more than one element"),
    ],
)
def test_what_has_no_index_stays_and_says_why(steps: str, line: int, reason: str) -> None:
    above = "def centred(x) = x - mean(x)\n"
    found = fixed(steps, above=above)
    first = (SETS + above).count("\n") + 1
    assert [kept.line for kept in found.kept] == [first + line]
    assert reason in found.kept[0].reason
    assert steps.split("\n")[line] in found.text


def test_functions_of_one_element_are_called_for_it() -> None:
    above = "def logistic(x, k = 1.0) = 1.0 / (1.0 + exp(-k * x))\n"
    found = written("sample a <- Normal(0.0, 1.0)\nobserve y : Pupil <- Normal(logistic(x, k=a), 1.0)", above=above)
    assert found.endswith("observe y[p : Pupil] <- Normal(logistic(x[p], k=a), 1.0)")


def test_a_text_with_an_error_is_left_alone() -> None:
    text = SETS + program(f"{LATENTS}\nobserve y : Pupil <- Normal(a, 1.0)")
    (error,) = (found for found in analyse(text).diagnostics() if found.severity.name == "ERROR")
    found = rewritten(text, analyse)
    assert found.text == text
    assert [(kept.line, kept.reason[:8]) for kept in found.kept] == [(error.range.start.line, "an error")]


def test_comments_and_line_ends_stay() -> None:
    steps = "# effects\nsample a : School <- Normal(  # of schools\n    0.0,\n    1.0,\n)"
    text = (SETS + program(steps)).replace("\n", "\r\n")
    assert rewritten(text, analyse).text == text.replace("a : School", "a[s : School]")


def test_a_template_whose_set_a_call_names() -> None:
    above = "program effect(G : Object) : G -> Real 1\n    sample e : G <- Normal(0.0, 1.0)\n    return e\n"
    found = fixed("sample a <- effect(School)\nobserve y : School <- Normal(a, 1.0)", above=above)
    assert "observe y[s : School] <- Normal(a[s], 1.0)" in found.text
    assert "sample a <- effect(School)" in found.text
    (kept,) = found.kept
    assert "a call of the template says" in kept.reason


def test_what_is_written_is_not_written_again() -> None:
    once = fixed(f"{LATENTS}\nlet m = a[school] + x\nobserve y : Pupil <- Normal(m, 1.0)")
    assert rewritten(once.text, analyse) == once
