/* Layout of a QVR text: where statements, blocks and lines begin and end.
 *
 * The rules are those of qvr_core/syntax/layout.py and cutter.py, under the same names; tests/tree_sitter compares the
 * two on thousands of edited texts.  At the first token of a logical line the scanner reads ahead to the line of code
 * behind it.  It then knows how many line breaks lie inside, and whether a block or the statement ends there.
 * Everything it knows is in `State`, which tree-sitter stores with each token. */

#include "tree_sitter/alloc.h"
#include "tree_sitter/parser.h"

#include <stddef.h>
#include <string.h>

#include "words.h"

enum Token {
  BEGIN_STATEMENT,
  BEGIN_STEP,
  BEGIN_ITEM,
  BEGIN_ENTRY,
  BEGIN_RULE,
  LINE_END,
  INDENT,
  DEDENT,
  STATEMENT_END,
  NEWLINE,
  COMMENT,
  BOUNDS,
  DRAW_EXPR,
  OPTIONS,
  ATTRIBUTES,
};

enum { TAB_WIDTH = 4, DEEPEST = 40, SIMILAR = 24, BRACKET = 1024, ASKEW = 64 };

typedef struct {
  uint32_t width;
  uint32_t opener; /* the word of the line that opened the block; ASKEW where no line did: steps are out of its column */
} Level;

/* `next` is what stands behind the line: its indentation opens or closes blocks, or it belongs to another statement. */
typedef struct {
  uint32_t remaining; /* line breaks before the last line of the logical line */
  uint32_t head_width;
  uint32_t stripped; /* unindented steps that still belong to the program */
  uint8_t kind;      /* of the statement, NO_STATEMENT between statements */
  uint8_t in_line, attributes, dedents, indent, ends, depth;
  Level levels[DEEPEST];
} State;

typedef struct {
  int32_t *text;
  uint32_t size, room;
} Text;

/* What is kept of a line of code: `shape` of layout.py, and how it ends, with and without `#[` as a bracket. */
typedef struct {
  uint32_t width, column, closes, opens, attribute_opens;
  const Word *word; /* the keyword that it starts with */
  bool code, tabs, starts_with_word, quoted, attribute, arrow[2], trails[2], comma[2], colon[2], awaits_type[2], factor_in[2];
  char spelling[SIMILAR]; /* the first word, empty where it is too long to be like a keyword */
} Line;

typedef struct {
  State state;
  Text text;
} Scanner;

/* ---------------------------------------------------------------- characters */

static bool is_blank(int32_t c) { return c == ' ' || c == '\t' || c == '\f' || c == '\v' || c == 0xa0; }
static bool is_break(int32_t c) { return c == '\n' || c == '\r'; }
static bool is_letter(int32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }
static bool is_name(int32_t c) { return is_letter(c) || is_digit(c); }

