// Inside the checker.
#ifndef PTXSMITH_PTX_CHECK_H
#define PTXSMITH_PTX_CHECK_H

#include "ptx_forms.h"

typedef struct Check {
  const PtxModule *m;
  const PtxFunc *f;
  Diag *diag;
  Arena *arena; // scratch
  PtxFlow *flow;
} Check;

// At an instruction, or at one of its operands.
void check_inst_error(Check *c, const PtxInst *in, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void check_opnd_error(Check *c, const PtxInst *in, const PtxOperand *o, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void check_inst_warning(Check *c, const PtxInst *in, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
const char *check_operand_text(Check *c, const PtxOperand *o);

void check_operands(Check *c, const PtxInst *in);  // ptx_check_opnd.c
void check_addresses(Check *c, const PtxInst *in); // ptx_check_addr.c
void check_rules(Check *c, const PtxInst *in);     // ptx_check_rules.c
void check_flow(Check *c);                         // ptx_check_flow.c

#endif
