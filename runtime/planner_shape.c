// The planner's shapes: buckets of problems, as text, and the least problem of one.
#include "planner.h"

#include <stdlib.h>
#include <string.h>

int64_t planner_bucket(int64_t n) {
  int64_t b = n > 0;
  while (b > 0 && b <= n / 2) b *= 2;
  return b;
}

// A rule that makes another text (factors of 8-bit inputs do not), as the shape names it.
static const char *rule_word(const ProblemRule *r) {
  const ProblemName *known = problem_name_find(r->param);
  return known ? known->short_name : r->param;
}

// What the problem says, or a parameter that it was built with: lengths on the device are varlen=1
// there and nothing in the problem.
static bool has_rule(const ProblemRule *r, const Problem *p, const Params *built) {
  const char *on = built ? params_get(built, r->param) : NULL;
  return r->asked(p) || (on && (!strcmp(on, "1") || !strcmp(on, "true")));
}

// ---- what is rounded ----------------------------------------------------------------------------

enum { SQ, SK, WORK, LEFT, RIGHT, PAGE, SIZES };
static const char *const size_names[SIZES] = {"sq", "sk", "work", "left", "right", "page"};
// Sizes of a rule, which stand behind its word.
static const struct { const char *param; int first, last; } rule_sizes[] = {
    {"window", LEFT, RIGHT}, {"paged", PAGE, PAGE}};

// Keys of a side of the window, the query's own among them; 0: the side is open, or not said.  A
// causal mask closes the right side of a window that is bounded on the left.
static int64_t window_side(const Problem *p, int size) {
  int64_t left = problem_int(p, "window_left", -1), right = problem_int(p, "window_right", -1);
  if (size == RIGHT && left >= 0 && problem_int(p, "causal", 0)) return 0;
  int64_t n = size == LEFT ? left : right;
  return n < 0 ? 0 : n < INT64_MAX ? n + 1 : n;
}

// Total / sequences.  Unknown where lengths are on the device and nobody gave the total: what
// would follow from the longest is no total then.
static bool mean_length(const Problem *p, const char *total, int64_t *out) {
  int64_t sum, batch = problem_int(p, "batch", 1);
  bool known = problem_value(p, total) || problem_varlen(p);
  if (!known || batch < 1 || !problem_whole(p, total, &sum)) return false;
  *out = sum / batch;
  return true;
}

static bool varlen_prefill(const Problem *p, const Params *built) {
  const char *on = built ? params_get(built, "varlen") : NULL;
  bool varlen = problem_varlen(p) || (on && (!strcmp(on, "1") || !strcmp(on, "true")));
  return varlen && problem_int(p, "seqlen_q", 1) > 1;
}

// 0: K and V are not in pages, or nobody says of how many keys.
static int64_t page_keys(const Problem *p) {
  int64_t n = problem_int(p, "page_size", 0);
  return n > 0 ? n : 0;
}

// What `say` names: said where it is known.
static void sizes_of(const Problem *p, ShapeForm say, int64_t n[SIZES]) {
  int64_t hkv = problem_int(p, "heads_kv", problem_int(p, "heads_q", 1));
  n[SQ] = problem_int(p, "seqlen_q", 1);
  n[SK] = problem_int(p, "seqlen_k", 0);
  n[WORK] = problem_int(p, "batch", 1) * hkv;
  n[LEFT] = say.widths ? window_side(p, LEFT) : 0;
  n[RIGHT] = say.widths ? window_side(p, RIGHT) : 0;
  n[PAGE] = say.pages ? page_keys(p) : 0;
  if (say.means) mean_length(p, "total_q", &n[SQ]), mean_length(p, "total_k", &n[SK]);
}

// ---- the text -----------------------------------------------------------------------------------

