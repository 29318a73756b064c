// The planner's shapes: buckets of problems, as text, and the least problem of one.
#include "planner.h"

#include <stdlib.h>
#include <string.h>

static int64_t bucket(int64_t n) {
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

char *planner_shape(Arena *a, const Problem *p) { return planner_shape_of(a, p, NULL); }

char *planner_shape_of(Arena *a, const Problem *given, const Params *built) {
  Problem *p = problem_copy(a, given);
  if (built) problem_fill_from_params(p, built);
  int64_t hq = problem_int(p, "heads_q", 1), hkv = problem_int(p, "heads_kv", hq);
  int64_t sq = problem_int(p, "seqlen_q", 1), d = problem_int(p, "head_dim", 0);
  const char *kv = p->has_dtype_kv && p->dtype_kv != p->dtype ? dtype_name(p->dtype_kv) : NULL;
  char *text = arena_printf(
      a, "dtype=%s%s%s d=%lld group=%lld causal=%lld sq=%lld sk=%lld work=%lld",
      p->has_dtype ? dtype_name(p->dtype) : "f32", kv ? "/" : "", kv ? kv : "", (long long)d,
      (long long)(hkv > 0 ? hq / hkv : 0), (long long)problem_int(p, "causal", 0),
      (long long)bucket(sq), (long long)bucket(problem_int(p, "seqlen_k", 0)),
      (long long)bucket(problem_int(p, "batch", 1) * hkv));
  if (problem_int(p, "head_dim_v", d) != d)
    text = arena_printf(a, "%s dv=%lld", text, (long long)problem_head_dim_v(p));
  for (int i = 0; i < problem_nrules; i++)
    if (problem_rules[i].flag && has_rule(&problem_rules[i], p, built))
      text = arena_printf(a, "%s %s=1", text, rule_word(&problem_rules[i]));
  return text;
}

bool planner_shape_rounds(const Problem *p) {
  int64_t hkv = problem_int(p, "heads_kv", problem_int(p, "heads_q", 1));
  const int64_t n[] = {problem_int(p, "seqlen_q", 1), problem_int(p, "seqlen_k", 0),
                       problem_int(p, "batch", 1) * hkv};
  for (int i = 0; i < 3; i++)
    if (bucket(n[i]) != n[i]) return true;
  return false;
}

// What makes the least problem ask for the rule that a word of the shape names, NULL when it names
// none.
static const char *rule_values(Arena *a, const Param *word, const char *sq, const char *sk) {
  for (int i = 0; i < problem_nrules; i++) {
    const ProblemRule *r = &problem_rules[i];
    if (!r->flag || strcmp(rule_word(r), word->name) || strcmp(word->value, "1")) continue;
    return r->least ? r->least : arena_printf(a, "seqlens_q=%s,seqlens_k=%s", sq, sk);
  }
  return NULL;
}

// The least problem of a shape: its own planner_shape is that text again.
Status planner_shape_problem(Arena *a, const char *shape, Problem **out, Diag *d) {
  Params w = {0};
  char *save = NULL, *copy = arena_strdup(a, shape);
  const char *text = "b=1";
  for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
    if (params_parse(a, &w, word, d)) return ST_INPUT;
  const char *sq = params_get(&w, "sq"), *sk = params_get(&w, "sk"), *work = params_get(&w, "work");
  const char *group = params_get(&w, "group"), *type = params_get(&w, "dtype"), *kv;
  if (!sq || !sk || !work || !group || !type)
    return diag_fail(d, ST_INPUT, "\"%s\" is no shape", shape);
  long long heads = strtoll(work, NULL, 10), of_kv = heads > 0 ? heads : 1, of_q;
  if (__builtin_mul_overflow(of_kv, strtoll(group, NULL, 10), &of_q))
    return diag_fail(d, ST_INPUT, "\"%s\" is no shape", shape);
  text = arena_printf(a, "b=1,hkv=%lld,hq=%lld,sq=%s,sk=%s,dtype=%.*s", of_kv, of_q, sq, sk,
                      (int)strcspn(type, "/"), type);
  if ((kv = strchr(type, '/'))) text = arena_printf(a, "%s,dtype_kv=%s", text, kv + 1);
  for (int i = 0; i < w.n; i++) {
    const char *name = w.v[i].name, *more = rule_values(a, &w.v[i], sq, sk);
    if (!strcmp(name, "d") || !strcmp(name, "dv") || !strcmp(name, "causal"))
      more = arena_printf(a, "%s=%s", name, w.v[i].value);
    if (more) text = arena_printf(a, "%s,%s", text, more);
  }
  Status st = problem_parse(a, text, out, d);
  if (!st && heads > 0 && strcmp(planner_shape(a, *out), shape))
    return diag_fail(d, ST_INPUT, "\"%s\" is no shape", shape);
  return st;
}
