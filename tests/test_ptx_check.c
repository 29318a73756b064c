// bad/NAME.ptx must give exactly the text of bad/NAME.err; compiler-made PTX must check clean.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ptx_helpers.h"

static int wrong;

static char *read_whole(Arena *a, const char *path) {
  Diag *d = diag_new();
  Source *s;
  char *text = source_read(a, path, &s, d) == ST_OK ? arena_strdup(a, s->text) : NULL;
  diag_free(d);
  return text;
}

static void check_bad(const char *path) {
  Arena *a = arena_new();
  Diag *d = diag_new();
  Source *s;
  assert_int_equal(source_read(a, path, &s, d), ST_OK);
  s->name = strrchr(path, '/') + 1;
  PtxModule *m = ptx_parse(a, s, NULL, d);
  assert_true(m || d->errors);
  Status st = m ? ptx_check(m, d) : ST_INPUT;
  assert_int_equal(st, d->errors ? ST_INPUT : ST_OK);
  const char *want = read_whole(a, arena_printf(a, "%.*s.err", (int)strlen(path) - 4, path));
  if (!want || !*want || strcmp(want, diag_text(d))) {
    print_message("%s: expected\n%sfound\n%s", s->name, want ? want : "(no file)\n", diag_text(d));
    wrong++;
  }
  diag_free(d);
  arena_free(a);
}

static void bad_files(void **state) {
  (void)state;
  wrong = 0;
  assert_true(each_file("bad", ".ptx", check_bad) > 50);
  assert_int_equal(wrong, 0);
}

static void check_clean(const char *path) {
  Arena *a = arena_new();
  Diag *d = diag_new();
  Source *s;
  assert_int_equal(source_read(a, path, &s, d), ST_OK);
  PtxModule *m = ptx_parse(a, s, NULL, d);
  if (m) ptx_check(m, d);
  if (d->errors) {
    print_message("%s", diag_text(d));
    wrong++;
  }
  diag_free(d);
  arena_free(a);
}

static void compilers_output(void **state) {
  (void)state;
  wrong = 0;
  assert_true(each_file("nvcc", ".ptx", check_clean) >= 14);
  assert_int_equal(wrong, 0);
}

static int errors_of(const char *text) {
  Arena *a = arena_new();
  Diag *d = diag_new();
  PtxModule *m = parse_text(a, d, text);
  if (m) ptx_check(m, d);
  int n = d->errors;
  if (n > 1) print_message("%s", diag_text(d));
  diag_free(d);
  arena_free(a);
  return n;
}

// ISA 9.2: untyped registers go with every type of their size, signed with unsigned, and ld, st
// and cvt take wider registers.  Each pair was tried with ptxas 13.0.
static void types(void **state) {
  (void)state;
  static const struct { const char *inst; int errors; } cases[] = {
      {"mul.f32 %r0, %r1, %f1;", 0},        {"add.s32 %f0, %r1, %r2;", 1},
      {"selp.b32 %f0, %f1, %r2, %p1;", 0},  {"ld.global.f32 %d0, [%d1];", 0},
      {"ld.global.f32 %e0, [%d1];", 1},     {"ld.global.u16 %d0, [%d1];", 0},
      {"ld.global.u16 %f0, [%d1];", 1},     {"ld.global.b16 %f0, [%d1];", 0},
      {"cvt.u32.u16 %r0, %r1;", 0},         {"cvt.u32.u64 %r0, %r1;", 1},
      {"cvt.f32.f16 %f0, %f1;", 1},         {"cvt.f32.f16 %f0, %r1;", 0},
      {"add.f16 %h0, %h1, 0x3C00;", 1},     {"add.f16x2 %f0, %r1, %r2;", 1},
      {"mov.b32 %f0, 0f3F800000;", 0},      {"mov.f32 %f0, 1;", 1},
      {"shl.b32 %r0, %r1, %d1;", 1},        {"mul.wide.u32 %e0, %r1, %r2;", 1},
      {"mov.u32 %r0, %clock64;", 1},        {"mov.b32 %r0, %tid.x;", 0},
      {"add.u32 %r0, %r1, %tid.x;", 1},     {"mov.b64 {%r0, %f0}, %d1;", 0},
      {"mov.b64 {%h0, %h2}, %d1;", 1},      {"mov.u32 %r0, {%h1, %h1};", 1},
      {"ld.shared.u32 %r0, [%r1];", 0},     {"ld.global.u32 %r0, [%r1];", 1},
      {"mov.u32 %r0, s;", 0},               {"mov.u32 %r0, g;", 1},
      {"ld.global.v2.u32 {%r0, _}, [%d1];", 0}, {"bar.sync 0, 64;", 0},
      {"st.shared.f32 [s+4], %r1;", 0},     {"atom.global.add.f32 _, [%d1], %f1;", 0},
      {"setp.lt.b32 %p0, %r1, %r2;", 1},    {"lop3.b32 %r0, %r1, %r2, %r1, 0x96;", 0},
      {"cp.async.cg.shared.global [s], [%d1], 16, 8;", 0},
      {"cp.async.ca.shared.global [s], [%d1], 4, 8;", 1},
      {"setp.eq.and.u32 %p0, %r1, %r2, %p1;", 0}, {"setp.eq.and.u32 %p0, %r1, %r2;", 1},
      {"ld.global.L2::cache_hint.u32 %r0, [%d1], %d1;", 0},
      {"ld.global.u32 %r0, [%d1], %d1;", 1}, {"setmaxnreg.dec.sync.aligned.u32 40;", 1},
      {"ld.global.v8.f32 {%f0, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, [%d1];", 1},
  };
  char text[2048];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    snprintf(text, sizeof text,
             HEAD
             ".global .b32 g[4];\n.entry k(.param .u64 x)\n{\n.reg .pred %%p<4>; .reg .b16 %%h<4>;"
             ".reg .b32 %%r<4>; .reg .f32 %%f<9>; .reg .b64 %%d<4>; .reg .f64 %%e<4>;\n"
             ".shared .align 16 .b8 s[64];\nmov.u32 %%r1, 1; mov.u32 %%r2, 2; mov.f32 %%f1, 1.0;"
             "mov.u64 %%d1, 8; mov.b16 %%h1, 1; setp.eq.u32 %%p1, %%r1, 1;\n%s\nret;\n}\n",
             cases[i].inst);
    int n = errors_of(text);
    if (n != cases[i].errors) print_message("%s: %d errors\n", cases[i].inst, n);
    assert_int_equal(n, cases[i].errors);
  }
}

