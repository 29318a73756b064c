// Launches that overlap: the second may begin before the first has ended, unless it waits.  Each
// pair is a kernel that forgets something and the same kernel without the fault.
#include <stdio.h>

#include "plan.h"
#include "sim_kit.h"

// The first launch: block b's thread t writes out[64 b + t] and reads in[64 b + t].
static const char first[] = "mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 64, %r0;\n"
                            "mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd0, %rd2;\n"
                            "add.u64 %rd4, %rd1, %rd2;\n"
                            "ld.global.u32 %r3, [%rd3]; add.u32 %r3, %r3, 1;\n"
                            "st.global.u32 [%rd4], %r3;\n"
                            "griddepcontrol.launch_dependents;";

// The second: what another block of the first wrote.
#define OTHER                                                                                      \
  "mov.u32 %r1, %ctaid.x; xor.b32 %r1, %r1, 1; mad.lo.u32 %r2, %r1, 64, %r0;\n"                    \
  "mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd0, %rd2; add.u64 %rd4, %rd1, %rd2;\n"
#define WAIT "griddepcontrol.wait;\n"
#define READ "ld.global.u32 %r3, [%rd4]; st.global.u32 [%rd4+1024], %r3;\n"
#define ONE "setp.ne.u32 %p1, %r0, 0; @%p1 bra J;\n" WAIT "J:\n"

typedef struct Overlap {
  const char *what, *body;
  bool dependent, settle; // settle: the host copies something in between
  const char *expect;     // NULL: no report
} Overlap;

static const Overlap overlaps[] = {
    {"reads without a wait", OTHER READ, true, false,
     "of \"out\", which the launch before wrote: ld.global.u32"},
    {"waits first", OTHER WAIT READ, true, false, NULL},
    {"waits too late", OTHER READ WAIT, true, false, "which the launch before wrote"},
    {"not dependent", OTHER READ, false, false, NULL},
    {"a copy in between", OTHER READ, true, true, NULL},
    {"overwrites what is read there", OTHER "st.global.u32 [%rd3], %r0;\n", true, false,
     "of \"in\", which the launch before read: st.global.u32"},
    {"overwrites it behind a wait", OTHER WAIT "st.global.u32 [%rd3], %r0;\n", true, false, NULL},
    {"writes what is written there", OTHER "st.global.u32 [%rd4], %r0;\n", true, false,
     "which the launch before wrote"},
    {"its own data first", OTHER "st.global.u32 [%rd4+1024], %r0;\n" WAIT READ, true, false, NULL},
    {"one thread waits and the block meets", OTHER ONE "bar.sync 0;\n" READ, true, false, NULL},
    {"one thread waits for itself", OTHER ONE READ, true, false, "which the launch before wrote"},
};

static void fill(Kit *k, DevPtr p) {
  assert_int_equal(device_fill32(k->dev, p, 7, 2048, k->diag), ST_OK);
}

static Status run_pair(Kit *k, Kernel *a, Kernel *b, const Overlap *o, uint64_t seed,
                       DevPtr args[2]) {
  device_sim_opts(k->dev, &(SimOpts){.sanitize = true, .seed = seed, .step_limit = 100000});
  fill(k, args[0]), fill(k, args[1]);
  Launch l = {.kernel = a, .grid = {2, 1, 1}, .block = {64, 1, 1}, .args = args,
              .arg_bytes = 2 * sizeof *args};
  Status st = device_launch(k->dev, &l, k->diag);
  assert_int_equal(st, ST_OK);
  uint32_t word;
  if (o->settle) assert_int_equal(device_read(k->dev, &word, args[0], 4, k->diag), ST_OK);
  l.kernel = b;
  l.dependent = o->dependent;
  st = device_launch(k->dev, &l, k->diag);
  return st == ST_OK ? device_sync(k->dev, k->diag) : st;
}

static int check_pair(const Kit *k, const Overlap *o, Status st, uint64_t seed) {
  const DiagMsg *m = k->diag->first;
  bool right = o->expect ? st == ST_FAILED && m && strstr(m->what, o->expect) : st == ST_OK && !m;
  if (right) return 0;
  print_error("%s, schedule %d: %s\n", o->what, (int)seed, m ? diag_text(k->diag) : "no report");
  return 1;
}

static void test_pairs(void **state) {
  Kit *k = *state;
  int bad = 0;
  Kernel *a = kit_body(k, 2, first);
  DevPtr args[2] = {kit_fill(k, "in", 7, 512), kit_fill(k, "out", 7, 512)};
  for (size_t i = 0; i < sizeof overlaps / sizeof *overlaps; i++) {
    Kernel *b = kit_body(k, 2, overlaps[i].body);
    for (uint64_t seed = 0; seed < 6; seed++) {
      bad += check_pair(k, &overlaps[i], run_pair(k, a, b, &overlaps[i], seed, args), seed);
      diag_reset(k->diag);
    }
    kernel_free(b);
  }
  assert_int_equal(bad, 0);
}

