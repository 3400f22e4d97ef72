"""Programs of whole values as exports: families of vectors and matrices, mixtures, functions of arrays, and data whose
sets nothing says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

VECTORS = """\
object Row : FinSet 4
object Kind : FinSet 3
object Time : FinSet 3
family Bell(loc, scale : Real 1 [low=0.0] = 1.0) : Real 1
    density(x) = -0.5 * ((x - loc) / scale) ^ 2 - log(scale)
program vectors : Row -> Row
    data x : Row
    data g : Row -> Kind
    sample m <- Normal(0.0, 1.0)
    sample s <- HalfNormal(1.0)
    sample p : Simplex 3 <- LogisticNormal([0.0, 0.3], [1.0, 0.5])
    sample w : Time <- GaussianRandomWalk(s, drift=0.1, start=m)
    sample r[k : Kind] <- Dirichlet([1.0, 1.0, 1.0])
    sample o : Ordered 2 <- Normal([m, 1.0], s)
    sample b <- TruncatedNormal(m, s, low=-1.0, high=2.5)
    observe n : Real 3 <- Multinomial(9, p)
    observe y[i : Row] <- MixtureNormal(p, w, [0.5, 1.0, 2.0])
    observe z[i : Row] <- Mixture(r[g[i]], Normal(x[i], s), Bell(m), StudentT(4.0, m, 1.5))
    observe c[i : Row] <- Mixture(logits=[0.1, m], Poisson(exp(m)), Geometric(0.3))
    return m
"""
MATRICES = """\
    sample v : Covariance 2 <- Wishart(4.0, l)
    sample u : Covariance 2 <- InverseWishart(5.0, l)
    sample q : Correlation 2 <- LKJCorrelation(1.7)
"""
"""Those which PyMC has no parameters of."""
FUNCTIONS = """\
object Row : FinSet 4
object Kind : FinSet 2
object Three : FinSet 3
program functions : Row -> Row
    data x : Row
    data a : Kind * Kind
    data t : Row * Kind
    data v : Row * Three
    sample m <- Normal(0.0, 1.0)
    sample b[k : Kind] <- Normal(0.0, 1.0)
    let cuts = concat(m, m + exp(b[0]), m + 2.0 * exp(b[0]))
    let d = matmul(diag(exp(b)), matmul(a, transpose(a))) + eye(2)
    let first[i : Row, k : Kind] = t[i, k] - 0.5 * v[i, k + 1] * v[i, k]
    observe o[i : Row] <- OrderedLogistic(x[i], cuts)
    observe y : Row <- Normal(matmul(t, b), 1.0)
    observe z[i : Row] <- Normal(d[0, 1] + outer(b, b)[1, 0] + d[1, 1] + sum(first[i, k] for k : Kind), 1.0)
    return m
"""
OF_ARRAYS = """\
    let k = clamp(b, -0.2, 0.4)
    let e = solve_triangular(cholesky(matmul(d, transpose(d))), b)
    let f = matrix_exp(0.1 * a)
    let all = concat(x, k)
    let order = sort(x) + flip(x) - softmin(x) + cumulative_trapezoid(w, x)
    observe u[i : Row] <- Normal(order[i] + sum(all) + norm(all) + e[1] + f[0, 1] + zeros(2, 3)[1, 2], 1.0)
"""
"""Functions that Stan has not."""
OF_NETWORKS = """\
    let acts = relu6(x) + gelu(x) + silu(x) + mish(x) + softsign(x) + hardswish(x) + hardsigmoid(x) + selu(x)
    let others = tanhshrink(x) + copysign(x, w) + floor_divide(w, 0.25) + logcumsumexp(x)
    observe s[i : Row] <- Normal(acts[i] + others[i], 1.0)
"""
"""Those that PyMC has not, either."""
UNTOLD = """\
object Row : FinSet 4
object Kind : FinSet 3
program untold : Row -> Row
    sample m <- Normal(0.0, 1.0)
    sample a : Kind <- Normal(m, 1.0)
    sample phi : Kind <- ICAR(edges)
    let eta = exp(shape * a[chosen])
    score far = sum(died * (eta - log(time)) - time * eta)
    observe y : Row <- Normal(matmul(X, phi), scale) [weight=weighing, mask=there]
    return m
"""
TABLE = """\
    let table = factor k : Kind, l : Kind in a[l] * 0.1 + k
    let row = factor k : Row, l : Kind in m * l
    score pairs = table[0, 1] * table[2, 0] + row[3, 2]
