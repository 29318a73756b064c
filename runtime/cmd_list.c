// list [TEMPLATE]: templates, or all about one; list --problems: the named problems.
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "problem.h"

static const char *const kind_name[] = {
    [KIND_PREFILL] = "prefill", [KIND_DECODE] = "decode", [KIND_COMBINE] = "combine",
    [KIND_CEILING] = "ceiling", [KIND_ORACLE] = "oracle", [KIND_HELPER] = "helper",
};

static const char *const role_name[] = {
    [ARG_VALUE] = "value", [ARG_IN] = "in",     [ARG_OUT] = "out",
    [ARG_INOUT] = "inout", [ARG_WORK] = "work",
};

static const char *const param_kind_name[] = {
    [PARAM_INT] = "integer", [PARAM_BOOL] = "flag", [PARAM_DTYPE] = "dtype", [PARAM_NAME] = "name",
};

static char *dim_text(Arena *a, const Dim *d, const char *param) {
  if (param) return arena_strdup(a, param);
  if (!d->name) return arena_printf(a, "%lld", (long long)d->n);
  if (d->div > 1) return arena_printf(a, "ceil(%s / %lld)", d->name, (long long)d->div);
  return arena_strdup(a, d->name);
}

// ---- sizes that are parameters ------------------------------------------------------------------
// A template writes a parameter as a size, the declaration holds its number: which parameter it was
// shows when the arguments are declared once more with another value of that one.
typedef const char *SizeNames[TENSOR_MAX_RANK]; // of an argument; NULL: no parameter

static bool is_size(const Dim *d, const char *value) {
  return !d->name && d->n == strtoll(value, NULL, 10);
}

static bool any_size(const TemplateInfo *t, const char *value) {
  for (int i = 0; i < t->nargs; i++)
    for (int k = 0; k < t->args[i].rank; k++)
      if (is_size(&t->args[i].dim[k], value)) return true;
  return false;
}

// All at their defaults but one; NULL when that is not legal.
static Variant *declared_with(Session *s, const TemplateInfo *t, const char *name,
                              const char *value) {
  Diag *quiet = diag_new();
  Arena *a = arena_new();
  Params p = {0};
  Variant *v = NULL;
  for (int i = 0; i < t->nparams; i++) params_set(a, &p, t->params[i].name, t->params[i].def);
  params_set(a, &p, name, value);
  if (variant_build(s, t->name, &p, &(VariantOpts){.no_check = true}, &v, quiet)) v = NULL;
  arena_free(a);
  diag_free(quiet);
  return v;
}

static void name_sizes(const TemplateInfo *t, const ParamDecl *p, const char *value,
                       const Variant *v, SizeNames *out) {
  for (int i = 0; i < t->nargs && i < v->nargs && !strcmp(t->args[i].name, v->args[i].name); i++)
    for (int k = 0; k < t->args[i].rank && k < v->args[i].rank; k++)
      if (is_size(&t->args[i].dim[k], p->def) && is_size(&v->args[i].dim[k], value))
        out[i][k] = p->name;
}

static SizeNames *find_sizes(Arena *a, Session *s, const TemplateInfo *t) {
  SizeNames *out = arena_array(a, SizeNames, t->nargs + 1);
  for (int i = 0; i < t->nparams; i++) {
    const ParamDecl *p = &t->params[i];
    if (p->kind != PARAM_INT || !any_size(t, p->def)) continue;
    Variant *v = NULL;
    for (int k = 0; k < p->nvalues && !v; k++) {
      if (!strcmp(p->values[k], p->def)) continue;
      v = declared_with(s, t, p->name, p->values[k]);
      if (v) name_sizes(t, p, p->values[k], v, out);
    }
    variant_free(v);
  }
  return out;
}

static char *shape_text(Arena *a, const ArgDecl *g, const char *const *names) {
  if (g->role == ARG_VALUE) return arena_strdup(a, "");
  char *t = arena_strdup(a, "[");
  for (int i = 0; i < g->rank; i++)
    t = arena_printf(a, "%s%s%s", t, i ? ", " : "", dim_text(a, &g->dim[i], names[i]));
  return arena_printf(a, "%s]", t);
}

