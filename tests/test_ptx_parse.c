#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ptx_helpers.h"

typedef struct Parsed {
  Arena *a;
  Diag *d;
  PtxModule *m;
} Parsed;

static Parsed parse(const char *text) {
  Parsed p = {arena_new(), diag_new(), NULL};
  p.m = ptx_parse(p.a, source_new(p.a, "t.ptx", text, strlen(text)), NULL, p.d);
  return p;
}

static Parsed parse_clean(const char *text) {
  Parsed p = parse(text);
  assert_string_equal(diag_text(p.d), "");
  assert_non_null(p.m);
  return p;
}

static void done(Parsed p) {
  diag_free(p.d);
  arena_free(p.a);
}

static void header(void **state) {
  (void)state;
  Parsed p = parse_clean(HEAD ".entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b, "
                              ".param .align 8 .b8 c[12])\n"
                              ".maxntid 64, 2\n.minnctapersm 3\n.reqnctapercluster 2\n{ ret; }\n");
  assert_int_equal(p.m->version, 80);
  assert_int_equal(p.m->sm, 90);
  assert_int_equal(p.m->sm_suffix, 'a');
  const PtxFunc *f = ptx_entry(p.m, "k");
  assert_ptr_equal(f, ptx_entry(p.m, NULL));
  assert_int_equal(f->nparams, 3);
  assert_int_equal(p.m->vars[f->params[1]].offset, 8);
  assert_int_equal(p.m->vars[f->params[1]].ptr_align, 16);
  assert_int_equal(p.m->vars[f->params[2]].offset, 16);
  assert_int_equal(f->param_bytes, 28);
  assert_int_equal(f->maxntid[0] * 100 + f->maxntid[1] * 10 + f->maxntid[2], 6421);
  assert_int_equal(f->minnctapersm, 3);
  assert_int_equal(f->cluster[0], 2);
  done(p);
}

static void registers_are_dense(void **state) {
  (void)state;
  Parsed p = parse_clean(KERNEL(".reg .b32 %r<1000>, %one;\n.reg .pred %p<2>;\n"
                                "mov.u32 %r999, 1;\nadd.u32 %one, %r999, %r3;\n"
                                "@!%p1 mov.u32 %r3, %one;"));
  const PtxFunc *f = ptx_entry(p.m, NULL);
  assert_int_equal(f->nregs, 4);
  assert_int_equal(f->regs_declared, 1001);
  assert_string_equal(f->regs[0].name, "%r999");
  assert_string_equal(f->regs[1].name, "%one");
  assert_int_equal(f->insts[1].opnds[1].reg, 0);
  assert_int_equal(f->insts[2].guard, 3);
  assert_true(f->insts[2].guard_negate);
  assert_int_equal(f->regs[3].type, PTX_T_PRED);
  done(p);
}

static void inner_registers_shadow(void **state) {
  (void)state;
  Parsed p = parse_clean(KERNEL(".reg .b32 %t;\n{ .reg .b64 %t; mov.u64 %t, 1; }\nmov.u32 %t, 2;"));
  const PtxFunc *f = ptx_entry(p.m, NULL);
  assert_int_equal(f->regs[f->insts[0].opnds[0].reg].type, PTX_T_B64);
  assert_int_equal(f->regs[f->insts[1].opnds[0].reg].type, PTX_T_B32);
  done(p);
}

// The same label in two blocks, as inline assembly makes them; a jump out of a block.
static void labels_are_scoped(void **state) {
  (void)state;
  Parsed p = parse_clean(KERNEL("{ L: bra L; bra OUT; }\n{ L: bra L; }\nOUT:"));
  const PtxFunc *f = ptx_entry(p.m, NULL);
  assert_int_equal(f->insts[0].opnds[0].target, 0);
  assert_int_equal(f->insts[1].opnds[0].target, 3);
  assert_int_equal(f->insts[2].opnds[0].target, 2);
  done(p);
}

static const PtxOperand *last_operand(Parsed p, int inst) {
  const PtxInst *in = &ptx_entry(p.m, NULL)->insts[inst];
  return &in->opnds[in->nopnds - 1];
}

