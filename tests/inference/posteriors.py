"""Programs with known posteriors, as text."""

BETA_BERNOULLI = """
object Flip : FinSet 12
program coin : Flip -> Flip
    sample p <- Beta(2.0, 3.0)
    observe y : Flip <- Bernoulli(p)
    return p
"""

NORMAL_NORMAL = """
object Row : FinSet 8
program location : Row -> Row
    sample mu <- Normal(1.0, 2.0)
    observe y : Row <- Normal(mu, 1.5)
    return mu
"""

NORMAL_INVERSE_GAMMA = """
object Row : FinSet 10
program both : Row -> Row
    sample v <- InverseGamma(3.0, 2.0)
    sample mu <- Normal(0.5, sqrt(v / 2.0))
    observe y : Row <- Normal(mu, sqrt(v))
    return mu
"""

GAMMA_POISSON = """
object Row : FinSet 9
program counts : Row -> Row
    sample rate <- Gamma(2.0, 0.5)
    observe y : Row <- Poisson(rate)
    return rate
"""

DIRICHLET_CATEGORICAL = """
object Row : FinSet 15
object Kind : FinSet 3
program kinds : Row -> Row
    sample p <- Dirichlet([1.0, 2.0, 3.0])
    observe y : Row <- Categorical(p)
    return p
"""

LINEAR_REGRESSION = """
object Row : FinSet 30
program regression : Row -> Row
    sample beta : Real 3 <- Normal(0.0, 2.0)
    observe y : Row <- Normal(mv(X, beta), 0.7)
    return beta
"""

EIGHT_SCHOOLS = """
object School : FinSet 8
program eight_schools : School -> School
    sample mu <- Normal(0.0, 5.0)
    sample tau <- HalfCauchy(5.0)
    sample raw : School <- Normal(0.0, 1.0)
    let theta = mu + tau * raw
    observe y : School <- Normal(theta, sigma)
    return theta
"""

FUNNEL = """
object Dim : FinSet 9
program funnel : Dim -> Dim
    sample v <- Normal(0.0, 3.0)
    sample z : Dim <- Normal(0.0, exp(0.5 * v))
    return z
"""

STRAIGHT_FUNNEL = """
object Dim : FinSet 9
program funnel : Dim -> Dim
    sample v <- Normal(0.0, 3.0)
    sample raw : Dim <- Normal(0.0, 1.0)
    let z = exp(0.5 * v) * raw
    return z
"""

PRIORS = """
object Pair : FinSet 2
program priors : Pair -> Pair
    sample a <- Normal(1.0, 2.0)
    sample b <- Gamma(3.0, 2.0)
    sample c <- Beta(2.0, 5.0)
    sample d <- Dirichlet([2.0, 3.0, 5.0])
    sample e <- Uniform(-1.0, 3.0)
    sample f : Pair <- LogNormal(0.0, 0.5)
    sample g <- StudentT(7.0, 1.0, 2.0)
    sample h : CholeskyFactor 3 <- LKJCholesky(2.0)
    sample k <- TruncatedNormal(0.0, 1.0, 0.5, 2.0)
    return a
"""

GAUSSIAN_CHAIN = """
object One : FinSet 1
program chain : One -> One
    sample a <- Normal(1.0, 1.0)
    sample b <- Normal(0.5 * a, 0.8)
    sample c <- Normal(b - a, 0.6)
    return c
"""

GROUPED_MIXTURE = """
object Kind : FinSet 3
object Group : FinSet 4
object Row : FinSet 11
program grouped : Row -> Row
    sample w <- Dirichlet([1.0, 1.0, 1.0])
    sample mu : Kind <- Normal(0.0, 3.0)
    marginalize z : Kind <- Categorical(w) [over=Group]
        let m = mu[z]
        observe y : Row <- Normal(m, 0.8) [via=g]
        observe n : Row <- Poisson(exp(0.3 * m)) [via=g]
    return mu
"""

NESTED_MIXTURE = """
object Kind : FinSet 2
object Sub : FinSet 3
object Group : FinSet 3
object Row : FinSet 7
program nested : Row -> Row
    sample mu : Kind <- Normal(0.0, 3.0)
    sample nu : Sub <- Normal(0.0, 1.0)
    marginalize z : Kind <- Categorical([0.3, 0.7]) [over=Group]
        marginalize t : Sub <- Categorical([0.2, 0.5, 0.3]) [over=Group]
            observe y : Row <- Normal(mu[z] + nu[t], 0.8) [via=g]
    return mu
"""

ROW_MIXTURE = """
object Kind : FinSet 2
object Row : FinSet 6
program rows : Row -> Row
    sample mu : Kind <- Normal(0.0, 3.0)
    marginalize z : Row <- Categorical([0.4, 0.6])
        observe y : Row <- Normal(mu[z], 1.0)
    return mu
"""

QUADRATURE = """
object Row : FinSet 6
program integrated : Row -> Row
    sample s <- HalfNormal(1.0)
    marginalize u : Row <- Uniform(-1.0, 2.0)
        observe y : Row <- Normal(u, s)
    return s
"""

KALMAN = """
object X : Real 1
object H : Real 1
object Y : Real 1
morphism cell : X * H -> H [role=kernel, param_source=linear, scale=0.7] ~ Normal
morphism emit : H -> Y [role=kernel, param_source=linear, scale=0.5] ~ Normal
let path = scan(cell, emit=all)
program state_space : X -> Y
    sample h <- path
    observe y <- emit(h)
    return y
"""

HIDDEN_MARKOV = """
object X : Real 1
object State : FinSet 3
object Symbol : FinSet 4
morphism move : X * State -> State [role=kernel] ~ Categorical
morphism emit : State -> Symbol [role=kernel] ~ Categorical
let hmm = scan(move, emit=all) >> emit
program hidden : X -> Symbol
    observe y <- hmm
    return y
"""

SBC_LOCATION = """
object X : Real 1
object Obs : FinSet 5
program location(x) : X -> X
    sample mu <- Normal(0.0, 1.0)
    sample s <- Gamma(3.0, 3.0)
    let m = mu + 0.0 * x
    observe y : Obs <- Normal(m, s)
    return m
"""

SBC_COUNTS = """
object X : Real 1
object Obs : FinSet 4
program counts(x) : X -> X
    sample rate <- Gamma(2.0, 1.0)
    let m = rate + 0.0 * x
    observe y : Obs <- Poisson(m)
    return m
"""

BLOCK_LATENT = """
object Kind : FinSet 2
object Row : FinSet 4
program blocked : Row -> Row
    sample mu : Kind <- Normal(0.0, 1.0)
    marginalize z : Kind <- Categorical([0.3, 0.7])
        sample e <- Normal(mu[z], 0.5)
        observe y : Row <- Normal(2.0 * e, 1.0)
    return mu
"""

BLOCK_ARROW = """
object Kind : FinSet 2
object H : Real 2
object Y : Real 1
object X : Real 1
morphism near : Kind -> H [role=kernel] ~ Normal
morphism out : H -> Y [role=kernel, scale=0.5] ~ Normal
program blocked(x) : X -> Y
    let p = sigmoid(x)
    marginalize z <- Bernoulli(p)
        sample h <- near(z)
        observe y <- out(h)
    return x
"""
