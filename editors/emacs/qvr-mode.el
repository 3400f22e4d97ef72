;;; qvr-mode.el --- QVR, a typed language for probabilistic programs -*- lexical-binding: t -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: languages

;;; Commentary:

;; Colours, comments and indentation; with eglot also diagnostics, hovers, completion, rename and fixes:
;;
;;     (add-to-list 'load-path "/path/to/editors/emacs")
;;     (require 'qvr-mode)
;;     (add-hook 'qvr-mode-hook #'eglot-ensure)
;;
;; The lists of words are made by `python -m scripts.editor_word_lists'.

;;; Code:

(defgroup qvr nil
  "QVR, a typed language for probabilistic programs."
  :group 'languages)

(defcustom qvr-server-command '("qvr" "lsp")
  "The command that starts the language server."
  :type '(repeat string))

(defvar qvr-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?# "<" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?_ "w" table)
    (modify-syntax-entry ?' "." table)
    (dolist (sign '(?+ ?- ?* ?/ ?^ ?= ?< ?> ?~ ?@ ?|))
      (modify-syntax-entry sign "." table))
    table)
  "What the characters of a QVR text are.")

(defconst qvr--keywords
  '(
;; words: keywords
"object" "morphism" "let" "define" "program" "export" "composition" "deduction" "data type" "sample"
"observe" "marginalize" "score" "return"
;; end
    ))

(defconst qvr--openers
  '(
;; words: openers
"def" "family" "transformation" "encoder" "decoder" "import" "from" "data" "param" "predict" "atoms"
"binders" "rule" "lexicon"
;; end
    )
  "Words that are keywords only where a line begins with them.")

(defconst qvr--types
  '(
;; words: types
"FinSet" "Real" "Simplex" "Ordered" "CholeskyFactor" "Covariance" "Correlation" "Seq" "Nat" "Object" "Mor"
;; end
    ))

(defconst qvr--families
  '(
;; words: families
"Normal" "LogNormal" "LogitNormal" "HalfNormal" "TruncatedNormal" "HalfCauchy" "Cauchy" "StudentT"
"HalfStudentT" "Laplace" "Gumbel" "Flat" "Horseshoe" "MixtureNormal" "Exponential" "Gamma" "InverseGamma"
"Chi2" "Weibull" "Pareto" "Uniform" "Beta" "Kumaraswamy" "ContinuousBernoulli" "VonMises" "Bernoulli"
"Binomial" "Geometric" "Poisson" "DiscreteUniform" "BetaBinomial" "NegativeBinomial" "ZeroInflatedPoisson"
"ZeroInflatedNegativeBinomial" "Categorical" "Multinomial" "OrderedLogistic" "Dirichlet" "LogisticNormal"
"MultivariateNormal" "LowRankMultivariateNormal" "MatrixNormal" "GaussianRandomWalk" "ICAR" "Wishart"
"InverseWishart" "LKJCorrelation" "LKJCholesky" "Logistic" "SkewNormal" "ExGaussian" "Wald"
"AsymmetricLaplace" "Frechet" "HurdlePoisson" "ZeroInflatedBinomial"
;; end
    ))

(defconst qvr--functions
  '(
;; words: functions
"abs" "exp" "exp2" "expm1" "log" "log1p" "log2" "log10" "sqrt" "rsqrt" "square" "reciprocal" "sin" "cos"
"tan" "asin" "acos" "atan" "sinh" "cosh" "tanh" "asinh" "acosh" "atanh" "erf" "erfc" "erfinv" "sigmoid"
"lgamma" "digamma" "ceil" "floor" "logsigmoid" "relu" "relu6" "gelu" "silu" "mish" "softsign" "tanhshrink"
"hardsigmoid" "hardswish" "selu" "logical_not" "isnan" "isfinite" "sign" "round" "neg" "logit" "trunc" "frac"
"sinc" "deg2rad" "rad2deg" "ndtr" "log_ndtr" "ndtri" "minimum" "maximum" "atan2" "logaddexp" "logical_and"
"logical_or" "pow" "add" "sub" "mul" "div" "fmod" "remainder" "copysign" "hypot" "floor_divide" "xlogy"
"logsumexp" "argmax" "argmin" "amax" "amin" "nansum" "sum" "mean" "prod" "std" "var" "median" "max" "min"
"norm" "any" "all" "softmax" "log_softmax" "softmin" "cumsum" "cumprod" "logcumsumexp" "sort" "argsort" "flip"
"normalize" "softplus" "elu" "celu" "leaky_relu" "hardtanh" "hardshrink" "softshrink" "clamp" "layer_norm"
"where" "concat" "chunk" "dot" "matmul" "mv" "mm" "bmm" "outer" "transpose" "diag" "diag_embed" "inverse"
"cholesky" "det" "logdet" "matrix_exp" "eigh" "solve_triangular" "cumulative_trapezoid" "bspline" "hsgp" "eye"
"zeros" "ones" "zeros_like" "ones_like" "full_like" "arange" "linspace" "one_hot" "tril" "triu" "unsqueeze"
"squeeze" "reshape" "flatten" "roll" "diff" "size" "numel" "detach" "parse" "compose" "cat" "clip" "expit"
"inv_logit" "sd" "true_divide" "horseshoe" "r2d2" "lkj_effects" "elman" "lstm" "rlstm" "mogrifier" "gru"
"local_level" "autoregression" "seasonal" "garch" "pre_norm" "post_norm" "fan" "scan" "stack" "repeat"
"residual" "identity" "last" "mean_over_time" "from_data"
;; end
    ))

(defconst qvr-font-lock-keywords
  `((,(concat "^[ \t]*" (regexp-opt qvr--openers t) "[ \t]+[\"A-Za-z_]") 1 font-lock-keyword-face)
    (,(regexp-opt qvr--keywords 'words) . font-lock-keyword-face)
    (,(regexp-opt qvr--types 'words) . font-lock-type-face)
    (,(regexp-opt qvr--families 'words) . font-lock-constant-face)
    (,(concat (regexp-opt qvr--functions 'words) "[ \t]*(") 1 font-lock-builtin-face)
    ("^\\(?:let\\|define\\|program\\|def\\|family\\|composition\\|transformation\\|encoder\\|decoder\\|deduction\\)[ \t]+\\([A-Za-z_][A-Za-z0-9_]*\\)"
     1 font-lock-function-name-face)
    ("^[ \t]+\\(?:let\\|sample\\|observe\\|predict\\|marginalize\\|score\\|data\\|param\\)[ \t]+\\([A-Za-z_][A-Za-z0-9_]*\\)"
     1 font-lock-variable-name-face))
  "Colours of QVR.")

(defun qvr-indent-line ()
  "Indent the line by four more columns than now, or back to none."
  (interactive)
  (let* ((above (save-excursion (if (zerop (forward-line -1)) (current-indentation) 0)))
         (opens (save-excursion
                  (and (zerop (forward-line -1))
                       (looking-at-p "[ \t]*\\(?:program\\|composition\\|transformation\\|encoder\\|decoder\\|deduction\\|marginalize\\|lexicon\\|family\\)\\b"))))
         (deepest (if opens (+ above 4) above))
         (now (current-indentation)))
    (save-excursion
      (indent-line-to (if (and (eq last-command this-command) (> now 0)) (max 0 (- now 4)) deepest)))
    (when (< (current-column) (current-indentation))
      (back-to-indentation))))

;;;###autoload
(define-derived-mode qvr-mode prog-mode "QVR"
  "Major mode for QVR."
  (setq-local comment-start "# ")
  (setq-local comment-end "")
  (setq-local indent-tabs-mode nil)
  (setq-local tab-width 4)
  (setq-local indent-line-function #'qvr-indent-line)
  (setq-local font-lock-defaults '(qvr-font-lock-keywords)))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.qvr\\'" . qvr-mode))

(defvar eglot-server-programs)
(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs (cons 'qvr-mode (lambda (&rest _) qvr-server-command))))

(provide 'qvr-mode)
;;; qvr-mode.el ends here
