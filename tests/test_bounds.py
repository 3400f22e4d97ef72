"""Texts that grow by doubling, long chains, many mistakes: each answer ends, in bounded memory, with one error at most.

Every text is asked about in a process of its own that the system ends where it takes too much: a fork of one that
has loaded what answers.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LINES, CHAIN = 60, 1000
PROCESSOR_SECONDS, MEMORY = 10, 1 << 30

HEAD = (
    "object X : Real 4\nobject F : FinSet 3\nmorphism x0 : X -> X [role=linear]\nmorphism f0 : F -> F ~ Categorical\n"
)
# what is read once: the grammar, and the library, whose names are looked through for one that is not known
FIRST = HEAD + "let y = x0 >> x1\nprogram p : X -> X\n    sample y <- Normal(sine(z), 1.0)\n    return y\n"
PROGRAM = "program p : X -> X\n    sample y <- Normal(0.0, 1.0)\n"


def repeated(line: Callable[[int], str], count: int = LINES) -> str:
    return "".join(line(index) + "\n" for index in range(1, count + 1))


TEXTS = {
    "products": HEAD + repeated(lambda i: f"object X{i} : X{i - 1 or ''} * X{i - 1 or ''}"),
    "coproducts": HEAD + repeated(lambda i: f"object F{i} : F{i - 1 or ''} + F{i - 1 or ''}"),
    "fans": HEAD + repeated(lambda i: f"let x{i} = fan(x{i - 1}, x{i - 1})"),
    "tensors": HEAD + repeated(lambda i: f"let x{i} = x{i - 1} @ x{i - 1}"),
    "composites": HEAD + repeated(lambda i: f"let x{i} = x{i - 1} >> x{i - 1}"),
    "finite composites": HEAD + repeated(lambda i: f"let f{i} = f{i - 1} >> f{i - 1}"),
    "stacks": HEAD + repeated(lambda i: f"let x{i} = stack(x{i - 1}, 2)"),
    "programs": HEAD
    + "program p0(x) : X -> X\n    sample y <- Normal(x, 1.0)\n    return y\n"
    + repeated(
        lambda i: f"program p{i}(x) : X -> X\n    sample y <- p{i - 1}(x)\n    sample z <- p{i - 1}(y)\n    return z"
    ),
    "functions": HEAD
    + PROGRAM
    + "    let f0 = v -> v\n"
    + repeated(lambda i: f"    let f{i} = v -> f{i - 1}(v) + f{i - 1}(v)")
    + f"    let z = f{LINES}(y)\n    return z\n",
    "a chain of objects": HEAD + repeated(lambda i: f"object X{i} : X{i - 1 or ''} * X", CHAIN),
    "a chain of lets": HEAD + repeated(lambda i: f"let x{i} = x{i - 1} >> x0", CHAIN),
    "a long composite": HEAD + "let y = " + " >> ".join(["x0"] * CHAIN) + "\n",
    "a wide tensor": HEAD + "let y = " + " @ ".join(["x0"] * CHAIN) + "\n",
    "a wide fan": HEAD + "let y = fan(" + ", ".join(["x0"] * CHAIN) + ")\n",
    "copies": HEAD + repeated(lambda i: f"morphism y{i} : X -> X [role=linear, replicate=4096]", CHAIN),
    "open brackets": HEAD + "let y = " + "(" * 10_000 + "\n",
    "closing brackets": HEAD + "let y = x0" + ")" * 10_000 + "\n",
}
MANY_MISTAKES = {
    "unknown objects": repeated(lambda i: f"object known{i} : unknown{i} * Real 3", CHAIN),
    "unknown arrows": HEAD + repeated(lambda i: f"let known{i} = unknown{i} >> x0", CHAIN),
    "unknown functions": HEAD
    + PROGRAM
    + repeated(lambda i: f"    let known{i} = unknown{i}(y)", CHAIN)
    + "    return y\n",
    "data names": HEAD + PROGRAM + repeated(lambda i: f"    let known{i}x = y + unknown{i}y", CHAIN) + "    return y\n",
}

ASK = """
import json, os, resource, sys
from qvr_core.analysis import Analyzer, Cursor, Range
from qvr_core.diagrams import build, drawable, to_dot, to_json, to_mermaid
from qvr_core.ide import inlays, outline_and_folding, semantic_tokens
from qvr_core.ide.completion.completion import complete
from qvr_core.ide.model_as_json import model_json
from qvr_core.ide.hover import hover