// A Lua line's own text; NULL when it is none.
static const char *lua_line(const Source *src, uint32_t line, const char **end) {
  size_t len;
  const char *s = source_line(src, line, &len);
  *end = s + len;
  while (s < *end && (*s == ' ' || *s == '\t')) s++;
  if (s == *end || *s++ != '|') return NULL;
  while (s < *end && *s == ' ') s++;
  return s;
}

// Adds a line of a call to what is between `start` and `to`; true when its closing parenthesis was
// there.
static bool take_call(const char *s, const char *end, int *depth, const char *start, char **to) {
  char quote = 0;
  for (; s < end; s++) {
    if (quote && *s == '\\' && s + 1 < end) *(*to)++ = *s++;
    else if (quote) quote = *s == quote ? 0 : quote;
    else if (*s == '"' || *s == '\'') quote = *s;
    else if (end - s > 1 && s[0] == '-' && s[1] == '-') break; // a comment
    else if (*s == '(') ++*depth;
    else if (*s == ')' && !--*depth) return true;
    *(*to)++ = *s;
  }
  while (*to > start && (*to)[-1] == ' ') --*to;
  if (*to > start) *(*to)++ = ' '; // instead of the line's end
  return false;
}

// The next `| constrain(condition, "message")` of a template from line *at on; what stands between
// the parentheses, NULL when there is none.
static char *next_constraint(Arena *a, const Source *src, uint32_t *at) {
  static const char word[] = "constrain(";
  for (; src && *at <= src->nlines; ++*at) {
    const char *end, *line = lua_line(src, *at, &end);
    if (!line || (size_t)(end - line) < sizeof word - 1 || memcmp(line, word, sizeof word - 1))
      continue;
    char *text = arena_alloc(a, src->len + src->nlines + 2), *to = text;
    int depth = 1;
    line += sizeof word - 1;
    while (line && !take_call(line, end, &depth, text, &to) && ++*at <= src->nlines)
      line = lua_line(src, *at, &end);
    ++*at;
    *to = 0;
    return text;
  }
  return NULL;
}

// A value in JSON's own type.
static void json_value(Json *j, const char *key, const ParamDecl *p, const char *value) {
  if (p->kind == PARAM_INT) json_int(j, key, strtoll(value, NULL, 10));
  else if (p->kind == PARAM_BOOL) json_bool(j, key, !strcmp(value, "1"));
  else json_str(j, key, value);
}

// Where the template lies: in the user's folder, with that folder's name, or built in.
static const char *place(Cmd *c, Session *s, const TemplateInfo *t) {
  const Source *src;
  return session_file(s, t->path, &src, c->diag) ? t->path : src->name;
}

static void json_template(Cmd *c, Session *s, const TemplateInfo *t) {
  Json j;
  json_begin(&j, c->arena);
  json_str(&j, "template", t->name);
  json_str(&j, "kind", kind_name[t->kind]);
  json_str(&j, "summary", t->summary);
  json_str(&j, "path", place(c, s, t));
  json_array(&j, "params");
  for (int i = 0; i < t->nparams; i++) {
    const ParamDecl *p = &t->params[i];
    json_object(&j, NULL);
    json_str(&j, "name", p->name);
    json_str(&j, "kind", param_kind_name[p->kind]);
    json_array(&j, "values");
    for (int k = 0; k < p->nvalues; k++) json_value(&j, NULL, p, p->values[k]);
    json_close(&j);
    json_value(&j, "default", p, p->def);
    json_str(&j, "doc", p->doc);
    json_close(&j);
  }
  json_close(&j);
  SizeNames *sizes = find_sizes(c->arena, s, t);
  json_array(&j, "args");
  for (int i = 0; i < t->nargs; i++) {
    const ArgDecl *g = &t->args[i];
    json_object(&j, NULL);
    json_str(&j, "name", g->name);
    json_str(&j, "role", role_name[g->role]);
    json_str(&j, "dtype", dtype_name(g->dtype));
    json_array(&j, "shape");
    for (int k = 0; g->role != ARG_VALUE && k < g->rank; k++)
      json_str(&j, NULL, dim_text(c->arena, &g->dim[k], sizes[i][k]));
    json_close(&j);
    json_bool(&j, "optional", g->optional);
    json_str(&j, "doc", g->doc);
    json_close(&j);
  }
  json_close(&j);
  json_array(&j, "constraints");
  const Source *src = NULL;
  uint32_t at = 1;
  if (!session_file(s, t->path, &src, c->diag))
    for (char *text; (text = next_constraint(c->arena, src, &at));) json_str(&j, NULL, text);
  fputs(json_end(&j), stdout);
}