static void immediates(void **state) {
  (void)state;
  Parsed p = parse_clean(KERNEL(".reg .b32 %r; .reg .b64 %d; .reg .f32 %f; .reg .f64 %e;\n"
                                "mov.u32 %r, 0x1F;\nmov.u32 %r, 017;\nmov.u32 %r, 0b101;\n"
                                "mov.s32 %r, -0x10;\nmov.u32 %r, (1 << 4) + 2 * 3 - 7U;\n"
                                "mov.u64 %d, 0xFFFFFFFFFFFFFFFF;\nmov.f32 %f, 0fBF800000;\n"
                                "mov.f64 %e, 0d3FF8000000000000;\nmov.f32 %f, -2.5e-1;\n"
                                "mov.u32 %r, WARP_SZ;\nmov.u32 %r, 10 - 4 - 3;"));
  static const int64_t ints[] = {31, 15, 5, -16, 15, -1};
  for (int i = 0; i < 6; i++) assert_int_equal(last_operand(p, i)->i, ints[i]);
  assert_true(last_operand(p, 6)->is_f32);
  assert_int_equal(last_operand(p, 6)->bits, 0xBF800000);
  assert_false(last_operand(p, 7)->is_f32);
  assert_int_equal(last_operand(p, 7)->bits, 0x3FF8000000000000);
  double d;
  memcpy(&d, &last_operand(p, 8)->bits, 8);
  assert_true(d == -0.25);
  assert_int_equal(last_operand(p, 9)->i, 32);
  assert_int_equal(last_operand(p, 10)->i, 3);
  done(p);
}

static void addresses(void **state) {
  (void)state;
  Parsed p = parse_clean(KERNEL(".shared .align 16 .b8 s[64]; .reg .b32 %r<4>; .reg .b64 %d;\n"
                                "ld.shared.u32 %r0, [s+8];\nld.global.u32 %r0, [%d+-4];\n"
                                "ld.shared.u32 %r0, [16];\nld.param.u64 %d, [x];\n"
                                "ld.global.v4.u32 {%r0, %r1, _, %r3}, [%d];"));
  assert_int_equal(last_operand(p, 0)->base, PTX_O_SYM);
  assert_int_equal(last_operand(p, 0)->off, 8);
  assert_int_equal(last_operand(p, 1)->base, PTX_O_REG);
  assert_int_equal(last_operand(p, 1)->off, -4);
  assert_int_equal(last_operand(p, 2)->base, PTX_O_INT);
  assert_int_equal(last_operand(p, 2)->off, 16);
  const PtxInst *v = &ptx_entry(p.m, NULL)->insts[4];
  assert_int_equal(v->vec, 4);
  assert_int_equal(v->space, PTX_S_GLOBAL);
  assert_int_equal(v->opnds[0].n, 4);
  assert_int_equal(v->opnds[0].v[2].kind, PTX_O_SINK);
  done(p);
}

// Optional operands: which operand of the pattern each written one is.
static void optional_operands(void **state) {
  (void)state;
  Parsed p =
      parse_clean(KERNEL(".reg .pred %p<3>; .reg .b32 %r<3>;\n"
                         "bar.red.and.pred %p0, 1, %p1;\nbar.red.and.pred %p0, 1, 64, !%p1;\n"
                         "setp.lt.s32 %p0|%p2, %r0, %r1;"));
  const PtxFunc *f = ptx_entry(p.m, NULL);
  assert_int_equal(f->insts[0].slot[2], 3);
  assert_int_equal(f->insts[1].slot[3], 3);
  assert_true(f->insts[1].opnds[3].negate);
  assert_int_equal(f->insts[2].opnds[0].kind, PTX_O_PAIR);
  done(p);
}

// Rows that share their modifiers are told apart by their operands, others by their modifiers.
static void forms(void **state) {
  (void)state;
  Parsed p = parse_clean(KERNEL(".reg .f32 %f<3>; .reg .b32 %r<70>; .reg .b64 %d;\n"
                                "min.f32 %f0, %f1, %f2;\nmin.s32 %r0, %r1, %r2;\n"
                                "mad.lo.s32 %r0, %r1, %r2, %r0;\nmul.wide.u32 %d, %r0, %r1;"));
  const PtxFunc *f = ptx_entry(p.m, NULL);
  assert_int_equal(ptx_inst_form(&f->insts[0])->sm, 10);
  assert_int_equal(ptx_inst_form(&f->insts[1])->sm, 10);
  assert_int_equal(f->insts[2].type[0], PTX_T_S32);
  assert_true(ptx_inst_has(&f->insts[3], "wide"));
  done(p);
}

