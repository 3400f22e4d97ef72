; Colours.  Where several patterns meet at a node, the last one counts.
; The lists between `words` and `end` are made by `python -m scripts.tree_sitter`.

(comment) @comment
((comment) @comment.line.documentation (#match? @comment.line.documentation "^#!"))
(string) @string
(integer) @constant.numeric.integer
(float) @constant.numeric.float

[
  "object" "morphism" "let" "define" "export" "program" "composition" "deduction" "def" "family" "transformation" "type" "encoder" "decoder"
  "sample" "observe" "predict" "marginalize" "score" "data" "param" "factor" "in"
  "atoms" "binders" "rule" "lexicon"
] @keyword
["import" "from" "as"] @keyword.control.import
["for" "if"] @keyword.control.repeat
"return" @keyword.control.return

["FinSet" "Seq"] @type.builtin
(space_name) @type.builtin
(plain_kind (name) @type)
(mor_kind . (name) @type)
((plain_kind (name) @type.builtin)
  (#any-of? @type.builtin
; words: kinds of parameters
"FinSet" "Real" "Simplex" "Ordered" "CholeskyFactor" "Covariance" "Correlation" "Seq" "Nat" "Object" "Mor"
; end
  ))

["->" "<-" ">>" "@" "+" "-" "*" "/" "^" "<" "<=" ">" ">=" "==" "!=" "=" "~" "|-" "⊢"] @operator
["(" ")" "[" "]" "{" "}" "#["] @punctuation.bracket
["," ":" "."] @punctuation.delimiter

; what declarations name

(object_decl (names (name) @type))
(morphism_decl (names (name) @function))
(let_decl name: (name) @function)
(program_header name: (name) @function)
(def_decl name: (name) @function)
(def_header name: (name) @function)
(family_header name: (name) @type)
(composition_header name: (name) @type)
(transformation_header name: (name) @function)
(data_type_decl name: (name) @type)
(constructor . (name) @constructor)
(encoder_header name: (name) @function)
(decoder_header name: (name) @function)
(deduction_header name: (name) @type)
(composition_rule name: (name) @function)
(rule_item name: (name) @function)
(data_step (names (name) @variable))
(param_step (names (name) @variable))
(site_name (name) @variable)
(atoms_item (names (name) @constant))
(label (name) @constant)
(import_item name: (name) @variable)
(import_decl name: (name) @namespace)

(parameter name: (name) @variable.parameter)
(def_parameter name: (name) @variable.parameter)
(family_parameter name: (name) @variable.parameter)
(pattern (name) @variable)
(observe_step name: (name) @variable)
(predict_step name: (name) @variable)
(marginalize_step name: (name) @variable)
(score_step name: (name) @variable)
(binder . (name) @variable.parameter)
(factor_index . (name) @variable.parameter)

; what is used

(object_ref (name) @type)
(qualified_object . (name) @namespace (name) @type)
(size (name) @type)
(arrow_ref (name) @function)
(arrow_call . (name) @function)
(draw (name) @function)
(qualified_draw . (name) @namespace (name) @function)
(variable (name) @variable)
(return_step (name) @variable)
(return_item (name) @variable)
(arith_call . (name) @function)
(outcome_call . (name) @function)
(comprehension . (name) @function)
(method_call (word) @function.method)
(attribute_call (word) @function.method)
(attribute (word) @variable.other.member)
(field (word) @variable.other.member)
(return_item (word) @variable.other.member)
(arith_arg . (name) @variable.parameter . "=")
(arrow_arg . (name) @variable.parameter . "=")
(value_arg . (name) @variable.parameter . "=")

((arrow_call . (name) @function.builtin)
  (#any-of? @function.builtin
; words: combinators
"fan" "scan" "stack" "repeat" "residual" "identity" "last" "mean_over_time" "from_data"
; end
  ))
((arith_call . (name) @function.builtin)
  (#any-of? @function.builtin
; words: built-in functions
"abs" "exp" "exp2" "expm1" "log" "log1p" "log2" "log10" "sqrt" "rsqrt" "square" "reciprocal" "sin" "cos" "tan" "asin" "acos" "atan" "sinh" "cosh" "tanh" "asinh" "acosh" "atanh" "erf" "erfc" "erfinv" "sigmoid" "lgamma" "digamma" "ceil" "floor" "logsigmoid" "relu" "relu6" "gelu" "silu" "mish" "softsign" "tanhshrink" "hardsigmoid" "hardswish" "selu" "logical_not" "isnan" "isfinite" "sign" "round" "neg" "logit" "trunc" "frac" "sinc" "deg2rad" "rad2deg" "ndtr" "log_ndtr" "ndtri" "minimum" "maximum" "atan2" "logaddexp" "logical_and" "logical_or" "pow" "add" "sub" "mul" "div" "fmod" "remainder" "copysign" "hypot" "floor_divide" "xlogy" "logsumexp" "argmax" "argmin" "amax" "amin" "nansum" "sum" "mean" "prod" "std" "var" "median" "max" "min" "norm" "any" "all" "softmax" "log_softmax" "softmin" "cumsum" "cumprod" "logcumsumexp" "sort" "argsort" "flip" "normalize" "softplus" "elu" "celu" "leaky_relu" "hardtanh" "hardshrink" "softshrink" "clamp" "layer_norm" "where" "concat" "chunk" "dot" "matmul" "mv" "mm" "bmm" "outer" "transpose" "diag" "diag_embed" "inverse" "cholesky" "det" "logdet" "matrix_exp" "eigh" "solve_triangular" "cumulative_trapezoid" "bspline" "hsgp" "eye" "zeros" "ones" "zeros_like" "ones_like" "full_like" "arange" "linspace" "one_hot" "tril" "triu" "unsqueeze" "squeeze" "reshape" "flatten" "roll" "diff" "size" "numel" "detach" "parse" "compose" "cat" "clip" "expit" "inv_logit" "sd" "true_divide" "horseshoe" "r2d2" "lkj_effects" "elman" "lstm" "rlstm" "mogrifier" "gru" "local_level" "autoregression" "seasonal" "garch" "pre_norm" "post_norm"
; end
  ))
([
  (draw (name) @type.builtin)
  (arith_call . (name) @type.builtin)
  (arrow_ref (name) @type.builtin)
  (arrow_call . (name) @type.builtin)
  (call_value . (name) @type.builtin)
]
  (#any-of? @type.builtin
; words: families
"Normal" "LogNormal" "LogitNormal" "HalfNormal" "TruncatedNormal" "HalfCauchy" "Cauchy" "StudentT" "HalfStudentT" "Laplace" "Gumbel" "Flat" "Horseshoe" "MixtureNormal" "Exponential" "Gamma" "InverseGamma" "Chi2" "Weibull" "Pareto" "Uniform" "Beta" "Kumaraswamy" "ContinuousBernoulli" "VonMises" "Bernoulli" "Binomial" "Geometric" "Poisson" "DiscreteUniform" "BetaBinomial" "NegativeBinomial" "ZeroInflatedPoisson" "ZeroInflatedNegativeBinomial" "Categorical" "Multinomial" "OrderedLogistic" "Dirichlet" "LogisticNormal" "MultivariateNormal" "LowRankMultivariateNormal" "MatrixNormal" "GaussianRandomWalk" "ICAR" "Wishart" "InverseWishart" "LKJCorrelation" "LKJCholesky" "Logistic" "SkewNormal" "ExGaussian" "Wald" "AsymmetricLaplace" "Frechet" "HurdlePoisson" "ZeroInflatedBinomial"
; end
  ))

; options

(option . (word) @attribute)
(limit . (word) @attribute)
(word_value (word) @constant)
((word_value (word) @constant.builtin)
  (#any-of? @constant.builtin
; words: values of options
"mlp" "linear" "default" "xavier" "zeros" "max" "mean" "auto" "normal" "logsumexp" "Sample" "Score" "Marginal" "Pure" "LogProb" "Viterbi" "Boolean" "Counting" "true" "false"
; end
  ))
((option . (word) @attribute "=" (word_value (word) @constant.builtin))
  (#eq? @attribute "role")
  (#any-of? @constant.builtin
; words: roles
"kernel" "embed" "linear" "conv" "pool" "norm" "batch_norm" "dropout" "attention" "position" "latent" "observed" "discretize"
; end
  ))
