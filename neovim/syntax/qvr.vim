" Colours until the language server's semantic tokens arrive.
if exists("b:current_syntax")
  finish
endif

syntax case match
syntax match qvrOperator ">>\|<-\|->\|=>\||-\|⊢\|[@~]"
syntax match qvrNumber "\<\d\+\%(\.\d*\)\?\%([eE][+-]\?\d\+\)\?\>\|\.\d\+"
syntax match qvrCall "\.\@1<!\<\h\w*\ze\s*(" contains=qvrBuiltin
syntax match qvrArgument "\%([(,]\s*\)\@20<=\h\w*\ze\s*=[^=]" contains=qvrCallOption
syntax match qvrArgumentValue "\%(=\s*\)\@20<=\h\w*\ze\s*[,)]" contains=qvrCallValue
syntax match qvrChoice "\%(^composition\s\+\)\@20<=\h\w*" contains=qvrComposition
syntax keyword qvrCombinator factor in
" Names, but behind the end of a value.
syntax match qvrCombinator "\%([[:alnum:]_)\]}\"]\s\+\)\@20<=\%(for\|if\|from\)\ze\s\+[[:alnum:]_(.-]"
syntax match qvrStep "^\s\+from\ze\s\+[[:alnum:]_(.-]"

" The words of the language (python -m scripts.vocabulary).
syntax match qvrStep "^\s*\%(sample\|observe\|marginalize\|let\|score\|return\)\>"
syntax match qvrStatement "^\%(object\|morphism\|let\|define\|program\|export\|composition\|deduction\|data type\)\>"
syntax match qvrStep "^\s*\%(data\|param\|predict\)\ze\s\+\h"
syntax match qvrStatement "^\%(def\|family\|transformation\|encoder\|decoder\|import\|from\)\ze\s\+\h"
syntax match qvrStep "^\s\+\%(atoms\|binders\|rule\|lexicon\)\>"
syntax match qvrMethod "\.\@1<=\%(dagger\|freeze\|trace\|marginalize\|change_base\|curry_left\|curry_right\)\>"
syntax match qvrOperation "^\s\+\%(tensor_op\|join\|unit\|zero\|negation\)\>"
syntax keyword qvrSpace FinSet Real Simplex Ordered CholeskyFactor Covariance Correlation Seq Nat Object Mor
syntax keyword qvrCombinator fan scan stack repeat residual identity last mean_over_time from_data
syntax keyword qvrFamily Normal LogNormal LogitNormal HalfNormal TruncatedNormal HalfCauchy Cauchy StudentT
syntax keyword qvrFamily HalfStudentT Laplace Gumbel Flat Horseshoe MixtureNormal Exponential Gamma InverseGamma
syntax keyword qvrFamily Chi2 Weibull Pareto Uniform Beta Kumaraswamy ContinuousBernoulli VonMises Bernoulli
syntax keyword qvrFamily Binomial Geometric Poisson DiscreteUniform BetaBinomial NegativeBinomial
syntax keyword qvrFamily ZeroInflatedPoisson ZeroInflatedNegativeBinomial Categorical Multinomial OrderedLogistic
syntax keyword qvrFamily Dirichlet LogisticNormal MultivariateNormal LowRankMultivariateNormal MatrixNormal
syntax keyword qvrFamily GaussianRandomWalk ICAR Wishart InverseWishart LKJCorrelation LKJCholesky Logistic
syntax keyword qvrFamily SkewNormal ExGaussian Wald AsymmetricLaplace Frechet HurdlePoisson ZeroInflatedBinomial
syntax keyword qvrBuiltin contained abs exp exp2 expm1 log log1p log2 log10 sqrt rsqrt square reciprocal sin cos tan asin acos
syntax keyword qvrBuiltin contained atan sinh cosh tanh asinh acosh atanh erf erfc erfinv sigmoid lgamma digamma ceil floor
syntax keyword qvrBuiltin contained logsigmoid relu relu6 gelu silu mish softsign tanhshrink hardsigmoid hardswish selu
syntax keyword qvrBuiltin contained logical_not isnan isfinite sign round neg logit trunc frac sinc deg2rad rad2deg ndtr
syntax keyword qvrBuiltin contained log_ndtr ndtri minimum maximum atan2 logaddexp logical_and logical_or pow add sub mul div
syntax keyword qvrBuiltin contained fmod remainder copysign hypot floor_divide xlogy logsumexp argmax argmin amax amin nansum
syntax keyword qvrBuiltin contained sum mean prod std var median max min norm any all softmax log_softmax softmin cumsum
syntax keyword qvrBuiltin contained cumprod logcumsumexp sort argsort flip normalize softplus elu celu leaky_relu hardtanh
syntax keyword qvrBuiltin contained hardshrink softshrink clamp layer_norm where concat chunk dot matmul mv mm bmm outer
syntax keyword qvrBuiltin contained transpose diag diag_embed inverse cholesky det logdet matrix_exp eigh solve_triangular
syntax keyword qvrBuiltin contained cumulative_trapezoid bspline hsgp eye zeros ones zeros_like ones_like full_like arange
syntax keyword qvrBuiltin contained linspace one_hot tril triu unsqueeze squeeze reshape flatten roll diff size numel detach
syntax keyword qvrBuiltin contained parse compose cat clip expit inv_logit sd true_divide horseshoe r2d2 lkj_effects elman
syntax keyword qvrBuiltin contained lstm rlstm mogrifier gru local_level autoregression seasonal garch pre_norm post_norm
syntax keyword qvrRole contained kernel embed linear conv pool norm batch_norm dropout attention position latent observed
syntax keyword qvrRole contained discretize
syntax keyword qvrOption contained role scale param_source hidden_dim prior tie bias replicate rank init kernel stride
syntax keyword qvrOption contained padding reduce momentum p once heads causal dropout max_length bins total components low
syntax keyword qvrOption contained high over iid_over via mask weight at noncentred sum_to_zero lengths auxiliary
syntax keyword qvrOption contained right_censored left_censored interval truncate_lower truncate_upper missing reduction
syntax keyword qvrOption contained effects keep guide rest semiring start normalised depth tolerance max_iterations
syntax keyword qvrCallOption contained emit direction init
syntax keyword qvrCallValue contained all last final forward backward learned zeros
syntax keyword qvrOptionValue contained mlp linear default xavier zeros max mean auto normal logsumexp Sample Score Marginal Pure
syntax keyword qvrOptionValue contained LogProb Viterbi Boolean Counting true false
syntax keyword qvrAttributeKey contained learnable bounded init weight
syntax keyword qvrComposition contained product_fuzzy boolean lukasiewicz godel tropical max_plus log_prob real probability
syntax keyword qvrComposition contained counting markov
" End of them.

