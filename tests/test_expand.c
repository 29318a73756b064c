// Golden files: tests/expand/templates holds templates, good/ what they become byte for byte, bad/
// the exact diagnostics.  PTXSMITH_UPDATE=1 writes them anew: read the difference before you keep
// it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "variant.h"

typedef struct Fixture {
  Session *s;
  Arena *arena;
  Diag *d;
} Fixture;

static int setup(void **state) {
  static Fixture f;
  f = (Fixture){.arena = arena_new(), .d = diag_new()};
  f.s = session_open("expand", f.d); // relative: messages have no machine's paths in them
  *state = &f;
  return f.s ? 0 : -1;
}

static int teardown(void **state) {
  Fixture *f = *state;
  session_close(f->s);
  diag_free(f->d);
  arena_free(f->arena);
  return 0;
}

// "basic n=1 fast=1": a template and its parameters.
static Variant *build(Fixture *f, const char *call, VariantOpts opts) {
  char *words = arena_strdup(f->arena, call), *name = strtok(words, " ");
  Params given = {0};
  for (char *w; (w = strtok(NULL, " "));)
    assert_int_equal(params_parse(f->arena, &given, w, f->d), 0);
  Variant *v = NULL;
  diag_reset(f->d);
  Status st = variant_build(f->s, name, &given, &opts, &v, f->d);
  assert_true((st == ST_OK) == (v != NULL));
  assert_true((st == ST_OK) == (f->d->errors == 0));
  if (st != ST_OK) assert_int_equal(st, ST_INPUT);
  return v;
}

static void golden(Fixture *f, const char *path, const char *text) {
  if (getenv("PTXSMITH_UPDATE")) {
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    return;
  }
  Source *want;
  Diag *d = diag_new();
  if (source_read(f->arena, path, &want, d) != ST_OK) fail_msg("%s", diag_text(d));
  diag_free(d);
  if (strcmp(want->text, text) != 0) fail_msg("differs from %s:\n%s", path, text);
}

static void good_templates(void **state) {
  static const struct {
    const char *file, *call, *hook;
    bool loc;
  } cases[] = {
      {"basic", "basic", NULL, false},
      {"basic_mul", "basic n=1 fast=true dtype=bf16 mode=mul", NULL, false},
      {"basic_loc", "basic", NULL, true},
      {"blocks_even", "blocks", NULL, false},
      {"blocks_two", "blocks ratio=two", NULL, false},
      {"blocks_table", "blocks ratio=table", NULL, false},
      {"blocks_long", "blocks ratio=long", NULL, false},
      {"memory_f64", "memory", NULL, false},
      {"map", "map", NULL, false},
      {"memory_f32", "memory dtype=f32", NULL, false},
      {"memory_f16", "memory dtype=f16", NULL, false},
      {"memory_bf16", "memory dtype=bf16", NULL, false},
      {"include", "include", NULL, false},
      {"include_loc", "include", NULL, true},
      {"hooked_not", "hooked", NULL, false},
      {"hooked", "hooked", "expand/hooks/cap.ptx", false},
      {"hooked_loc", "hooked", "expand/hooks/cap.ptx", true},
  };
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    VariantOpts opts = {.hook_path = cases[i].hook, .loc = cases[i].loc};
    Variant *v = build(f, cases[i].call, opts);
    if (!v) fail_msg("%s: %s", cases[i].call, diag_text(f->d));
    golden(f, arena_printf(f->arena, "expand/good/%s.ptx", cases[i].file), v->ptx->text);
    variant_free(v);
  }
}

