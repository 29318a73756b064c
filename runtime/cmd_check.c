// check FILE.ptx ...: parses and checks PTX from anywhere.
#include <string.h>

#include "cmd.h"
#include "interrupt.h"
#include "progress.h"

typedef struct CheckResult {
  Status status;
  int entries, insts, errors, warnings;
  const char *first_error;
} CheckResult;

// Messages go to `d`; the module's memory goes with the arena of this call.
static CheckResult check_file(const char *path, Diag *d) {
  CheckResult r = {0};
  Arena *a = arena_new();
  Source *src;
  r.status = source_read_input(a, path, &src, d);
  if (!r.status) {
    const PtxModule *m = ptx_parse(a, src, NULL, d);
    // What can't be read is bad input; what is read and is no good PTX is a failed check.
    if (!m || ptx_check(m, d) || d->errors) r.status = ST_FAILED;
    for (int i = 0; m && i < m->nfuncs; i++) {
      r.entries += m->funcs[i].entry;
      r.insts += m->funcs[i].ninsts;
    }
  }
  arena_free(a);
  r.errors = d->errors;
  r.warnings = d->warnings;
  return r;
}

static void report(Cmd *c, const char *path, const CheckResult *r, const Diag *d) {
  if (!cli_has(c->cli, OPT_JSON)) {
    fputs(diag_text(d), stderr);
    if (r->status) printf("%s: %d error%s\n", path, r->errors, r->errors == 1 ? "" : "s");
    else printf("%s: good, %d entr%s, %d instructions\n", path, r->entries,
                r->entries == 1 ? "y" : "ies", r->insts);
    return;
  }
  Json j;
  json_begin(&j, c->arena);
  json_str(&j, "file", path);
  json_bool(&j, "good", !r->status);
  json_int(&j, "entries", r->entries);
  json_int(&j, "instructions", r->insts);
  json_int(&j, "errors", r->errors);
  json_int(&j, "warnings", r->warnings);
  json_array(&j, "messages");
  for (const DiagMsg *m = d->first; m; m = m->next) {
    json_object(&j, NULL);
    json_int(&j, "line", m->line);
    json_int(&j, "column", m->col);
    json_str(&j, "severity", m->severity == SEV_ERROR     ? "error"
                             : m->severity == SEV_WARNING ? "warning"
                                                          : "note");
    json_str(&j, "what", m->what);
    json_close(&j);
  }
  fputs(json_end(&j), stdout);
}

Status cmd_check(Cmd *c) {
  Status worst = ST_OK;
  Diag *d = diag_new();
  Progress p;
  progress_begin(&p, stderr, "files checked", c->cli->noperands);
  for (int i = 0; i < c->cli->noperands && worst != ST_INTERRUPTED; i++) {
    diag_reset(d);
    CheckResult r = check_file(c->cli->operand[i], d);
    if (r.status > worst) worst = r.status;
    progress_clear(&p);
    report(c, c->cli->operand[i], &r, d);
    progress_at(&p, i + 1);
    if (interrupt_pending()) worst = ST_INTERRUPTED;
  }
  progress_clear(&p);
  diag_free(d);
  return worst;
}