"""
"""Tables of an expression, which Stan has not."""
TOLD = """\
    data died, time, scale, weighing : Row
    data chosen : Row -> Kind
    data there : Row -> Bool
    data shape : Real 1
    data X : Row * Kind
"""
"""What Stan must be told."""
CASES = ("vectors", "functions", "untold")
NUMBERS = [0.2, 0.5, -0.3, 0.9]


def write_whole_values(folder: Path, target: str, write_case: Callable[..., None]) -> None:
    """The programs of this file, by `families.write_case`."""
    write_case(folder, "vectors", target, *_vectors(matrices=target != "pymc"))
    write_case(
        folder, "functions", target, *_functions(arrays=target != "stan", networks=target in ("torch", "numpyro"))
    )
    write_case(folder, "untold", target, *_untold(told=target == "stan"))


def _vectors(*, matrices: bool) -> tuple[str, dict[str, Any], dict[str, Any]]:
    text = VECTORS
    data = {"x": NUMBERS, "g": [0, 2, 1, 2], "n": [2, 4, 3], "y": NUMBERS, "z": [1.2, -0.4, 0.3, 2.0]}
    data["c"] = [0, 2, 1, 5]
    drawn = {"m": 0.35, "s": 0.8, "p": [0.2, 0.5, 0.3], "w": [0.4, -0.6, 1.3], "b": 0.7, "o": [0.2, 0.9]}
    drawn["r"] = [[0.3, 0.5, 0.2], [0.4, 0.4, 0.2], [0.8, 0.1, 0.1]]
    if matrices:
        text = f"object Pair : FinSet 2\n{text}".replace("    data g", "    data l : Pair * Pair\n    data g")
        text = text.replace("    observe n", f"{MATRICES}    observe n")
        data["l"] = [[1.1, 0.0], [0.4, 0.8]]
        drawn |= {"v": [[1.4, 0.3], [0.3, 0.9]], "u": [[0.7, -0.2], [-0.2, 1.1]], "q": [[1.0, 0.4], [0.4, 1.0]]}
    return text, data, drawn


def _functions(*, arrays: bool, networks: bool) -> tuple[str, dict[str, Any], dict[str, Any]]:
    text = FUNCTIONS
    data = {"x": NUMBERS, "a": [[1.0, 0.3], [0.2, 1.5]], "o": [0, 3, 1, 2], "y": NUMBERS, "z": [0.4, 1.1, 2.3, 0.6]}
    data["t"] = [[0.1, 0.2], [0.9, -0.4], [1.2, 0.3], [0.0, 2.0]]
    data["v"] = [[0.1, 0.5, 0.2], [0.3, -0.4, 0.7], [1.0, 0.0, 0.2], [0.6, 0.8, -0.9]]
    if arrays:
        text = text.replace("    data x", "    data x, w").replace("    observe o", f"{OF_ARRAYS}    observe o")
        data |= {"u": NUMBERS, "w": [0.1, 0.4, 0.6, 1.2]}
    if networks:
        text = text.replace("    observe o", f"{OF_NETWORKS}    observe o")
        data["s"] = NUMBERS
    return text, data, {"m": 0.35, "b": [0.3, -0.6]}


def _untold(*, told: bool) -> tuple[str, dict[str, Any], dict[str, Any]]:
    text = UNTOLD
    data = {"shape": 0.4, "chosen": [0, 2, 1, 1], "died": [1, 0, 1, 1], "y": NUMBERS, "time": [0.4, 1.1, 2.3, 0.6]}
    data["X"] = [[1.0, 0.3, -0.2], [0.2, 1.5, 0.4], [0.1, 0.1, 0.9], [0.0, 1.0, 2.0]]
    data |= {"scale": [1.0, 0.5, 2.0, 1.5], "weighing": [1.0, 0.3, 2.0, 0.7], "there": [1, 0, 1, 1]}
    if told:
        text = text.replace("ICAR(edges)", "Normal(m, 1.0)").replace("    sample m", f"{TOLD}    sample m")
    else:
        text = text.replace("    observe y", f"{TABLE}    observe y")
        data["edges"] = [[0, 1], [1, 2]]
    return text, data, {"m": 0.35, "a": [0.3, -0.6, 0.1], "phi": [0.5, -0.8, 0.3]}