static void bad_templates(void **state) {
  static const struct {
    const char *file, *call, *hook;
  } cases[] = {
      {"syntax", "bad_syntax", NULL},
      {"rank", "bad_rank", NULL},
      {"first", "bad_first", NULL},
      {"unclosed", "bad_unclosed", NULL},
      {"runtime", "bad_runtime", NULL},
      {"runaway", "bad_runaway", NULL},
      {"endless_ptx", "bad_endless_ptx", NULL},
      {"hog", "bad_hog", NULL},
      {"pattern", "bad_pattern", NULL},
      {"pcall", "bad_pcall", NULL},
      {"pcall_names", "bad_pcall_names", NULL},
      {"pcall_texts", "bad_pcall_texts", NULL},
      {"recursion", "bad_recursion", NULL},
      {"undefined", "bad_undefined", NULL},
      {"float", "bad_float", NULL},
      {"nil_value", "bad_nil_value", NULL},
      {"line_break", "bad_line_break", NULL},
      {"constrain", "bad_constrain vec=8", NULL},
      {"parameters", "bad_constrain vecc=8 vec=16 dtype=f23", NULL},
      {"no_template", "bsic", NULL},
      {"late", "bad_late", NULL},
      {"include", "bad_include", NULL},
      {"include_path", "bad_include_path", NULL},
      {"in_function", "bad_in_function", NULL},
      {"dollar", "bad_dollar", NULL},
      {"no_body", "bad_no_body", NULL},
      {"domain", "bad_domain", NULL},
      {"arg_type", "bad_arg_type", NULL},
      {"dimension", "bad_dimension", NULL},
      {"ceiling", "bad_ceiling", NULL},
      {"map_box", "bad_map_box", NULL},
      {"fragment_type", "bad_fragment_type", NULL},
      {"fragment_column", "bad_fragment_column", NULL},
      {"fragment_kind", "bad_fragment_kind", NULL},
      {"fragment_pitch", "bad_fragment_pitch", NULL},
      {"map_swizzle", "bad_map_swizzle", NULL},
      {"map_optional", "bad_map_optional", NULL},
      {"map_parts", "bad_map_parts", NULL},
      {"map_promote", "bad_map_promote", NULL},
      {"multiple", "bad_multiple", NULL},
      {"partial", "bad_partial", NULL},
      {"field", "bad_field", NULL},
      {"ptx", "bad_ptx", NULL},
      {"hook_wrong", "hooked", "expand/hooks/wrong.ptx"},
      {"hook_late", "hooked", "expand/hooks/late.ptx"},
      {"hook_clash", "hooked", "expand/hooks/clash.ptx"},
      {"hook_undefined", "hooked", "expand/hooks/undefined.ptx"},
      {"hook_ptx", "hooked", "expand/hooks/ptx.ptx"},
      {"hook_missing", "hooked", "expand/hooks/none.ptx"},
  };
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    VariantOpts opts = {.hook_path = cases[i].hook, .step_limit = 4000000};
    Variant *v = build(f, cases[i].call, opts);
    if (v) fail_msg("%s was built", cases[i].call);
    golden(f, arena_printf(f->arena, "expand/bad/%s.txt", cases[i].file), diag_text(f->d));
  }
  // The session is as good as before.
  Variant *v = build(f, "basic", (VariantOpts){0});
  assert_non_null(v);
  variant_free(v);
}

static void at_most_twenty_messages(void **state) {
  Fixture *f = *state;
  assert_null(build(f, "bad_many", (VariantOpts){0}));
  int n = 0;
  for (const DiagMsg *m = f->d->first; m; m = m->next) n++;
  assert_int_equal(n, 20);
  assert_string_equal(f->d->first->origin_file, "expand/templates/bad_many.ptx.in");
  assert_int_equal(f->d->first->origin_line, 5);
}

static void same_bytes_every_time(void **state) {
  Fixture *f = *state;
  Variant *a = build(f, "memory dtype=bf16", (VariantOpts){0});
  build(f, "bad_runtime", (VariantOpts){0});
  Diag *d = diag_new();
  Fixture other = {session_open("expand", d), f->arena, d};
  Variant *b = build(&other, "memory dtype=bf16", (VariantOpts){0});
  Variant *c = build(f, "memory dtype=f16", (VariantOpts){0});
  assert_string_equal(a->ptx->text, b->ptx->text);
  assert_string_equal(a->hash, b->hash);
  assert_string_not_equal(a->hash, c->hash);
  assert_string_equal(a->id, "memory dtype=bf16");
  // The hash is that of what follows it.
  const char *body = strchr(strchr(a->ptx->text, '\n') + 1, '\n') + 1;
  char hash[17];
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)ptx_text_hash(body, strlen(body)));
  assert_string_equal(a->hash, hash);
  variant_free(a);
  variant_free(b);
  variant_free(c);
  session_close(other.s);
  diag_free(d);
}

