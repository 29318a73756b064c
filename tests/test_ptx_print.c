// print(parse(print(parse x))) is print(parse x), and the trees are equal.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ptx_helpers.h"

static void same_operand(const PtxOperand *a, const PtxOperand *b) {
  assert_int_equal(a->kind, b->kind);
  assert_int_equal(a->negate, b->negate);
  assert_int_equal(a->type, b->type);
  assert_int_equal(a->reg, b->reg);
  assert_int_equal(a->sym, b->sym);
  assert_int_equal(a->n, b->n);
  bool list = a->kind == PTX_O_VEC || a->kind == PTX_O_LIST || a->kind == PTX_O_TMAP ||
              a->kind == PTX_O_PAIR;
  if (a->kind == PTX_O_LABEL) assert_int_equal(a->target, b->target);
  else if (a->kind == PTX_O_SREG) assert_int_equal(a->sreg, b->sreg);
  else if (!list) assert_int_equal(a->bits, b->bits);
  for (int i = 0; i < a->n; i++) same_operand(&a->v[i], &b->v[i]);
}

static void same_function(const PtxFunc *a, const PtxFunc *b) {
  assert_string_equal(a->name, b->name);
  assert_int_equal(a->ninsts, b->ninsts);
  assert_int_equal(a->nregs, b->nregs);
  assert_int_equal(a->nparams, b->nparams);
  assert_int_equal(a->shared_bytes, b->shared_bytes);
  assert_int_equal(a->param_bytes, b->param_bytes);
  assert_memory_equal(a->maxntid, b->maxntid, sizeof a->maxntid);
  for (int i = 0; i < a->ninsts; i++) {
    const PtxInst *x = &a->insts[i], *y = &b->insts[i];
    assert_int_equal(x->form, y->form);
    assert_int_equal(x->guard, y->guard);
    assert_int_equal(x->guard_negate, y->guard_negate);
    assert_int_equal(x->nmods, y->nmods);
    assert_memory_equal(x->mods, y->mods, sizeof(PtxMod) * x->nmods);
    assert_int_equal(x->nopnds, y->nopnds);
    for (int k = 0; k < x->nopnds; k++) same_operand(&x->opnds[k], &y->opnds[k]);
  }
}

static void same_module(const PtxModule *a, const PtxModule *b) {
  assert_int_equal(a->nvars, b->nvars);
  assert_int_equal(a->nfuncs, b->nfuncs);
  for (int i = 0; i < a->nvars; i++) {
    const PtxVar *x = &a->vars[i], *y = &b->vars[i];
    assert_string_equal(x->name, y->name);
    assert_int_equal(x->bytes, y->bytes);
    assert_int_equal(x->offset, y->offset);
    assert_int_equal(x->align, y->align);
    assert_int_equal(x->nrelocs, y->nrelocs);
    if (x->init) assert_memory_equal(x->init, y->init, x->bytes);
  }
  for (int i = 0; i < a->nfuncs; i++) same_function(&a->funcs[i], &b->funcs[i]);
}

static void round_trip(Arena *a, const Source *s) {
  Diag *d = diag_new();
  PtxModule *m = ptx_parse(a, s, NULL, d);
  assert_string_equal(diag_text(d), "");
  char *once = ptx_print(a, m);
  PtxModule *again = parse_text(a, d, once);
  assert_string_equal(diag_text(d), "");
  same_module(m, again);
  assert_string_equal(ptx_print(a, again), once);
  diag_free(d);
}

static void file_round_trip(const char *path) {
  Arena *a = arena_new();
  Diag *d = diag_new();
  Source *s;
  assert_int_equal(source_read(a, path, &s, d), ST_OK);
  round_trip(a, s);
  diag_free(d);
  arena_free(a);
}

static void compilers_output(void **state) {
  (void)state;
  assert_true(each_file("nvcc", ".ptx", file_round_trip) >= 14);
}

static void canonical(void **state) {
  (void)state;
  Arena *a = arena_new();
  Diag *d = diag_new();
  const char *text =
      "// first\n.version 8.0 .target sm_90a, debug\n.address_size 64\n"
      ".const .align 4 .f32 c[2][1]={{1.0},{-0.5}};\n"
      ".visible .entry k(.param .u64 .ptr .global .align 16 x,.param .f32 s) .maxntid 64 {"
      " .reg .b32 %r<3>,%i; .reg .pred %p; .shared .b8 m[8];// trailing\n"
      "L: mov.u32 %r1,%tid.x; { .reg .b64 %d; ld.param.u64 %d,[x]; @!%p bra L;\n"
      "st.shared.v2.b32 [m],{%r1,%r2}; ld.global.u32 %i,[%d+-4]; /* own */\n"
      "mov.b32 %r2, 0x10; fence.proxy.async; } ret; }\n";
  PtxModule *m = parse_text(a, d, text);
  assert_string_equal(diag_text(d), "");
  assert_string_equal(ptx_print(a, m),
                      "// first\n"
                      ".version 8.0\n"
                      ".target sm_90a, debug\n"
                      ".address_size 64\n"
                      ".const .align 4 .f32 c[2] = {0f3F800000, 0fBF000000};\n"
                      "\n"
                      ".visible .entry k(\n"
                      "  .param .u64 .ptr .global .align 16 x,\n"
                      "  .param .f32 s)\n"
                      ".maxntid 64, 1, 1\n"
                      "{\n"
                      "  .reg .b32 %r<3>, %i;\n"
                      "  .reg .pred %p;\n"
                      "  .shared .b8 m[8]; // trailing\n"
                      "L:\n"
                      "  mov.u32 %r1, %tid.x;\n"
                      "  {\n"
                      "    .reg .b64 %d;\n"
                      "    ld.param.u64 %d, [x];\n"
                      "    @!%p bra L;\n"
                      "    st.shared.v2.b32 [m], {%r1, %r2};\n"
                      "    ld.global.u32 %i, [%d+-4]; /* own */\n"
                      "    mov.b32 %r2, 16;\n"
                      "    fence.proxy.async;\n"
                      "  }\n"
                      "  ret;\n"
                      "}\n");
  diag_free(d);
  arena_free(a);
}

static void one_instruction(void **state) {
  (void)state;
  Arena *a = arena_new();
  Diag *d = diag_new();
  PtxModule *m = parse_text(a, d, KERNEL(".reg .f32 %s<3>;fma.rn.ftz.f32 %s0,%s1,0f40000000,%s2;"));
  const PtxFunc *f = ptx_entry(m, "k");
  assert_string_equal(ptx_print_inst(a, m, f, &f->insts[0]),
                      "fma.rn.ftz.f32 %s0, %s1, 0f40000000, %s2;");
  diag_free(d);
  arena_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(compilers_output),
                                     cmocka_unit_test(canonical),
                                     cmocka_unit_test(one_instruction)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