// A register written on one path only is not definitely uninitialised.
static void uninitialised(void **state) {
  (void)state;
  assert_int_equal(errors_of(KERNEL(".reg .pred %p; .reg .b32 %r<3>;\nmov.pred %p, 1;\n"
                                    "@%p mov.u32 %r0, 1;\nadd.u32 %r1, %r0, 1;")), 0);
  assert_int_equal(errors_of(KERNEL(".reg .b32 %r<3>;\nbra B;\nA: add.u32 %r1, %r0, 1;\nbra C;\n"
                                    "B: mov.u32 %r0, 1;\nbra A;\nC:")), 0);
  assert_int_equal(errors_of(KERNEL(".reg .b32 %r<3>;\nbra B;\nA: mov.u32 %r0, 1;\n"
                                    "B: add.u32 %r1, %r0, 1;")), 1);
  assert_int_equal(errors_of(KERNEL(".reg .b32 %r<3>;\n// implicit-def: %r0\n"
                                    "add.u32 %r1, %r0, 1;")), 0);
}

// At a limit, and one past it.
static void limits(void **state) {
  (void)state;
#define ELECT                                                                                      \
  ".address_size 64\n.entry k() { .reg .pred %p; elect.sync _|%p, -1; ret; }\n"
#define ENTRY "\n.target sm_90a\n.address_size 64\n.visible .entry k("
  static const struct {
    const char *text;
    int errors;
  } cases[] = {
      {".version 8.0" ENTRY ".param .b8 x[4352]) { ret; }\n", 0},
      {".version 8.0" ENTRY ".param .b8 x[4353]) { ret; }\n", 1},
      {".version 8.1" ENTRY ".param .b8 x[32764]) { ret; }\n", 0},
      {".version 8.1" ENTRY ".param .b8 x[32765]) { ret; }\n", 1},
      {".version 8.0" ENTRY ") { .shared .b8 s[49152]; ret; }\n", 0},
      {".version 8.0" ENTRY ") { .shared .b8 s[49153]; ret; }\n", 1},
      {".version 8.0" ENTRY ") { .local .b8 s[524288]; ret; }\n", 0},
      {".version 8.0" ENTRY ") { .local .b8 s[524289]; ret; }\n", 1},
      {".version 8.0" ENTRY ") .maxntid 1024 { ret; }\n", 0},
      {".version 8.0" ENTRY ") .maxntid 1025 { ret; }\n", 1},
      {".version 8.0" ENTRY ") .maxntid 32, 32, 1 { ret; }\n", 0},
      {".version 8.0" ENTRY ") .maxntid 32, 33, 1 { ret; }\n", 1},
      {".version 8.0" ENTRY ") .reqntid 1, 1, 64 { ret; }\n", 0},
      {".version 8.0" ENTRY ") .reqntid 1, 1, 65 { ret; }\n", 1},
      {".version 8.0" ENTRY ") .reqntid 32 .maxntid 32 { ret; }\n", 1},
      {".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n", 0},
      {".version 7.0\n.target sm_80\n.address_size 64\n.entry k() { cp.async.wait_all; ret; }\n",
       0},
      {".version 7.0\n.target sm_75\n.address_size 64\n.entry k() { cp.async.wait_all; ret; }\n",
       1},
      {".version 8.0\n.target sm_90\n" ELECT, 0},
      {".version 7.8\n.target sm_90\n" ELECT, 1},
      {".version 7.7\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n", 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (errors_of(cases[i].text) != cases[i].errors)
      fail_msg("not %d errors in\n%s", cases[i].errors, cases[i].text);
}

// 4096 MiB of parameters are not none.
static void sum_of_parameters(void **state) {
  (void)state;
  enum { MANY = 4096 };
  Arena *a = arena_new();
  char *text = NULL;
  size_t n = 0, cap = 0;
  arena_append(a, &text, &n, &cap, HEAD ".entry k(", strlen(HEAD ".entry k("));
  for (int i = 0; i < MANY; i++) {
    const char *one = arena_printf(a, "%s.param .b8 p%d[1048576]", i ? "," : "", i);
    arena_append(a, &text, &n, &cap, one, strlen(one));
  }
  arena_append(a, &text, &n, &cap, ") { ret; }", sizeof ") { ret; }");
  assert_int_equal(errors_of(text), 1);
  Diag *d = diag_new();
  ptx_check(ptx_parse(a, source_new(a, "k.ptx", text, strlen(text)), NULL, d), d);
  assert_non_null(strstr(diag_text(d), "take 4294967296 bytes"));
  diag_free(d);
  arena_free(a);
}

// The message names the template line that a PTX line came from.
static void origins(void **state) {
  (void)state;
  Arena *a = arena_new();
  Diag *d = diag_new();
  const char *text = KERNEL(".reg .b32 %r<2>;\nadd.u32 %r0, %r1, 0f00000000;");
  const Source *from = source_new(a, "attention.ptx.in", "one\ntwo\n", 8);
  Origin origin = {from, 2, ORIGIN_FILE, NULL};
  const Origin *at[16] = {0};
  at[6] = &origin;
  LineMap map = {at, 9};
  PtxModule *m = ptx_parse(a, source_new(a, "k.ptx", text, strlen(text)), &map, d);
  assert_non_null(m);
  assert_int_equal(ptx_check(m, d), ST_INPUT);
  assert_int_equal(d->first->line, 7);
  assert_int_equal(d->first->col, 19);
  assert_string_equal(d->first->origin_file, "attention.ptx.in");
  assert_int_equal(d->first->origin_line, 2);
  diag_free(d);
  arena_free(a);
}

static const char *line_said(Arena *a, const LineMap *m, uint32_t line) {
  const Origin *o = linemap_at(m, line);
  if (!o) return "none";
  return o->up ? arena_printf(a, "%s:%u < %s:%u", o->src->name, o->line, o->up->src->name,
                              o->up->line)
               : arena_printf(a, "%s:%u", o->src->name, o->line);
}

// A text's own .loc: from there to the next one or the next function; .file may stand behind.
static void says_loc(void **state) {
  (void)state;
  Arena *a = arena_new();
  Diag *d = diag_new();
  const char *text = ".version 7.2\n.target sm_80\n.address_size 64\n"
                     ".file 2 \"lib/b.inc\"\n"        // 4
                     ".entry f() {\n.reg .b32 %r<2>;\n" // 5, 6
                     ".loc 2 10 0\n"                    // 7
                     "mov.u32 %r0, 1;\nmov.u32 %r1, 2;\n"
                     "/* .loc 2 99 0 */ .loc 1 7 3, function_name $L+4, inlined_at 2 30 1\n" // 10
                     "mov.u32 %r0, 3;\n"
                     ".loc 2 0 0\nmov.u32 %r0, 4;\n"    // 12, 13: no line
                     ".loc 3 5 0\nret;\n}\n"           // 14: no such file
                     ".entry g() {\nret;\n}\n"         // 17
                     ".file 1 \"a.cu\", 12, 34\n";
  static const struct { uint32_t line; const char *want; } cases[] = {
      {5, "none"}, {6, "none"}, {7, "lib/b.inc:10"}, {9, "lib/b.inc:10"},
      {11, "a.cu:7 < lib/b.inc:30"}, {13, "none"}, {15, "none"}, {18, "none"}};
  PtxModule *m = ptx_parse(a, source_new(a, "k.ptx", text, strlen(text)), NULL, d);
  if (!m) fail_msg("%s", diag_text(d));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(line_said(a, m->map, cases[i].line), cases[i].want);
  m = ptx_parse(a, source_new(a, "k.ptx", KERNEL(""), strlen(KERNEL(""))), NULL, d);
  assert_null(m->map);
  diag_free(d);
  arena_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bad_files),     cmocka_unit_test(compilers_output), cmocka_unit_test(types),
      cmocka_unit_test(uninitialised), cmocka_unit_test(origins),
      cmocka_unit_test(says_loc),      cmocka_unit_test(limits),
      cmocka_unit_test(sum_of_parameters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
