" Colours until the language server's semantic tokens arrive.
if exists("b:current_syntax")
  finish
endif

syntax case match
syntax match qvrComment "#\%(\[\)\@!.*$" contains=qvrTodo
syntax match qvrComment "^\s*#.*$" contains=qvrTodo
syntax match qvrDoc "^\s*#!.*$"
syntax keyword qvrTodo TODO FIXME NOTE contained
syntax match qvrStatement "^\%(object\|morphism\|let\|define\|program\|export\|composition\|deduction\)\>"
syntax match qvrStep "^\s\+\%(sample\|observe\|marginalize\|let\|score\|return\|atoms\|binders\|rule\|lexicon\)\>"
syntax keyword qvrSpace FinSet Real Simplex CholeskyFactor Covariance Correlation Seq Nat Object Mor
syntax keyword qvrCombinator fan scan stack repeat residual identity from_data last mean_over_time factor in as
syntax keyword qvrFamily Normal LogNormal LogitNormal HalfNormal HalfCauchy Cauchy StudentT HalfStudentT Laplace Gumbel
syntax keyword qvrFamily Uniform Exponential Gamma InverseGamma Beta Kumaraswamy Chi2 Weibull Pareto VonMises
syntax keyword qvrFamily TruncatedNormal Bernoulli ContinuousBernoulli Binomial Categorical Geometric Poisson
syntax keyword qvrFamily NegativeBinomial ZeroInflatedPoisson OrderedLogistic Dirichlet LogisticNormal Wishart
syntax keyword qvrFamily MultivariateNormal LowRankMultivariateNormal MatrixNormal InverseWishart LKJCholesky Horseshoe
syntax keyword qvrFamily MixtureNormal
syntax match qvrOption "\<[a-z_][A-Za-z0-9_]*\ze\s*=[^=]"
syntax match qvrNumber "\<\d\+\%(\.\d*\)\?\%([eE][+-]\?\d\+\)\?\>\|\.\d\+"
syntax region qvrString start=+"+ skip=+\\.+ end=+"+ end=+$+ contains=qvrEscape
syntax match qvrEscape "\\." contained
syntax match qvrOperator ">>\|<-\|->\|=>\||-\|⊢\|[@~]"

highlight default link qvrComment Comment
highlight default link qvrDoc SpecialComment
highlight default link qvrTodo Todo
highlight default link qvrStatement Keyword
highlight default link qvrStep Statement
highlight default link qvrSpace Type
highlight default link qvrCombinator Function
highlight default link qvrFamily Structure
highlight default link qvrOption Identifier
highlight default link qvrNumber Number
highlight default link qvrString String
highlight default link qvrEscape SpecialChar
highlight default link qvrOperator Operator

let b:current_syntax = "qvr"