static char *rule_text(Arena *a, char *text, const ProblemRule *r, bool mean,
                       const int64_t n[SIZES]) {
  text = arena_printf(a, "%s %s=%s", text, rule_word(r), mean ? "mean" : "1");
  for (size_t i = 0; i < sizeof rule_sizes / sizeof *rule_sizes; i++)
    for (int k = rule_sizes[i].first; k <= rule_sizes[i].last; k++)
      if (n[k] && !strcmp(rule_sizes[i].param, r->param))
        text = arena_printf(a, "%s %s=%lld", text, size_names[k], (long long)planner_bucket(n[k]));
  return text;
}

static char *shape_text(Arena *a, const Problem *p, const Params *built, ShapeForm say) {
  int64_t hq = problem_int(p, "heads_q", 1), hkv = problem_int(p, "heads_kv", hq), n[SIZES];
  int64_t d = problem_int(p, "head_dim", 0);
  const char *kv = p->has_dtype_kv && p->dtype_kv != p->dtype ? dtype_name(p->dtype_kv) : NULL;
  sizes_of(p, say, n);
  char *text = arena_printf(
      a, "dtype=%s%s%s d=%lld group=%lld causal=%lld sq=%lld sk=%lld work=%lld",
      p->has_dtype ? dtype_name(p->dtype) : "f32", kv ? "/" : "", kv ? kv : "", (long long)d,
      (long long)(hkv > 0 ? hq / hkv : 0), (long long)problem_int(p, "causal", 0),
      (long long)planner_bucket(n[SQ]), (long long)planner_bucket(n[SK]),
      (long long)planner_bucket(n[WORK]));
  if (problem_int(p, "head_dim_v", d) != d)
    text = arena_printf(a, "%s dv=%lld", text, (long long)problem_head_dim_v(p));
  for (int i = 0; i < problem_nrules; i++) {
    const ProblemRule *r = &problem_rules[i];
    if (!r->flag || !has_rule(r, p, built)) continue;
    text = rule_text(a, text, r, say.means && !strcmp(r->param, "varlen"), n);
  }
  return text;
}

int planner_shape_forms(Arena *a, const Problem *given, const Params *built,
                        ShapeForm out[SHAPE_FORMS]) {
  Problem *p = problem_copy(a, given);
  int n = 0;
  int64_t mean;
  if (built) problem_fill_from_params(p, built);
  bool widths = window_side(p, LEFT) || window_side(p, RIGHT), pages = page_keys(p) > 0;
  bool means = varlen_prefill(p, built) && mean_length(p, "total_q", &mean) &&
               mean_length(p, "total_k", &mean);
  for (int i = SHAPE_FORMS - 1; i >= 0; i--) {
    ShapeForm say = {.widths = i & 1, .pages = i & 2, .means = i & 4};
    if (say.widths > widths || say.pages > pages || say.means > means) continue;
    say.text = shape_text(a, p, built, say);
    out[n++] = say;
  }
  return n;
}

char *planner_shape_of(Arena *a, const Problem *p, const Params *built) {
  ShapeForm form[SHAPE_FORMS];
  planner_shape_forms(a, p, built, form);
  return form[0].text;
}

char *planner_shape(Arena *a, const Problem *p) { return planner_shape_of(a, p, NULL); }

const char *planner_shape_note(Arena *a, const Problem *given, const Params *built) {
  Problem *p = problem_copy(a, given);
  ShapeForm form[SHAPE_FORMS];
  int64_t n[SIZES];
  const char *text = "";
  if (built) problem_fill_from_params(p, built);
  planner_shape_forms(a, p, built, form);
  sizes_of(p, form[0], n);
  for (int i = 0; i < SIZES; i++) {
    int64_t b = planner_bucket(n[i]);
    if (b == n[i]) continue;
    text = arena_printf(a, "%s%s%s=%lld is %lld to %llu", text, *text ? ", " : "", size_names[i],
                        (long long)b, (long long)b, 2 * (unsigned long long)b - 1);
  }
  const char *window = built ? params_get(built, "window") : NULL;
  bool windowed = problem_windowed(p) || (window && strcmp(window, "0") && strcmp(window, "false"));
  if (windowed && !form[0].widths)
    text = arena_printf(a, "%s%sthe window's width is not known", text, *text ? "; " : "");
  if (varlen_prefill(p, built) && !form[0].means)
    text = arena_printf(a, "%s%smean lengths are not known without total_q and total_k", text,
                        *text ? "; " : "");
  return text;
}

