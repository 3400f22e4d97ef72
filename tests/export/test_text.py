"""What an export looks like: laid out, in the program's names, with its comments; and what is refused, at its place."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from qvr_core.analysis import analyse
from qvr_core.export import TARGETS, Refused, export
from tests.examples.statistics.programs import NAMES
from tests.export.exports import exported
from tests.patience import HANG

PYTHON = [name for name, target in TARGETS.items() if target.suffix == ".py"]
HEAD = "object Row : FinSet _\nobject State : {calm, active}\n\nprogram p : Row -> Row\n"


def text(body: str, target: str) -> str:
    """The export of a program with these steps."""
    return export(analyse(program(body)), "p", target).text


def program(body: str) -> str:
    """A program with these steps, which returns the first that it samples."""
    returned = body.split("sample ")[1].split(" ", maxsplit=1)[0]
    return HEAD + "".join(f"    {line}\n" for line in (*body.split("\n"), f"return {returned}"))


@pytest.mark.parametrize("target", PYTHON)
def test_each_is_laid_out_as_ruff_does_and_needs_none_of_our_packages(target: str, tmp_path: Path) -> None:
    for name in NAMES:
        made = exported(name, target).text
        (tmp_path / f"{name}.py").write_text(made, encoding="utf-8")
        imported = [
            alias.name for node in ast.walk(ast.parse(made)) if isinstance(node, ast.Import) for alias in node.names
        ]
        imported += [node.module or "" for node in ast.walk(ast.parse(made)) if isinstance(node, ast.ImportFrom)]
        assert imported and not [name for name in imported if name.startswith("qvr")]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--check", str(tmp_path)],
        capture_output=True, text=True, timeout=HANG, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_comments_stand_at_their_statements() -> None:
    made = text(
        "data y : Row  # in kilometres\n"
        "# far from home\n"
        "sample mu <- Normal(0.0, 1.0)  # of all rows\n"
        'let far = mu * 2.0  # twice\n'
        "observe y[i : Row] <- Normal(far, 1.0)",
        "numpyro",
    )  # fmt: skip
    assert "y: numbers, (n_row,); in kilometres" in made
    lines = [line.strip() for line in made.split("\n")]
    at = lines.index('mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))')
    assert lines[at - 2 : at] == ["# far from home", "# of all rows"]
    assert lines[at + 1 : at + 3] == ["# twice", 'far = numpyro.deterministic("far", mu * 2.0)']


@pytest.mark.parametrize("target", PYTHON)
def test_reserved_names_get_an_underscore_and_the_file_says_so(target: str) -> None:
    made = text("sample lambda <- HalfNormal(1.0)\nsample data <- Normal(0.0, lambda)", target)
    assert "`lambda` of the program is `lambda_` here" in made
    assert "`data` of the program is `data_` here" in made


def test_codes_are_spelt_out() -> None:
    made = text(
        "data s : Row -> State\nsample p <- Dirichlet([1.0, 1.0])\nobserve s[i : Row] <- Categorical(p)", "pymc"
    )
    assert "State is 0 calm, 1 active" in made
    assert "s: codes of State from 0, (n_row,)" in made


def test_data_get_the_names_and_codes_of_their_export() -> None:
    made = exported("radon", "torch")
    data = made.data({"county": [0, 8, 8], "floor": [0.0, 1.0, 1.0], "unknown": 1}, {"House": 3, "County": 9})
    assert data == {"n_house": 3, "n_county": 9, "county": [0, 8, 8], "floor": [0.0, 1.0, 1.0]}


REFUSED = [
    ("data w : Row\nsample m <- Normal(0.0, 1.0)\nsample v[i : Row] : Real 2 <- Normal(m, 1.0) [weight=w]", "v",
     7, "`v`: the option `weight` of vectors whose entries are drawn one by one is not exported"),
    ("data y : Row\nsample mu <- Horseshoe(1.0)\nobserve y[i : Row] <- Normal(mu, 1.0)", "Horseshoe(1.0)", 6,
     "Horseshoe(scale) is not exported to"),
    ("data y : Row\nsample mu <- Normal(0.0, 1.0)\nobserve y[i : Row] <- Normal(celu(mu), 1.0)", "celu(mu)", 7,
     "`celu` cannot be said in"),
    ("data y : Row\nsample mu <- HalfNormal(1.0)\nobserve y[i : Row] <- Gamma(mu, 1.0) [right_censored=y]", "y", 7,
     "censoring and truncation of Gamma are not exported"),
    ("data x : Row -> Bool\nsample a <- Beta(1.0, 1.0)\nmarginalize z : FinSet 2 <- Bernoulli(a)\n"
     "    observe x : Row <- Bernoulli(0.2 + 0.5 * z)", "z", 7, "this form of `marginalize` is not exported"),
    ("data x : Row -> Real 2 3\nsample m <- Normal(0.0, 1.0)\nobserve y[i : Row] <- Normal(m * x[i, 0, 1], 1.0)",
     "x", 5, "`x`: data whose elements are tables are not exported; let them run over sets"),
    ("sample a : Row <- Normal(0.0, 1.0)\nsample k <- Uniform(0.0, 4.0)\nobserve y <- Normal(a[k], 1.0)", "k", 7,
     "an index that is no whole number"),
    ("data x : Row -> Nat\nsample p <- Dirichlet([1.0, 1.0])\nmarginalize z[i : Row] : FinSet 2 <- Categorical(p)\n"
     "    observe x[i : Row] <- Poisson(1.0 + z[i]) [missing=drop]", "x", 8,
     "`x`: `[missing=drop]` of whole numbers is not exported"),
    ("data y : Row -> Real 2\nsample m <- Normal(0.0, 1.0)\n"
     "observe y[i : Row] : Real 2 <- Normal(m, 1.0) [missing=impute]", "y", 7,
     "`y`: `[missing=impute]` of vectors is not exported"),
]  # fmt: skip


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize(("body", "marked", "line", "message"), REFUSED, ids=[row[3][:30] for row in REFUSED])
def test_what_cannot_be_said_is_refused_at_its_token(
    body: str, marked: str, line: int, message: str, target: str
) -> None:
    snapshot = analyse(program(body))
    assert [found.message for found in snapshot.diagnostics() if found.severity.value == 1] == []
    with pytest.raises(Refused) as refused:
        export(snapshot, "p", target)
    assert message in str(refused.value)
    place = snapshot.range(refused.value.origin)
    assert (place.start.line + 1, snapshot.lines[place.start.line][place.start.column : place.end.column]) == (
        line,
        marked,
    )


def test_a_weighed_count_is_a_latent_of_torch_alone() -> None:
    body = "data w : Row\nsample k : Row <- Poisson(2.0) [weight=w]\nsample m <- Normal(0.0, 1.0)"
    assert "w * log_probs(dist.Poisson(2.0), k)" in text(body, "torch")
    for target in ("numpyro", "pymc", "stan"):
        with pytest.raises(Refused, match="`k`"):
            text(body, target)


def test_a_template_is_no_model_yet() -> None:
    source = "program p(sd : Real) : One -> One\n    sample m <- Normal(0.0, sd)\n    return m\n"
    with pytest.raises(Refused, match=r"`p` is a template: nothing says what its sd is; export a program that calls"):
        export(analyse(source), "p", "torch")


def test_data_without_a_set_are_told_to_stan_alone() -> None:
    body = "sample m <- Normal(0.0, 1.0)\nobserve y[i : Row] <- Normal(m, scale)"
    assert "scale: numbers, in the shape in which the program reads them" in text(body, "numpyro")
    with pytest.raises(Refused, match=r"nothing says what `scale` runs over; declare it: `data scale : Row`"):
        text(body, "stan")


def test_a_program_that_reads_rows_is_refused_with_a_remedy() -> None:
    source = "object A : Real 2\nmorphism f : A -> A ~ Normal\nprogram p : A -> A\n    sample y <- f\n    return y\n"
    with pytest.raises(Refused, match=r"reads its input row by row.*declare what it reads"):
        export(analyse(source), "p", "torch")


@pytest.mark.parametrize("target", TARGETS)
def test_flat_is_exported_on_its_space_and_draws_between_bounds_where_tails_are_known(target: str) -> None:
    positive = text("sample s : Real 1 [low=0.0] <- Flat()\nobserve y[i : Row] <- Normal(s, 1.0)", target)
    assert any(word in positive for word in ("<lower=0>", "constraints.positive", "HalfFlat", "positive"))
    between = text("sample s : Real 1 [low=0.0] <- Normal(0.0, 1.0)\nobserve y[i : Row] <- Normal(s, 1.0)", target)
    assert any(word in between for word in ("<lower=0>", "constraints.positive", "HalfFlat", "positive"))
    with pytest.raises(Refused, match=r"`s`: censoring and truncation of StudentT are not exported; there are Normal,"):
        text("sample s : Real 1 [low=0.0] <- StudentT(4.0, 0.0, 1.0)\nobserve y[i : Row] <- Normal(s, 1.0)", target)
    named = "sample a <- Normal(0.0, 1.0)\nsample s : Real 1 [low=a] <- Normal(0.0, 1.0)\n"
    for family in ("Normal(0.0, 1.0)", "Flat()"):
        lines = named.replace("Normal(0.0, 1.0)\n", f"{family}\n").replace(f"a <- {family}", "a <- Normal(0.0, 1.0)")
        with pytest.raises(Refused, match="`s`: a draw between bounds that are computed is not exported"):
            text(lines + "observe y[i : Row] <- Normal(s, 1.0)", target)
    with pytest.raises(Refused, match="`y`: a computed outcome that is truncated is not exported"):
        text("sample s <- Normal(0.0, 1.0)\nobserve log(y)[i : Row] : Real 1 [low=2.0] <- Normal(s, 1.0)", target)
    with pytest.raises(Refused, match="`y`: intervals and truncation of a computed outcome are not exported"):
        text("sample s <- Normal(0.0, 1.0)\nobserve log(y)[i : Row] <- Normal(s, 1.0) [truncate_lower=2.0]", target)
    with pytest.raises(Refused, match=r"`y`: a gate that is censored or truncated is not exported"):
        text("sample s <- Beta(1.0, 1.0)\nobserve y[i : Row] : Nat [low=1] <- ZeroInflated(s, Poisson(1.0))", target)
    with pytest.raises(Refused, match=r"`y`: a gate that is predicted is not exported"):
        text("sample s <- Beta(1.0, 1.0)\npredict y[i : Row] <- Hurdle(s, Poisson(1.0))", target)
    with pytest.raises(Refused, match=r"truncated by `: Ordered 2 \[low=0.0\]` in order is not exported"):
        text("sample s : Ordered 2 [low=0.0] <- Normal(0.0, 1.0)\nobserve y[i : Row] <- Normal(s[0], 1.0)", target)