def ask(text):
    snapshot = Analyzer(text).snapshot()
    found = [item for item in snapshot.diagnostics() if item.severity.name != "HINT"]
    last = max(line for line, text in enumerate(snapshot.lines) if text.strip())
    for line in {0, 1, 2, 4, 5, last // 2, last - 1, last}:
        for column in (4, 8, len(snapshot.lines[line])):
            hover(snapshot, Cursor(line, column))
    complete(snapshot, Cursor(last, len(snapshot.lines[last])))
    whole = Range(Cursor(0, 0), Cursor(last + 1, 0))
    for each in (inlays.inlays, semantic_tokens.tokens):
        each(snapshot, whole)
    outline_and_folding.outline(snapshot)
    model_json(snapshot.model, lambda origin: None)
    for name in drawable(snapshot.model)[-1:]:
        for collapse in (True, False):
            graph = build(snapshot, name, collapse=collapse)
            assert len(graph) <= 1100, len(graph)
            to_json(graph, lambda origin: None)
    return len(found), found[0].code.name if found else ""

ask(json.loads(sys.stdin.readline()))
for line in sys.stdin:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            os.write(writing, json.dumps(ask(json.loads(line))).encode())
        except BaseException as error:
            os.write(writing, json.dumps([-1, repr(error)[-500:]]).encode())
        os._exit(0)
    os.close(writing)
    answer = os.read(reading, 2000).decode() or json.dumps([-1, "the system has ended it"])
    os.close(reading)
    os.waitpid(child, 0)
    print(answer, flush=True)
"""


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


Answers = Callable[[str], tuple[int, str]]


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    """How many errors and warnings a text has, and the code of the first, once everything has been asked about it."""
    code = ASK.replace("PROCESSOR_SECONDS", str(PROCESSOR_SECONDS)).replace("MEMORY", str(MEMORY))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as asked:
        assert asked.stdin is not None and asked.stdout is not None
        to, back = asked.stdin, asked.stdout

        def answered(text: str) -> tuple[int, str]:
            print(json.dumps(text), file=to, flush=True)
            count, code = json.loads(back.readline())
            assert count >= 0, code
            return count, code

        print(json.dumps(FIRST), file=to, flush=True)
        yield answered
        to.close()


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.sampled(2)
def test_what_grows_is_one_error_at_most(name: str, answers: Answers) -> None:
    count, code = answers(TEXTS[name])
    assert count <= 1
    assert code in ("", "too-large", "unclosed-bracket", "unmatched-bracket")


@pytest.mark.parametrize("name", MANY_MISTAKES)
@pytest.mark.sampled(2)
def test_many_mistakes_are_reported_each_once(name: str, answers: Answers) -> None:
    count, code = answers(MANY_MISTAKES[name])
    assert (count, code) in ((CHAIN, "unknown-name"), (0, ""))


@pytest.mark.parametrize("name", ["products", "fans", "composites", "programs"])
def test_the_commands_say_the_same(name: str, tmp_path: Path) -> None:
    path = tmp_path / "large.qvr"
    path.write_text(TEXTS[name])
    command = [sys.executable, "-m", "qvr_core.cli", "check", str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, preexec_fn=limit)
    assert done.returncode == 1
    assert done.stdout.count("too-large") == 1


def test_a_product_of_products_is_flat() -> None:
    from qvr_core.semantics.types.spaces import Product, Real, product, width

    space = product([(f"a{index}", Real((2,))) for index in range(60)])
    twice = product([(None, space), ("b", Real((3,))), (None, space)])
    assert isinstance(twice, Product)
    assert twice.count == len(twice.factors) == len(twice.names) == 121
    assert twice.names[59:62] == ("a59", "b", "a0")
    assert width(twice) == 243
    assert twice == Product(twice.factors, twice.names)
