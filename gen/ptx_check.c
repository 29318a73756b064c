// The checker: what can be proved without running.
#include "ptx_check.h"

#include <string.h>

enum { STATIC_SHARED_LIMIT = 48 * 1024, CONSTANT_LIMIT = 64 * 1024, LOCAL_LIMIT = 512 * 1024 };

// ---- messages ----------------------------------------------------------------------------------
static Place place_of(const Check *c, uint32_t line, uint32_t col, uint32_t span) {
  return (Place){.src = c->m->src, .line = line, .col = col, .span = span,
                 .origin = linemap_at(c->m->map, line)};
}

// Underlines up to the end of the word or, for an opcode, the blank behind it.
static uint32_t span_at(const Check *c, uint32_t line, uint32_t col) {
  size_t len;
  const char *text = source_line(c->m->src, line, &len);
  if (!col || col > len) return 1;
  uint32_t n = 1;
  while (col - 1 + n < len && !strchr(" \t,;)]}|", text[col - 1 + n])) n++;
  return n;
}

static void add(Check *c, Severity s, uint32_t line, uint32_t col, const char *fmt, va_list ap) {
  diag_add(c->diag, s, place_of(c, line, col, span_at(c, line, col)), "%s",
           arena_vprintf(c->arena, fmt, ap));
}

void check_inst_error(Check *c, const PtxInst *in, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  add(c, SEV_ERROR, in->line, in->col, fmt, ap);
  va_end(ap);
}

void check_opnd_error(Check *c, const PtxInst *in, const PtxOperand *o, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  add(c, SEV_ERROR, in->line, o->col ? o->col : in->col, fmt, ap);
  va_end(ap);
}

void check_inst_warning(Check *c, const PtxInst *in, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  add(c, SEV_WARNING, in->line, in->col, fmt, ap);
  va_end(ap);
}

const char *check_operand_text(Check *c, const PtxOperand *o) {
  PtxInst in = {.form = 0, .guard = -1, .nopnds = 1, .opnds = (PtxOperand *)o};
  char *text = ptx_print_inst(c->arena, c->m, c->f, &in);
  char *from = strchr(text, ' ');
  size_t n = strlen(text);
  if (!from) return text;
  text[n - 1] = 0; // the semicolon
  return from + 1;
}

// ---- versions ----------------------------------------------------------------------------------
static const char *target_text(Check *c, int sm) {
  if (sm & PTX_SM_ARCH) return arena_printf(c->arena, "sm_%da", sm & 0xfff);
  if (sm & PTX_SM_ARCH_UP)
    return arena_printf(c->arena, "sm_%da or a later `a` target", sm & 0xfff);
  return arena_printf(c->arena, "sm_%d", sm);
}

static void check_minimum(Check *c, const PtxInst *in) {
  int ptx, sm;
  if (ptx_inst_allowed(in, c->m->version, c->m->sm, c->m->sm_suffix)) return;
  ptx_inst_minimum(in, &ptx, &sm);
  if (!ptx_sm_satisfies(c->m->sm, c->m->sm_suffix, sm)) {
    char suffix[2] = {c->m->sm_suffix, 0};
    check_inst_error(c, in, "this needs %s; .target is sm_%d%s", target_text(c, sm), c->m->sm,
                     suffix);
  } else if (ptx > c->m->version) {
    check_inst_error(c, in, "this needs .version %d.%d; the file says %d.%d", ptx / 10, ptx % 10,
                     c->m->version / 10, c->m->version % 10);
  }
}

static void check_target(Check *c) {
  const PtxModule *m = c->m;
  int least = ptx_target_min_version(m->sm, m->sm_suffix);
  if (m->version >= least) return;
  diag_error(c->diag,
             place_of(c, m->target_line, m->target_col, (uint32_t)strlen(m->target_text)),
             ".target %s needs .version %d.%d; the file says %d.%d", m->target_text, least / 10,
             least % 10, m->version / 10, m->version % 10);
}

// ---- functions ---------------------------------------------------------------------------------
static void check_head(Check *c) {
  const PtxFunc *f = c->f;
  Place at = place_of(c, f->line, f->col, (uint32_t)strlen(f->name));
  // 4 KiB of parameters, 32,764 bytes from PTX 8.1 and sm_70 on (ISA 4.1, 5.1.6.1).
  uint32_t limit = c->m->version >= 81 && c->m->sm >= 70 ? 32764 : 4352;
  if (f->entry && f->param_bytes > limit)
    diag_error(c->diag, at, "the parameters of \"%s\" take %llu bytes; the limit is %u here",
               f->name, (unsigned long long)f->param_bytes, limit);
  if (f->entry && f->shared_bytes > STATIC_SHARED_LIMIT)
    diag_error(c->diag, at,
               "\"%s\" declares %llu bytes of static shared memory; the limit is %d (declare the "
               "rest as .extern .shared)",
               f->name, (unsigned long long)f->shared_bytes, STATIC_SHARED_LIMIT);
  // The CUDA C++ Programming Guide's table of technical specifications; ptxas takes more.
  if (f->local_bytes > LOCAL_LIMIT)
    diag_error(c->diag, at,
               "\"%s\" declares %llu bytes of local memory; a thread has %d at most", f->name,
               (unsigned long long)f->local_bytes, LOCAL_LIMIT);
  const uint32_t *n = f->reqntid[0] ? f->reqntid : f->maxntid;
  uint64_t threads = (uint64_t)n[0] * n[1] * n[2];
  if (n[0] && (threads > 1024 || n[0] > 1024 || n[1] > 1024 || n[2] > 64))
    diag_error(c->diag, at, "%u x %u x %u threads in a block; the limit is 1024", n[0], n[1], n[2]);
  if (f->maxntid[0] && f->reqntid[0])
    diag_error(c->diag, at, "\"%s\" has both .maxntid and .reqntid", f->name);
}

static void check_function(Check *c) {
  check_head(c);
  int before = c->diag->errors;
  for (int i = 0; i < c->f->ninsts && c->diag->errors < c->diag->limit; i++) {
    const PtxInst *in = &c->f->insts[i];
    int errors = c->diag->errors;
    check_minimum(c, in);
    check_operands(c, in);
    check_addresses(c, in);
    if (c->diag->errors == errors) check_rules(c, in);
  }
  if (c->diag->errors == before) check_flow(c);
}

// Constants outside of the driver's own banks: 64 KiB a module (ISA 5.1.3).
static void check_constants(Check *c) {
  uint64_t bytes = 0;
  for (int i = 0; i < c->m->nvars; i++) {
    const PtxVar *v = &c->m->vars[i];
    if (v->space != PTX_S_CONST || v->is_extern) continue;
    bytes = (bytes + v->align - 1) / v->align * v->align + v->bytes;
    if (bytes <= CONSTANT_LIMIT) continue;
    diag_error(c->diag, place_of(c, v->line, v->col, (uint32_t)strlen(v->name)),
               "with \"%s\" the module has %llu bytes of constants; the limit is %d", v->name,
               (unsigned long long)bytes, CONSTANT_LIMIT);
    return;
  }
}

Status ptx_check(const PtxModule *m, Diag *d) {
  Check c = {.m = m, .diag = d, .arena = arena_new()};
  int before = d->errors;
  check_target(&c);
  check_constants(&c);
  for (int i = 0; i < m->nfuncs && d->errors < d->limit; i++) {
    c.f = &m->funcs[i];
    if (c.f->defined) check_function(&c);
  }
  arena_free(c.arena);
  return d->errors == before ? ST_OK : ST_INPUT;
}
