"""The codes of diagnostics of programs, compositions and deductions.

A code's summary is the first line of its page in docs/diagnostics/.
"""

from __future__ import annotations

from qvr_core.semantics.types.diagnostics import Code, Severity

_ERROR, _WARNING, _HINT = Severity.ERROR, Severity.WARNING, Severity.HINT

# ---------------------------------------------------------------- names in a program
UNBOUND_ARGUMENT = Code("unbound-argument", _ERROR, "The argument of an arrow is not bound in the program.")
USED_BEFORE_BOUND = Code("used-before-bound", _ERROR, "A name is used above the step that binds it.")
BOUND_TWICE = Code("bound-twice", _ERROR, "A name is bound twice in one program.")
HIDDEN_GLOBAL = Code("hidden-global", _HINT, "A name of the program hides a declaration of the file.")
DATA_DECLARATION = Code("data-declaration", _ERROR, "A `data` line says what data cannot be.")
PARAM_STEP = Code("param-step", _ERROR, "A `param` line stands outside of guides, or says what a guide cannot learn.")
DATA_MISMATCH = Code("data-mismatch", _ERROR, "Two places say different things of the same data.")
POSSIBLE_TYPO = Code("possible-typo", _WARNING, "A name looks like another one, misspelt.")
PREDICTED_VALUE = Code("predicted-value", _ERROR, "What is drawn after the fit stands where the fit needs a value.")
GUIDE_MISMATCH = Code("guide-mismatch", _ERROR, "A guide does not draw the latents of its program.")
UNUSED_BINDING = Code("unused-binding", _HINT, "A let or an input that nothing uses.", unnecessary=True)
UNUSED_PLATE = Code("unused-plate", _HINT, "A plate of values is never indexed.")
UNOBSERVED_SITE = Code("unobserved-site", _HINT, "Nothing observed depends on this draw.")

# ---------------------------------------------------------------- draws and ascriptions
ANONYMOUS_DRAW = Code("anonymous-draw", _ERROR, "A draw names an arrow or a family, not an expression.")
ARGUMENT_MISMATCH = Code("argument-mismatch", _ERROR, "The arguments do not fit the arrow's domain.")
ARGUMENT_SUPPORT = Code("argument-support", _WARNING, "An argument may have values that are not allowed there.")
SWAPPED_FACTORS = Code(
    "swapped-factors", _WARNING, "Values stand in another order than the factors that they are declared as."
)
ASCRIPTION_MISMATCH = Code("ascription-mismatch", _ERROR, "The type after `:` is not what the draw gives.")
PLATE_MISMATCH = Code("plate-mismatch", _ERROR, "An argument runs over another plate than the draw.")
PATTERN_MISMATCH = Code("pattern-mismatch", _ERROR, "A pattern has another number of names than the value has parts.")
NO_DENSITY = Code("no-density", _ERROR, "What has no density cannot be observed.")
UNSIZED_DRAW = Code("unsized-draw", _ERROR, "Nothing says how long the drawn vector is.")
NO_DRAWS = Code("no-draws", _HINT, "The prior is improper: it has no draws.")
COMPUTED_OUTCOME = Code("computed-outcome", _ERROR, "What is observed is no invertible function of one name.")
LATENT_OUTCOME = Code("latent-outcome", _ERROR, "A let that depends on a latent is observed.")
OBSERVED_AGAIN = Code("observed-again", _WARNING, "A column of data is observed itself and through a let.")
UNNORMALISED = Code("unnormalised", _WARNING, "What a density lacks to be normalised depends on a latent.")
STEP_OPTION = Code("step-option", _ERROR, "This kind of step has no such option, or it cannot have this value.")
INDEX_NOT_INTEGER = Code("index-not-integer", _WARNING, "A real value is used as an index.")
MISSING_VIA = Code("missing-via", _ERROR, "An observe in a grouped marginalize does not say its rows' groups.")
CANNOT_MARGINALIZE = Code("cannot-marginalize", _ERROR, "This family can neither be summed out nor integrated.")