// FNV-1a's own test vectors.
static void hash_is_fnv(void **state) {
  (void)state;
  assert_true(content_hash("", 0) == 0xcbf29ce484222325u);
  assert_true(content_hash("a", 1) == 0xaf63dc4c8601ec8cu);
  assert_true(content_hash("foobar", 6) == 0x85944171f73967e8u);
}

// Any one byte that differs shows, whole words and the rest alike; so does a byte more.
static void text_hash_sees_every_byte(void **state) {
  (void)state;
  char text[27] = "add.s32 %sum, %sum, %x_12;";
  uint64_t seen[27 + 26 * 7];
  int n = 0;
  for (size_t len = 0; len <= 26; len++) seen[n++] = ptx_text_hash(text, len);
  for (int i = 0; i < 26; i++)
    for (int bit = 0; bit < 7; bit++) {
      text[i] ^= (char)(1 << bit);
      seen[n++] = ptx_text_hash(text, 26);
      text[i] ^= (char)(1 << bit);
    }
  for (int i = 0; i < n; i++)
    for (int k = 0; k < i; k++) assert_true(seen[i] != seen[k]);
}

// The origins of the line that has `text` in it, innermost first: "file:line kind file:line ...".
static const char *origins_of(Fixture *f, const Variant *v, const char *text) {
  for (uint32_t line = 1; line <= v->ptx->nlines; line++) {
    size_t n;
    const char *s = source_line(v->ptx, line, &n);
    if (!memmem(s, n, text, strlen(text))) continue;
    const char *out = "";
    for (const Origin *o = linemap_at(&v->map, line); o; o = o->up) {
      static const char *const kind[] = {"file", "call", "include", "hook"};
      out = arena_printf(f->arena, "%s%s:%u %s;", out, strrchr(o->src->name, '/') + 1, o->line,
                         kind[o->kind]);
    }
    return out;
  }
  return "no such line";
}

static void every_line_knows_its_origin(void **state) {
  Fixture *f = *state;
  Variant *v = build(f, "include", (VariantOpts){0});
  assert_int_equal(v->map.n, v->ptx->nlines);
  assert_string_equal(origins_of(f, v, "made by square_regs"),
                      "square.inc:3 call;include.ptx.in:7 file;");
  assert_string_equal(origins_of(f, v, "mov.f32 %square"), "include.ptx.in:8 file;");
  assert_string_equal(origins_of(f, v, ".version"), "include.ptx.in:6 file;");
  assert_string_equal(origins_of(f, v, "// hash"), "");
  variant_free(v);
  v = build(f, "hooked", (VariantOpts){.hook_path = "expand/hooks/cap.ptx"});
  assert_string_equal(origins_of(f, v, "// step 2"), "cap.ptx:10 hook;hooked.ptx.in:11 file;");
  variant_free(v);
  v = build(f, "blocks", (VariantOpts){0}); // woven lines keep their own places
  assert_string_equal(origins_of(f, v, "mov.b32 %b2"),
                      "blocks.ptx.in:19 call;blocks.ptx.in:18 call;blocks.ptx.in:11 file;");
  variant_free(v);
}

// The callers of a line that follows another one without Lua between them are looked up once.
static void lines_that_follow_know_their_callers(void **state) {
  static const struct { const char *line, *origins; } cases[] = {
      {"first once", "callers.ptx.in:5 call;callers.ptx.in:13 file;"},
      {"second once", "callers.ptx.in:6 call;callers.ptx.in:13 file;"},
      {"first again", "callers.ptx.in:5 call;callers.ptx.in:14 file;"},
      {"second again", "callers.ptx.in:6 call;callers.ptx.in:14 file;"},
      {"third", "callers.ptx.in:15 file;"},
      {"first within", "callers.ptx.in:5 call;callers.ptx.in:9 call;callers.ptx.in:16 file;"},
      {"second within", "callers.ptx.in:6 call;callers.ptx.in:9 call;callers.ptx.in:16 file;"},
      {"fourth within", "callers.ptx.in:16 file;"},
      {"fifth", "callers.ptx.in:17 file;"},
      {"second turn 2", "callers.ptx.in:6 call;callers.ptx.in:18 file;"},
  };
  Fixture *f = *state;
  Variant *v = build(f, "callers", (VariantOpts){0});
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(origins_of(f, v, cases[i].line), cases[i].origins);
  variant_free(v);
}