// ---- and back -----------------------------------------------------------------------------------

// What window_side() made keys of; a side of no keys is open.
static long long side_of(const char *keys) {
  long long n = keys ? strtoll(keys, NULL, 10) : 0;
  return n > 0 ? n - 1 : -1;
}

// What makes the least problem ask for the rule that a word of the shape names, NULL when it names
// none.  Sequences of a mean length: one of it, where the longest may be longer.
static const char *rule_values(Arena *a, const Param *word, const Params *shape) {
  const char *sq = params_get(shape, "sq"), *sk = params_get(shape, "sk");
  const char *left = params_get(shape, "left"), *right = params_get(shape, "right");
  const char *page = params_get(shape, "page");
  bool mean = !strcmp(word->name, "varlen") && !strcmp(word->value, "mean");
  for (int i = 0; i < problem_nrules; i++) {
    const ProblemRule *r = &problem_rules[i];
    if (!r->flag || strcmp(rule_word(r), word->name)) continue;
    if (!mean && strcmp(word->value, "1")) continue;
    if (!strcmp(r->param, "window") && (left || right))
      return arena_printf(a, "wl=%lld,wr=%lld", side_of(left), side_of(right));
    if (!strcmp(r->param, "paged") && page) return arena_printf(a, "page=%s", page);
    return r->least ? r->least : arena_printf(a, "seqlens_q=%s,seqlens_k=%s", sq, sk);
  }
  return NULL;
}

static bool is_shape_of(Arena *a, const Problem *p, const char *shape) {
  ShapeForm form[SHAPE_FORMS];
  int n = planner_shape_forms(a, p, NULL, form);
  for (int i = 0; i < n; i++)
    if (!strcmp(form[i].text, shape)) return true;
  return false;
}

Status planner_shape_problem(Arena *a, const char *shape, Problem **out, Diag *d) {
  Params w = {0};
  char *save = NULL, *copy = arena_strdup(a, shape);
  const char *text = "b=1";
  for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
    if (params_parse(a, &w, word, d)) return ST_INPUT;
  const char *sq = params_get(&w, "sq"), *sk = params_get(&w, "sk"), *work = params_get(&w, "work");
  const char *group = params_get(&w, "group"), *type = params_get(&w, "dtype"), *kv;
  const char *varlen = params_get(&w, "varlen");
  if (!sq || !sk || !work || !group || !type)
    return diag_fail(d, ST_INPUT, "\"%s\" is no shape", shape);
  long long heads = strtoll(work, NULL, 10), of_kv = heads > 0 ? heads : 1, of_q;
  if (__builtin_mul_overflow(of_kv, strtoll(group, NULL, 10), &of_q))
    return diag_fail(d, ST_INPUT, "\"%s\" is no shape", shape);
  bool alone = varlen && !strcmp(varlen, "mean") && strtoll(sq, NULL, 10) < 2; // of several queries
  text = arena_printf(a, "b=1,hkv=%lld,hq=%lld,sq=%s,sk=%s,dtype=%.*s", of_kv, of_q,
                      alone ? "2" : sq, sk, (int)strcspn(type, "/"), type);
  if ((kv = strchr(type, '/'))) text = arena_printf(a, "%s,dtype_kv=%s", text, kv + 1);
  for (int i = 0; i < w.n; i++) {
    const char *name = w.v[i].name, *more = rule_values(a, &w.v[i], &w);
    if (!strcmp(name, "d") || !strcmp(name, "dv") || !strcmp(name, "causal"))
      more = arena_printf(a, "%s=%s", name, w.v[i].value);
    if (more) text = arena_printf(a, "%s,%s", text, more);
  }
  Status st = problem_parse(a, text, out, d);
  if (!st && heads > 0 && !is_shape_of(a, *out, shape))
    return diag_fail(d, ST_INPUT, "\"%s\" is no shape", shape);
  return st;
}
