#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const CliVerb cli_verbs[CLI_VERB_COUNT] = {
#define X(id, name, operands, least, most, params, shown, summary)                                 \
  {#name, operands, least, most, params, shown, summary},
    CLI_VERBS(X)
#undef X
};

const CliOpt cli_opts[OPT_COUNT] = {
#define X(id, name, letter, takes, value, verbs, summary)                                          \
  {name, letter, TAKES_##takes, value, verbs, summary},
    CLI_OPTS(X)
#undef X
};

static bool option_of(const CliOpt *o, CliVerbId verb) { return o->verbs >> verb & 1; }

CliVerbId cli_verb(Arena *a, const char *name, Diag *d) {
  const char *names[CLI_VERB_COUNT];
  int n = 0;
  for (int i = 0; i < CLI_VERB_COUNT; i++) {
    if (!strcmp(cli_verbs[i].name, name)) return (CliVerbId)i;
    if (cli_verbs[i].shown) names[n++] = cli_verbs[i].name;
  }
  diag_error(d, NOWHERE, "no verb \"%s\"%s; `ptxsmith help` lists them", name,
             diag_nearest(a, name, names, n));
  return CLI_VERB_COUNT;
}

// ---- parsing ------------------------------------------------------------------------------------
typedef struct Parser {
  Arena *a;
  Cli *c;
  Diag *d;
  int argc, at;
  const char *const *argv;
} Parser;

// "verify, bench and sweep": the verbs that take an option.
static char *verbs_of(Arena *a, const CliOpt *o) {
  const char *name[CLI_VERB_COUNT];
  int n = 0;
  for (int v = 0; v < CLI_VERB_COUNT; v++)
    if (option_of(o, (CliVerbId)v) && cli_verbs[v].shown) name[n++] = cli_verbs[v].name;
  char *text = arena_strdup(a, "");
  for (int i = 0; i < n; i++)
    text = arena_printf(a, "%s%s%s", text, i == 0 ? "" : i == n - 1 ? " and " : ", ", name[i]);
  return text;
}

static Status unknown_option(Parser *p, const char *shown, const char *name) {
  const char *names[OPT_COUNT];
  int n = 0;
  for (int i = 0; i < OPT_COUNT; i++)
    if (option_of(&cli_opts[i], p->c->verb)) names[n++] = cli_opts[i].name;
  return diag_error(p->d, NOWHERE, "%s: no option %s%s", cli_verbs[p->c->verb].name, shown,
                    diag_nearest(p->a, name, names, n));
}

// The option called by `--name` (n bytes long) or by `-x`; OPT_COUNT and a message when there is
// none or the verb does not take it.
static CliOptId find_option(Parser *p, const char *name, size_t n, bool is_letter) {
  char *shown = arena_printf(p->a, "%s%.*s", is_letter ? "-" : "--", (int)n, name);
  const CliOpt *others = NULL; // an option of that name that other verbs take
  for (int i = 0; i < OPT_COUNT; i++) {
    const CliOpt *o = &cli_opts[i];
    bool same = is_letter ? n == 1 && o->letter == *name
                          : strlen(o->name) == n && !memcmp(o->name, name, n);
    if (!same) continue;
    if (option_of(o, p->c->verb)) return (CliOptId)i;
    if (!others) others = o;
  }
  if (others)
    diag_error(p->d, NOWHERE, "%s does not take %s; %s do", cli_verbs[p->c->verb].name, shown,
               verbs_of(p->a, others));
  else
    unknown_option(p, shown, arena_strndup(p->a, name, n));
  return OPT_COUNT;
}

static Status read_number(Parser *p, const CliOpt *o, const char *text, uint64_t *out) {
  uint64_t most = o->takes == TAKES_COUNT ? INT32_MAX : UINT64_MAX;
  uint64_t least = o->takes == TAKES_COUNT ? 1 : 0;
  char *end = NULL;
  errno = 0;
  unsigned long long v = strtoull(text, &end, 10);
  // strtoull takes signs and blanks; a number here is digits only.
  bool digits = *text && strspn(text, "0123456789") == strlen(text);
  if (!digits)
    return diag_error(p->d, NOWHERE, "--%s: \"%s\" is not a whole number", o->name, text);
  if (errno == ERANGE || v < least || v > most)
    return diag_error(p->d, NOWHERE, "--%s: %s is outside %llu .. %llu", o->name, text,
                      (unsigned long long)least, (unsigned long long)most);
  *out = v;
  return ST_OK;
}

static Status take_option(Parser *p, CliOptId id, const char *attached) {
  const CliOpt *o = &cli_opts[id];
  if (p->c->text[id] && o->takes != TAKES_LIST)
    return diag_error(p->d, NOWHERE, "--%s is given twice", o->name);
  if (o->takes == TAKES_FLAG) {
    if (attached) return diag_error(p->d, NOWHERE, "--%s takes no value", o->name);
    p->c->text[id] = "";
    return ST_OK;
  }
  if (!attached && p->at >= p->argc)
    return diag_error(p->d, NOWHERE, "--%s needs a value: --%s %s", o->name, o->name, o->value);
  p->c->text[id] = attached ? attached : p->argv[p->at++];
  if (o->takes == TAKES_TEXT || o->takes == TAKES_LIST) {
    if (!*p->c->text[id]) return diag_error(p->d, NOWHERE, "--%s: the value is empty", o->name);
    CliList *list = &p->c->list[id];
    *arena_push(p->a, list->v, list->n, list->cap) = p->c->text[id];
    return ST_OK;
  }
  return read_number(p, o, p->c->text[id], &p->c->number[id]);
}

static Status take_word(Parser *p, const char *word) {
  Cli *c = p->c;
  const CliVerb *verb = &cli_verbs[c->verb];
  if (verb->params && c->noperands && strchr(word, '=')) {
    const char *name = arena_strndup(p->a, word, (size_t)(strchr(word, '=') - word));
    if (params_get(&c->params, name))
      return diag_error(p->d, NOWHERE, "parameter %s is given twice", name);
    return params_parse(p->a, &c->params, word, p->d);
  }
  if (verb->most >= 0 && c->noperands == verb->most) {
    if (verb->params)
      return diag_error(p->d, NOWHERE, "%s: \"%s\" is not a name=value parameter", verb->name,
                        word);
    return diag_error(p->d, NOWHERE, "%s: \"%s\" is one word too many; usage: ptxsmith %s%s%s",
                      verb->name, word, verb->name, *verb->operands ? " " : "", verb->operands);
  }
  *arena_push(p->a, c->operand, c->noperands, c->operand_cap) = word;
  return ST_OK;
}

static Status take(Parser *p, const char *word, bool *options) {
  if (!*options || word[0] != '-' || !word[1]) return take_word(p, word);
  if (!strcmp(word, "--")) {
    *options = false;
    return ST_OK;
  }
  bool is_letter = word[1] != '-';
  const char *name = word + (is_letter ? 1 : 2), *eq = strchr(name, '=');
  CliOptId id = find_option(p, name, eq ? (size_t)(eq - name) : strlen(name), is_letter);
  return id == OPT_COUNT ? ST_INPUT : take_option(p, id, eq ? eq + 1 : NULL);
}

// Options that only add to another one.
static Status check_alone(const Cli *c, Diag *d) {
  static const struct { CliOptId opt, needs; uint32_t verbs; } adds[] = {
      {OPT_ANNOTATE, OPT_COUNTERS, IN_VERIFY | IN_BENCH | IN_RUN},
      {OPT_ROOF, OPT_COUNTERS, IN_VERIFY | IN_BENCH | IN_RUN},
      {OPT_TOLERANCE, OPT_EXPECT, IN_RUN},
  };
  for (size_t i = 0; i < sizeof adds / sizeof *adds; i++)
    if (adds[i].verbs >> c->verb & 1 && cli_has(c, adds[i].opt) && !cli_has(c, adds[i].needs))
      return diag_error(d, NOWHERE, "--%s does nothing without --%s", cli_opts[adds[i].opt].name,
                        cli_opts[adds[i].needs].name);
  return ST_OK;
}

Status cli_parse(Arena *a, int argc, const char *const *argv, Cli *out, Diag *d) {
  *out = (Cli){.verb = CLI_HELP};
  if (argc < 2) return diag_error(d, NOWHERE, "no verb given; `ptxsmith help` lists them");
  const char *first = argv[1];
  if (!strcmp(first, "--help") || !strcmp(first, "-h")) first = "help";
  if (!strcmp(first, "--version")) first = "version";
  out->verb = cli_verb(a, first, d);
  if (out->verb == CLI_VERB_COUNT) return ST_INPUT;
  Parser p = {.a = a, .c = out, .d = d, .argc = argc, .at = 2, .argv = argv};
  bool options = true;
  while (p.at < argc) {
    const char *word = argv[p.at++];
    Status st = take(&p, word, &options);
    if (st) return st;
  }
  const CliVerb *verb = &cli_verbs[out->verb];
  if (!cli_has(out, OPT_HELP) && out->noperands < verb->least)
    return diag_error(d, NOWHERE, "usage: ptxsmith %s %s", verb->name, verb->operands);
  return cli_has(out, OPT_HELP) ? ST_OK : check_alone(out, d);
}

// ---- help ---------------------------------------------------------------------------------------
static char *help_of_program(Arena *a) {
  char *t = arena_strdup(a, "usage: ptxsmith VERB [operands] [options]\n\n");
  for (int i = 0; i < CLI_VERB_COUNT; i++)
    if (cli_verbs[i].shown)
      t = arena_printf(a, "%s  %-9s %s\n", t, cli_verbs[i].name, cli_verbs[i].summary);
  return arena_printf(
      a,
      "%s\n`ptxsmith help VERB` lists its options.\n"
      "Exit status: 0 good, 1 a check or verification failed, 2 bad usage or input,\n"
      "3 device or driver not available, 130 interrupted.\n",
      t);
}

char *cli_help(Arena *a, CliVerbId verb) {
  if (verb == CLI_VERB_COUNT) return help_of_program(a);
  const CliVerb *v = &cli_verbs[verb];
  char *t = arena_printf(a, "usage: ptxsmith %s%s%s [options]\n\n  %s\n\n", v->name,
                         *v->operands ? " " : "", v->operands, v->summary);
  for (int i = 0; i < OPT_COUNT; i++) {
    const CliOpt *o = &cli_opts[i];
    if (!option_of(o, verb)) continue;
    char *letter = o->letter ? arena_printf(a, "-%c, ", o->letter) : "    ";
    char *left = arena_printf(a, "%s--%s%s%s", letter, o->name, *o->value ? " " : "", o->value);
    // A left column that is too wide gets a line of its own.
    t = strlen(left) > 30 ? arena_printf(a, "%s  %s\n  %-31s%s\n", t, left, "", o->summary)
                          : arena_printf(a, "%s  %-31s%s\n", t, left, o->summary);
  }
  return t;
}

char *cli_quote(Arena *a, const char *s) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "_-=,./:+@%";
  if (*s && strspn(s, plain) == strlen(s)) return arena_strdup(a, s);
  char *t = arena_alloc(a, strlen(s) * 4 + 3), *w = t;
  *w++ = '\'';
  for (; *s; s++) {
    if (*s == '\'') w = memcpy(w, "'\\''", 4), w += 4;
    else *w++ = *s;
  }
  *w = '\'';
  return t;
}