static void args_are_laid_out(void **state) {
  Fixture *f = *state;
  Variant *v = build(f, "basic n=3", (VariantOpts){0});
  assert_int_equal(v->nargs, 4);
  const ArgDecl *x = &v->args[0], *count = &v->args[1], *scale = &v->args[2], *y = &v->args[3];
  assert_int_equal(x->role, ARG_IN);
  assert_int_equal(x->dtype, DT_F16);
  assert_int_equal(x->rank, 3);
  assert_string_equal(x->dim[1].name, "seqlen_q");
  assert_int_equal(x->dim[1].div, 4);
  assert_null(x->dim[2].name);
  assert_int_equal(x->dim[2].n, 3);
  assert_int_equal(x->offset, 0);
  assert_int_equal(count->offset, 24); // pointer and two strides
  assert_int_equal(count->role, ARG_VALUE);
  assert_int_equal(scale->offset, 32); // 28 rounded up to 8
  assert_int_equal(y->offset, 40);
  assert_true(y->optional && !x->optional);
  assert_int_equal(v->arg_bytes, 48);
  assert_int_equal(v->entry->param_bytes, 48); // the PTX says the same
  assert_int_equal(v->launch.block[0] * v->launch.block[1], 64);
  assert_int_equal(v->launch.nwork, 2);
  assert_int_equal(v->launch.work[1].div, 16);
  variant_free(v);
}

// A tensor map follows the strides, aligned to 64, in the argument block as in the PTX.
static void maps_are_laid_out(void **state) {
  Fixture *f = *state;
  Variant *v = build(f, "map", (VariantOpts){0});
  const ArgDecl *x = &v->args[1], *y = &v->args[2];
  assert_int_equal(x->map.box[0], 1);
  assert_int_equal(x->map.box[1], 16);
  assert_int_equal(x->map.swizzle, 64);
  assert_int_equal(x->map.l2, 3);
  assert_int_equal(x->offset, 8); // behind an i32
  assert_int_equal(x->map_offset, 64); // 8 + pointer and a stride, rounded up
  assert_int_equal(y->offset, 192);
  assert_int_equal(y->map_offset, 256); // 192 + a pointer, rounded up
  assert_int_equal(v->arg_bytes, 384);
  assert_int_equal(v->entry->param_bytes, 384);
  assert_int_equal(v->launch.per_sm, 2);
  variant_free(v);
}

static void targets(void **state) {
  Fixture *f = *state;
  Variant *v = build(f, "basic", (VariantOpts){.sm = 90});
  assert_non_null(strstr(v->ptx->text, ".version 7.8\n.target sm_90\n"));
  variant_free(v);
  v = build(f, "include", (VariantOpts){.sm = 90, .sm_suffix = 'a'});
  assert_non_null(strstr(v->ptx->text, ".version 8.0\n.target sm_90a\n"));
  variant_free(v);
  assert_null(build(f, "basic", (VariantOpts){.sm = 75}));
  assert_string_equal(f->d->first->what, "basic needs sm_80 or later, not sm_75");
  assert_null(build(f, "include", (VariantOpts){.sm = 100}));
  assert_string_equal(f->d->first->what, "include needs sm_90a, not sm_100");
}