/* Space as Python has it. */
static bool is_space(int32_t c) {
  return is_blank(c) || (c >= 0x1c && c <= 0x20) || is_break(c) || c == 0x85 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* What may go on with a word: letters of all scripts, and no sign or space. */
static bool is_word(int32_t c) {
  return is_name(c) || (c >= 0xaa && !is_space(c) && c != 0xab && c != 0xac && c != 0xd7 && c != 0xf7 &&
                        !(c >= 0x2010 && c <= 0x2bff) && c != 0xfeff);
}

static bool among(int32_t c, const char *signs) { return c > 0 && c < 128 && strchr(signs, (char)c) != NULL; }

/* ---------------------------------------------------------------- reading ahead */

static void put(Text *text, int32_t c) {
  if (text->size == text->room) {
    text->room = text->room ? text->room * 2 : 256;
    text->text = ts_realloc(text->text, text->room * sizeof(int32_t));
  }
  text->text[text->size++] = c;
}

static int32_t at(const Text *text, uint32_t i) { return i < text->size ? text->text[i] : 0; }

static bool is_at(const Text *text, uint32_t i, const char *word) {
  for (; *word; word++, i++)
    if (at(text, i) != *word) return false;
  return true;
}

static void skip_break(TSLexer *lexer) {
  bool carriage = lexer->lookahead == '\r';
  lexer->advance(lexer, false);
  if (carriage && lexer->lookahead == '\n') lexer->advance(lexer, false);
}

static uint32_t skip_blanks(const Text *text, uint32_t i) {
  while (at(text, i) == ' ' || at(text, i) == '\t') i++;
  return i;
}

static uint32_t skip_name(const Text *text, uint32_t i) {
  if (!is_letter(at(text, i))) return i;
  while (is_word(at(text, i))) i++;
  return i;
}

/* The end of the string that opens at `i`, or `i` where a single quote opens none. */
static uint32_t skip_string(const Text *text, uint32_t i) {
  int32_t quote = at(text, i);
  for (uint32_t j = i + 1; j < text->size; j++) {
    if (text->text[j] == '\\' && j + 1 < text->size) {
      j++;
    } else if (text->text[j] == '\\') {
      return quote == '"' ? j : i;
    } else if (text->text[j] == quote) {
      return j + 1;
    }
  }
  return quote == '"' ? text->size : i;
}

/* ---------------------------------------------------------------- what a line looks like */

static const Word *keyword(const Text *text, uint32_t i, uint32_t length) {
  for (unsigned k = 0; k < sizeof WORDS / sizeof *WORDS; k++)
    if (strlen(WORDS[k].text) == length && is_at(text, i, WORDS[k].text)) return &WORDS[k];
  return NULL;
}

static const Word *keyword_named(const char *word) {
  for (unsigned k = 0; k < sizeof WORDS / sizeof *WORDS; k++)
    if (strcmp(WORDS[k].text, word) == 0) return &WORDS[k];
  return NULL;
}

/* `_DATA_TYPE` of layout.py. */
static bool opens_data_type(const Text *text) {
  if (!is_at(text, 0, "data")) return false;
  uint32_t i = skip_blanks(text, 4);
  if (i == 4 || !is_at(text, i, "type") || is_word(at(text, i + 4))) return false;
  return !among(at(text, skip_blanks(text, i + 4)), ",:");
}

static bool one_of(const Text *text, uint32_t i, uint32_t length, const char *const *words) {
  for (; *words; words++)
    if (strlen(*words) == length && is_at(text, i, *words)) return true;
  return false;
}

/* How a line ends whose code stops before `end`. */
static void note_end(const Text *text, Line *line, uint32_t end, int which) {
  while (end > 0 && is_space(text->text[end - 1])) end--;
  int32_t last = end ? text->text[end - 1] : 0;
  line->trails[which] = among(last, "@+-*/~=<>^|") || last == 0x22a2;
  line->comma[which] = last == ',';
  line->colon[which] = last == ':';
  if (line->colon[which]) {
    uint32_t i = end - 1;
    while (i > 0 && (text->text[i - 1] == ' ' || text->text[i - 1] == '\t')) i--;
    line->awaits_type[which] = i > 0 && text->text[i - 1] == ')';
  }
  for (uint32_t i = 0; i + 1 < end; i++)
    if (is_at(text, i, "->")) line->arrow[which] = true;
  if (end >= 2 && is_at(text, end - 2, "in") && (end == 2 || !is_word(text->text[end - 3])))
    for (uint32_t i = 0; i + 8 <= end; i++)
      if (is_at(text, i, "factor") && !is_word(text->text[i + 6]) && (i == 0 || !is_word(text->text[i - 1])))
        line->factor_in[which] = true;
}

/* `shape` of layout.py: `text` holds the line from its first character that is no blank on. */
static void note_shape(const Text *text, Line *line) {
  memset(line->arrow, 0, sizeof line->arrow);
  memset(line->awaits_type, 0, sizeof line->awaits_type);
  memset(line->factor_in, 0, sizeof line->factor_in);
  line->closes = line->opens = line->attribute_opens = 0;
  line->attribute = false;
  line->code = text->size > 0 && text->text[0] != '#';
  line->quoted = at(text, 0) == '"';
  uint32_t length = 0;
  while (is_name(at(text, length)) && !(length == 0 && is_digit(text->text[0]))) length++;
  line->starts_with_word = length > 0;
  line->word = opens_data_type(text) ? keyword_named("data type") : keyword(text, 0, length);
  memset(line->spelling, 0, sizeof line->spelling);
  for (uint32_t i = 0; length < SIMILAR && i < length; i++) line->spelling[i] = (char)text->text[i];
  uint32_t end = text->size, attribute_end = text->size;
  for (uint32_t i = 0; i < text->size;) {
    int32_t c = text->text[i];
    if (c == '"' || c == '\'') {
      uint32_t behind = skip_string(text, i);
      i = behind > i ? behind : i + 1;
      continue;
    }
    if (c == '#') {
      if (line->attribute || at(text, i + 1) != '[') {
        attribute_end = i;
        if (!line->attribute) end = i;
        break;
      }
      end = i++;
      line->attribute = true;
      line->attribute_opens = line->opens + 1;
    } else if (among(c, "([{")) {
      if (line->attribute) line->attribute_opens++;
      else line->opens++;
    } else if (among(c, ")]}")) {
      if (line->attribute) line->attribute_opens -= line->attribute_opens > 0;
      else if (line->opens) line->opens--;
      else line->closes++;
    }
    i++;
  }
  if (!line->attribute) line->attribute_opens = line->opens;
  note_end(text, line, end, 0);
  note_end(text, line, line->attribute ? attribute_end : end, 1);
}

/* Read the rest of a physical line into `text`. */
static void read_rest(TSLexer *lexer, Text *text) {
  text->size = 0;
  while (!lexer->eof(lexer) && !is_break(lexer->lookahead)) {
    put(text, lexer->lookahead);
    lexer->advance(lexer, false);
  }
}

/* Read the next line that holds code, with the number of line breaks before it; false at the end of the text. */
static bool read_code(TSLexer *lexer, Text *text, Line *line, uint32_t *breaks) {
  for (*breaks = 0; !lexer->eof(lexer);) {
    skip_break(lexer);
    ++*breaks;
    line->width = 0;
    line->tabs = false;
    if (lexer->lookahead == 0xfeff) lexer->advance(lexer, false);
    for (; is_blank(lexer->lookahead); lexer->advance(lexer, false)) {
      line->width += lexer->lookahead == '\t' ? TAB_WIDTH - line->width % TAB_WIDTH : 1;
      line->tabs |= lexer->lookahead == '\t';
    }
    read_rest(lexer, text);
    note_shape(text, line);
    if (line->code) return true;
  }
  line->code = false;
  return false;
}

/* ---------------------------------------------------------------- what a line goes on with */

static bool is_unreserved_opener(const Text *text, const Word *word) {
  uint32_t behind = (uint32_t)strlen(word->text), i = skip_blanks(text, behind);
  if (i == behind) return false;
  if (word->follows == A_STRING) return at(text, i) == '"';
  if (word->follows == A_STRING_AND_IMPORT) {
    if (at(text, i) != '"') return false;
    for (i++; i < text->size && text->text[i] != '"';) i++;
    i = skip_blanks(text, i + 1);
    return is_at(text, i, "import") && !is_word(at(text, i + 6));
  }
  uint32_t name = skip_name(text, i);
  if (name == i) return false;
  i = skip_blanks(text, name);
  switch (word->follows) {
    case A_NAME_AND_PARENTHESIS: return at(text, i) == '(';
    case A_NAME_AND_LIST: return among(at(text, i), ",:");
    case A_NAME_AND_DRAW: return among(at(text, i), ":[~") || is_at(text, i, "<-");
    default: return false;
  }
}

/* `_OPENER` of layout.py: a line that certainly starts something of its own. */
static bool is_opener(const Text *text) {
  for (unsigned k = 0; k < sizeof WORDS / sizeof *WORDS; k++) {
    const Word *word = &WORDS[k];
    if (!(word->is & (STATEMENT | STEP)) || !is_at(text, 0, word->text)) continue;
    if (word->is & UNRESERVED) {
      if (is_unreserved_opener(text, word)) return true;
      continue;
    }
    uint32_t behind = (uint32_t)strlen(word->text), i = skip_blanks(text, behind);
    if (i == text->size) return true;
    if (i > behind && !is_space(text->text[i]) && !among(text->text[i], "=,)]}")) return true;
  }
  return false;
}

/* `_RULE_OPENER` of layout.py. */
static bool is_rule_opener(const Text *text) {
  uint32_t i = 0;
  if (!is_letter(at(text, 0))) return false;
  while (is_name(at(text, i))) i++;
  i = skip_blanks(text, i);
  if (at(text, i) == '(') {
    for (i++; is_name(at(text, i)) || among(at(text, i), ", \t");) i++;
    if (at(text, i) != ')') return false;
    i = skip_blanks(text, i + 1);
  }
  return at(text, i) == '=' && at(text, i + 1) != '=';
}

static bool starts_something(const Text *text, const Line *line, uint8_t kind, bool deeper) {
  if (kind == DEDUCTION) return line->word && (line->word->is & ITEM) && !is_word(at(text, (uint32_t)strlen(line->word->text)));
  if ((kind == COMPOSITION || kind == FAMILY) && !deeper && is_rule_opener(text)) return true;
  return is_opener(text);
}

static bool leads(const Text *text) {
  return among(at(text, 0), "@+-*/~=^<>|)]}") || at(text, 0) == 0x22a2 || is_at(text, 0, "!=");
}

static bool trails_softly(const Line *before, const Word *word, uint8_t kind, int which) {
  if (before->comma[which] || before->factor_in[which]) return true;
  if (!before->colon[which]) return false;
  if (word && word->opens == FAMILY) return before->awaits_type[which];
  if (word && strcmp(word->text, "def") == 0) return false;
  return kind == STATEMENT_ONLY || (kind != COMPOSITION && kind != FAMILY && !before->arrow[which]);
}

/* `_continues` of layout.py: whether `line` goes on with what `start` begins and `before` ends. */
static bool continues(const Text *text, const Line *start, const Line *before, const Line *line, uint32_t depth, uint8_t kind) {
  bool deeper = line->width > start->width;
  int which = kind == DEDUCTION;
  if (line->starts_with_word && starts_something(text, line, kind, deeper)) return false;
  if (kind == DEDUCTION && line->quoted) return false;
  if (depth) return true;
  if ((kind == COMPOSITION || kind == FAMILY) && !deeper && !leads(text)) return false;
  if (leads(text) || before->trails[which]) return true;
  if (kind == PROGRAM && line->word && strcmp(line->word->text, "from") == 0 &&
      !(start->word && (start->word->is & NEVER_CHAINED)))
    return true;
  bool soft = among(at(text, 0), "[.,:") && !is_digit(at(text, 1));
  return deeper && (soft || trails_softly(before, start->word, kind, which));
}

/* `gives_value` of layout.py, fed line by line: whether an `=` stands outside of the parentheses of a `def`. */
static bool gives_value(const Text *text, int32_t *depth) {
  for (uint32_t i = 0; i < text->size; i++) {
    int32_t c = text->text[i];
    if (c == '#') break;
    if (c == '"') i = skip_string(text, i) - 1;
    else if (among(c, "=<>!") && at(text, i + 1) == '=') i++;
    else if (among(c, "([{")) ++*depth;
    else if (among(c, ")]}")) --*depth;
    else if (c == '=' && *depth <= 0) return true;
  }
  return false;
}

/* `logical_line` of layout.py.  `line` is the first line, of which `text` holds the rest; afterwards it is the line of
 * code behind the logical line.  The number of line breaks inside is returned.  `attributes` becomes the number of lines
 * with `#[`, and `value` whether it gives one, both where asked for. */
static uint32_t read_logical(TSLexer *lexer, Text *text, Line *line, uint8_t kind, uint8_t *attributes, bool *value) {
  Line start = *line, before = *line;
  uint32_t depth = kind == DEDUCTION ? line->attribute_opens : line->opens, inside = 0, breaks, passed = 0;
  int32_t open = 0;
  if (value) *value = gives_value(text, &open);
  if (attributes) *attributes = line->attribute;
  while (read_code(lexer, text, line, &breaks)) {
    passed += breaks;
    if (line->width == 0 && line->starts_with_word) break;
    if (!continues(text, &start, &before, line, depth, kind)) break;
    depth -= line->closes < depth ? line->closes : depth;
    depth += kind == DEDUCTION ? line->attribute_opens : line->opens;
    if (value && !*value) *value = gives_value(text, &open);
    if (attributes && *attributes < UINT8_MAX) *attributes += line->attribute;
    inside = passed;
    before = *line;
  }
  return inside;
}

/* ---------------------------------------------------------------- the kind of a statement */

/* Length of what two words share, as difflib counts it: the longest common piece, and the same left and right of it. */
static unsigned shared(const char *a, unsigned a0, unsigned a1, const char *b, unsigned b0, unsigned b1) {
  unsigned best = 0, from_a = a0, from_b = b0;
  for (unsigned i = a0; i < a1; i++)
    for (unsigned j = b0; j < b1; j++) {
      unsigned k = 0;
      while (i + k < a1 && j + k < b1 && a[i + k] == b[j + k]) k++;
      if (k > best) best = k, from_a = i, from_b = j;
    }
  if (!best) return 0;
  return best + shared(a, a0, from_a, b, b0, from_b) + shared(a, from_a + best, a1, b, from_b + best, b1);
}

/* `near_word` of mistakes/openers.py, among the words that open a line of kind `is`. */
static const Word *near_word(const char *spelling, unsigned is) {
  const Word *nearest = NULL;
  double highest = 0;
  unsigned length = (unsigned)strlen(spelling);
  char lower[SIMILAR] = {0};
  for (unsigned i = 0; i < length; i++)
    lower[i] = (char)(spelling[i] >= 'A' && spelling[i] <= 'Z' ? spelling[i] + 32 : spelling[i]);
  for (unsigned k = 0; k < sizeof WORDS / sizeof *WORDS; k++)
    if ((WORDS[k].is & is) && strcmp(WORDS[k].text, lower) == 0) return &WORDS[k];
  for (unsigned j = 0; j < sizeof ELSEWHERE_CALLED / sizeof *ELSEWHERE_CALLED; j++)
    for (unsigned k = 0; strcmp(ELSEWHERE_CALLED[j].text, lower) == 0 && k < sizeof WORDS / sizeof *WORDS; k++)
      if ((WORDS[k].is & is) && strcmp(WORDS[k].text, ELSEWHERE_CALLED[j].meant) == 0) return &WORDS[k];
  for (unsigned k = 0; length && k < sizeof WORDS / sizeof *WORDS; k++) {
    if (!(WORDS[k].is & is)) continue;
    unsigned other = (unsigned)strlen(WORDS[k].text);
    double ratio = 2.0 * shared(WORDS[k].text, 0, other, spelling, 0, length) / (other + length);
    if (ratio >= 0.7 && (ratio > highest || (ratio == highest && strcmp(WORDS[k].text, nearest->text) > 0))) {
      nearest = &WORDS[k];
      highest = ratio;
    }
  }
  return nearest;
}

static uint8_t block_kind(const Line *line) {
  const Word *word = line->word && (line->word->is & STATEMENT) ? line->word : near_word(line->spelling, STATEMENT);
  return word ? word->opens : UNKNOWN;
}

static bool is_word_of(const Line *line, unsigned is) { return line->word && (line->word->is & is); }
static bool is_keyword(const Line *line, const char *text) { return line->word && strcmp(line->word->text, text) == 0; }

/* Whether the line of code `next` belongs to the block of the statement. */
static bool belongs(const State *state, const Line *next) {
  if (!next->code || next->width == 0) return false;
  if (is_word_of(next, STATEMENT) && !is_keyword(next, "let")) {
    bool inside = state->kind == DEDUCTION || is_keyword(next, "from") ||
                  (state->kind == PROGRAM && is_word_of(next, MISPLACED));
    if (!inside) return false;
  }
  return !(state->kind == UNKNOWN && state->head_width > 0 && next->width < state->head_width);
}

/* `_add_stripped_run` of cutter.py: how many unindented steps, from `line` on, are the body of a program. */
static uint32_t stripped_run(TSLexer *lexer, Text *text, Line *line) {
  uint32_t run = 0, certain = 0;
  bool returned = false;
  while (line->code && !returned) {
    if (is_word_of(line, STATEMENT) && !is_keyword(line, "let")) break;
    if (line->width == 0 && !is_word_of(line, STEP)) break;
    Line first = *line;
    read_logical(lexer, text, line, PROGRAM, NULL, NULL);
    run++;
    if (first.width > 0 || !is_keyword(&first, "let")) certain = run;
    returned = first.width == 0 && is_keyword(&first, "return");
  }
  return certain;
}

/* ---------------------------------------------------------------- blocks within a statement */

static enum Token start_symbol(const State *state, const Line *line) {
  uint32_t opener = state->depth ? state->levels[state->depth - 1].opener & ~ASKEW : 0;
  bool formula = !(is_word_of(line, STEP) && !is_word_of(line, UNRESERVED));
  if (state->kind == NO_STATEMENT) return BEGIN_STATEMENT;
  if (state->kind == DEDUCTION) return line->quoted || (opener == ITEM && !is_word_of(line, ITEM)) ? BEGIN_ENTRY : BEGIN_ITEM;
  if (state->kind == COMPOSITION) return BEGIN_RULE;
  if (state->kind == FAMILY || opener == MISPLACED) return formula ? BEGIN_RULE : BEGIN_STEP;
  return BEGIN_STEP;
}

static bool is_loop(const Line *line) {
  for (const char *const *word = LOOPS; *word; word++)
    if (strcmp(line->spelling, *word) == 0) return true;
  return false;
}

/* What the line that begins with `word` opens below it, 0 for nothing. */
static uint32_t opened(const Line *line, enum Token start) {
  if (start == BEGIN_STEP) {
    if (is_word_of(line, MISPLACED)) return is_keyword(line, "family") ? MISPLACED : STEP;
    if (is_keyword(line, "marginalize") || is_loop(line)) return STEP;
    const Word *meant = is_word_of(line, STEP) ? NULL : near_word(line->spelling, STEP);
    return meant && strcmp(meant->text, "marginalize") == 0 ? STEP : 0;
  }
  if (start == BEGIN_ITEM) {
    if (is_keyword(line, "lexicon")) return ITEM;
    const Word *meant = is_word_of(line, ITEM) ? NULL : near_word(line->spelling, ITEM);
    return meant && strcmp(meant->text, "lexicon") == 0 ? ITEM : 0;
  }
  return 0;
}

/* A line that is deeper than the block it stands in: those below it in its column stand beside it. */
static void go_askew(State *state, const Line *next) {
  const Level *top = &state->levels[state->depth ? state->depth - 1 : 0];
  if (state->depth == 0 || state->depth == DEEPEST || state->kind == UNKNOWN) return;
  if (next->tabs || next->width <= top->width) return;
  state->levels[state->depth] = (Level){next->width, top->opener | ASKEW};
  state->depth++;
}

static void pop(State *state) {
  state->depth--;
  if (!(state->levels[state->depth].opener & ASKEW)) state->dedents++;
}

/* The blocks that open and close between a line and the next one of the same statement. */
static void nest(State *state, const Line *line, enum Token start, const Line *next, bool stripped) {
  uint32_t opens = start == BEGIN_STATEMENT ? STATEMENT : opened(line, start);
  Level *top = &state->levels[state->depth ? state->depth - 1 : 0];
  bool deeper = state->depth == 0 || next->width > top->width;
  if (opens == ITEM && !is_word_of(next, ITEM)) deeper = true;
  if (stripped && opens == STEP && !is_keyword(next, "return")) deeper = true;
  if (opens && deeper && state->depth < DEEPEST) {
    state->indent = 1;
    state->levels[state->depth++] = (Level){next->width, opens};
    return;
  }
  bool item = state->kind == DEDUCTION && is_word_of(next, ITEM);
  bool last = stripped && is_keyword(next, "return");
  while (state->depth > 1 && (item || last || state->levels[state->depth - 1].width > next->width)) {
    pop(state);
  }
  /* the block stands in the column of a line that is out of it to the left */
  if (state->depth == 1 && state->kind != UNKNOWN && next->width < state->levels[0].width)
    state->levels[0].width = next->width;
  go_askew(state, next);
}

/* The column of a block: that of its first line that is one, whatever stands askew above, else of its first line. */
static uint32_t block_width(const State *state, TSLexer *lexer, Text *text, const Line *first) {
  uint8_t kind = state->kind == UNKNOWN ? PROGRAM : state->kind;
  Line line = *first;
  if (kind == COMPOSITION || kind == FAMILY) return first->width;
  while (line.code && belongs(state, &line)) {
    if (is_word_of(&line, kind == DEDUCTION ? ITEM : STEP))
      return state->kind != UNKNOWN && first->width < line.width ? first->width : line.width;
    read_logical(lexer, text, &line, kind, NULL, NULL);
  }
  return first->width;
}

/* Take the logical line that begins with `line`: all that `State` says of it and of what follows. */
static enum Token take_line(State *state, TSLexer *lexer, Text *text, Line *line) {
  Line first = *line;
  enum Token start = start_symbol(state, line);
  bool ends;
  state->in_line = 1;
  state->indent = state->dedents = state->ends = 0;
  if (start == BEGIN_STATEMENT) {
    bool value = false, is_def = is_keyword(line, "def");
    state->kind = block_kind(line);
    state->head_width = first.width;
    state->stripped = 0;
    state->depth = 0;
    uint8_t kind = state->kind == UNKNOWN ? PROGRAM : state->kind;
    state->attributes = 0;
    state->remaining = read_logical(lexer, text, line, kind, NULL, is_def ? &value : NULL);
    if (value) state->kind = STATEMENT_ONLY;
    bool step = is_word_of(&first, STEP) && !is_keyword(&first, "return");
    bool opens_program = (state->kind == PROGRAM && !is_def) || (state->kind == UNKNOWN && step);
    ends = state->kind == STATEMENT_ONLY;
    if (!ends && opens_program && first.width == 0 && line->code && line->width == 0 && is_word_of(line, STEP)) {
      Line next = *line;
      state->stripped = stripped_run(lexer, text, line);
      ends = state->stripped == 0;
      *line = next;
    } else if (!ends) {
      ends = !belongs(state, line);
    }
  } else {
    uint8_t kind = state->kind == UNKNOWN ? PROGRAM : state->kind;
    state->attributes = 0;
    state->remaining = read_logical(lexer, text, line, kind, kind == DEDUCTION ? &state->attributes : NULL, NULL);
    if (state->stripped) ends = --state->stripped == 0;
    else ends = !belongs(state, line);
  }
  if (ends) {
    while (state->depth) pop(state);
    state->ends = 1;
    state->kind = NO_STATEMENT;
  } else {
    nest(state, &first, start, line, state->stripped > 0);
    if (start == BEGIN_STATEMENT && !state->stripped) {
      Line next = *line;
      state->levels[0].width = block_width(state, lexer, text, line);
      go_askew(state, &next);
    }
  }
  return start;
}

/* ---------------------------------------------------------------- tokens that depend on what follows */

/* Copy what is left of the logical line, from behind the character at hand, without comments.  No more than `most`
 * characters are read, so that a line of many brackets is not read anew at each. */
static void read_ahead(const State *state, TSLexer *lexer, Text *text, uint32_t most) {
  uint32_t left = state->remaining;
  text->size = 0;
  while (!lexer->eof(lexer) && text->size < most) {
    if (is_break(lexer->lookahead)) {
      if (left-- == 0) return;
      skip_break(lexer);
      put(text, ' ');
    } else if (lexer->lookahead == '#') {
      while (!lexer->eof(lexer) && !is_break(lexer->lookahead)) lexer->advance(lexer, false);
    } else {
      put(text, lexer->lookahead);
      lexer->advance(lexer, false);
    }
  }
}

static uint32_t skip_spaces(const Text *text, uint32_t i) {
  while (i < text->size && is_space(text->text[i])) i++;
  return i;
}

static uint32_t skip_plain(const Text *text, uint32_t i) {
  while (is_name(at(text, i))) i++;
  return i;
}

/* `_holds_bounds` of lexer.py: no keys but `low` and `high`. */
static bool holds_bounds(const Text *text) {
  uint32_t i = skip_spaces(text, 0), depth = 1;
  for (bool key = true; i < text->size; i = skip_spaces(text, i)) {
    uint32_t end = skip_plain(text, i);
    int32_t c = text->text[i];
    if (key && c != ']' && !one_of(text, i, end - i, BOUND_WORDS)) return false;
    key = false;
    if (end > i) i = end;
    else if (c == '"') i = skip_string(text, i);
    else {
      if (among(c, "([")) depth++;
      if (among(c, ")]") && --depth == 0) return true;
      key = c == ',' && depth == 1;
      i++;
    }
  }
  return true;
}

/* `_holds_options` of lexer.py: a key with a value, or words that a step may have, at the end of the line. */
static bool holds_options(const Text *text) {
  uint32_t i = skip_spaces(text, 0), end = skip_plain(text, i), behind = skip_spaces(text, end);
  if (end == i || is_digit(text->text[i])) return false;
  if (at(text, behind) == '=' && at(text, behind + 1) != '=') return true;
  return one_of(text, i, end - i, STEP_KEYS);
}

/* `_draws_expression` of lexer.py: whether what follows `<-` is more than a name with arguments. */
static bool draws_expression(const Text *text) {
  uint32_t i = skip_spaces(text, 0), end = skip_plain(text, i);
  if (at(text, i) == '(' || (end > i && one_of(text, i, end - i, COMBINATORS))) return true;
  if (end == i || is_digit(text->text[i])) return false;
  i = skip_spaces(text, end);
  if (at(text, i) == '.') {
    uint32_t name = skip_spaces(text, i + 1), stop = skip_plain(text, name);
    if (stop > name && !is_digit(text->text[name]) && !one_of(text, name, stop - name, METHODS)) i = stop;
  }
  for (int32_t depth = 0; i < text->size;) {
    int32_t c = text->text[i];
    if (c == '"') {
      i = skip_string(text, i);
      continue;
    }
    if (is_name(c) || (c == '.' && is_digit(at(text, i + 1)))) {
      end = skip_plain(text, i + (c == '.'));
      if (is_digit(c) && at(text, end) == '.') end = skip_plain(text, end + 1);
      if (depth == 0 && end - i == 4 && is_at(text, i, "from")) return false;
      i = end;
      continue;
    }
    if (c == '@' || is_at(text, i, ">>")) return true;
    if (c == '[' && depth == 0) return false;
    if (c == '.' && depth == 0) return true;
    depth += among(c, "([");
    depth -= among(c, ")]");
    i++;
  }
  return false;
}

/* ---------------------------------------------------------------- the interface of tree-sitter */

static bool found(TSLexer *lexer, enum Token token) {
  lexer->result_symbol = token;
  return true;
}

static bool comment(TSLexer *lexer) {
  while (!lexer->eof(lexer) && !is_break(lexer->lookahead)) lexer->advance(lexer, false);
  lexer->mark_end(lexer);
  return found(lexer, COMMENT);
}

/* Between lines: comments, or the first token of a line. */
static bool scan_between(Scanner *scanner, TSLexer *lexer, const bool *valid) {
  State *state = &scanner->state;
  Line line = {0};
  bool blanks = false;
  for (;; lexer->advance(lexer, true), blanks = true) {
    if (is_break(lexer->lookahead)) line.width = 0;
    else if (lexer->lookahead == '\t') line.width += TAB_WIDTH - line.width % TAB_WIDTH;
    else if (is_blank(lexer->lookahead)) line.width++;
    else if (lexer->lookahead != 0xfeff || line.width) break;
  }
  lexer->mark_end(lexer);
  if (lexer->eof(lexer)) return blanks && valid[NEWLINE] && found(lexer, NEWLINE);
  if (lexer->lookahead == '#') return comment(lexer);
  if (!(valid[BEGIN_STATEMENT] || valid[BEGIN_STEP])) return false;
  read_rest(lexer, &scanner->text);
  note_shape(&scanner->text, &line);
  return found(lexer, take_line(state, lexer, &scanner->text, &line));
}

static bool scan_in_line(Scanner *scanner, TSLexer *lexer, const bool *valid) {
  State *state = &scanner->state;
  Text *text = &scanner->text;
  bool breaks = false;
  lexer->mark_end(lexer);
  for (;;) {
    int32_t c = lexer->lookahead;
    bool at_end = lexer->eof(lexer);
    if (at_end || (is_break(c) && state->remaining == 0)) {
      if (breaks || !valid[LINE_END]) return false;
      state->in_line = 0;
      return found(lexer, LINE_END);
    }
    if (is_break(c)) {
      lexer->advance(lexer, true);
      if (c == '\r' && lexer->lookahead == '\n') lexer->advance(lexer, true);
      state->remaining--;
      breaks = true;
    } else if (is_space(c) || c == 0xfeff) {
      lexer->advance(lexer, true);
    } else {
      break;
    }
  }
  int32_t c = lexer->lookahead;
  if (c == '#' && !breaks && state->attributes) {
    lexer->advance(lexer, false);
    if (lexer->lookahead == '[' && valid[ATTRIBUTES]) {
      lexer->advance(lexer, false);
      lexer->mark_end(lexer);
      state->attributes--;
      return found(lexer, ATTRIBUTES);
    }
    return false;
  }
  if (c == '#') {
    if (breaks || state->remaining) return comment(lexer);
    if (!valid[LINE_END]) return false;
    state->in_line = 0;
    return found(lexer, LINE_END);
  }
  if (breaks) {
    lexer->mark_end(lexer);
    return found(lexer, NEWLINE);
  }
  if (c == '[' && (valid[BOUNDS] || valid[OPTIONS])) {
    lexer->advance(lexer, false);
    lexer->mark_end(lexer);
    read_ahead(state, lexer, text, BRACKET);
    if (valid[BOUNDS] && holds_bounds(text)) return found(lexer, BOUNDS);
    return valid[OPTIONS] && holds_options(text) && found(lexer, OPTIONS);
  }
  if (c == '<' && valid[DRAW_EXPR]) {
    lexer->advance(lexer, false);
    if (lexer->lookahead != '-') return false;
    lexer->advance(lexer, false);
    lexer->mark_end(lexer);
    read_ahead(state, lexer, text, UINT32_MAX);
    return draws_expression(text) && found(lexer, DRAW_EXPR);
  }
  return false;
}

bool tree_sitter_qvr_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
  Scanner *scanner = payload;
  State *state = &scanner->state;
  if (state->in_line) return scan_in_line(scanner, lexer, valid);
  if (state->dedents || state->indent || state->ends) {
    lexer->mark_end(lexer);
    if (state->dedents) {
      if (!valid[DEDENT]) return false;
      state->dedents--;
      return found(lexer, DEDENT);
    }
    if (state->indent) {
      if (!valid[INDENT]) return false;
      state->indent = 0;
      return found(lexer, INDENT);
    }
    if (!valid[STATEMENT_END]) return false;
    state->ends = 0;
    return found(lexer, STATEMENT_END);
  }
  return scan_between(scanner, lexer, valid);
}

/* The bytes of `State` up to the last level in use. */
static unsigned size_of(const State *state) {
  return (unsigned)(offsetof(State, levels) + state->depth * sizeof(Level));
}

unsigned tree_sitter_qvr_external_scanner_serialize(void *payload, char *buffer) {
  const State *state = &((Scanner *)payload)->state;
  memcpy(buffer, state, size_of(state));
  return size_of(state);
}

void tree_sitter_qvr_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
  State *state = &((Scanner *)payload)->state;
  memset(state, 0, sizeof *state);
  if (length) memcpy(state, buffer, length);
}

void *tree_sitter_qvr_external_scanner_create(void) { return ts_calloc(1, sizeof(Scanner)); }

void tree_sitter_qvr_external_scanner_destroy(void *payload) {
  ts_free(((Scanner *)payload)->text.text);
  ts_free(payload);
}
