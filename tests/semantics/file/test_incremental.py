"""Analysis after any sequence of edits equals analysis of the final text."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from pathlib import Path

import pytest

from qvr_core.analysis import Analyzer, Cursor, Snapshot
from qvr_core.semantics.scope.scope import ArrowEntry, FamilyEntry, ObjectEntry
from qvr_core.semantics.types.spaces import Linear, Product
from qvr_core.semantics.types.type_text import dim_text, space_text
from tests.seeds import seeds

ROOT = Path(__file__).resolve().parents[3]
SEEDS = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("?*.qvr"))]

EXTRA = """\
object Hole : Real _
object Wide : Real d
object Color : {red, green, blue}
morphism up : Hole -> Wide [role=linear]
morphism down : Wide -> Real 12 [role=linear, rank=2]
morphism heads : Real 12 -> Real 4 [role=linear, replicate=3]
let chain = up >> down >> fan(heads)
let loop = chain >> chain
composition real
morphism w : Color -> Color [role=latent]
let power = repeat(w, 3) >> w.dagger
composition boolean
morphism v : Color -> Color [role=latent]
composition mine as algebra
    tensor_op(a, b) = a * b
    join(t) = max(t)
    unit = 1.0
    zero = 0.0
object Many : FinSet 5000
morphism x : Color -> Color [role=latent]
data type Tree = leaf(Color) | node(Tree, Tree)
encoder coded : Tree -> Real 4
    leaf(c) = zeros(4)
    node(a, b) = a + b
transformation there : mine => boolean as homomorphism
    map(x) = x > 0
let mapped = x.change_base(there) >> v
composition product_fuzzy
morphism many : Color -> Many [role=latent]
let knows = many >> many.dagger
let again = many.freeze >> many.dagger
export loop
"""

WORDS = [
    "Real 64", "Real _", "Real d", "FinSet 3", "Token", "Embedded", "Latent", "tok_embed", "scan(fwd_cell)", " >> ",
    "@", "fan(", ")", "\n", "\n\n", "    ", "é", "𝔘", "32", "16", "_", "object A : Real 3\n", "let z = backbone\n",
    "export backbone\n", "composition boolean\n", "morphism m : Latent -> Latent [role=kernel] ~ Normal\n", "#", "[",
    "]", "let backbone = z >> cross\n", "object Hidden, Extra : Real _\n", "    sample h <- backbone\n", "replicate=2",
    "replicate=four", "role=latent", "object Latnet : Real 3\n", "Latnet", "morphism n : Hole -> Latnet [role=embed]\n",
    "let forgot = heads_0 >> heads_7\n", "composition mine\n", "    join(t) = mean(t)\n", "there", "init=0.01",
    "transformation there : real => mine\n    map(x) = x\n", "let more = many >> many.dagger\n", "mine", "many",
    "data type Other = leaf(Color) | node(Other, Tree)\n", "data type Color = a | b(Color)\n", "Tree",
    "object o : Tree\n", "encoder e : Tree -> Real 3\n    leaf(c) = c\n", "node", "    leaf = 0.0\n",
]  # fmt: skip


def bare(node: object) -> object:
    """A part of the model without its places: they count units, whose numbers depend on the edits."""
    match node:
        case Linear():
            return dim_text(node)
        case int() | str() | float() | None | Enum():
            return node
        case Product(factors, names):
            return ("Product", bare(factors), bare(names))
        case Mapping():
            return {key: bare(value) for key, value in node.items()}
        case tuple() | list() | frozenset():
            return [bare(item) for item in (sorted(node) if isinstance(node, frozenset) else node)]
        case _:
            kept = [item.name for item in fields(node) if item.name not in ("origin", "operators")]  # type: ignore[arg-type]
            return (type(node).__name__, *(bare(getattr(node, name)) for name in kept))


def told(snapshot: Snapshot) -> list[object]:
    """All that a user is told: diagnostics with places and fixes, what each name means, and the whole model."""
    model = bare(snapshot.model)
    diagnostics = [(d.code.name, d.range, d.message, d.related, d.fixes) for d in snapshot.diagnostics()]
    names: list[object] = []
    for name, entry in sorted(snapshot.entries.items()):
        match entry:
            case ObjectEntry(space=space):
                what: object = space_text(space)
            case ArrowEntry():
                what = (entry.kind, space_text(entry.domain), space_text(entry.codomain), entry.sort, entry.density)
            case FamilyEntry(copies=copies):
                what = copies
            case _:
                what = None
        names.append((name, type(entry).__name__, what))
    return [diagnostics, names, list(snapshot.model.order), [hole[2] for hole in snapshot.holes()], model]


def position(text: str, offset: int) -> Cursor:
    line = text.count("\n", 0, offset)
    return Cursor(line, offset - (text.rfind("\n", 0, offset) + 1))


def random_edit(
    text: str, rng: random.Random, words: list[str] = WORDS, seeds: list[str] = SEEDS
) -> tuple[int, int, str]:
    start = rng.randrange(len(text) + 1)
    kind = rng.random()
    if kind < 0.3:
        return start, start, rng.choice(words)
    if kind < 0.5:
        return start, min(len(text), start + rng.randrange(1, 4)), ""
    if kind < 0.6:
        return start, min(len(text), start + rng.randrange(80)), ""
    if kind < 0.7:
        return start, start, rng.choice(seeds)[: rng.randrange(400)]
    lines = text.split("\n")
    i = rng.randrange(len(lines))
    begin = sum(len(line) + 1 for line in lines[:i])
    if kind < 0.8:
        return begin, begin, lines[rng.randrange(len(lines))] + "\n"
    if kind < 0.9:
        return begin, min(len(text), begin + len(lines[i]) + 1), ""
    return start, min(len(text), start + rng.randrange(6)), rng.choice(words)


@pytest.mark.parametrize("seed", seeds(6, 350))
def test_incremental_equals_fresh(seed: int) -> None:
    rng = random.Random(seed)
    text = rng.choice([*SEEDS, SEEDS[0] + EXTRA, EXTRA])
    analyzer = Analyzer(text)
    history: list[str] = [text]
    for step in range(30):
        if rng.random() < 0.15 and len(history) > 1:
            target = history[-2]
            analyzer.edit(Cursor(0, 0), Cursor(10**9, 0), target)
            text = target
        else:
            start, end, new = random_edit(text, rng)
            analyzer.edit(position(text, start), position(text, end), new)
            text = text[:start] + new + text[end:]
        history.append(text)
        assert analyzer.text == text
        assert told(analyzer.snapshot()) == told(Analyzer(text).snapshot()), f"step {step}\n{text}"


INDEXED = """\
object County : FinSet 4
object House : FinSet 50
object Time : FinSet 30
object Lag : FinSet 2
object Feature : {floor, area}
program radon : House -> Real 1
    data county : House -> County
    data x : House * Feature
    sample a[c : County] <- Normal(0.0, 1.0)
    sample beta[f : Feature] <- Normal(0.0, 1.0) [noncentred]
    let eta[i : House] = a[county[i]] + sum(beta[f] * x[i, f] for f : Feature if x[i, f] > 0.0)
    let total[c : County] = sum(eta[i] for i : House if county[i] == c) + beta[floor]
    observe y[i : House] <- Normal(eta[i] + total[county[i]], 1.0)
    return a
