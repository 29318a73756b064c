#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ptx_helpers.h"

typedef struct Flow {
  Arena *a;
  Diag *d;
  PtxFlow *g;
} Flow;

static Flow flow_of(const char *text) {
  Flow f = {arena_new(), diag_new(), NULL};
  PtxModule *m = parse_text(f.a, f.d, text);
  assert_string_equal(diag_text(f.d), "");
  f.g = ptx_flow(f.a, m, ptx_entry(m, NULL));
  return f;
}

static void done(Flow f) {
  diag_free(f.d);
  arena_free(f.a);
}

// 0: mov, bra | 1: then, bra | 2: else | 3: join
static void diamond(void **state) {
  (void)state;
  Flow f = flow_of(KERNEL(".reg .pred %p; .reg .b32 %r;\nmov.pred %p, 1;\n@%p bra ELSE;\n"
                          "mov.u32 %r, 1;\nbra JOIN;\nELSE: mov.u32 %r, 2;\nJOIN: mov.u32 %r, 3;"));
  assert_int_equal(f.g->nblocks, 4);
  assert_int_equal(f.g->blocks[0].nsucc, 2);
  assert_int_equal(f.g->blocks[0].succ[0], 2); // the target first
  assert_int_equal(f.g->blocks[0].succ[1], 1);
  assert_int_equal(f.g->blocks[0].ipdom, 3);
  assert_int_equal(f.g->blocks[1].ipdom, 3);
  assert_int_equal(f.g->blocks[2].ipdom, 3);
  assert_int_equal(f.g->blocks[3].ipdom, -1);
  assert_int_equal(f.g->blocks[3].npred, 2);
  assert_int_equal(f.g->block_of[4], 2);
  done(f);
}

// A lane that exits under a guard: the exit, not the join, post-dominates.
static void guarded_exit(void **state) {
  (void)state;
  Flow f =
      flow_of(KERNEL(".reg .pred %p; .reg .b32 %r;\nmov.pred %p, 1;\n@%p exit;\nmov.u32 %r, 1;"));
  assert_int_equal(f.g->nblocks, 2);
  assert_int_equal(f.g->blocks[0].nsucc, 1);
  assert_int_equal(f.g->blocks[0].ipdom, -1);
  done(f);
}

static void nested_loops(void **state) {
  (void)state;
  Flow f = flow_of(KERNEL(".reg .pred %p; .reg .b32 %r;\nmov.pred %p, 1;\nOUT: mov.u32 %r, 1;\n"
                          "IN: mov.u32 %r, 2;\n@%p bra IN;\n@%p bra OUT;"));
  assert_int_equal(f.g->nblocks, 5);
  assert_int_equal(f.g->blocks[0].loop, -1);
  assert_int_equal(f.g->blocks[1].loop, 1);
  assert_int_equal(f.g->blocks[1].depth, 1);
  assert_int_equal(f.g->blocks[2].loop, 2);
  assert_int_equal(f.g->blocks[2].depth, 2);
  assert_int_equal(f.g->blocks[3].loop, 1);
  assert_int_equal(f.g->blocks[4].loop, -1);
  assert_int_equal(f.g->blocks[2].ipdom, 3);
  done(f);
}

static void endless_and_unreachable(void **state) {
  (void)state;
  Flow f = flow_of(KERNEL("L: bra L;\nbar.sync 0;"));
  assert_int_equal(f.g->nblocks, 2);
  assert_int_equal(f.g->blocks[0].ipdom, -1);
  assert_int_equal(f.g->blocks[0].loop, 0);
  assert_int_equal(f.g->blocks[0].order, 0);
  assert_int_equal(f.g->blocks[1].order, -1);
  done(f);
}

static void branch_table(void **state) {
  (void)state;
  Flow f = flow_of(KERNEL(".reg .b32 %r;\nmov.u32 %r, 1;\nT: .branchtargets A, B, A;\n"
                          "brx.idx %r, T;\nA: mov.u32 %r, 1;\nB: mov.u32 %r, 2;"));
  assert_int_equal(f.g->blocks[0].nsucc, 2); // A once
  assert_int_equal(f.g->blocks[0].ipdom, 2);
  done(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(diamond), cmocka_unit_test(guarded_exit), cmocka_unit_test(nested_loops),
      cmocka_unit_test(endless_and_unreachable), cmocka_unit_test(branch_table)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
