// What the mutants run on: every template of kind prefill or decode that there is, found by itself.
//
// A base variant with the smallest tiles takes every problem of its kind; every other value of every
// parameter makes one more variant, for the lines that only it has.
#ifndef PTXSMITH_MUTANT_CASES_H
#define PTXSMITH_MUTANT_CASES_H

#include "mutants.h"

typedef struct Bench {
  Arena *arena;
  Diag *diag;
  Session *session;
  Device *dev;
  const TemplateInfo *tmpl;
  Params base;
  Score score;
  int variants, problems;
  int wrong; // problems that the kernel itself fails
} Bench;

static const char *const prefill_problems[] = {
    "b=1,hq=2,hkv=1,sq=$q5,sk=$k11,causal=1", // tails, whole, cut and absent tiles
    "b=2,hq=2,hkv=2,sq=$q-3,sk=$k-1",
    "b=1,hq=2,hkv=1,sq=$q9,sk=3,causal=1", // rows that see no key
    "b=1,hq=1,sq=3,sk=0",
};
static const char *const decode_problems[] = {
    "b=1,hq=2,hkv=1,sq=1,sk=70,chunks=2",
    "b=2,hq=6,hkv=2,sq=3,sk=300,chunks=3,causal=1",
    "b=1,hq=3,hkv=1,sq=7,sk=4,chunks=2,causal=1",
    "b=1,hq=2,hkv=2,sq=1,sk=0,chunks=1",
};
enum { PROBLEMS_OF_KIND = 4 };

static inline const char *value_of(const Bench *b, const Params *p, const char *name) {
  Params all = {0};
  const char *why;
  Diag *d = diag_new();
  Status st = variant_legal(b->session, b->tmpl->name, p, NULL, b->arena, &all, &why, d);
  const char *value = st == ST_OK ? params_get(&all, name) : NULL;
  diag_free(d);
  return value;
}

static inline bool is_legal(const Bench *b, const Params *p) {
  Params all = {0};
  const char *why = NULL;
  Diag *d = diag_new();
  Status st = variant_legal(b->session, b->tmpl->name, p, NULL, b->arena, &all, &why, d);
  diag_free(d);
  return st == ST_OK && !why;
}

static inline Params with(const Bench *b, const Params *p, const char *name, const char *value) {
  Params out = {0};
  for (int i = 0; i < p->n; i++) params_set(b->arena, &out, p->v[i].name, p->v[i].value);
  params_set(b->arena, &out, name, value);
  return out;
}

// "$q5": the variant's tile_q + 5; "$k11": four tile_k + 11.
static inline const char *problem_for(const Bench *b, const Params *p, const char *text) {
  const char *tq = value_of(b, p, "tile_q"), *tk = value_of(b, p, "tile_k");
  const char *dim = value_of(b, p, "head_dim"), *dtype = value_of(b, p, "dtype");
  char *out = arena_strdup(b->arena, "");
  while (*text) {
    char *end = (char *)text + 1;
    if (*text == '$') {
      long tile = text[1] == 'q' ? tq ? atol(tq) : 5 : 4 * (tk ? atol(tk) : 8);
      out = arena_printf(b->arena, "%s%ld", out, tile + strtol(text + 2, &end, 10));
    } else {
      out = arena_printf(b->arena, "%s%c", out, *text);
    }
    text = end;
  }
  return arena_printf(b->arena, "%s,d=%s,dtype=%s", out, dim, dtype);
}

static inline Params smallest(const Bench *b) {
  static const char *const names[] = {"head_dim", "tile_q", "tile_k", "warps", "block", "unroll"};
  Params p = {0};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    for (int k = 0; k < b->tmpl->nparams; k++) {
      const ParamDecl *decl = &b->tmpl->params[k];
      if (strcmp(decl->name, names[i])) continue;
      for (int v = 0; v < decl->nvalues; v++) {
        Params tried = with(b, &p, decl->name, decl->values[v]);
        if (!is_legal(b, &tried)) continue;
        p = tried;
        break;
      }
    }
  return p;
}

static inline void bench_problem(Bench *b, const Params *p, const char *text, int stride) {
  MutantRun m;
  const char *problem = problem_for(b, p, text);
  Status st = mutant_open(&m, b->session, b->dev, b->tmpl->name, p, problem);
  if (st == ST_OK) {
    b->problems++;
    score_problem(&m, stride, &b->score);
  } else {
    bool wrong = st == ST_FAILED && is_plain(m.run.op);
    b->wrong += wrong;
    print_message(wrong ? "  WRONG: %s %s: %s" : "  not run: %s %s: %s", b->tmpl->name, problem, diag_text(m.diag));
    for (int i = 0; i < p->n; i++) print_message("    %s=%s\n", p->v[i].name, p->v[i].value);
  }
  mutant_close(&m);
}

static inline void bench_base(Bench *b, int problems, int stride) {
  bool decode = b->tmpl->kind == KIND_DECODE;
  b->variants++;
  for (int i = 0; i < problems; i++)
    bench_problem(b, &b->base, (decode ? decode_problems : prefill_problems)[i], stride);
}

// What the Problem says is no parameter of its own.
static inline bool is_swept(const char *name) {
  return strcmp(name, "causal") && strcmp(name, "head_dim");
}

static inline void bench_sweep(Bench *b) {
  bool decode = b->tmpl->kind == KIND_DECODE;
  for (int k = 0; k < b->tmpl->nparams; k++) {
    const ParamDecl *decl = &b->tmpl->params[k];
    for (int v = 0; v < decl->nvalues && is_swept(decl->name); v++) {
      const char *now = value_of(b, &b->base, decl->name);
      Params p = with(b, &b->base, decl->name, decl->values[v]);
      if ((now && !strcmp(now, decl->values[v])) || !is_legal(b, &p)) continue;
      b->variants++;
      for (int i = 0; i < 2; i++)
        bench_problem(b, &p, (decode ? decode_problems : prefill_problems)[i], 1);
    }
  }
}

static inline void bench_open(Bench *b, Session *s, Device *dev, const TemplateInfo *t) {
  *b = (Bench){.arena = arena_new(), .session = s, .dev = dev, .tmpl = t};
  b->score.arena = b->arena;
  b->base = smallest(b);
}

static inline bool is_scored(const TemplateInfo *t) {
  return t->kind == KIND_PREFILL || t->kind == KIND_DECODE;
}

static inline void print_score(const Bench *b) {
  int changed = 0, sanitizer = 0, verifier = 0, caught = 0;
  for (int i = 0; i < b->score.n; i++) {
    const Scored *x = &b->score.v[i];
    changed += x->j.changed, sanitizer += x->j.sanitizer, verifier += x->j.verifier;
    caught += is_caught(x);
  }
  print_message("%s: %d variants, %d problems: %d mutants, %d behave differently; told by the "
                "sanitizer %d, by the reference %d, by either %d\n",
                b->tmpl->name, b->variants, b->problems, b->score.n, changed, sanitizer, verifier,
                caught);
}

#endif
