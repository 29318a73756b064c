// Problem and Params: some of a Problem's values are parameters of the template (head_dim, causal,
// dtype), and the two must agree.
#include <stdlib.h>
#include <string.h>

#include "problem.h"

static const char *bool_text(const char *v) {
  return !strcmp(v, "true") ? "1" : !strcmp(v, "false") ? "0" : v;
}

static bool same_value(const char *x, const char *y) { return !strcmp(bool_text(x), bool_text(y)); }

// What the Problem says about parameter `name`, as text; NULL when it leaves it open.
static const char *fixed_text(Arena *a, const Problem *p, const char *name) {
  const ProblemName *known = problem_name_find(name);
  if (known && known->kind == PROBLEM_DTYPE) {
    const Dtype *t = problem_dtype(p, known->name);
    return t ? dtype_name(*t) : NULL;
  }
  const Value *v = problem_value(p, name);
  if (!v || v->is_float || v->list) return NULL; // no parameter takes a fraction or a list
  return arena_printf(a, "%lld", (long long)v->i);
}

static bool has_arg(const TemplateInfo *t, const char *name) {
  for (int i = 0; i < t->nargs; i++)
    if (!strcmp(t->args[i].name, name)) return true;
  return false;
}

static Status fix_param(Arena *a, const ParamDecl *decl, const char *want, Params *params,
                        Diag *d) {
  const char *given = params_get(params, decl->name);
  if (given && !same_value(given, want))
    return diag_fail(d, ST_INPUT, "%s=%s of the parameters and %s=%s of the problem disagree",
                     decl->name, given, decl->name, want);
  if (given) return ST_OK;
  // In the template's own spelling, where it has one.
  for (int i = 0; i < decl->nvalues; i++)
    if (same_value(decl->values[i], want)) want = decl->values[i];
  params_set(a, params, decl->name, want);
  return ST_OK;
}

// ---- rules -------------------------------------------------------------------------------------
static bool has_softcap(const Problem *p) { return problem_float(p, "softcap", 0) > 0; }
static bool has_alibi(const Problem *p) { return problem_int(p, "alibi", 0) != 0; }
static bool has_sinks(const Problem *p) { return problem_int(p, "sinks", 0) != 0; }
static bool has_pages(const Problem *p) { return problem_int(p, "page_size", 0) > 0; }
static bool has_shared_kv(const Problem *p) { return problem_int(p, "shared_kv", 0) != 0; }
static bool has_dtype_kv(const Problem *p) {
  return p->has_dtype_kv && p->has_dtype && p->dtype_kv != p->dtype;
}
static bool has_head_dim_v(const Problem *p) {
  return problem_head_dim_v(p) != problem_int(p, "head_dim", problem_head_dim_v(p));
}

// In the order in which a planner's shape has them.
const ProblemRule problem_rules[] = {
    {"window", "sliding window", problem_windowed, true, "wl=64"},
    {"softcap", "soft cap", has_softcap, true, "softcap=30"},
    {"alibi", "ALiBi slopes", has_alibi, true, "alibi=1"},
    {"sinks", "attention sinks", has_sinks, true, "sinks=1"},
    {"varlen", "length of its own for each sequence", problem_varlen, true, NULL},
    {"paged", "block table for pages of keys", has_pages, true, "page=64"},
    {"shared_kv", "K and V of one tensor", has_shared_kv, true, "shared=1"},
    {"dtype_kv", "element type of its own for k and v", has_dtype_kv, false, NULL},
    {"head_dim_v", "head_dim_v of its own", has_head_dim_v, false, NULL},
};
const int problem_nrules = sizeof problem_rules / sizeof *problem_rules;

static void fix_rules(Arena *a, const Problem *p, const TemplateInfo *t, Params *params, Diag *d) {
  for (int i = 0; i < problem_nrules; i++) {
    const ProblemRule *r = &problem_rules[i];
    if (!r->asked(p)) continue;
    const ParamDecl *decl = template_param(t, r->param);
    if (!decl)
      diag_fail(d, ST_INPUT, "%s has no %s, and the problem asks for one", t->name, r->what);
    else if (r->flag)
      fix_param(a, decl, "1", params, d);
  }
}

Status problem_fix_params(Arena *a, const Problem *p, const TemplateInfo *t, Params *params,
                          Diag *d) {
  int errors = d->errors;
  for (int i = 0; i < t->nparams; i++) {
    const char *want = fixed_text(a, p, t->params[i].name);
    if (want) fix_param(a, &t->params[i], want, params, d);
  }
  // A mask that the template doesn't have can only be dropped when it masks nothing.
  bool attention = t->kind == KIND_PREFILL || t->kind == KIND_DECODE || t->kind == KIND_ORACLE;
  bool masks = problem_int(p, "causal", 0) && problem_int(p, "seqlen_q", 1) > 1;
  if (attention && masks && !template_param(t, "causal") && !has_arg(t, "causal"))
    diag_fail(d, ST_INPUT, "%s has no causal mask, and with seqlen_q=%lld the problem needs one",
              t->name, (long long)problem_int(p, "seqlen_q", 1));
  if (attention) fix_rules(a, p, t, params, d);
  return d->errors > errors ? ST_INPUT : ST_OK;
}

// What a template has without being asked is no news about the Problem: a rule that is off, and
// values as long as keys.
static bool says_nothing(const Problem *p, const char *name, int64_t value) {
  bool rule = !strcmp(name, "alibi") || !strcmp(name, "sinks");
  return (rule && !value) ||
         (!strcmp(name, "head_dim_v") && value == problem_int(p, "head_dim", 0));
}

void problem_fill_from_params(Problem *p, const Params *params) {
  for (int i = 0; i < params->n; i++) {
    const Param *param = &params->v[i];
    const ProblemName *known = problem_name_find(param->name);
    if (!known || known->kind == PROBLEM_FLOAT || problem_gives(p, known->name)) continue;
    if (known->kind == PROBLEM_DTYPE) {
      Dtype t;
      const char *other = params_get(params, "dtype");
      bool same = strcmp(known->name, "dtype") && other && !strcmp(param->value, other);
      if (!same && dtype_parse(param->value, &t)) problem_set_dtype(p, known->name, t);
      continue;
    }
    int64_t value = strtoll(bool_text(param->value), NULL, 10);
    if (says_nothing(p, known->name, value)) continue;
    if (value >= known->min) problem_set_int(p, known->name, value); // chunks=0: not pinned
  }
}
