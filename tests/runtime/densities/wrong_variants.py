"""One mistake for each sentence: what is written instead, with ‹ › around the token that the error is to stand at."""

from __future__ import annotations

from typing import NamedTuple


class Wrong(NamedTuple):
    """A piece of the sentence's program, and what stands in its place."""

    right: str
    wrong: str
    code: str


VARIANTS = {
    "flat on what is ascribed": Wrong("Flat()", "Flat(‹1.0›)", "family-arguments"),
    "flat between bounds": Wrong("[low=0.0, high=2.0]", "‹[low=2.0, high=0.0]›", "invalid-option"),
    "flat on Cholesky factors": Wrong("MultivariateNormal([0.0, 0.0], L)", "Normal(‹L›, 1.0)", "ascription-mismatch"),
    "flat ordered, without k!": Wrong("s[0]", "s[‹3›]", "index-mismatch"),
    "flat as the from of a chain": Wrong("h[t - 1], 1.0) from Flat()", "h[‹t - 1›], 1.0)", "missing-from"),
    "flat on a simplex": Wrong("Simplex 3 <- Flat()", "‹Simplex 3› <- Normal(0.0, 1.0)", "family-mismatch"),
    "a chain above 0, its first element too": Wrong("(1.0, 2.0)", "(1.0, 2.0) [‹noncentred›]", "step-option"),
    "censored within the bounds": Wrong("=c]", "=c, ‹truncate_lower›=0.0]", "step-option"),
    "a mixture above 0": Wrong("Laplace(m, 2.0)", "‹VonMises›(m, 2.0)", "family-arguments"),
    "a family above 0": Wrong("Real 1 [low=0.0] <- Normal", "‹Real 1 [low=0.0]› <- VonMises", "family-mismatch"),
    "counts from 1": Wrong("Nat [low=1] <- Poisson(r)", "‹Nat› <- Normal(r, 1.0)", "family-mismatch"),
    "counts between real bounds": Wrong("Poisson(r)", "Poisson(‹-1.0›)", "family-arguments"),
    "counts without bounds": Wrong("Nat <- Poisson(r)", "‹Nat› <- Exponential(r)", "family-mismatch"),
    "bounds that are computed": Wrong("a[g[i]]", "a[‹i›]", "index-mismatch"),
    "a latent's bound is a latent": Wrong("[low=2 * r + 1]", "[low=2 * ‹s› + 1]", "used-before-bound"),
    "positive and ascending": Wrong("Normal(1.0, 2.0)", "Normal(1.0, ‹-2.0›)", "family-arguments"),
    "arguments by place": Wrong("[3.0, 10.0]", "‹[3.0, 10.0, 11.0]›", "ascription-mismatch"),
    "the same argument for each place": Wrong("[3.0, 3.0], 1.0)", "[3.0, 3.0], 1.0) [‹noncentred›]", "step-option"),
    "an index is no place": Wrong("b[g], 1.0", "b[‹s›], 1.0", "used-before-bound"),
    "summing to zero": Wrong("Normal(0.0, t)", "Normal(‹1.0›, t)", "step-option"),
    "summing to zero in each group": Wrong("Normal(0.0, t[g])", "Normal(0.0, t[‹i›])", "index-mismatch"),
    "log of y": Wrong("log(y)", "‹lgamma(y)›", "computed-outcome"),
    "logit of y": Wrong("logit(y)[i", "logit(y + ‹w›)[i", "computed-outcome"),
    "exp, expm1, sigmoid and minus": Wrong("(-sigmoid(w))", "(-‹sin(w)›)", "computed-outcome"),
    "an affine map with latents": Wrong("a[g[i]]) / b", "a[‹i›]) / b", "index-mismatch"),
    "a latent slope of either sign, truncated": Wrong("(y * m + 1)", "(y ‹*› y + 1)", "computed-outcome"),
    "log behind a latent shift": Wrong("log(y + m)", "log(2.0 + ‹m›)", "bound-twice"),
    "of the name that no other line binds": Wrong("(c - k * w)", "(w ‹-› k * w)", "computed-outcome"),
    "a falling function, censored": Wrong("[right_censored=c]", "[‹right_cens›=c]", "step-option"),
    "an interval of y": Wrong("log1p(y)", "log1p(y‹,› y)", "syntax-error"),
    "reads of earlier elements are the data": Wrong("y[t - 1]", "y[‹t + 1›]", "future-shift"),
    "of a hidden state": Wrong("[0.4, 0.6]", "‹[0.4, 0.5]›", "family-arguments"),
    "a family of the file": Wrong("Bell(m)", "Bell(m, ‹1.0›)", "family-arguments"),
    "outcomes have the lengths of their type": Wrong("[lengths=n]", "[lengths=‹k›]", "step-option"),
    "latents over the same sets have them": Wrong(
        "sample e", "data k : G -> Nat\n    data y : G * Time [lengths=k]\n    sample ‹e›", "step-option"
    ),
    "chains over the same sets have them": Wrong(
        "Normal(h[g, t] * s, 1.0)", "Normal(h[g, t] * s, 1.0) [lengths=‹5›]", "step-option"
    ),
    "sums run over what is there": Wrong("sum(x[g, t] for t : Time)", "sum(‹x[g]›)", "step-option"),
    "what is computed of it has the lengths": Wrong(
        "G -> Nat\n    data x : G * Time -> Real 1 [lengths=n]",
        "Time -> Nat\n    data x : G * Time -> Real 1 [lengths=‹n›]",
        "axes-mismatch",
    ),
    "flags and weights of each element": Wrong("mask=f]", "mask=‹n›]", "axes-mismatch"),
    "limits of each element": Wrong("[interval=up]", "[interval=up, lengths=‹4›]", "step-option"),
    "ragged indices look up latents": Wrong("[lengths=n]", "[‹weight›=n]", "step-option"),
    "hidden states along them": Wrong(
        "G -> Nat\n    data x : G * Time -> Real 1 [lengths=n]",
        "G\n    data x : G * Time -> Real 1 [lengths=‹n›]",
        "step-option",
    ),
    "a let of data": Wrong(
        "observe z[i : Row] <-", "let u = z * m\n    observe ‹u›[i : Row] <-", "latent-outcome"
    ),
    "a let of lets of data": Wrong("y[i] - level", "y[i] - level * ‹m›", "used-before-bound"),
    "a let by group": Wrong("observe t[k : G]", "observe ‹t›[k : Row]", "data-mismatch"),
    "a let along a series": Wrong("s[t - 1] from 0.0", "s[‹t - 1›]", "missing-from"),
    "a let below a hidden state": Wrong("observe z[i : Row]", "observe ‹c›[i : Row]", "bound-twice"),
    "a let of counts": Wrong("Poisson(r)", "Poisson(r, ‹r›)", "family-arguments"),
    "hidden counts with bounds of data": Wrong("high[g])", "‹high[g] + p›)", "cannot-marginalize"),
    "hidden counts with a prior of their own": Wrong("(0, 25)", "(‹0, -1›)", "family-arguments"),
    "hidden counts from a Binomial": Wrong("Binomial(high[g], p)", "‹Poisson›(p)", "cannot-marginalize"),
    "one hidden count": Wrong("(0, top)", "(0, ‹m›)", "cannot-marginalize"),
    "a state of each row in that of its group": Wrong("2.0 * z[group[i]]", "2.0 * z[‹i›]", "index-mismatch"),
    "what is observed says to which group a row belongs": Wrong("[0.4, 0.6]", "‹[0.4, 0.5]›", "family-arguments"),
    "a chain of each row in the state of its group": Wrong("+ z[group[i]], 1.0", "+ z[‹i›], 1.0", "index-mismatch"),
    "elements at places that data say, and a score": Wrong("c[row[t]]", "c[‹t›]", "index-mismatch"),
    "rows in the state of a chain": Wrong("z[when[i]], 1.0", "z[‹i›], 1.0", "index-mismatch"),
    "counts of rows beside counts of their groups": Wrong("n[group[i]]", "n[‹i›]", "index-mismatch"),
    "one": Wrong("observe y", "observe y : ‹Two›", "unknown-name"),
    "one state for all, and one more": Wrong("m + a + 2.0 * b", "m + a + 2.0 * ‹b[i]›", "index-mismatch"),
    "each name of a group has its own lag": Wrong("(1.0, (0.1, 0.2))", "(1.0, ‹(0.1, 0.2, 0.3)›)", "missing-from"),
    "ragged within limits": Wrong("[lengths=n]", "[lengths=n, at=‹n›]", "step-option"),
    "neighbours": Wrong("k : Row] = x[i, k + 1]", "k : Time] = x[i, ‹k + 1›]", "out-of-range"),
    "a row for each state": Wrong(
        "P[s : State] <- Dirichlet(2.0) [over=State]\n    marginalize z[t : Time] : State <- Categorical(P[z[t - 1]])",
        "P : State <- Dirichlet(2.0) [over=State]\n"
        "    marginalize z[t : Time] : State <- Categorical(‹P[z[t - 1]]›)", "index-mismatch",
    ),
    "eigh": Wrong("eigh(A * exp(m))", "eigh(‹m›)", "function-arguments"),
    "matrix_exp": Wrong("matrix_exp(A * m)", "matrix_exp(‹m›)", "function-arguments"),
    "solve_triangular": Wrong(
        "b : G\n    sample m <- Normal(0.0, 1.0)\n    let x = solve_triangular",
        "b : Row\n    sample m <- Normal(0.0, 1.0)\n    let x = ‹solve_triangular›", "axes-mismatch",
    ),
    "cumulative_trapezoid": Wrong(
        "cumulative_trapezoid(a * m, x)", "‹cumulative_trapezoid(a * m)›", "function-arguments"
    ),
    "bspline": Wrong("4.0], degree=2", "4.0], degree=‹2.5›", "function-arguments"),
    "sines of a Gaussian process": Wrong("m=4, c=1.5", "m=‹0›, c=1.5", "function-arguments"),
    "a square function keeps its set twice": Wrong("cholesky(A * exp(m))", "cholesky(‹m›)", "function-arguments"),
    "a function whose arguments have labels": Wrong("gap(k), 1.0", "gap(k, ‹k›), 1.0", "function-arguments"),
    "solve": Wrong("th, start=0.0", "‹c›, start=0.0", "differential-equation"),
    "one number in fixed steps": Wrong("method=rk4, steps=3", "method=‹rk5›, steps=3", "differential-equation"),
    "an equation for each group, from a latent start": Wrong("r[g], start", "r[‹t›], start", "index-mismatch"),
    "labels in an equation": Wrong("a : Animal] = solve(pools", "a : G] = solve(‹pools›", "function-arguments"),
    "a stiff method": Wrong("rtol=1e-8", "rtol=‹-1.0›", "differential-equation"),
    "families of the library": Wrong("Wald(s, 2.0)", "Wald(s, ‹-2.0›)", "family-arguments"),
    "counts behind a gate": Wrong("p, Poisson(r)", "p, ‹Normal›(r, 1.0)", "family-arguments"),
    "a family of the file, moved by its standard": Wrong("Bell(m, s)", "Bell(m, ‹-1.0›)", "family-arguments"),
    "a family of the file in a mixture": Wrong("scale=2.0", "‹scales›=2.0", "family-arguments"),
    "a family of the file, truncated": Wrong("Bell(m, 2.0)", "‹Bel›(m, 2.0)", "unknown-name"),
    "a family of the file in a chain": Wrong(" from Bell(0.0, 3.0)", " from Bell(0.0, ‹-3.0›)", "family-arguments"),
    "a family that is the same everywhere": Wrong("Even(-1.0, m + 4.0)", "‹Even›(-1.0)", "family-arguments"),
    "a family of vectors": Wrong("[2.0, 0.5]", "[2.0, ‹-0.5›]", "family-arguments"),
    "a function for what it is given": Wrong("twice(w)", "twice(w, ‹k›=1.0)", "function-arguments"),
}  # fmt: skip