# ---------------------------------------------------------------- arithmetic
AXES_MISMATCH = Code("axes-mismatch", _ERROR, "Two values run over different sets, and nothing relates them.")
DUPLICATE_AXIS = Code("duplicate-axis", _ERROR, "A set is an axis twice, and an operation would have to guess which.")
ARITHMETIC_MISMATCH = Code("arithmetic-mismatch", _ERROR, "The shapes of two values do not go together.")
FUNCTION_ARGUMENTS = Code("function-arguments", _ERROR, "A function is called with the wrong arguments.")
DIFFERENTIAL_EQUATION = Code(
    "differential-equation", _ERROR, "A call of `solve` does not say what the differential equation is."
)
SAMPLED_IN_LET = Code("sampled-in-let", _ERROR, "Arithmetic calls a sampled arrow or a family.")
NOT_A_VALUE = Code("not-a-value", _ERROR, "The name stands for something that is no value.")
FUTURE_SHIFT = Code("future-shift", _ERROR, "An element reads one that comes later.")
OUT_OF_RANGE = Code("out-of-range", _ERROR, "A neighbour is read that is not there at an end of the set.")
MISSING_FROM = Code("missing-from", _ERROR, "A step reads earlier elements, and nothing says what the first ones are.")
SHIFT_ACROSS_GROUPS = Code(
    "shift-across-groups", _WARNING, "An earlier row is read, and the rows of several groups stand in one table."
)
UNKNOWN_LABEL = Code("unknown-label", _ERROR, "A label is no element of the set that is meant.")
INDEX_MISMATCH = Code("index-mismatch", _ERROR, "An index does not fit what it indexes.")
UNKNOWN_VALUE_FIELD = Code("unknown-value-field", _ERROR, "The value has no factor or method of this name.")
FACTOR_CASES = Code("factor-cases", _ERROR, "A factor's table does not have one case per value of its index.")

# ---------------------------------------------------------------- the program as a whole
MISSING_RETURN = Code("missing-return", _ERROR, "A program does not say what it returns.")
WRONG_RETURN = Code("wrong-return", _ERROR, "The returned value does not fit the codomain.")
RETURN_MISMATCH = Code("return-mismatch", _HINT, "The returned value is shared by all rows and does not fit.")
PROGRAM_INPUTS = Code("program-inputs", _ERROR, "The inputs do not match the factors of the domain.")
EFFECT_MISMATCH = Code("effect-mismatch", _ERROR, "The body has an effect that the program does not declare.")
UNUSED_EFFECT = Code("unused-effect", _HINT, "A declared effect that the body does not have.")
PROGRAM_OPTION = Code("program-option", _ERROR, "Programs have no such option, or it cannot have this value.")
TOO_FEW_POSITIONS = Code("too-few-positions", _ERROR, "A sequence may be longer than its learned positions.")
UNCOUNTED_STEP = Code(
    "uncounted-step", _ERROR, "A program's `score` or `observe` would not count where it is used as an arrow."
)
WEIGHT_PRIOR = Code("weight-prior", _ERROR, "Weights with a prior stand where they cannot be drawn.")
TEMPLATE_ARGUMENTS = Code("template-arguments", _ERROR, "A template is called with the wrong typed arguments.")

FAMILY_FORMULA = Code("family-formula", _ERROR, "A declared family says wrongly what it is, or leaves it out.")

# ---------------------------------------------------------------- compositions and deductions
UNKNOWN_COMPOSITION = Code("unknown-composition", _ERROR, "There is no such composition.")
COMPOSITION_RULE = Code("composition-rule", _ERROR, "A composition defines an operation wrongly, or lacks one.")
TRANSFORMATION_RULE = Code(
    "transformation-rule", _ERROR, "A transformation says wrongly what it maps, or does not start at these weights."
)
LAW_VIOLATED = Code("law-violated", _ERROR, "A law that a composition or a transformation claims does not hold.")
SATURATED_JOIN = Code(
    "saturated-join", _WARNING, "Weights start where a join of them is at its bound, and no gradient reaches them."
)
DATA_TYPE = Code("data-type", _ERROR, "A data type says wrongly what its terms are made of.")
ENCODER_CASE = Code("encoder-case", _ERROR, "A case of an encoder is missing, or does not fit its constructor.")
DECODER_CASE = Code("decoder-case", _ERROR, "A case of a decoder is missing, or does not fit its constructor.")
UNCHECKED_LAW = Code("unchecked-law", _HINT, "Whether the laws that are claimed hold could not be tried.")
DEDUCTION_OPTION = Code("deduction-option", _ERROR, "Deductions have no such option, or it cannot have this value.")
DUPLICATE_RULE = Code("duplicate-rule", _ERROR, "A rule is named twice in one deduction.")
UNBOUND_VARIABLE = Code("unbound-variable", _ERROR, "A variable of the conclusion occurs in no premise.")
ITEM_ARITY = Code("item-arity", _ERROR, "An item has another number of slots than elsewhere.")
LEXICON_TERM = Code("lexicon-term", _ERROR, "A lexicon entry uses a name that is neither an atom nor bound.")
RULE_ATTRIBUTE = Code("rule-attribute", _ERROR, "Rules and entries have no such attribute, or not with this value.")
UNKNOWN_START = Code("unknown-start", _ERROR, "The start symbol is not an atom of the deduction.")
DUPLICATE_ATOM = Code("duplicate-atom", _HINT, "An atom is listed twice.", unnecessary=True)
