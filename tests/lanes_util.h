// Runs single instructions on the lane functions, for the tests of runtime/sim_lanes*.
#ifndef PTXSMITH_TESTS_LANES_UTIL_H
#define PTXSMITH_TESTS_LANES_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sim_lanes.h"

// The registers instructions are written with: %p predicates, %h 16, %r 32, %d 64, %q 128 bits.
#define LANES_HEAD                                                                                 \
  ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n"                      \
  ".reg .pred %p<6>;\n.reg .b16 %h<6>;\n.reg .b32 %r<6>;\n.reg .b64 %d<6>;\n.reg .b128 %q<6>;\n"
#define LANES_TAIL "ret;\n}\n"

typedef union Operand {
  uint64_t u[32] __attribute__((aligned(64)));
  uint32_t w[64];
} Operand;

static inline void lane_put(Operand *o, uint8_t width, int lane, uint64_t v) {
  if (width == 8) o->u[lane] = v;
  else if (width == 1) o->w[0] = (o->w[0] & ~(1u << lane)) | (uint32_t)(v & 1) << lane;
  else o->w[lane] = (uint32_t)v;
}
static inline uint64_t lane_get(const Operand *o, uint8_t width, int lane) {
  if (width == 8) return o->u[lane];
  if (width == 1) return o->w[0] >> lane & 1;
  return o->w[lane];
}

// The first instruction of a body made of `inst`, or NULL with messages on stderr.
static inline const PtxInst *lanes_parse(Arena *a, const char *body, const PtxFunc **f) {
  Diag *d = diag_new();
  char *text = arena_printf(a, "%s%s%s", LANES_HEAD, body, LANES_TAIL);
  const PtxModule *m = ptx_parse(a, source_new(a, "lanes", text, strlen(text)), NULL, d);
  if (!m) fprintf(stderr, "%s", diag_text(d));
  diag_free(d);
  if (f) *f = m ? &m->funcs[0] : NULL;
  return m ? m->funcs[0].insts : NULL;
}

static inline void lanes_call(const LaneOp *op, Operand *d, const Operand in[4], uint64_t imm) {
  op->fn(d->u, op->width[1] ? in[0].u : NULL, op->width[2] ? in[1].u : NULL,
         op->width[3] ? in[2].u : NULL, op->width[4] ? in[3].u : NULL, imm);
}

static const char *const lane_sets[] = {"baseline", "avx2", "avx512"};
enum { NLANE_SETS = 3 };

#endif
