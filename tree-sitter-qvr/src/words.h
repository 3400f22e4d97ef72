/* The words of the language that layout depends on.  Made by `python -m scripts.tree_sitter`. */
enum { STATEMENT = 1, STEP = 2, ITEM = 4, UNRESERVED = 8, NEVER_CHAINED = 16, MISPLACED = 32 };
enum { NOTHING_SPECIAL, A_NAME_AND_LIST, A_NAME_AND_DRAW, A_NAME_AND_PARENTHESIS, A_STRING, A_STRING_AND_IMPORT };
enum { NO_STATEMENT, STATEMENT_ONLY, PROGRAM, DEDUCTION, COMPOSITION, FAMILY, UNKNOWN };

/* A keyword: where it may stand, the kind of statement that it opens, what makes it special. */
typedef struct {
  const char *text;
  uint8_t is, opens, follows;
} Word;

static const Word WORDS[] = {
  {"object", STATEMENT | NEVER_CHAINED, STATEMENT_ONLY, NOTHING_SPECIAL},
  {"morphism", STATEMENT | NEVER_CHAINED, STATEMENT_ONLY, NOTHING_SPECIAL},
  {"let", STATEMENT | STEP, STATEMENT_ONLY, NOTHING_SPECIAL},
  {"define", STATEMENT | NEVER_CHAINED, STATEMENT_ONLY, NOTHING_SPECIAL},
  {"program", STATEMENT | NEVER_CHAINED, PROGRAM, NOTHING_SPECIAL},
  {"export", STATEMENT | NEVER_CHAINED, STATEMENT_ONLY, NOTHING_SPECIAL},
  {"composition", STATEMENT | NEVER_CHAINED, COMPOSITION, NOTHING_SPECIAL},
  {"deduction", STATEMENT | NEVER_CHAINED, DEDUCTION, NOTHING_SPECIAL},
  {"def", STATEMENT | UNRESERVED | NEVER_CHAINED | MISPLACED, PROGRAM, A_NAME_AND_PARENTHESIS},
  {"family", STATEMENT | UNRESERVED | NEVER_CHAINED | MISPLACED, FAMILY, A_NAME_AND_PARENTHESIS},
  {"transformation", STATEMENT | UNRESERVED | NEVER_CHAINED, COMPOSITION, A_NAME_AND_LIST},
  {"data type", STATEMENT | NEVER_CHAINED, STATEMENT_ONLY, NOTHING_SPECIAL},
  {"encoder", STATEMENT | UNRESERVED | NEVER_CHAINED, COMPOSITION, A_NAME_AND_LIST},
  {"decoder", STATEMENT | UNRESERVED | NEVER_CHAINED, COMPOSITION, A_NAME_AND_LIST},
  {"import", STATEMENT | UNRESERVED | NEVER_CHAINED, STATEMENT_ONLY, A_STRING},
  {"from", STATEMENT | UNRESERVED | NEVER_CHAINED, STATEMENT_ONLY, A_STRING_AND_IMPORT},
  {"data", STEP | UNRESERVED | NEVER_CHAINED, STATEMENT_ONLY, A_NAME_AND_LIST},
  {"param", STEP | UNRESERVED | NEVER_CHAINED, STATEMENT_ONLY, A_NAME_AND_LIST},
  {"sample", STEP, STATEMENT_ONLY, NOTHING_SPECIAL},
  {"observe", STEP, STATEMENT_ONLY, NOTHING_SPECIAL},
  {"predict", STEP | UNRESERVED, STATEMENT_ONLY, A_NAME_AND_DRAW},
  {"marginalize", STEP, STATEMENT_ONLY, NOTHING_SPECIAL},
  {"score", STEP | NEVER_CHAINED, STATEMENT_ONLY, NOTHING_SPECIAL},
  {"return", STEP | NEVER_CHAINED, STATEMENT_ONLY, NOTHING_SPECIAL},
  {"atoms", ITEM, STATEMENT_ONLY, NOTHING_SPECIAL},
  {"binders", ITEM, STATEMENT_ONLY, NOTHING_SPECIAL},
  {"rule", ITEM, STATEMENT_ONLY, NOTHING_SPECIAL},
  {"lexicon", ITEM, STATEMENT_ONLY, NOTHING_SPECIAL},
};

/* Words of other languages, and the keyword that each means. */
static const struct { const char *text, *meant; } ELSEWHERE_CALLED[] = {
  {"function", "def"},
  {"func", "def"},
  {"fn", "def"},
  {"fun", "def"},
  {"distribution", "family"},
  {"dist", "family"},
  {"model", "program"},
  {"sub", "program"},
  {"procedure", "program"},
  {"space", "object"},
  {"type", "object"},
  {"set", "object"},
  {"domain", "object"},
  {"arrow", "morphism"},
  {"layer", "morphism"},
  {"network", "morphism"},
  {"kernel", "morphism"},
  {"include", "import"},
  {"require", "import"},
  {"use", "import"},
};

static const char *const COMBINATORS[] = {"fan", "from_data", "identity", "last", "mean_over_time", "repeat", "residual", "scan", "stack", NULL};
static const char *const METHODS[] = {"change_base", "curry_left", "curry_right", "dagger", "freeze", "marginalize", "trace", NULL};
static const char *const STEP_KEYS[] = {"noncentred", "sum_to_zero", "auxiliary", NULL};
static const char *const BOUND_WORDS[] = {"low", "high", NULL};
static const char *const LOOPS[] = {"for", "while", "if", NULL};
