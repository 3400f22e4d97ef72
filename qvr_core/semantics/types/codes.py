"""The codes of the checker's diagnostics, but for those of programs (`program_codes.py`).

`semantics.types.catalogue` joins all of them.  A code's summary is the first line of its page in docs/diagnostics/.
"""

from __future__ import annotations

from qvr_core.semantics.types.diagnostics import Code, Severity

_ERROR, _WARNING, _HINT = Severity.ERROR, Severity.WARNING, Severity.HINT

# ---------------------------------------------------------------- names
UNKNOWN_NAME = Code("unknown-name", _ERROR, "Nobody declares this name.")
WRONG_KIND = Code("wrong-kind", _ERROR, "The name means something else than what is wanted here.")
DUPLICATE_NAME = Code("duplicate-name", _ERROR, "A name is declared twice.")
HIDDEN_BUILTIN = Code("hidden-builtin", _HINT, "A name is also that of a family or a function of the language.")
CYCLE = Code("cycle", _ERROR, "Declarations refer to each other in a circle.")
UNSUPPORTED = Code("unsupported", _ERROR, "A construct that has no meaning.")
UNUSED = Code("unused", _HINT, "Declared, but never used.", unnecessary=True)

# ---------------------------------------------------------------- objects and sizes
EMPTY_SIZE = Code("empty-size", _ERROR, "A size must be at least 1.")
HUGE_SIZE = Code("huge-size", _WARNING, "Nothing of this size fits in memory.")
TOO_LARGE = Code("too-large", _ERROR, "What is declared is larger than anything that could be built.")
INVALID_SPACE = Code("invalid-space", _ERROR, "A space is put together in a way that means nothing.")
UNSOLVED_HOLE = Code("unsolved-hole", _ERROR, "Nothing fixes this size.")
IMPOSSIBLE_SIZE = Code("impossible-size", _ERROR, "The size that would fit is not a natural number.")
WRONG_SIZE = Code("wrong-size", _ERROR, "A declared size contradicts its uses; changing it alone fixes everything.")

# ---------------------------------------------------------------- morphisms
UNKNOWN_ROLE = Code("unknown-role", _ERROR, "There is no such role.")
UNKNOWN_OPTION = Code("unknown-option", _ERROR, "This role has no such option.")
INVALID_OPTION = Code("invalid-option", _ERROR, "An option has a value that it cannot take.")
USELESS_OPTION = Code("useless-option", _ERROR, "An option that can have no effect here.")
DUPLICATE_OPTION = Code("duplicate-option", _ERROR, "An option is given twice.")
ROLE_MISMATCH = Code("role-mismatch", _ERROR, "The role does not go between these spaces.")
UNKNOWN_FAMILY = Code("unknown-family", _ERROR, "There is no such family of distributions.")
FAMILY_MISMATCH = Code("family-mismatch", _ERROR, "The family cannot draw from this space.")
FAMILY_ARGUMENTS = Code("family-arguments", _ERROR, "The family does not take these arguments.")
MISSING_FAMILY = Code("missing-family", _ERROR, "A kernel into a real space needs a family.")
MISSING_MATRIX = Code("missing-matrix", _ERROR, "An observed arrow is not given its matrix.")
UNEXPECTED_INIT = Code("unexpected-init", _ERROR, "This role takes nothing after `~`.")

# ---------------------------------------------------------------- arrow expressions
COMPOSE_MISMATCH = Code("compose-mismatch", _ERROR, "What the left arrow gives does not fit what the right one wants.")
FAN_MISMATCH = Code("fan-mismatch", _ERROR, "The branches of a fan read different inputs.")
SCAN_MISMATCH = Code("scan-mismatch", _ERROR, "The cell of a scan does not give back the state that it reads.")
NOT_ENDOMORPHISM = Code("not-endomorphism", _ERROR, "Only an arrow from a space to itself can be applied repeatedly.")
SEQUENCE_MISMATCH = Code("sequence-mismatch", _ERROR, "A sequence stands where one element is wanted, or the reverse.")
CALL_ARGUMENTS = Code("call-arguments", _ERROR, "A combinator or an arrow is called with the wrong arguments.")
UNKNOWN_COMBINATOR = Code("unknown-combinator", _ERROR, "There is no such combinator.")
BARE_REPLICATED = Code("bare-replicated", _ERROR, "A replicated arrow is named without choosing a copy.")
SORT_MISMATCH = Code("sort-mismatch", _ERROR, "The arrow is not of the sort that is wanted here.")
ALGEBRA_MISMATCH = Code("algebra-mismatch", _ERROR, "Tensor arrows of two algebras are composed.")
UNKNOWN_FIELD = Code("unknown-field", _ERROR, "The codomain has no factor of this name.")
INFERRED_DIRECTION = Code("inferred-direction", _HINT, "The direction of a scan is read off a name.")
SAME_DIRECTION_FAN = Code("same-direction-fan", _HINT, "Two branches of a fan scan in the same direction.")
SHARED_WEIGHTS = Code("shared-weights", _HINT, "Two branches use the same arrow, and so the same parameters.")
SINGLE_LAYER = Code("single-layer", _HINT, "A stack of one layer is the layer itself.")
UNFANNED_REPLICA = Code("unfanned-replica", _HINT, "A replicated arrow is never fanned out.")

# ---------------------------------------------------------------- the file
IMPORT_PATH = Code("import-path", _ERROR, "The path of an import is not one that can be followed.")
IMPORT_MISSING = Code("import-missing", _ERROR, "The imported file is not there, or cannot be read.")
IMPORT_CYCLE = Code("import-cycle", _ERROR, "Files import each other in a circle.")
IMPORT_ERROR = Code("import-error", _ERROR, "The imported file has errors of its own.")
IMPORT_CLASH = Code("import-clash", _ERROR, "An import brings a name that means something else already.")
UNKNOWN_IMPORT = Code("unknown-import", _ERROR, "The imported file has no such name for others.")
DUPLICATE_EXPORT = Code("duplicate-export", _WARNING, "The same arrow is exported twice.")