static void print_params(Arena *a, const TemplateInfo *t) {
  printf("\nparameters            values (default in brackets)\n");
  for (int i = 0; i < t->nparams; i++) {
    const ParamDecl *p = &t->params[i];
    char *values = arena_strdup(a, "");
    for (int k = 0; k < p->nvalues; k++) {
      bool def = !strcmp(p->values[k], p->def);
      values = arena_printf(a, def ? "%s%s[%s]" : "%s%s%s", values, k ? " " : "", p->values[k]);
    }
    printf("  %-18s  %-28s  %s\n", p->name, values, p->doc);
  }
}

static void print_args(Arena *a, Session *s, const TemplateInfo *t) {
  SizeNames *sizes = find_sizes(a, s, t);
  printf("\narguments (with the default parameters)\n");
  for (int i = 0; i < t->nargs; i++) {
    const ArgDecl *g = &t->args[i];
    printf("  %-12s  %-5s  %-4s  %-44s  %s%s\n", g->name, role_name[g->role], dtype_name(g->dtype),
           shape_text(a, g, sizes[i]), g->doc, g->optional ? " (optional)" : "");
  }
}

static void print_constraints(Cmd *c, Session *s, const TemplateInfo *t) {
  const Source *src;
  uint32_t at = 1;
  bool any = false;
  if (session_file(s, t->path, &src, c->diag)) return;
  for (char *text; (text = next_constraint(c->arena, src, &at)); any = true)
    printf("%s  %s\n", any ? "" : "\nconstraints\n", text);
}

static Status list_template(Cmd *c, Session *s, const char *name) {
  const TemplateInfo *t;
  Status st = session_template(s, name, &t, c->diag);
  if (st) return st;
  if (cli_has(c->cli, OPT_JSON)) {
    json_template(c, s, t);
    return ST_OK;
  }
  printf("%s: %s\n%s, %s\n", t->name, t->summary, kind_name[t->kind], place(c, s, t));
  print_params(c->arena, t);
  print_constraints(c, s, t);
  print_args(c->arena, s, t);
  return ST_OK;
}

static Status list_templates(Cmd *c, Session *s) {
  const TemplateInfo **t;
  int n;
  Status st = session_templates(s, &t, &n, c->diag);
  if (st) return st;
  for (int i = 0; i < n; i++) {
    if (cli_has(c->cli, OPT_JSON)) json_template(c, s, t[i]);
    else printf("%-20s  %-8s  %s\n", t[i]->name, kind_name[t[i]->kind], t[i]->summary);
  }
  return ST_OK;
}

static Status list_problems(Cmd *c, Session *s) {
  NamedProblem *p;
  int n;
  Status st = problem_list(s, c->arena, &p, &n, c->diag);
  for (int i = 0; !st && i < n; i++) {
    if (!cli_has(c->cli, OPT_JSON)) {
      printf("%-28s  %s\n%-28s  %s\n", p[i].name, p[i].doc, "", p[i].text);
      continue;
    }
    Json j;
    json_begin(&j, c->arena);
    json_str(&j, "problem", p[i].name);
    json_str(&j, "values", p[i].text);
    json_str(&j, "doc", p[i].doc);
    fputs(json_end(&j), stdout);
  }
  return st;
}

Status cmd_list(Cmd *c) {
  Session *s;
  Status st = cmd_session(c, &s);
  if (st) return st;
  if (cli_has(c->cli, OPT_PROBLEMS) && c->cli->noperands)
    return diag_error(c->diag, NOWHERE, "list: --problems stands without a template");
  if (cli_has(c->cli, OPT_PROBLEMS)) return list_problems(c, s);
  return c->cli->noperands ? list_template(c, s, c->cli->operand[0]) : list_templates(c, s);
}
