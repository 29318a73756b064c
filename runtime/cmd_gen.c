// gen TEMPLATE name=value ...: one variant's PTX.
#include <string.h>

#include "cmd.h"
#include "outfile.h"

Status cmd_gen(Cmd *c) {
  Session *s;
  VariantOpts opts;
  Variant *v = NULL;
  const char *path = c->cli->text[OPT_OUTPUT];
  bool to_file = path && strcmp(path, "-");
  Status st = cmd_session(c, &s);
  if (!st && to_file) st = outfile_probe(c->arena, path, c->diag);
  if (!st) st = cmd_build_opts(c, &opts);
  if (!st) st = variant_build(s, c->cli->operand[0], &c->cli->params, &opts, &v, c->diag);
  if (st) return st;
  if (!to_file) {
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
