#include "variant.h"

#include <stdio.h>
#include <string.h>

#include "hook.h"
#include "session.h"

enum { HASH_WORD = 8 };
static const uint64_t FNV_BASIS = 0xcbf29ce484222325u, FNV_PRIME = 0x100000001b3u;

static uint64_t hash_bytes(uint64_t h, const unsigned char *s, size_t n) {
  for (size_t i = 0; i < n; i++) h = (h ^ s[i]) * FNV_PRIME;
  return h;
}

uint64_t content_hash(const void *p, size_t n) { return hash_bytes(FNV_BASIS, p, n); }

// Each step waits for the multiplication before it: a step for each word, not each byte.
uint64_t ptx_text_hash(const char *s, size_t n) {
  uint64_t h = FNV_BASIS;
  for (; n >= HASH_WORD; s += HASH_WORD, n -= HASH_WORD) {
    uint64_t word;
    memcpy(&word, s, HASH_WORD);
    h = (h ^ word) * FNV_PRIME;
    h ^= h >> 32; // a product carries upwards only
  }
  return hash_bytes(h, (const unsigned char *)s, n);
}

const char *variant_id(Arena *a, const Variant *v) {
  const char *id = v->tmpl->name;
  for (int i = 0; i < v->params.n; i++)
    id = arena_printf(a, "%s %s=%s", id, v->params.v[i].name, v->params.v[i].value);
  return id;
}

// The PTX of a variant as data: parsed, checked, its entry found.
static Status read_back(const Expansion *x, Variant *v, Diag *d) {
  v->module = ptx_parse(v->arena, v->ptx, &v->map, d);
  if (!v->module) return ST_INPUT;
  Status st = x->hook ? hook_check_text(x, v->module, d) : ST_OK;
  if (st == ST_OK) st = ptx_check(v->module, d);
  if (st != ST_OK) return st;
  v->entry = ptx_entry(v->module, NULL);
  return v->entry ? ST_OK : diag_fail(d, ST_INPUT, "%s has no entry of its own", v->id);
}

static Status build(Session *s, const char *template_name, const Params *given,
                    const VariantOpts *opts, Variant **out, const Source **hook, Diag *d) {
  int errors = d->errors;
  Arena *a = arena_new();
  Variant *v = arena_new_of(a, Variant);
  v->arena = a;
  Expansion x = {.v = v, .opts = opts, .given = given, .d = d};
  Status st = session_expand(s, template_name, &x);
  if (st == ST_OK && x.hook && !x.hook_used)
    st = diag_error(d, (Place){.src = x.hook}, "%s has no point for a hook", template_name);
  if (st == ST_OK) {
    v->id = variant_id(a, v);
    expansion_assemble(&x);
    if (!x.opts->no_check) st = read_back(&x, v, d);
  }
  if (st == ST_OK && d->errors > errors) st = ST_INPUT;
  if (st != ST_OK) return arena_free(a), st;
  *hook = x.hook;
  *out = v;
  return ST_OK;
}

// Of all that a template can declare: every flag is set, and its types are the last.
static void most_params(const TemplateInfo *t, Arena *a, Params *out) {
  for (int i = 0; i < t->nparams; i++) {
    const ParamDecl *p = &t->params[i];
    if (p->kind == PARAM_BOOL || p->kind == PARAM_DTYPE)
      params_set(a, out, p->name, p->values[p->nvalues - 1]);
  }
}

// A hook is checked by two templates, whose names it leaves alone too: told when it is read, not
// when it is verified.
static Status prove_hook(Session *s, const Source *hook, const VariantOpts *opts, Diag *d) {
  static const char *const by[] = {"hook_eval", "oracle_f64"};
  SessionFile *file = session_file_of(s, hook);
  Status st = ST_OK;
  for (size_t i = 0; i < sizeof by / sizeof *by && !file->proved && st == ST_OK; i++) {
    Arena *a = arena_new();
    Params params = {0};
    const TemplateInfo *info;
    Variant *v = NULL;
    st = session_template(s, by[i], &info, d);
    if (st == ST_OK) most_params(info, a, &params);
    VariantOpts plain = {.hook_path = opts->hook_path,
                         .step_limit = opts->step_limit,
                         .memory_limit = opts->memory_limit};
    if (st == ST_OK) st = build(s, by[i], &params, &plain, &v, &hook, d);
    variant_free(v);
    arena_free(a);
  }
  file->proved |= st == ST_OK;
  return st;
}

Status variant_build(Session *s, const char *template_name, const Params *given,
                     const VariantOpts *opts, Variant **out, Diag *d) {
  static const VariantOpts none = {0};
  const Source *hook;
  *out = NULL;
  if (!opts) opts = &none;
  Status st = build(s, template_name, given, opts, out, &hook, d);
  if (st != ST_OK || !hook || opts->no_check) return st;
  st = prove_hook(s, hook, opts, d);
  if (st == ST_OK) return ST_OK;
  variant_free(*out);
  *out = NULL;
  return st;
}

void variant_free(Variant *v) {
  if (v) arena_free(v->arena);
}

Status variant_legal(Session *s, const char *template_name, const Params *given,
                     const VariantOpts *opts, Arena *a, Params *resolved, const char **why_not,
                     Diag *d) {
  static const VariantOpts none = {0};
  Arena *own = arena_new();
  Variant *v = arena_new_of(own, Variant);
  v->arena = own;
  Expansion x = {.v = v,
                 .opts = opts ? opts : &none,
                 .given = given,
                 .d = d,
                 .declare_only = true,
                 .probe = true};
  Status st = session_expand(s, template_name, &x);
  *why_not = x.failed_constraint ? arena_strdup(a, x.failed_constraint) : NULL;
  for (int i = 0; i < v->params.n; i++)
    params_set(a, resolved, v->params.v[i].name, v->params.v[i].value);
  arena_free(own);
  return st;
}
