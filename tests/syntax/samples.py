"""Texts that the syntax tests share: whole programs of the dialect, and pieces that edits are made of."""

RNN = """\
#! A recurrent language model.
object Token : FinSet 256
object Embedded : Real 64
object Hidden : Real 128

# Embeds tokens.
morphism tok_embed : Token -> Embedded [role=embed]
morphism cell : Embedded * Hidden -> Hidden [role=kernel, scale=0.1] ~ Normal
morphism lm_head : Hidden -> Token [role=kernel] ~ Categorical

let backbone = tok_embed >> scan(cell)

program vanilla_rnn_lm : Token -> Token
    sample h <- backbone

    # The next token.
    observe next_token : Token <- lm_head(h)
    return next_token

export vanilla_rnn_lm
"""

STRIPPED = """\
object Token : FinSet 256
object Hidden : Real 128
morphism cell : Token * Hidden -> Hidden [role=kernel, scale=0.1] ~ Normal
let backbone = scan(cell)
program p : Token -> Token
sample h <- backbone
let x = f(h) +
  2
observe next_token : Token <- lm_head(h)
return next_token
export p
"""

LSTM = """\
program lstm_cell(x, h, c) : Embedded * Hidden * Memory -> Hidden * Memory
    let (i, j, f, o) = chunk(gates(x, h), 4)
    let c2 = sigmoid(f) * c + sigmoid(i) * tanh(j)
    let h2 = sigmoid(o) * tanh(c2)
    return (h: h2, c: c2)
"""

BAYES = """\
object Person, Item : FinSet 10
object Row : FinSet _
object Label : {yes, no, "maybe"}
object Bounded : Real 3 [low=0.0, high=1.0]
object Mixed : (Person + Item) * Real d d * Simplex 4

program regression(alpha : Real, n : Nat, f : Mor[Person, Item], x) : Row -> Real 1 [effects=[Sample, Score]]
    sample mu : Person <- Normal(0.0, scale=-alpha)
    sample (v, w) <- f(x)
    let centred = mu[person, 0] - mean(mu) / 2 ^ -1
    let table = factor i : Person, j : Item in mu[i] * v[j]
    let cases = factor k : FinSet 2 in { 0 -> 1.5, 1 -> .5 }
    let g = y -> y * 2.
    marginalize z : K <- Categorical(probs) [over=Person, reduction=logsumexp]
        observe y : Row <- Normal(centred[z], 1e-3) [via=person,
            weight=w]
        marginalize q : I <- Bernoulli(0.5)
            observe yy <- Normal(q, 1)
    score s = -sum(abs(mu) < 3)
    return (mu: mu, s)
"""

TENSORS = """\
composition real
morphism w : Person -> Item [role=latent, scale=0.5] ~ Normal(0.0, 1.0)
morphism data : Item -> Item [role=observed] ~ from_data("edges")
let both = (w >> data).dagger @ w.trace(Person) >> repeat(data, 3)
define out = fan(
    w,
    data,
) >> residual(out) >> last
composition mine as algebra
    tensor_op(a, b) = a * b
    join(t) = sum(t)
    unit = 1.0
transformation positive : real => boolean as map  # what there is
    map(x) = x > 0
let there = w.change_base(positive).curry_left >>
    data.change_base(log).curry_right
data type Formula = atom(Item) | truth | not(Formula)
    | and(Formula, Formula) | weighed(Real 2, {a, b}, Formula)  # trees
encoder meaning : Formula -> Real 3  # from the leaves up
    truth = zeros(3)
    not(a) = -a
decoder unmeaning : Real 3 -> Formula [depth=4]  # from the root down
    Formula(h) = choose(h)
    atom(h) = item(tanh(h))
    and(h) = (left(h), 0.5 * h)
"""

DEDUCTION = """\
deduction ccg : Sentence -> Category [semiring=LogProb, start=S, depth=3]
    atoms S, NP, N
    binders Lam
    rule forward : span(I, K, Fwd(X, Y)), span(K, J, Y) |- span(I, J, X) #[learnable]
    rule axiom : |- NP
    lexicon
        "the \\"dog\\"" : NP = dog #[learnable, init=0.5]
        "sleeps" : Bwd(S, NP) = Lam(x, sleep(x))  # verb
    lexicon from "words.tsv" [column=1]
"""

INDEXED = """\
object County, House, Time : FinSet _
object Firm : {"General Motors", us_steel, "a \\"b\\" #c"}
def logistic(x, k = 1.0) = 1 / (1 + exp(-k * x))
def soft(x, y)
    let top = maximum(x, y)
    return top
family Skew(loc, scale : Real 1 [low=0.0], shape = 0.0) : Real 1
    density(x) = -0.5 * ((x - loc) / scale)^2
    draw = loc + scale * Normal(0, 1)
program effects(G : Object, sd : Real = 1.0) : G -> G
    sample a : G <- Normal(0.0, sd)
    return a
program radon : House -> House [keep=[eta, rho]]
    data county : House -> County
    data floor, log_radon : House
    data x : House * Firm -> Real 1 [low=0.0] [column="a b"]
    data n : Nat
    sample u[c : County, f : Firm] <- Normal(0.0, tau[f]) [noncentred, prior=Normal(0.0, scale=1.0)]
    let eta[i : House] = u[county[i]] + sum(beta[f] * x[i, f] for f : Firm if f != us_steel)
    let (l, b)[t : Time] = (a * l[t - 1] + b[t - 1], b[t - 1])
        from (l0, b0)
    sample h[t : Time] <- Normal(phi * h[t - 1], s)
        from Normal(0.0, s) [noncentred]
    marginalize z[t : Time] : Firm <- Categorical(p[z[t - 1]]) [weight=w] from Categorical(p0)
        observe y[t : Time] <- Normal(mu[z[t]], s) [missing=impute, right_censored=c]
    observe log_radon[i : House] <- Normal(
        eta[i],
        sigma,
    )
    predict f[t : Time] : Firm <- Categorical(sum(p[i, j] for i : Firm, j : Firm), over=(Firm, Time))
    return eta
"""

SAMPLES = {
    "indexed": INDEXED,
    "rnn": RNN,
    "stripped": STRIPPED,
    "lstm": LSTM,
    "bayes": BAYES.replace(', "maybe"', ", maybe"),
    "tensors": TENSORS,
    "deduction": DEDUCTION,
}

PIECES = (
    *("object A : FinSet 3", "    ", "\t", "  ", "\n", "\r\n", "\r", "#", "#! doc", "# note", "#[", "(", ")", "[", "]"),
    *("return h", "sample h <- f", "let x = 3", "let f = a >> b", "program p : A -> B", "marginalize z <- f(x)"),
    *("lexicon", '"w" : N = w', "rule r : A |- B", "deduction d : A -> B", "composition real", "export p"),
    *(">>", "->", "=", ",", ":", '"', "\\", "\x00", "\ufeff", "é", "𝛼", "\ud800", "\u2028", "\x0c", "\u00a0", "x", "1"),
    *("data x : A -> B", "predict f[t : T] <- N(f[t - 1]) from N(0)", "\n        from v0", "def f(x) = x", "def f(x)"),
    *("family F(a) : Real 1", "sum(x for i : I if c)", "[i : I]", "from", "for", "if", "(a, b)", '{"a b", c}'),
    *("\n    sample h <- f\n    return h\n", "\nsample h <- f\nreturn h\n", "", "tensor_op(a, b) = a", "{", "}"),
)