// Line, block and thread of both, each in its own kernel.
static void test_report(void **state) {
  Kit *k = *state;
  Kernel *a = kit_body(k, 2, first), *b = kit_body(k, 2, overlaps[0].body);
  DevPtr args[2] = {kit_fill(k, "in", 7, 512), kit_fill(k, "out", 7, 512)};
  assert_int_equal(run_pair(k, a, b, &overlaps[0], 0, args), ST_FAILED);
  const DiagMsg *m = k->diag->first;
  assert_non_null(strstr(m->what, "in block (0,0,0) thread (0,0,0)"));
  assert_string_equal(m->next->what,
                      "the other party, of the launch before: st.global.u32 [%rd4], %r3; in block "
                      "(1,0,0) thread (0,0,0); this launch may begin before that one has ended: no "
                      "griddepcontrol.wait orders the two");
  assert_int_equal(m->line, 11);      // the third line of READ's body
  assert_int_equal(m->next->line, 13); // the fifth of the first kernel
}

// The launch before is forgotten with its kernel.
static void test_kernel_gone(void **state) {
  Kit *k = *state;
  Kernel *a = kit_body(k, 2, first), *b = kit_body(k, 2, overlaps[0].body);
  DevPtr args[2] = {kit_fill(k, "in", 7, 512), kit_fill(k, "out", 7, 512)};
  device_sim_opts(k->dev, &(SimOpts){.sanitize = true});
  Launch l = {.kernel = a, .grid = {2, 1, 1}, .block = {64, 1, 1}, .args = args,
              .arg_bytes = sizeof args, .dependent = true}; // nothing is before it
  assert_int_equal(device_launch(k->dev, &l, k->diag), ST_OK);
  kernel_free(a);
  l.kernel = b;
  assert_int_equal(device_launch(k->dev, &l, k->diag), ST_OK);
  assert_int_equal(k->diag->errors, 0);
}

// ---- an Operator --------------------------------------------------------------------------------
// The second step's text with a wait in front of `at`, where `at` stands first; NULL: no wait.
static void put_wait(Kit *k, Variant *v, const char *at) {
  const char *text = v->ptx->text, *target = strstr(text, ".target"), *found = strstr(text, at);
  assert_non_null(target);
  assert_non_null(found);
  const char *version = strstr(text, ".version");
  char *out =
      arena_printf(k->arena, "%.*s.version 7.8\n.target sm_90\n%.*sgriddepcontrol.wait;\n%s",
                   (int)(version - text), text, (int)(found - strchr(target, '\n')),
                   strchr(target, '\n'), found);
  v->ptx = source_new(k->arena, v->ptx->name, out, strlen(out));
  v->module = NULL;
}

static Status run_operator(Kit *k, const char *wait_before) {
  Session *s = session_open(NULL, k->diag);
  Problem *p;
  Operator *op;
  assert_int_equal(problem_parse(k->arena, "b=1,hq=2,hkv=1,sq=1,sk=64,d=32,dtype=f32,chunks=2", &p,
                                 k->diag), ST_OK);
  PlanOpts opts = {.chunks = 2};
  if (operator_make(s, "decode_splitk", NULL, p, &opts, &op, k->diag) != ST_OK)
    fail_msg("%s", diag_text(k->diag));
  if (wait_before) put_wait(k, op->step[1].variant, wait_before);
  Status st = operator_load(op, k->dev, k->diag);
  if (st == ST_OK) st = operator_plan(op, k->dev, &opts, k->diag);
  const char *const names[] = {"q", "k", "v", "o"};
  for (int i = 0; i < 4 && st == ST_OK; i++) {
    int64_t rows = i == 1 || i == 2 ? 64 : 1, heads = i == 1 || i == 2 ? 1 : 2;
    Tensor t = {.dtype = DT_F32, .rank = 4, .shape = {1, rows, heads, 32}};
    tensor_dense(&t);
    t.data = kit_fill(k, names[i], 0, (uint32_t)(rows * heads * 32));
    st = operator_bind(op, names[i], &t, k->diag);
  }
  if (st == ST_OK) st = operator_bind(op, "lse", NULL, k->diag);
  uint64_t bytes = op->workspace_bytes;
  if (st == ST_OK)
    st = operator_bind_workspace(op, kit_fill(k, "workspace", 0, (uint32_t)(bytes / 4)), bytes,
                                 k->diag);
  device_sim_opts(k->dev, &(SimOpts){.sanitize = true});
  if (st == ST_OK) st = operator_launch(op, k->dev, k->diag);
  operator_free(op);
  session_close(s);
  return st;
}

// combine reads what decode_splitk left.  With a wait in it the two may overlap: in front of the
// first read it is right, behind it the read is a race.
static void test_operator(void **state) {
  Kit *k = *state;
  assert_int_equal(run_operator(k, NULL), ST_OK);
  if (run_operator(k, "mov.u32         %thread, %tid.x;") != ST_OK)
    fail_msg("%s", diag_text(k->diag));
  assert_int_equal(k->diag->errors, 0);
  assert_int_equal(run_operator(k, "st.global.f32"), ST_FAILED);
  assert_non_null(strstr(k->diag->first->what, "\"workspace\", which the launch before wrote"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
  const struct CMUnitTest tests[] = {T(test_pairs), T(test_report), T(test_kernel_gone),
                                     T(test_operator)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
