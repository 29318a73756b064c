// What docs/kernels.md and docs/embedding.md say of the templates is what the templates declare.
#include "page_kit.h"

#include "expand.h"

static Variant *build(Pages *p, const TemplateInfo *t, const Params *given, const char *hook) {
  Variant *v;
  VariantOpts opts = {.hook_path = hook};
  return variant_build(p->session, t->name, given, &opts, &v, p->d) ? NULL : v;
}

// ---- kernels.md: what each kernel takes ---------------------------------------------------------
static char *joined(Pages *p, const ParamDecl *d) {
  char *s = d ? "" : "-";
  for (int i = 0; d && i < d->nvalues; i++)
    s = arena_printf(p->a, "%s%s%s", s, i ? " " : "", d->values[i]);
  return s;
}

static char *sm_of(Pages *p, const Variant *v) {
  return arena_printf(p->a, "sm_%d%.1s", v->module->sm & 0xfff, &v->module->sm_suffix);
}

// The least target, and that of element types which want more.
static char *targets(Pages *p, const TemplateInfo *t) {
  static const char *const types[] = {"dtype", "dtype_kv"};
  Variant *v = build(p, t, &(Params){0}, NULL);
  if (!v) fail_msg("%s", diag_text(p->d));
  char *least = sm_of(p, v), *out = least;
  variant_free(v);
  for (int k = 0; k < 2; k++) {
    const ParamDecl *d = param_of(t, types[k]);
    for (int i = 0; d && i < d->nvalues; i++) {
      Params given = {0};
      params_set(p->a, &given, types[k], d->values[i]);
      v = build(p, t, &given, NULL);
      diag_reset(p->d);
      if (v && strcmp(sm_of(p, v), least))
        out = arena_printf(p->a, "%s, %s: %s", out, d->values[i], sm_of(p, v));
      variant_free(v);
    }
  }
  return out;
}

static char *types(Pages *p, const TemplateInfo *t) {
  const ParamDecl *kv = param_of(t, "dtype_kv"), *o = param_of(t, "dtype_o");
  char *s = joined(p, param_of(t, "dtype"));
  if (kv) s = arena_printf(p->a, "%s; k, v: %s", s, joined(p, kv));
  if (o) s = arena_printf(p->a, "%s; o: %s", s, joined(p, o));
  return s;
}

static void what_each_takes(void **state) {
  static const char *const features[] = {"causal", "window", "softcap", "alibi", "sinks",
                                         "varlen", "paged",  "append"};
  static const char heading[] = "What each kernel takes";
  Pages *p = *state;
  Rows want = {0};
  for (int i = 0; i < p->n; i++) {
    const TemplateInfo *t = p->all[i];
    if (!makes_attention(t)) continue;
    const ParamDecl *k = param_of(t, "head_dim"), *v = param_of(t, "head_dim_v");
    char *row = arena_printf(p->a, "| `%s` | %s | %s | %s | %s |", t->name, targets(p, t),
                             types(p, t), joined(p, k), v ? joined(p, v) : "as k");
    if (v && !strcmp(joined(p, k), joined(p, v))) // any of them
      row = arena_printf(p->a, "| `%s` | %s | %s | %s | any |", t->name, targets(p, t), types(p, t),
                         joined(p, k));
    for (size_t f = 0; f < sizeof features / sizeof *features; f++)
      row = arena_printf(p->a, "%s %s |", row, param_of(t, features[f]) ? "yes" : "-");
    Variant *hooked = build(p, t, &(Params){0}, SOURCE_DIR "/examples/hooks/cap.hook");
    diag_reset(p->d);
    row = arena_printf(p->a, "%s %s |", row, hooked ? "yes" : "-");
    variant_free(hooked);
    *arena_push(p->a, want.v, want.n, want.cap) = row;
  }
  Rows got = table_under(p, page_text(p, "kernels.md"), heading);
  hold_rows("kernels.md", heading, &got, &want);
}

// ---- kernels.md: what the defaults take of an SM; registers are in test_pages_full --------------
static void what_defaults_take(void **state) {
  static const char heading[] = "What the defaults take of an SM";
  Pages *p = *state;
  Rows want = {0};
  for (int i = 0; i < p->n; i++) {
    if (!makes_attention(p->all[i])) continue;
    Variant *v = build(p, p->all[i], &(Params){0}, NULL);
    if (!v) fail_msg("%s", diag_text(p->d));
    *arena_push(p->a, want.v, want.n, want.cap) = arena_printf(
        p->a, "| `%s` | %u | %llu |", p->all[i]->name,
        v->launch.block[0] * v->launch.block[1] * v->launch.block[2],
        (unsigned long long)(v->launch.smem_bytes + v->entry->shared_bytes));
    variant_free(v);
  }
  Rows got = table_under(p, page_text(p, "kernels.md"), heading);
  hold_rows("kernels.md", heading, &got, &want);
}

// ---- embedding.md: every argument ---------------------------------------------------------------
static int unnamed(Pages *p, const Variant *v, const char *page, Params *said) {
  for (int i = 0; i < v->nargs; i++) {
    const char *name = v->args[i].name;
    if (v->args[i].role == ARG_WORK || params_get(said, name)) continue; // psm_bind_workspace
    if (strstr(page, arena_printf(p->a, "`%s`", name))) continue;
    print_message("docs/embedding.md does not name `%s` of %s\n", name, v->id);
    params_set(p->a, said, name, "");
  }
  return said->n;
}

static void every_argument(void **state) {
  Pages *p = *state;
  const char *page = page_text(p, "embedding.md");
  Params said = {0};
  int bad = 0, built = 0;
  for (int i = 0; i < p->n; i++) {
    const TemplateInfo *t = p->all[i];
    for (int k = 0; makes_attention(t) && k < t->nparams; k++)
      for (int j = 0; j < t->params[k].nvalues; j++) {
        const ParamDecl *d = &t->params[k];
        if (d->kind != PARAM_BOOL && d->kind != PARAM_DTYPE) continue;
        Params given = {0};
        params_set(p->a, &given, d->name, d->values[j]);
        if (!strcmp(d->name, "check")) params_set(p->a, &given, "paged", "1");
        Variant *v = build(p, t, &given, NULL);
        diag_reset(p->d);
        if (!v) continue;
        built++;
        bad = unnamed(p, v, page, &said);
        variant_free(v);
      }
  }
  assert_true(built > 100);
  assert_int_equal(bad, 0);
}

// ---- templates.md: every function of the language -----------------------------------------------
static void every_function(void **state) {
  static const luaL_Reg *const tables[] = {declare_functions, block_functions, entry_functions,
                                           memory_functions,  value_functions, hook_functions,
                                           fragment_functions};
  Pages *p = *state;
  const char *page = page_text(p, "templates.md");
  int bad = 0, n = 0;
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    for (const luaL_Reg *f = tables[i]; f->name; f++, n++) {
      bool named = strstr(page, arena_printf(p->a, "`%s(", f->name)) ||
                   strstr(page, arena_printf(p->a, "`%s`", f->name)) ||
                   strstr(page, arena_printf(p->a, "`%s {", f->name)) ||
                   strstr(page, arena_printf(p->a, "`%s \"", f->name));
      if (!named) print_message("docs/templates.md does not name %s\n", f->name), bad++;
    }
  assert_true(n > 30);
  assert_int_equal(bad, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_each_takes),
                                     cmocka_unit_test(what_defaults_take),
                                     cmocka_unit_test(every_argument),
                                     cmocka_unit_test(every_function)};
  return cmocka_run_group_tests(tests, pages_open, pages_close);
}
