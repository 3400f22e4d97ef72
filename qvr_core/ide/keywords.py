"""The words of the language, each with one line and an example: what hover and completion say about them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Keyword:
    """A word: what it does, and an example of it."""

    word: str
    summary: str
    example: str


KEYWORDS = {
    keyword.word: keyword
    for keyword in (
        Keyword("object", "Declares spaces.", "object Hidden : Real 128"),
        Keyword(
            "morphism",
            "Declares arrows between spaces; the option `role` says of which kind.",
            "morphism cell : Embedded * Hidden -> Hidden [role=kernel, scale=0.1] ~ Normal",
        ),
        Keyword("let", "Names a composite arrow; in a program, a value.", "let backbone = tok_embed >> scan(cell)"),
        Keyword("define", "The same as `let`.", "define backbone = tok_embed >> scan(cell)"),
        Keyword(
            "program",
            "A probabilistic program: steps that draw, observe and compute, as one arrow.",
            "program lm : Token -> Token\n    sample h <- backbone\n    observe y <- lm_head(h)\n    return y",
        ),
        Keyword("export", "Makes an arrow the file's `.morphism`; the first one counts.", "export vanilla_rnn_lm"),
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
        Keyword("sample", "Draws a value: a latent site of the program.", "sample h <- backbone"),
        Keyword("observe", "Conditions on a value that is given at run time.", "observe y : Token <- lm_head(h)"),
        Keyword(
            "marginalize",
            "Sums a discrete site out exactly over the steps of its block.",
            "marginalize z : K <- Categorical(weights)\n    observe y <- Normal(mu[z], 1.0)",
        ),
        Keyword("score", "Adds a number to the log joint density.", "score penalty = -0.5 * sum(w * w)"),
        Keyword("return", "What the program gives back; it must fit the codomain.", "return (h: h2, c: c2)"),
        Keyword("factor", "A table over indices.", "let t = factor i : I, j : J in a[i] * b[j]"),
        Keyword(
            "FinSet",
            "A finite set of n elements, distinct from every other declared one.",
            "object Token : FinSet 256",
        ),
        Keyword(
            "Real",
            "Real vectors; only the width counts, and bounds may be given.",
            "object Rate : Real 1 [low=0.0]",
        ),
        Keyword("Simplex", "Probability vectors of length k.", "object Weights : Simplex 3"),
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


@dataclass(frozen=True, slots=True)
class Combinator:
    """A combinator: how it is called, what it requires, what it gives, and how weights are shared."""

    name: str
    call: str
    summary: str
    rule: str
    weights: str
    parameters: tuple[tuple[str, str], ...] = ()


COMBINATORS = {
    combinator.name: combinator
    for combinator in (
        Combinator(
            "fan",
            "fan(f1, …, fn)",
            "Feeds one input to every branch and puts their results side by side.",
            "f_i : A ~ B_i give A ~ B_1 * … * B_n",
            "shared",
            (("f1", "the first branch"), ("f2, …", "further branches, all with the same domain")),
        ),
        Combinator(
            "scan",
            "scan(cell, emit=all, direction=backward, init=learned)",
            "Folds a cell over a sequence: the final state, or with `emit=all` every state.",
            "cell : A * S ~ S gives Seq A ~ S",
            "shared over time",
            (
                ("cell", "an arrow A * S ~ S"),
                ("emit", "`all` gives every state, Seq A ~ Seq S"),
                ("direction", "`forward` (default) or `backward`: reads the sequence from its end"),
                ("init", "`learned` makes the start state a parameter; zeros otherwise"),
            ),
        ),
        Combinator(
            "stack",
            "stack(f, n)",
            "n fresh copies of an arrow, one after the other.",
            "f : A ~ A gives A ~ A",
            "n separate copies, separately initialised",
            (("f", "an arrow from a space to itself"), ("n", "how many layers, from 1")),
        ),
        Combinator(
            "repeat",
            "repeat(f, n)",
            "The same arrow n times; without n the count comes at run time as `n_steps=`.",
            "f : A ~ A gives A ~ A",
            "shared",
            (("f", "an arrow from a space to itself"), ("n", "how many times")),
        ),
        Combinator(
            "residual",
            "residual(f)",
            "Adds the input to the result: x + f(x).",
            "f : A => A gives A => A",
            "shared",
            (("f", "a deterministic arrow from a space to itself"),),
        ),
        Combinator("identity", "identity(A)", "Gives its input back.", "A => A", "none", (("A", "an object"),)),
        Combinator("last", "last", "The last element of a sequence.", "Seq A => A", "none"),
        Combinator("mean_over_time", "mean_over_time", "The mean over the length axis.", "Seq A => A", "none"),
        Combinator(
            "from_data",
            'from_data("name")',
            "A tensor that is supplied at run time under a name.",
            "a tensor arrow",
            "none",
            (("name", "the data's name, in quotes"),),
        ),
    )
}

POSTFIX = {
    "dagger": ("f.dagger", "The transposed tensor arrow: A -o B gives B -o A."),
    "trace": ("f.trace(X)", "Joins X out of both sides: A * X -o B * X gives A -o B."),
    "marginalize": ("f.marginalize(X)", "Joins X out of the codomain."),
    "freeze": ("f.freeze", "The same arrow; no gradient reaches its parameters."),
}

# Keyword arguments of combinators, with the words that they take.
CALL_WORDS = {
    ("scan", "emit"): ("all",),
    ("scan", "direction"): ("forward", "backward"),
    ("scan", "init"): ("learned", "zeros"),
}