program series : Time -> Real 1
    sample phi[j : Lag] <- Normal(0.0, 0.5)
    sample h[t : Time] <- Normal(0.9 * h[t - 1], 1.0) from Normal(0.0, 2.0)
    observe y[t : Time] <- Normal(sum(phi[j] * y[t - 1 - j] for j : Lag) + h[t], 1.0)
    let (l, b)[t : Time] = (0.5 * y[t] + l[t - 1], l[t] - b[t - 1])
        from (0.0, 0.0)
    let k[s : Time, t : Time] = l[s] * b[t] + (s == t)
    observe z[t : Time] <- Normal(k[t, 0], 1.0)
    return h
"""

INDEXED_WORDS = [
    "[i : House]", "[t : Time]", "[t - 1]", "[t + 1]", "[county[i]]", " from 0.0", " from Normal(0.0, 1.0)", "[i]",
    " for f : Feature", " if county[i] == c", "sum(", "    data county : House -> County\n", "    data x : House\n",
    "    let eta[i : House] = a[i]\n", "[floor]", '["area"]', "object Time : FinSet 9\n", "[s]", "y", "Time", "County",
    ")", "\n", "        ",
]  # fmt: skip


@pytest.mark.parametrize("seed", seeds(4, 100))
def test_index_notation_under_edits(seed: int) -> None:
    rng = random.Random(1000 + seed)
    text = INDEXED
    analyzer = Analyzer(text)
    for step in range(25):
        if rng.random() < 0.2:
            analyzer.edit(Cursor(0, 0), Cursor(10**9, 0), INDEXED)
            text = INDEXED
        start, end, new = random_edit(text, rng, INDEXED_WORDS, [INDEXED])
        analyzer.edit(position(text, start), position(text, end), new)
        text = text[:start] + new + text[end:]
        assert told(analyzer.snapshot()) == told(Analyzer(text).snapshot()), f"step {step}\n{text}"


PROGRAMS = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples" / "statistics").glob("?*.qvr"))]

PROGRAM_WORDS = [
    *INDEXED_WORDS, "    data y : Row\n", "size(County)", ", over=County", " : County * House", "HalfNormal(1.0)",
    "Normal(0.0, 1.0)", "    predict y2[i : House] <- Normal(0.0, 1.0)\n", "[noncentred]",
]  # fmt: skip


@pytest.mark.parametrize("seed", seeds(6, 200))
def test_statistical_programs_under_edits(seed: int) -> None:
    rng = random.Random(2000 + seed)
    whole = rng.choice(PROGRAMS)
    words = [*PROGRAM_WORDS, *rng.sample(re.findall(r"[a-zA-Z_]\w+", whole), 12)]
    text, analyzer = whole, Analyzer(whole)
    for step in range(20):
        if rng.random() < 0.25:
            analyzer.edit(Cursor(0, 0), Cursor(10**9, 0), whole)
            text = whole
        start, end, new = random_edit(text, rng, words, [whole])
        analyzer.edit(position(text, start), position(text, end), new)
        text = text[:start] + new + text[end:]
        assert told(analyzer.snapshot()) == told(Analyzer(text).snapshot()), f"step {step}\n{text}"


FAMILIES = """\
object Row : FinSet 5
object School : FinSet 3
family Skewed(loc, scale : Real 1 [low=0.0], shape = 0.0) : Real 1
    let two = logistic(2.0, k=1.0)
    density(x) = log(two) - log(scale) - 0.5 * ((x - loc) / scale)^2 + log(ndtr(shape * (x - loc) / scale))
    draw = loc + scale * Normal(0, 1)
