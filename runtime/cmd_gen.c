// gen TEMPLATE name=value ...: one variant's PTX.
#include <string.h>

#include "cmd.h"
#include "outfile.h"

Status cmd_gen(Cmd *c) {
  Session *s;
  VariantOpts opts;
  Variant *v = NULL;
  Status st = cmd_session(c, &s);
  if (!st) st = cmd_build_opts(c, &opts);
  if (!st) st = variant_build(s, c->cli->operand[0], &c->cli->params, &opts, &v, c->diag);
  if (st) return st;
  const char *path = c->cli->text[OPT_OUTPUT];
  if (!path || !strcmp(path, "-")) {
    fwrite(v->ptx->text, 1, v->ptx->len, stdout);
  } else {
    Outfile o;
    st = outfile_open(c->arena, path, &o, c->diag);
    if (!st) {
      fwrite(v->ptx->text, 1, v->ptx->len, o.f);
      st = outfile_commit(&o, c->diag);
    }
  }
  variant_free(v);
  return st;
}
