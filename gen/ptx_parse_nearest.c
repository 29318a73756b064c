// Instructions that no row takes: which rows come nearest.
#include "ptx_parse.h"

#include <string.h>

enum { MAX_MODS_SEEN = 32 };

static void unknown_stem(Parser *p, const Token *t, const char *stem) {
  const char **names = arena_array(p->arena, const char *, ptx_nforms);
  int n = 0;
  for (int i = 0; i < ptx_nforms; i++)
    if (ptx_stem_first(ptx_forms[i].stem, strlen(ptx_forms[i].stem)) == i)
      names[n++] = ptx_forms[i].stem;
  parse_error(p, t, "unknown instruction \"%s\"%s", stem, diag_nearest(p->arena, stem, names, n));
}

// How near a form is: how far it gets in order, then how many of the modifiers it has anywhere.
static int nearness(int form, const PtxMod *mods, int n) {
  int score = 64 * ptx_form_progress(form, mods, n);
  for (int i = 0; i < n; i++) {
    if (!mods[i]) continue;
    const char *found = strstr(ptx_forms[form].mods, ptx_mod_text(mods[i]));
    if (found) score++;
  }
  return score;
}

// The two nearest rows of the stem, as ": the forms nearest to it are A; B".
static const char *nearest_forms(Parser *p, int first, const PtxMod *mods, int n) {
  int best[2] = {-1, -1}, score[2] = {-1, -1};
  for (int f = first; f >= 0; f = ptx_form_next(f)) {
    int s = nearness(f, mods, n);
    int at = s > score[0] ? 0 : s > score[1] ? 1 : 2;
    if (at == 0) best[1] = best[0], score[1] = score[0];
    if (at < 2) best[at] = f, score[at] = s;
  }
  const char *one = ptx_form_text(p->arena, best[0]);
  if (best[1] < 0) return one;
  return arena_printf(p->arena, "%s; %s", one, ptx_form_text(p->arena, best[1]));
}

void parse_unknown(Parser *p, const Token *t) {
  const char *end = t->text + t->len, *dot = memchr(t->text, '.', t->len);
  size_t stem_len = dot ? (size_t)(dot - t->text) : t->len;
  char *stem = arena_strndup(p->arena, t->text, stem_len);
  int first = ptx_stem_first(stem, stem_len);
  if (first < 0) {
    unknown_stem(p, &(Token){.text = t->text, .len = (uint32_t)stem_len, .line = t->line,
                             .col = t->col}, stem);
    return;
  }
  PtxMod mods[MAX_MODS_SEEN];
  int n = 0, furthest = 0;
  for (const char *s = t->text + stem_len; s < end && n < MAX_MODS_SEEN;) {
    const char *e = ++s;
    while (e < end && *e != '.') e++;
    mods[n++] = ptx_mod_find(s, (size_t)(e - s));
    s = e;
  }
  for (int f = first; f >= 0; f = ptx_form_next(f)) {
    int got = ptx_form_progress(f, mods, n);
    if (got > furthest) furthest = got;
  }
  // The modifier where even the best form stops.
  const char *s = t->text + stem_len;
  for (int i = 0; i < furthest && s < end; i++)
    do s++;
    while (s < end && *s != '.');
  const char *e = s < end ? s + 1 : end;
  while (e < end && *e != '.') e++;
  Token at = {.text = s, .len = (uint32_t)(e - s), .line = t->line,
              .col = t->col + (uint32_t)(s - t->text)};
  const char *forms = nearest_forms(p, first, mods, n);
  if (s >= end) {
    at = *t;
    parse_error(p, &at, "\"%.*s\" lacks a modifier; nearest: %s", (int)t->len, t->text, forms);
  } else {
    parse_error(p, &at, "\"%s\" does not take \"%.*s\" here; nearest: %s", stem, (int)at.len,
                at.text, forms);
  }
}

static const char *kind_text(const PtxOperand *o) {
  switch (o->kind) {
  case PTX_O_REG: return o->negate ? "a negated predicate"
                         : o->type == PTX_T_PRED ? "a predicate" : "a register";
  case PTX_O_INT: return "an integer";
  case PTX_O_FLOAT: return "a floating-point constant";
  case PTX_O_SREG: return "a special register";
  case PTX_O_SYM: return "a variable";
  case PTX_O_FUNC: return "a function";
  case PTX_O_ADDR: return "an address";
  case PTX_O_VEC: return "a vector";
  case PTX_O_PAIR: return "a pair a|b";
  case PTX_O_SINK: return "the sink _";
  case PTX_O_TMAP: return "a tensor address";
  default: return "this";
  }
}

void parse_misfit(Parser *p, const Token *t, const PtxInst *in) {
  int nspecs, need = 0;
  const PtxSpec *specs = ptx_form_specs(in->form, &nspecs);
  for (int i = 0; i < nspecs; i++) need += !specs[i].optional;
  const char *form = ptx_form_text(p->arena, in->form);
  if (in->nopnds < need || in->nopnds > nspecs) {
    parse_error(p, t, "\"%.*s\" takes %s%d operand%s, not %d: %s", (int)t->len, t->text,
                need == nspecs      ? ""
                : in->nopnds < need ? "at least "
                                    : "at most ",
                in->nopnds < need ? need : nspecs,
                (in->nopnds < need ? need : nspecs) == 1 ? "" : "s", in->nopnds, form);
    return;
  }
  int i = ptx_form_fitting(in->form, in, in->opnds, in->nopnds);
  if (i == in->nopnds) i--; // what is missing stands behind the last one
  Token at = *t;
  at.len = 1;
  at.line = in->line;
  if (in->opnds[i].col) at.col = in->opnds[i].col;
  parse_error(p, &at, "operand %d of \"%.*s\" can't be %s: %s", i + 1, (int)t->len, t->text,
              kind_text(&in->opnds[i]), form);
}
