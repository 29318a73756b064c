// Every template's PTX through NVIDIA's assembler, where there is one: accepted for each family of
// chips, and without register spills at the defaults of every head_dim and dtype.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "variant.h"

static const int targets[] = {80, 90, 100, 120};

typedef struct Context {
  Diag *d;
  Session *session;
  Arena *a;
} Context;

static int open_context(void **state) {
  Context *c = calloc(1, sizeof *c);
  c->d = diag_new();
  c->a = arena_new();
  c->session = session_open(NULL, c->d);
  *state = c;
  return c->session ? 0 : -1;
}

static int close_context(void **state) {
  Context *c = *state;
  session_close(c->session);
  arena_free(c->a);
  diag_free(c->d);
  free(c);
  return 0;
}

static bool have_ptxas(void) { return system("command -v ptxas >/dev/null 2>&1") == 0; }

// What the assembler says; the pieces of PTX go to a temporary file.
static char *assemble(Arena *a, const Source *ptx, const char *sm, int *status) {
  char path[] = "/tmp/ptxsmith-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, ptx->text, ptx->len), (ssize_t)ptx->len);
  close(fd);
  FILE *f = popen(arena_printf(a, "ptxas -arch=sm_%s -v -o /dev/null %s 2>&1", sm, path), "r");
  assert_non_null(f);
  char *said = arena_strdup(a, ""), line[512];
  while (fgets(line, sizeof line, f)) said = arena_printf(a, "%s%s", said, line);
  *status = pclose(f);
  unlink(path);
  return said;
}

// C75xx: products that are serialised, fences put in, setmaxnreg ignored.
static void check_hooked(Context *c, const char *name, const Params *params, int target,
                         char suffix, const char *hook) {
  Variant *v;
  VariantOpts opts = {.sm = target, .sm_suffix = suffix, .hook_path = hook};
  if (variant_build(c->session, name, params, &opts, &v, c->d)) fail_msg("%s", diag_text(c->d));
  const char *sm = arena_printf(c->a, "%d%.1s", target, &suffix);
  int status;
  char *said = assemble(c->a, v->ptx, sm, &status);
  if (status) fail_msg("%s for sm_%s: %s", v->id, sm, said);
  if (!strstr(said, " 0 bytes spill stores, 0 bytes spill loads"))
    fail_msg("%s for sm_%s spills: %s", v->id, sm, said);
  if (strstr(said, "(C75")) fail_msg("%s for sm_%s: %s", v->id, sm, said);
  variant_free(v);
  arena_reset(c->a);
}

static void check_for(Context *c, const char *name, const Params *params, int target, char suffix) {
  check_hooked(c, name, params, target, suffix, NULL);
}

// A template for one chip's own instructions (sm_90a) runs on no other.
static void check(Context *c, const char *name, const Params *params) {
  Variant *least;
  if (variant_build(c->session, name, params, NULL, &least, c->d))
    fail_msg("%s", diag_text(c->d));
  int sm = least->module->sm; // 8-bit products: sm_89
  char suffix = least->module->sm_suffix;
  variant_free(least);
  if (suffix) check_for(c, name, params, sm, suffix);
  for (size_t i = 0; !suffix && i < sizeof targets / sizeof *targets; i++)
    if (targets[i] >= sm) check_for(c, name, params, targets[i], 0);
}

static const ParamDecl *declared(const TemplateInfo *t, const char *name) {
  for (int i = 0; i < t->nparams; i++)
    if (!strcmp(t->params[i].name, name)) return &t->params[i];
  return NULL;
}

// The defaults of every head_dim and dtype, causal where there is such a thing.
static void check_template(Context *c, const TemplateInfo *t) {
  static const char *const none[] = {NULL};
  const ParamDecl *dim = declared(t, "head_dim"), *dtype = declared(t, "dtype");
  const char *const *dims = dim ? (const char *const *)dim->values : none;
  const char *const *dtypes = dtype ? (const char *const *)dtype->values : none;
  for (int i = 0; i < (dim ? dim->nvalues : 1); i++)
    for (int k = 0; k < (dtype ? dtype->nvalues : 1); k++) {
      Params p = {0};
      Arena *a = arena_new();
      if (dim) params_set(a, &p, "head_dim", dims[i]);
      if (dtype) params_set(a, &p, "dtype", dtypes[k]);
      if (declared(t, "causal")) params_set(a, &p, "causal", k % 2 ? "1" : "0");
      check(c, t->name, &p);
      arena_free(a);
    }
}

static void every_template(void **state) {
  Context *c = *state;
  const TemplateInfo **all;
  int n;
  assert_int_equal(session_templates(c->session, &all, &n, c->d), ST_OK);
  assert_true(n >= 5);
  for (int i = 0; i < n; i++) check_template(c, all[i]);
}

