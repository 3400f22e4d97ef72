"""Programs that are written in another form before they are printed: computed outcomes, and hidden values without an
index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

MIXTURES = """\
object Row : FinSet 4
object Doc : FinSet 2
object K : FinSet 3
object Word : FinSet 2
program mixtures : Row -> Row
    data c, late : Row
    data doc : Row -> Doc
    data seen : Row -> Word
    sample w : Simplex 3 <- Dirichlet([1.0, 2.0, 1.5])
    sample topics : Doc <- Dirichlet(0.7) [over=K]
    sample words : K <- Dirichlet(0.5) [over=Word]
    sample mu : K <- Normal(0.0, 1.0)
    sample sigma : K <- HalfNormal(1.0)
    sample theta : Doc <- Normal(0.0, 1.0)
    sample p <- Beta(2.0, 2.0)
    sample centers : Real 2 <- Normal(0.0, 5.0) [iid_over=K]
    sample L : CholeskyFactor 2 <- LKJCholesky(1.0)
    marginalize z : Row <- Categorical(w)
        let m = 2.0 * mu[z] + c
        observe y : Row <- Normal(m, sigma[z])
        observe seen : Row <- Categorical(words[z])
    marginalize t : Row <- Categorical(topics[doc])
        observe u : Row <- Normal(mu[t] + theta[doc], 1.0) [right_censored=late]
    marginalize k : K <- Categorical([0.2, 0.5, 0.3]) [over=Doc]
        observe v : Row <- StudentT(4.0, mu[k] + theta, 1.0 + k) [via=doc]
    marginalize here : FinSet 2 <- Bernoulli(p) [over=Doc]
        observe heard : Row <- Bernoulli(0.1 + 0.8 * here) [via=doc]
    return mu
"""
VECTORS = """\
    marginalize q : Row <- Categorical(w)
        observe x : Row <- MultivariateNormal(centers[q], L)
"""
"""Hidden values without an index: of rows, and of groups which rows name.  In Stan no vectors stand below one."""

OUTCOMES = """\
object Row : FinSet 4
object G : FinSet 2
object State : FinSet 2
program outcomes : Row -> Row
    data g : Row -> G
    data c : Row -> Bool
    sample a[k : G] <- Normal(0.0, 1.0)
    sample b <- HalfNormal(1.0)
    sample mu[s : State] <- Normal(0.0, 1.0)
    observe log(y)[i : Row] <- Normal(a[g[i]], b)
    observe ((z - a[g[i]]) / b)[i : Row] <- StudentT(4.0, 0.0, 1.0)
    observe (2.0 - logit(share))[i : Row] <- Normal(0.0, b) [right_censored=c]
    observe log1p(sqrt(q))[i : Row] <- Gumbel(b, 1.3) [left_censored=c]
    observe (expm1(0.3 * u) + b)[i : Row] <- Laplace(0.0, 1.0) [missing=drop]
    observe sigmoid(v)[i : Row] <- Beta(2.0, 1.5)
    observe exp(w)[i : Row] <- Exponential(b)
    marginalize s[i : Row] : State <- Categorical([0.4, 0.6])
        observe log(x)[i : Row] <- Normal(mu[s[i]], b)
    marginalize k[i : Row] : State <- Categorical([0.4, 0.6])
        observe ((t - mu[k[i]]) / b)[i : Row] <- Normal(0.0, 1.0)
    return a
"""
"""Functions of what is observed have a family, beside other options and below a hidden value."""


def write_rewritten(folder: Path, target: str, write_case: Callable[..., None]) -> None:
    """The programs of this file, by `families.write_case`."""
    nan = float("nan")
    seen = {"g": [0, 1, 1, 0], "c": [0, 1, 0, 1], "y": [0.4, 1.5, 2.0, 3.5], "z": [0.2, -1.0, 0.7, 1.1]}
    seen |= {"share": [0.2, 0.4, 0.9, 0.6], "q": [0.3, 0.2, 2.1, 1.0], "u": [0.2, nan, -0.7, nan]}
    seen |= {"v": [0.3, -1.2, 2.0, 0.1], "w": [0.1, -0.6, 0.9, 1.3]}
    seen |= {"x": [0.4, 1.1, 2.3, 0.6], "t": [0.4, 1.1, -2.3, 0.6]}
    drawn = {"a": [0.3, -0.6], "b": 0.8, "mu": [0.5, -1.0]}
    write_case(folder, "outcomes", target, OUTCOMES, seen, drawn)
    rows = {"c": [0.1, -0.4, 0.9, 0.3], "doc": [0, 1, 1, 0], "seen": [1, 0, 1, 1], "y": [0.4, 1.5, 2.0, 3.5]}
    rows |= {"u": [0.2, -1.0, 0.7, 1.1], "late": [0, 1, 0, 1], "v": [0.3, 0.2, 2.1, 1.0], "heard": [1, 1, 0, 1]}
    drawn = {"w": [0.2, 0.5, 0.3], "topics": [[0.3, 0.3, 0.4], [0.6, 0.1, 0.3]], "theta": [0.3, -0.6], "p": 0.4}
    drawn |= {"words": [[0.3, 0.7], [0.6, 0.4], [0.9, 0.1]], "mu": [0.5, -1.0, 0.2], "sigma": [0.5, 1.0, 0.8]}
    drawn |= {"centers": [[0.3, 0.1], [-0.5, 1.0], [0.7, 0.7]], "L": [[1.0, 0.0], [0.6, 0.8]]}
    several = MIXTURES
    if target != "stan":
        several = several.replace("    return", f"{VECTORS}    return")
        rows |= {"x": [[0.1, 0.2], [-0.3, 0.6], [1.0, 1.1], [0.2, -0.9]]}
    write_case(folder, "mixtures", target, several, rows, drawn)
