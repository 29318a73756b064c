// dump TEMPLATE name=value ... or FILE.ptx: the text, where it came from, what is in it.
#include <string.h>

#include "cmd.h"
#include "diff.h"
#include "dump.h"
#include "parse.h"

static bool is_file(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot && !strcmp(dot, ".ptx");
}

// A subject is a variant or a file; `params` are for variants only.
static Status subject_open(Cmd *c, const char *name, const Params *params, DumpSubject *out) {
  *out = (DumpSubject){0};
  if (is_file(name)) {
    static const CliOptId of_template[] = {OPT_HOOK, OPT_TARGET, OPT_LOC};
    Status no = cli_has(c->cli, OPT_DIFF) ? ST_OK : cmd_refuse(c, of_template, 3, "for a template");
    if (no) return no;
    if (params->n)
      return diag_error(c->diag, NOWHERE, "%s is PTX: it takes no parameters", name);
    Source *src;
    Status st = source_read(c->arena, name, &src, c->diag);
    if (st) return st;
    *out = (DumpSubject){.name = name, .ptx = src};
    out->module = ptx_parse(c->arena, src, NULL, c->diag);
    if (!out->module) return ST_INPUT;
    out->map = out->module->map;
    return ST_OK;
  }
  Session *s;
  VariantOpts opts;
  Status st = cmd_session(c, &s);
  if (!st) st = cmd_build_opts(c, &opts);
  if (!st) st = variant_build(s, name, params, &opts, &out->variant, c->diag);
  if (st) return st;
  const Variant *v = out->variant;
  out->name = v->made_of, out->ptx = v->ptx, out->map = &v->map, out->module = v->module;
  return ST_OK;
}

// "[TEMPLATE|FILE.ptx] [name=value ...]": another variant; without a name the same template, and
// then the parameters not given stay as they are.
static Status diff_subject(Cmd *c, DumpSubject *out) {
  const char *text = c->cli->text[OPT_DIFF], *name = NULL;
  size_t word = strcspn(text, " ");
  if (!memchr(text, '=', word)) {
    name = arena_strndup(c->arena, text, word);
    text += word;
  }
  Params given = {0}, params = {0};
  Status st = parse_params(c->arena, text, &given, c->diag);
  if (st) return st;
  bool same = !name || !strcmp(name, c->cli->operand[0]);
  for (int i = 0; same && i < c->cli->params.n; i++)
    params_set(c->arena, &params, c->cli->params.v[i].name, c->cli->params.v[i].value);
  for (int i = 0; i < given.n; i++)
    params_set(c->arena, &params, given.v[i].name, given.v[i].value);
  return subject_open(c, name ? name : c->cli->operand[0], &params, out);
}

static Status dump_diff(Cmd *c, const DumpSubject *s) {
  DumpSubject other;
  Status st = diff_subject(c, &other);
  if (st) return st;
  char *text = diff_text(c->arena, s->name, s->ptx->text, other.name, other.ptx->text);
  if (cli_has(c->cli, OPT_JSON)) {
    Json j;
    json_begin(&j, c->arena);
    json_str(&j, "from", s->name);
    json_str(&j, "to", other.name);
    json_str(&j, "diff", text);
    fputs(json_end(&j), stdout);
  } else {
    fputs(text, stdout);
  }
  variant_free(other.variant);
  return ST_OK;
}

static void dump_text(Cmd *c, const DumpSubject *s) {
  if (!cli_has(c->cli, OPT_JSON)) {
    fwrite(s->ptx->text, 1, s->ptx->len, stdout);
    return;
  }
  Json j;
  json_begin(&j, c->arena);
  json_str(&j, "variant", s->name);
  if (s->variant) json_str(&j, "hash", s->variant->hash);
  json_str(&j, "ptx", s->ptx->text);
  fputs(json_end(&j), stdout);
}

Status cmd_dump(Cmd *c) {
  const Cli *cli = c->cli;
  bool json = cli_has(cli, OPT_JSON);
  DumpSubject s;
  Status st = subject_open(c, cli->operand[0], &cli->params, &s);
  if (st) return st;
  bool shown = false;
  if (cli_has(cli, OPT_DIFF)) st = dump_diff(c, &s), shown = true;
  if (!st && cli_has(cli, OPT_ANNOTATE)) dump_annotated(c->arena, &s, json, stdout), shown = true;
  if (!st && cli_has(cli, OPT_STATS)) dump_stats(c->arena, &s, json, stdout), shown = true;
  if (!st && cli_has(cli, OPT_SASS))
    st = dump_sass(c->arena, &s, json, stdout, c->diag), shown = true;
  if (!st && !shown) dump_text(c, &s);
  variant_free(s.variant);
  return st;
}