" What stands in a bracket behind a type or a draw.  A line that starts in the first column ends it in any case.
syntax region qvrOptions matchgroup=qvrBracket start="\[" end="\]" end="^\ze\h" contains=qvrKey,qvrValue,@qvrInside
syntax match qvrKey "\<\h\w*\ze\s*=[^=]" contained contains=qvrOption
syntax match qvrValue "\%([=[,]\s*\)\@20<=\h\w*\ze\s*\%([],]\|$\)" contained contains=qvrRole,qvrOptionValue
syntax cluster qvrInside contains=qvrOptions,qvrCall,qvrArgument,qvrSpace,qvrCombinator,qvrFamily,qvrNumber,qvrString,qvrOperator,qvrComment

syntax region qvrString start=+"+ skip=+\\.+ end=+"+ end=+$+ contains=qvrEscape
syntax match qvrEscape "\\." contained
syntax keyword qvrTodo TODO FIXME NOTE contained
syntax match qvrComment "#\%(\[\)\@!.*$" contains=qvrTodo
syntax match qvrComment "^\s*#.*$" contains=qvrTodo
syntax match qvrDoc "^\s*#!.*$"
syntax region qvrAttribute matchgroup=qvrBracket start="\S\s*\zs#\[" end="\]" oneline contains=qvrAttributeKey,qvrNumber,qvrString

highlight default link qvrComment Comment
highlight default link qvrDoc SpecialComment
highlight default link qvrTodo Todo
highlight default link qvrStatement Keyword
highlight default link qvrStep Statement
highlight default link qvrSpace Type
highlight default link qvrCombinator Special
highlight default link qvrMethod Special
highlight default link qvrFamily Structure
highlight default link qvrBuiltin Function
highlight default link qvrRole Constant
highlight default link qvrOption Identifier
highlight default link qvrCallOption Identifier
highlight default link qvrOptionValue Constant
highlight default link qvrCallValue Constant
highlight default link qvrAttributeKey PreProc
highlight default link qvrComposition Constant
highlight default link qvrOperation Function
highlight default link qvrBracket Delimiter
highlight default link qvrNumber Number
highlight default link qvrString String
highlight default link qvrEscape SpecialChar
highlight default link qvrOperator Operator

let b:current_syntax = "qvr"