def logistic(x, k = 1.0) = 1 / (1 + exp(-k * x))
def bend(x, a)
    let b = a * logistic(x)
    return b
program effects(G : Object, sd : Real = 1.0) : G -> G
    sample tau <- HalfNormal(sd)
    sample u : G <- Skewed(0.0, tau)
    return u
program p : Row -> Real 1
    data school : Row -> School
    sample a <- Skewed(0.0, scale=1.0, shape=2.0)
    sample u <- effects(School, sd=2.0)
    let m = bend(a, 0.5) + u[school]
    observe y : Row <- Mixture([0.3, 0.7], Skewed(m, 1.0), Normal(0.0, scale=2.0))
    return a
"""

FAMILY_WORDS = [
    "Skewed", "Skewed(0.0, 1.0)", "Normal(0, 1)", "Mixture([0.5, 0.5], Skewed(0.0, 1.0), Skewed(1.0, 1.0))", "loc", "x",
    "scale", "shape=1.0", " = 0.0", " [low=0.0]", " : Real 2", " : FinSet 3", "density(x) = -x\n", "    draw = loc\n",
    "    cdf(x) = ndtr(x)\n", "def logistic(x) = x\n", "bend(", "effects(Row)", "sd=", "School", "(", ")", ",", "\n",
    "family Skewed(a) : Real 1\n    density(x) = -x\n", "    let two = 1.0\n", "two", "u.tau", "#", "1.0", "    ",
]  # fmt: skip


@pytest.mark.parametrize("seed", seeds(4, 100))
def test_declared_families_functions_and_templates_under_edits(seed: int) -> None:
    rng = random.Random(3000 + seed)
    text, analyzer = FAMILIES, Analyzer(FAMILIES)
    for step in range(25):
        if rng.random() < 0.25:
            analyzer.edit(Cursor(0, 0), Cursor(10**9, 0), FAMILIES)
            text = FAMILIES
        start, end, new = random_edit(text, rng, FAMILY_WORDS, [FAMILIES])
        analyzer.edit(position(text, start), position(text, end), new)
        text = text[:start] + new + text[end:]
        assert told(analyzer.snapshot()) == told(Analyzer(text).snapshot()), f"step {step}\n{text}"


CHAIN = """\
object R : FinSet 3
program p : R -> Real 1
    data y : R
    sample s <- HalfNormal(1.0)
    let a = s * 2.0
    let b = a + 1.0
    observe y : R <- Normal(0.0, b)
    return s