static void legal_combinations(void **state) {
  Fixture *f = *state;
  Params given = {0}, all = {0};
  const char *why;
  params_set(f->arena, &given, "n", "3");
  assert_int_equal(variant_legal(f->s, "basic", &given, NULL, f->arena, &all, &why, f->d), ST_OK);
  assert_null(why);
  assert_string_equal(params_get(&all, "n"), "3");
  assert_string_equal(params_get(&all, "fast"), "0");
  assert_string_equal(params_get(&all, "dtype"), "f16");
  params_set(f->arena, &given, "fast", "1");
  assert_int_equal(variant_legal(f->s, "basic", &given, NULL, f->arena, &all, &why, f->d), ST_OK);
  assert_string_equal(why, "fast goes up to n = 2");
  assert_int_equal(f->d->errors, 0);
  params_set(f->arena, &given, "fast", "0");
  params_set(f->arena, &given, "m", "1");
  assert_int_equal(variant_legal(f->s, "basic", &given, NULL, f->arena, &all, &why, f->d),
                   ST_INPUT);
}

static void built_in_templates(void **state) {
  Fixture *f = *state;
  Session *s = session_open(NULL, f->d);
  const TemplateInfo **t;
  int n;
  if (session_templates(s, &t, &n, f->d) != ST_OK) fail_msg("%s", diag_text(f->d));
  assert_true(n > 0);
  for (int i = 0; i < n; i++) {
    if (i) assert_true(strcmp(t[i - 1]->name, t[i]->name) < 0);
    assert_true(*t[i]->summary != 0);
    Variant *v;
    if (variant_build(s, t[i]->name, NULL, NULL, &v, f->d) != ST_OK)
      fail_msg("%s", diag_text(f->d));
    assert_int_equal(v->nargs, t[i]->nargs);
    assert_int_equal(v->arg_bytes, v->entry->param_bytes);
    variant_free(v);
  }
  session_close(s);
}

static void parameters_are_name_value(void **state) {
  Fixture *f = *state;
  Params p = {0};
  assert_int_equal(params_parse(f->arena, &p, "a=1", f->d), ST_OK);
  assert_int_equal(params_parse(f->arena, &p, "a=2=3", f->d), ST_OK);
  assert_string_equal(params_get(&p, "a"), "2=3");
  assert_int_equal(p.n, 1);
  static const char *const bad[] = {"a", "=1", "a=", ""};
  for (int i = 0; i < 4; i++) assert_int_equal(params_parse(f->arena, &p, bad[i], f->d), ST_INPUT);
  assert_int_equal(f->d->errors, 4);
}

// The built-in one would not be what the user meant.
static void a_template_of_the_users_that_cannot_be_read_is_told(void **state) {
  Fixture *f = *state;
  char folder[] = "/tmp/ptxsmith_test_XXXXXX";
  assert_non_null(mkdtemp(folder));
  char *below = arena_printf(f->arena, "%s/templates", folder);
  char *path = arena_printf(f->arena, "%s/decode_fma.ptx.in", below);
  assert_int_equal(mkdir(below, 0700), 0);
  static const struct { const char *to, *what; } cases[] = {
      {"/proc/self/mem", "can't read '/tmp/"}, // a plain file, and nothing is at its front
      {"/nowhere/at/all", "can't open '/tmp/"},
      {"/", "is no file to read"},
      {"decode_fma.ptx.in", "can't open '/tmp/"}, // a link to itself
      {"/dev/zero", "is no file to read"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(symlink(cases[i].to, path), 0);
    Session *s = session_open(folder, f->d);
    assert_non_null(s);
    Variant *v;
    diag_reset(f->d);
    assert_int_equal(variant_build(s, "decode_fma", NULL, NULL, &v, f->d), ST_INPUT);
    assert_non_null(strstr(f->d->first->what, cases[i].what));
    session_close(s);
    unlink(path);
  }
  rmdir(below);
  rmdir(folder);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(good_templates),
      TEST(bad_templates),
      TEST(at_most_twenty_messages),
      TEST(same_bytes_every_time),
      TEST(hash_is_fnv),
      TEST(text_hash_sees_every_byte),
      TEST(every_line_knows_its_origin),
      TEST(lines_that_follow_know_their_callers),
      TEST(args_are_laid_out),
      TEST(maps_are_laid_out),
      TEST(targets),
      TEST(legal_combinations),
      TEST(built_in_templates),
      TEST(parameters_are_name_value),
      TEST(a_template_of_the_users_that_cannot_be_read_is_told),
  };
  if (chdir(TESTS_DIR) != 0) return 2;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
