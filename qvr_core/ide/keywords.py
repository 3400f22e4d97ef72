"""The words of the language, each with one line and an example: what hover and completion say about them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Keyword:
    """A word: what it does, and an example of it; `inside` is what it does in a program, where that differs."""

    word: str
    summary: str
    example: str
    inside: str = ""


KEYWORDS = {
    keyword.word: keyword
    for keyword in (
        Keyword(
            "object",
            "Declares what data, latents and arrows range over: sets to index by, or spaces of vectors.",
            "object County, House : FinSet _\nobject Hidden : Real 128",
        ),
        Keyword(
            "morphism",
            "Declares arrows between spaces; the option `role` says of which kind.",
            "morphism cell : Embedded * Hidden -> Hidden [role=kernel, scale=0.1] ~ Normal",
        ),
        Keyword("Bool", "Data that are true or false, and count as 1 and 0.", "data correct : Answer -> Bool"),
        Keyword(
            "One",
            "A set of one element, which no file need declare: that of a program without rows.",
            "program coin : One -> One",
        ),
        Keyword("Nat", "Data that are counts: whole numbers from 0.", "data deaths : Year -> Nat"),
        Keyword(
            "let",
            "In a program, names a value that is computed from others; outside, an arrow that is composed of others.",
            "let mean[i : House] = a + b * floor[i]\nlet backbone = tok_embed >> scan(cell)",
            "Names a value that is computed from others.",
        ),
        Keyword("define", "The same as `let`.", "define backbone = tok_embed >> scan(cell)"),
        Keyword(
            "program",
            "A probabilistic model: its steps draw what is unknown, compute, and observe data.",
            "program measured : House -> House\n    data y : House\n    sample mu <- Normal(0.0, 1.0)\n"
            "    observe y[i : House] <- Normal(mu, 1.0)\n    return mu",
        ),
        Keyword(
            "export",
            "Names the program or arrow that stands for its file: `qvr run` takes it where none is named, and Python "
            "has it as `.morphism`. The first one counts.",
            "export radon",
        ),
        Keyword(
            "import",
            "Brings what another file declares: as it is, behind a prefix, or some names of it.",
            'import "layers.qvr" as l\nfrom "layers.qvr" import block, lstm as cell',
        ),
        Keyword("as", "The name or the prefix under which something is imported.", 'import "layers.qvr" as l'),
        Keyword(
            "composition",
            "Chooses or defines the algebra in which the tensor arrows declared after it compose.",
            "composition log_prob",
        ),
        Keyword(
            "deduction",
            "A weighted deductive system: atoms, rules and a lexicon, run over a chart.",
            "deduction CCG : Sentence -> Category [semiring=LogProb, start=S]\n    atoms S, NP\n"
            "    rule fwd : span(I, K, Fwd(X, Y)), span(K, J, Y) |- span(I, J, X)",
        ),
        Keyword(
            "def",
            "A function of arithmetic, on one line or with a body of `let` lines and a `return`.",
            "def logistic(x, k = 1.0) = 1 / (1 + exp(-k * x))",
        ),
        Keyword(
            "family",
            "A family of distributions, given by its log density.",
            "family Rayleigh(scale : Real 1 [low=0.0]) : Real 1 [low=0.0]\n"
            "    density(x) = log(x) - 2 * log(scale) - 0.5 * (x / scale)^2\n"
            "    draw = scale * sqrt(-2 * log(Uniform(0, 1)))",
        ),
        Keyword(
            "transformation",
            "A map from the weights of one composition to those of another, for `change_base`; `as homomorphism` says "
            "that composition commutes with it.",
            "transformation support : counting => boolean as homomorphism\n    map(x) = x > 0",
        ),
        Keyword(
            "data type",
            "Finite trees: each constructor says what stands below a node.",
            "data type Formula = atom(Name) | not(Formula) | and(Formula, Formula)",
        ),
        Keyword(
            "encoder",
            "Makes numbers of a term, from its leaves up: a case for each constructor, in which a term below stands "
            "for its own numbers.",
            "encoder meaning : Formula -> Code\n    atom(n) = letter(n)\n    and(a, b) = combine(a, b)",
        ),
        Keyword(
            "decoder",
            "Makes a term from numbers, from its root down: a kernel chooses the constructor, and a case says what "
            "stands below it, drawn from kernels or made from numbers that it computes; `depth` is how many levels a "
            "term has at most.",
            "decoder unmeaning : Code -> Formula [depth=8]\n    Formula(h) = choose(h)\n    atom(h) = letter(h)\n"
            "    and(h) = (left(h), right(h))",
        ),
        Keyword("data", "Says what a program reads from outside: over which sets, and of which kind.",
                "data county : House -> County"),
        Keyword("param", "Numbers that a guide learns, from where they start.", "param m : Code [init=0.0]"),
        Keyword(
            "sample",
            "Draws a latent, which a fit estimates; behind `<-` stands its prior, a family or an arrow.",
            "sample mu <- Normal(0.0, 1.0)",
        ),
        Keyword(
            "observe",
            "Says what data are drawn from, given the latents: the likelihood, by which a fit learns of them.",
            "observe y[i : House] <- Normal(mu, sigma)",
        ),
        Keyword(
            "predict",
            "Drawn from the posterior after the fit; only `predict` and `let` may read it.",
            "predict share[s : State] <- Normal(mu[s], 0.01)",
        ),
        Keyword(
            "marginalize",
            "A latent that is summed out, not sampled: the likelihood of its block is averaged over its values, "
            "weighted by their probabilities.",
            "marginalize z[i : Row] : K <- Categorical(weights)\n    observe y[i : Row] <- Normal(mu[z[i]], 1.0)",
        ),
        Keyword("score", "Adds a number to the log joint density.", "score penalty = -0.5 * sum(w * w)"),
        Keyword(
            "return",
            "Names what a program gives: one value, or several in parentheses.",
            "return (mu, tau)",
        ),
        Keyword("factor", "A table over indices.", "let t = factor i : I, j : J in a[i] * b[j]"),
        Keyword("for", "Runs over the elements of a set, in the call of a reduction.",
                "let eta[i : Row] = sum(beta[f] * x[i, f] for f : Feature)"),
        Keyword("if", "Leaves out the elements for which the condition does not hold.",
                "let n[s : State] = sum(w[i] for i : Row if state[i] == s)"),
        Keyword("from", "The first elements of a step that reads earlier ones: before them there is nothing to read.",
                "sample h[t : Time] <- Normal(phi * h[t - 1], s) from Normal(0.0, s0)"),
        Keyword(
            "FinSet",
            "A finite set of n elements, distinct from every other declared one. `FinSet _` takes its size and its "
            "elements from the data.",
            "object County : FinSet _\nobject Token : FinSet 256",
        ),
        Keyword(
            "Real",
            "Vectors of real numbers: `Real 128` of 128, `Real 1` one number. Bounds may be given: `[low=0.0]`.",
            "object Rate : Real 1 [low=0.0]",
        ),
        Keyword("Simplex", "Probability vectors of length k.", "object Weights : Simplex 3"),
        Keyword("Ordered", "Vectors of k numbers in ascending order, such as cutpoints.", "object Cuts : Ordered 3"),
        Keyword(
            "CholeskyFactor",
            "Lower-triangular d × d factors with a positive diagonal.",
            "object L : CholeskyFactor 4",
        ),
        Keyword("Covariance", "Positive-definite d × d matrices.", "object Sigma : Covariance 4"),
        Keyword("Correlation", "Correlation matrices of size d × d.", "object R : Correlation 4"),
        Keyword(
            "Seq",
            "Sequences of a space along a length axis; rarely written, because arrows lift.",
            "object S : Seq Token",
        ),
        Keyword("atoms", "Lists the constants of a deduction.", "atoms S, NP, VP"),
        Keyword("binders", "Lists constructors that bind their first argument.", "binders Lam"),
        Keyword("rule", "An inference rule: premises, then what follows from them.", "rule app : f(X), g(X) |- h(X)"),
        Keyword("lexicon", "The axioms of words: category and logical form.", 'lexicon\n    "dogs" : NP = dogs'),
    )
}  # fmt: skip