export p
"""


@pytest.mark.parametrize(
    ("line", "other"),
    [("    sample s <- HalfNormal(1.0)\n", "    sample s <- Normal(0.0, 1.0)\n"), ("    data y : R\n", "")],
)
def test_what_a_line_far_above_says_is_told_after_an_edit_and_after_its_undoing(line: str, other: str) -> None:
    analyzer = Analyzer(CHAIN)
    for before, after in ((line, other), (other, line)):
        text = analyzer.text.replace(before or "    sample s", after + ("" if before else "    sample s"), 1)
        analyzer.edit(Cursor(0, 0), Cursor(10**9, 0), text)
        assert analyzer.text == text
        assert told(analyzer.snapshot()) == told(Analyzer(text).snapshot())


REPLICATED = [
    "object A : Real 2",
    *(f"morphism f{n} : A -> A [role=linear, replicate={n + 2}]" for n in range(5)),
    "morphism g, h : A -> A [role=linear, replicate=3]",
    "let a = fan(f0) @ f1_2 @ f3_9 >> f4_0",
    "let b = fan(g) @ h_1",
    "export a @ fan(f2)",
]


@pytest.mark.parametrize("seed", seeds(4, 60))
def test_the_bound_of_copies_is_the_same_under_edits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qvr_core.semantics.file.replicated_arrows.MOST_COPIES", 8)
    rng = random.Random(seed)
    analyzer = Analyzer("\n".join(REPLICATED))
    for step in range(30):
        at, kept = rng.randrange(analyzer.text.count("\n") + 1), rng.random() < 0.5
        line = rng.choice(REPLICATED).replace("=3", f"={rng.randrange(9)}")
        analyzer.edit(Cursor(at, 0), Cursor(at + (not kept), 0), line + "\n")
        assert told(analyzer.snapshot()) == told(Analyzer(analyzer.text).snapshot()), f"step {step}\n{analyzer.text}"


def test_an_old_snapshot_says_what_it_said() -> None:
    analyzer = Analyzer(SEEDS[0])
    before = analyzer.snapshot()
    first = told(before)
    analyzer.edit(Cursor(0, 0), Cursor(8, 0), "")
    assert told(analyzer.snapshot()) != first
    assert told(before) == first


def tied_sizes(source: random.Random) -> list[str]:
    """Lines of a file whose open sizes are tied to each other in groups, which any line may join or part."""
    count = source.randrange(2, 9)
    sets = [f"object H{i} : Real {source.choice(['_', '_', '_', str(source.randrange(1, 9))])}" for i in range(count)]
    names = ["K", *(f"H{i}" for i in range(count))]
    arrows: list[str] = []
    for i in range(count + 3):
        codomain = " * ".join(source.choice(names) for _ in range(source.choice((1, 1, 2))))
        arrows.append(f"morphism f{i} : {source.choice(names)} -> {codomain} [role=linear]")
    joined = [f"let c{i} = f{source.randrange(count + 3)} >> f{source.randrange(count + 3)}" for i in range(count)]
    return ["object K : Real 7", *sets, *arrows, *joined]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sampled(3)
def test_sizes_that_are_tied_and_parted_by_edits(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(8):
        lines = tied_sizes(source)
        analyzer = Analyzer("\n".join(lines))
        for _ in range(6):
            at = source.randrange(len(lines))
            old, lines[at] = lines[at], source.choice(tied_sizes(source))
            analyzer.edit(Cursor(at, 0), Cursor(at, len(old)), lines[at])
            found, anew = (
                {(d.code.name, d.range, d.message) for d in each.diagnostics()}
                for each in (analyzer.snapshot(), Analyzer("\n".join(lines)).snapshot())
            )
            assert found == anew


CHAIN = "object A : FinSet 3\nmorphism f : A -> Real _ [role=embed]\nmorphism g : Real 8 -> A [role=kernel]\n"


@pytest.mark.parametrize(
    ("text", "loaded"),
    [
        ("let h = f >> g\nlet k = h\nexport k\n", False),
        ("let h = k\nlet k = h\nexport k\n", True),
        ("object B, C : Real _\nmorphism u : B -> C [role=norm]\nlet h = f >> u\nexport h\n", True),
    ],
    ids=["neither", "a circle", "tied sizes"],
)
def test_only_circles_and_tied_sizes_load_networkx(text: str, loaded: bool) -> None:
    """`qvr check` and the first diagnostics of an editor do not wait for it."""
    code = "import sys; from qvr_core.analysis import analyse; analyse(sys.argv[1]).diagnostics(); "
    command = [sys.executable, "-c", code + "print('networkx' in sys.modules)", CHAIN + text]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"{loaded}\n"
