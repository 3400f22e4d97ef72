"""The texts that completion writes: whole declarations, steps, calls; and the words that options take."""

from __future__ import annotations

from qvr_core.semantics.language.compositions import BUILTIN_COMPOSITIONS
from qvr_core.semantics.language.options import SEMIRINGS
from qvr_core.semantics.language.roles import ROLES
from qvr_core.semantics.language.transformations import KEEPS

STATEMENTS = (
    *("object", "morphism", "let", "program", "def", "family", "export", "import"),
    *("data type", "encoder", "decoder", "composition", "transformation", "deduction"),
)

SNIPPETS = {
    "object": "object ${1:Name} : ${2|Real,FinSet,Simplex|} ${3:64}",
    "morphism": f"morphism ${{1:name}} : ${{2:A}} -> ${{3:B}} [role=${{4|{','.join(ROLES)}|}}]$0",
    "let": "let ${1:name} = $0",
    "program": "program ${1:name} : ${2:A} -> ${3:B}\n    sample ${4:h} <- ${5:arrow}\n"
    "    observe ${6:y} <- ${7:head}($4)\n    return $6",
    "def": "def ${1:f}(${2:x}) = $0",
    "family": "family ${1:Name}(${2:loc}, ${3:scale} : Real 1 [low=0.0]) : Real 1\n    density(${4:x}) = $0",
    "export": "export ${1:name}",
    "import": 'import "${1:file}.qvr" as ${2:prefix}',
    "composition": f"composition ${{1|{','.join(BUILTIN_COMPOSITIONS)}|}}",
    "transformation": f"transformation ${{1:name}} : ${{2|{','.join(BUILTIN_COMPOSITIONS)}|}} => "
    f"${{3|{','.join(BUILTIN_COMPOSITIONS)}|}} as ${{4|{','.join(KEEPS)}|}}\n    map(${{5:x}}) = $0",
    "data type": "data type ${1:Tree} = ${2:leaf} | ${3:node}(${1:Tree}, ${1:Tree})$0",
    "encoder": "encoder ${1:name} : ${2:Tree} -> ${3:Code}\n    ${4:leaf} = $0",
    "decoder": "decoder ${1:name} : ${2:Code} -> ${3:Tree} [depth=${4:8}]\n    ${3:Tree}(h) = ${5:choose}(h)\n    $0",
    "deduction": "deduction ${1:Name} : ${2:A} -> ${3:B} "
    f"[semiring=${{4|{','.join(SEMIRINGS)}|}}, start=${{5:S}}]\n"
    "    atoms $5\n    rule ${6:name} : $0 |- ",
}  # fmt: skip

STEP_SNIPPETS = {
    "data": "data ${1:name} : ${2:Row}",
    "param": "param ${1:m} : ${2:Real 1} [init=${3:0.0}]",
    "sample": "sample ${1:v} <- $0",
    "observe": "observe ${1:y} <- $0",
    "predict": "predict ${1:f} <- $0",
    "marginalize": (
        "marginalize ${1:z}[${2:i} : ${3:Row}] : ${4:K} <- Categorical(${5:probs})\n    observe ${6:y}[$2 : $3] <- $0"
    ),
    "let": "let ${1:v} = $0",
    "score": "score ${1:s} = $0",
    "return": "return $0",
}

OPERATIONS = (
    ("tensor_op", "tensor_op(a, b) = a * b"),
    ("join", "join(t) = sum(t)"),
    ("unit", "unit = 1.0"),
    ("zero", "zero = 0.0"),
)

MAP_RULES = (("map", "map(x) = "),)

FAMILY_RULES = (
    ("density", "density(x) = "),
    ("draw", "draw = "),
    ("cdf", "cdf(x) = "),
    ("log_survival", "log_survival(x) = "),
    ("standard", "standard(z) = "),
)

SPACE_SNIPPETS = (
    ("Real", "Real ${1:64}"),
    ("FinSet", "FinSet ${1:256}"),
    ("Simplex", "Simplex ${1:3}"),
    ("Ordered", "Ordered ${1:3}"),
    ("CholeskyFactor", "CholeskyFactor ${1:3}"),
    ("Covariance", "Covariance ${1:3}"),
    ("Correlation", "Correlation ${1:3}"),
    ("Seq", "Seq ${1:A}"),
)