static void initialisers(void **state) {
  (void)state;
  Parsed p = parse_clean(HEAD ".global .u16 a[2][3] = {{1}, {2, 3}};\n"
                              ".const .f32 c[] = {1.0, 0f40000000};\n"
                              ".global .u64 t[2] = {a, generic(a)+4};\n.global .s32 n = -2;\n");
  static const uint8_t a[] = {1, 0, 0, 0, 0, 0, 2, 0, 3, 0, 0, 0};
  static const uint8_t c[] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40};
  assert_int_equal(p.m->vars[0].bytes, 12);
  assert_memory_equal(p.m->vars[0].init, a, 12);
  assert_int_equal(p.m->vars[1].bytes, 8);
  assert_memory_equal(p.m->vars[1].init, c, 8);
  assert_int_equal(p.m->vars[2].nrelocs, 2);
  assert_int_equal(p.m->vars[2].relocs[1].at, 8);
  assert_int_equal(p.m->vars[2].relocs[1].addend, 4);
  assert_true(p.m->vars[2].relocs[1].generic);
  assert_memory_equal(p.m->vars[3].init, "\xfe\xff\xff\xff", 4);
  done(p);
}

static void calls(void **state) {
  (void)state;
  Parsed p = parse_clean(HEAD ".func (.param .b32 r) f(.param .b32 a, .param .b64 b);\n"
                              ".entry k() {\n.reg .b32 %r; { .param .b32 p0; .param .b64 p1; "
                              ".param .b32 q;\nst.param.b32 [p0], 1;\ncall.uni (q), f, (p0, p1);\n"
                              "ld.param.b32 %r, [q]; }\nret; }\n");
  const PtxFunc *f = ptx_entry(p.m, NULL);
  const PtxInst *call = &f->insts[1];
  assert_int_equal(call->nopnds, 3);
  assert_int_equal(call->opnds[0].kind, PTX_O_LIST);
  assert_int_equal(call->opnds[1].kind, PTX_O_FUNC);
  assert_int_equal(call->opnds[2].n, 2);
  assert_int_equal(f->call_bytes, 20);
  assert_true(p.m->vars[call->opnds[2].v[1].sym].call_param);
  done(p);
}

// Shared variables of the module come first; each function's own follow, aligned.
static void shared_layout(void **state) {
  (void)state;
  Parsed p = parse_clean(HEAD ".shared .b8 a[5];\n.extern .shared .align 16 .b8 dyn[];\n"
                              ".entry k() { .shared .align 16 .f32 b[4]; .shared .b8 c; ret; }\n");
  assert_int_equal(p.m->vars[2].offset, 16);
  assert_int_equal(p.m->vars[3].offset, 32);
  assert_int_equal(ptx_entry(p.m, NULL)->shared_bytes, 33);
  assert_int_equal(p.m->vars[1].bytes, 0);
  done(p);
}

static void stops_at_the_limit(void **state) {
  (void)state;
  char text[4096] = HEAD ".entry k() {\n";
  for (int i = 0; i < 60; i++) strcat(text, "nonsense.u32 a, b;\n");
  strcat(text, "}\n");
  Parsed p = parse(text);
  assert_null(p.m);
  assert_int_equal(p.d->errors, p.d->limit);
  done(p);
}

// After a mistake the next statement is read as if nothing had been wrong.
static void resynchronises(void **state) {
  (void)state;
  Parsed p = parse(KERNEL(".reg .b32 %r<2>;\nadd.u32 %r0, ][;\nadd.u32 %r0, %r1, 1;\n"
                          "sub.u33 %r0, %r1, 1;"));
  assert_null(p.m);
  assert_int_equal(p.d->errors, 2);
  assert_int_equal(p.d->first->line, 7);
  assert_int_equal(p.d->last->line, 9);
  done(p);
}

static void versions(void **state) {
  (void)state;
  assert_int_equal(ptx_target_min_version(90, 'a'), 80);
  assert_int_equal(ptx_target_min_version(90, 0), 78);
  assert_int_equal(ptx_target_min_version(100, 'f'), 88);
  assert_int_equal(ptx_target_min_version(91, 0), 0);
  assert_int_equal(ptx_version_of_driver(13000), 90);
  assert_int_equal(ptx_version_of_driver(12060), 85);
  assert_int_equal(ptx_version_of_driver(10020), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(header),           cmocka_unit_test(registers_are_dense),
      cmocka_unit_test(inner_registers_shadow), cmocka_unit_test(labels_are_scoped),
      cmocka_unit_test(immediates),       cmocka_unit_test(addresses),
      cmocka_unit_test(optional_operands), cmocka_unit_test(forms),
      cmocka_unit_test(initialisers),     cmocka_unit_test(calls),
      cmocka_unit_test(shared_layout),    cmocka_unit_test(stops_at_the_limit),
      cmocka_unit_test(resynchronises),   cmocka_unit_test(versions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