// The hooks of examples/hooks/ where registers are scarcest.  bias.hook spills a few bytes from
// head_dim 96 on (docs/templates.md).
static void with_hooks(void **state) {
  static const struct Case {
    const char *hook, *params;
  } cases[] = {{"bias", "head_dim=64"},      {"document", "head_dim=64"},
               {"document", "head_dim=128"}, {"cap", "head_dim=64"},
               {"cap", "head_dim=128"},      {"causal", "head_dim=128"}};
  Context *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Arena *a = arena_new();
    Params p = {0};
    params_parse(a, &p, cases[i].params, c->d);
    check_hooked(c, "prefill_mma", &p, 90, 'a',
                 arena_printf(a, SOURCE_DIR "/examples/hooks/%s.hook", cases[i].hook));
    arena_free(a);
  }
}

// Features that shift the registers, for one chip.
static void with_features(void **state) {
  static const char *const names[] = {"prefill_mma", "prefill_wgmma"};
  static const char *const features[][2] = {
      {"varlen", "head_dim=64"}, {"varlen", "head_dim=128"}, {"window", "head_dim=64"},
      {"window", "head_dim=128"}};
  Context *c = *state;
  for (int t = 0; t < 2; t++)
    for (int i = 0; i < 4; i++) {
      Params p = {0};
      Arena *a = arena_new();
      params_set(a, &p, features[i][0], "true");
      params_set(a, &p, "causal", i % 2 ? "true" : "false");
      params_parse(a, &p, features[i][1], c->d);
      check_for(c, names[t], &p, 90, t ? 'a' : 0);
      arena_free(a);
    }
}

static void check_all(Context *c, const char *name, const char *const *variants, int n) {
  for (int i = 0; i < n; i++) {
    Params p = {0};
    Arena *a = arena_new();
    char *rest = arena_strdup(a, variants[i]);
    for (char *word; (word = strtok_r(rest, " ", &rest));)
      assert_int_equal(params_parse(a, &p, word, c->d), ST_OK);
    check_for(c, name, &p, 90, 'a');
    arena_free(a);
  }
}

// What is off by default, for what it is made for.
static void parts_of_tiles(void **state) {
  static const char *const mma[] = {
      "narrow=32 slack=8 window=1 head_dim=64 causal=1",
      "narrow=32 slack=8 window=1 head_dim=128 causal=1",
      "narrow=32 slack=8 varlen=1 head_dim=64 causal=1",
      "narrow=32 slack=8 varlen=1 head_dim=128 causal=1"};
  static const char *const wgmma[] = {"half=1 window=1 head_dim=64 causal=1",
                                      "half=1 window=1 head_dim=128 causal=1"};
  check_all(*state, "prefill_mma", mma, sizeof mma / sizeof *mma);
  check_all(*state, "prefill_wgmma", wgmma, sizeof wgmma / sizeof *wgmma);
}

// The most registers on Hopper: e4m3's transpose in 32 of them, blocks that share an SM, every
// rule; of 512 threads in a block.
static void on_hopper(void **state) {
  static const char *const prefill[] = {
      "dtype=e4m3 causal=1 head_dim=64", "dtype=e4m3 causal=1 head_dim=128",
      "dtype=e4m3 causal=1 head_dim=256", "dtype=e4m3 tile_q=128 tile_k=224",
      "dtype=e4m3 varlen=1 softcap=1 alibi=1 sinks=1 window=1",
      "head_dim=64 causal=1 tile_q=64 tile_k=64 per_sm=3 stages=3",
      "head_dim=128 causal=1 tile_q=64 tile_k=80 per_sm=2",
      "head_dim=128 causal=1 softcap=1 alibi=1 sinks=1 window=1",
      "head_dim=256 causal=1 softcap=1 alibi=1 sinks=1 window=1"};
  static const char *const latent[] = {
      "fused=0 tile_q=32", "pair=1 causal=1 softcap=1 alibi=1 sinks=1 window=1 varlen=1 paged=1",
      "tile_q=32 chains=2 causal=1 varlen=1 paged=1 check=1",
      "tile_q=32 chains=2 causal=1 softcap=1 alibi=1 sinks=1 window=1 varlen=1 paged=1"};
  check_all(*state, "prefill_wgmma", prefill, sizeof prefill / sizeof *prefill);
  check_all(*state, "decode_latent_few", latent, sizeof latent / sizeof *latent);
}

// What test_expand expects is PTX to the assembler too.
static void golden_files(void **state) {
  (void)state;
  assert_int_equal(system("for f in " TESTS_DIR "/expand/good/*.ptx; do "
                          "ptxas -arch=sm_90a $f -o /dev/null || exit 1; done"),
                   0);
}

int main(void) {
  if (!have_ptxas()) {
    printf("skipped: no ptxas on the PATH\n");
    return 77;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_template), cmocka_unit_test(with_features),
      cmocka_unit_test(parts_of_tiles),
      cmocka_unit_test(with_hooks), cmocka_unit_test(on_hopper), cmocka_unit_test(golden_files)};
  return cmocka_run_group_tests(tests, open_context, close_context);
}
