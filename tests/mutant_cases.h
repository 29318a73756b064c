// What the mutants run on: every template of kind prefill or decode that there is, found by itself,
// and second launches that only some variants of these have (`seconds`).
//
// A base variant with the smallest tiles takes every problem of its kind, with windows, caps,
// slopes, sinks and values of another length where it has them; every other value of every
// parameter makes one more variant, for the lines that only it has.
#ifndef PTXSMITH_MUTANT_CASES_H
#define PTXSMITH_MUTANT_CASES_H

#include "mutants.h"

typedef struct Bench {
  Arena *arena;
  Diag *diag;
  Session *session;
  Device *dev;
  const char *name; // of what is scored
  const TemplateInfo *tmpl;
  Params base;
  Score score;
  int first; // launch that is scored: 1 for a second one by itself
  int steps; // launches of the base variant: a second one of others is scored with who always has
             // it
  int variants, problems;
  int wrong; // problems that the kernel itself fails
  bool deep; // every schedule everywhere
} Bench;

// $q5: tile_q + 5; $k11: four tile_k + 11; $w3: tile_k + 3; $x3: two tile_k + 3; $v: another
// head_dim_v than head_dim.  Every variant takes the first four.
static const char *const prefill_problems[] = {
    "b=1,hq=2,hkv=1,sq=$q5,sk=$k11,causal=1", // tails, whole, cut and absent tiles
    "b=2,hq=2,hkv=2,sq=$q-3,sk=$k1", // one key in the last tile
    "b=1,hq=2,hkv=1,sq=$q9,sk=3,causal=1", // rows that see no key
    "b=1,hq=1,sq=3,sk=0",
    "b=1,hq=2,hkv=1,sq=$q5,sk=$k11,wl=$w3,wr=$w7",
    "b=1,hq=2,hkv=1,sq=5,sk=$k11,wl=$x3,wr=2", // whole tiles with cut ones on both sides
    "b=2,hq=4,hkv=2,sq=$q5,sk=$k11,causal=1,wl=$w3,softcap=3,alibi=1,sinks=1",
    "b=1,hq=2,hkv=1,sq=$q5,sk=$k11,softcap=2",
    "b=2,hq=4,hkv=2,sq=9,sk=$k3,alibi=1",
    "b=1,hq=2,hkv=1,sq=$q9,sk=5,causal=1,sinks=1", // rows that see the sink only
    "b=1,hq=2,hkv=1,sq=5,sk=$k11,dv=$v",
    "b=6,hq=2,hkv=1,seqlens_q=$q5/0/7/33/20/1,seqlens_k=$k11/9/3/100/50/7,causal=1",
    "b=2,hq=2,hkv=1,sq=$q5,sk=70,page=24", // no multiple of a tile
    "b=2,hq=2,hkv=1,sq=$q5,sk=72,page=24", // whole pages
};
static const char *const decode_problems[] = {
    "b=1,hq=2,hkv=1,sq=1,sk=65,chunks=2", // one key in the last tile
    "b=2,hq=6,hkv=2,sq=7,sk=75,chunks=3,causal=1",
    "b=1,hq=1,sq=3,sk=60,chunks=12",          // three rows, no power of two
    "b=1,hq=1,sq=33,sk=32,chunks=4,causal=1", // a row that sees no key beside one of many
    "b=1,hq=3,hkv=1,sq=7,sk=4,chunks=2,causal=1",
    "b=1,hq=2,hkv=2,sq=1,sk=0,chunks=1",
    "b=2,hq=2,hkv=1,sq=0,sk=9,chunks=2",
    "b=0,hq=2,hkv=1,sq=2,seqlens_k=seed:3,sk=20,chunks=2",
    "b=1,hq=2,hkv=1,sq=3,sk=200,chunks=2,wl=75,wr=40",
    "b=2,hq=6,hkv=2,sq=3,sk=170,chunks=2,causal=1,wl=90,softcap=3,alibi=1,sinks=1",
    "b=1,hq=2,hkv=1,sq=2,sk=100,chunks=3,softcap=2",
    "b=2,hq=2,hkv=2,sq=2,sk=90,chunks=1,alibi=1",
    "b=1,hq=2,hkv=1,sq=7,sk=4,chunks=2,causal=1,sinks=1",
    "b=3,hq=4,hkv=2,sq=2,seqlens_k=100/0/37,chunks=2,causal=1,alibi=1",
    "b=4,hq=1,sq=1,seqlens_k=17/9/33/20,chunks=8", // pieces that begin in any of them
    "b=35,hq=3,hkv=1,sq=2,seqlens_k=seed:3,sk=20,chunks=2", // more sequences than lanes
    "b=2,hq=2,hkv=1,sq=2,sk=190,chunks=1,page=24", // no multiple of a tile
    "b=2,hq=2,hkv=1,sq=2,sk=96,chunks=2,page=24",  // whole pages
    "b=2,hq=2,hkv=1,sq=2,sk=24,chunks=1,page=24",
    "b=2,hq=2,hkv=1,sq=2,sk=2,chunks=1,page=2",
    "b=1,hq=2,hkv=1,sq=2,sk=17,chunks=2,page=17", // one key in the last tile and no page behind it
    "b=1,hq=2,hkv=1,sq=2,sk=97,chunks=1,page=97", // and that tile is copied in the loop
};
enum {
  EVERYWHERE = 4, // problems that every variant takes
  PREFILL_PROBLEMS = sizeof prefill_problems / sizeof *prefill_problems,
  DECODE_PROBLEMS = sizeof decode_problems / sizeof *decode_problems,
};

// A variant, beside the base one, with its problem.
typedef struct Case { const char *set[4][2], *problem; } Case;

// Variants that some lines need: for the templates that have these parameters.
static const Case specials[] = {
    // warps that go past whole items at once
    {{{"warps", "2"}}, "b=40,hq=2,hkv=1,sq=1,sk=9,chunks=2"},
    // a pass of the warps that bring Q is more rows than a tile has, in two parts each
    {{{"helpers", "8"}, {"head_dim", "128"}}, "b=1,hq=3,hkv=1,sq=1,sk=40,chunks=2"},
    // more pieces than one level merges
    {{{"tree", "1"}}, "b=1,hq=2,hkv=1,sq=1,sk=640,chunks=40"},
    {{{"lanes", "1"}}, "b=1,hq=2,hkv=1,sq=1,sk=640,chunks=40"},
    {{{"lanes", "1"}, {"tile_q", "32"}}, "b=1,hq=1,sq=33,sk=32,chunks=4,causal=1"},
    {{{"lanes", "1"}, {"head_dim", "256"}}, "b=1,hq=3,hkv=1,sq=1,sk=90,chunks=5"},
    // blocks of a cluster, whose warps go once through what merges: several items for each
    {{{"cluster", "2"}, {"warm", "2"}}, "b=2,hq=6,hkv=2,sq=7,sk=75,chunks=1,causal=1"},
    {{{"cluster", "4"}, {"warm", "1"}}, "b=3,hq=3,hkv=1,sq=1,sk=40,chunks=1"},
    {{{"cluster", "2"}, {"helpers", "8"}}, "b=1,hq=3,hkv=1,sq=1,sk=40,chunks=1"},
    // 15 blocks have no row to merge, and are at the next item before the other has merged its
    {{{"cluster", "16"}, {"head_dim", "256"}}, "b=6,hq=1,hkv=1,sq=1,sk=9,chunks=1"},
    {{{"cluster", "2"}, {"lend", "1"}, {"tile_k", "32"}}, "b=3,hq=3,hkv=1,sq=1,sk=90,chunks=1"},
    {{{"cluster", "2"}, {"lanes", "1"}}, "b=2,hq=6,hkv=2,sq=7,sk=75,chunks=1,causal=1"},
    {{{"cluster", "2"}, {"lanes", "1"}}, "b=1,hq=1,sq=33,sk=32,chunks=1,causal=1"},
    {{{"cluster", "2"}, {"lanes", "1"}, {"head_dim", "256"}}, "b=1,hq=3,hkv=1,sq=1,sk=40,chunks=1"},
    {{{"cluster", "2"}, {"lanes", "1"}, {"helpers", "8"}, {"head_dim", "128"}},
     "b=1,hq=3,hkv=1,sq=1,sk=40,chunks=1"},
    // tiles by tensor maps: pages, windows that begin within them, stages that are filled again
    // behind a tile that is cut, with one key to go or all but one; no key at all
    {{{"box", "8"}, {"stages", "2"}}, "b=2,hq=2,hkv=2,sq=2,sk=190,chunks=1,page=24"},
    {{{"box", "8"}, {"stages", "2"}}, "b=1,hq=2,hkv=2,sq=3,sk=200,chunks=2,wl=75,wr=40,page=24"},
    {{{"box", "16"}, {"stages", "2"}}, "b=5,hq=2,hkv=2,sq=1,seqlens_k=31/0/65/97/79,chunks=2"},
    {{{"box", "8"}}, "b=2,hq=2,hkv=1,sq=2,sk=2,chunks=1,page=8"},
    {{{"box", "8"}}, "b=1,hq=2,hkv=2,sq=1,sk=0,chunks=1"},
    // one warpgroup of three is blind to two tiles, and only the stages order it behind the copies
    {{{"tile_q", "192"}, {"turns", "0"}}, "b=1,hq=2,hkv=1,sq=$q5,sk=$k11,causal=1"},
    // warps that see a part of a tile or none of it, or have no rows
    {{{"narrow", "16"}, {"tile_k", "32"}}, "b=1,hq=2,hkv=1,sq=$q5,sk=$k11,wl=$w3,wr=$w7"},
    {{{"narrow", "16"}, {"tile_k", "32"}, {"stages", "1"}},
     "b=2,hq=2,hkv=1,sq=$q9,sk=$k3,causal=1,wl=20"},
    {{{"narrow", "16"}, {"tile_k", "32"}, {"stages", "1"}}, "b=1,hq=2,hkv=1,sq=$q9,sk=3,causal=1"},
    {{{"narrow", "16"}, {"tile_k", "32"}},
     "b=4,hq=2,hkv=1,seqlens_q=5/0/7/33,seqlens_k=$k11/9/3/50,causal=1"},
    // a warpgroup sees the first half of a tile, another the second one of another, or of the only
    {{{"half", "1"}, {"tile_q", "128"}, {"tile_k", "128"}},
     "b=2,hq=1,sq=128,sk=200,causal=1,wl=70"},
    {{{"half", "1"}, {"tile_q", "128"}, {"tile_k", "128"}},
     "b=1,hq=1,sq=128,sk=140,causal=1,wl=0"},
    // behind tiles that it sees nothing of, in turns, K late, rows 40 and 41 without a key so far
    {{{"half", "1"}, {"tile_q", "128"}, {"tile_k", "64"}}, "b=2,hq=1,sq=108,sk=130,causal=1"},
    {{{"half", "1"}, {"tile_q", "128"}, {"tile_k", "64"}, {"stages", "1"}},
     "b=8,hq=1,sq=100,sk=130,causal=1"},
    // a group of two heads, which a third one joins
    {{{"fewest", "0"}, {"together", "1"}, {"head_dim", "256"}}, "b=1,hq=3,sq=20,sk=500,causal=1"},
    {{{"fewest", "0"}, {"together", "1"}, {"head_dim", "256"}, {"dynamic", "0"}},
     "b=1,hq=3,sq=20,sk=500,causal=1"},
    // a half begins the item behind one with rows past the end, and one with rows without a key
    {{{"half", "1"}, {"tile_k", "64"}}, "b=2,hq=1,sq=70,sk=30,causal=1"}};
enum { SPECIALS = sizeof specials / sizeof *specials };

// decode_latent and decode_latent_few have one width, of 576, and each run of them is dear: they
// take these, in two schedules, instead of all problems with all variants.
static const Case latent_cases[] = {
    // weights beyond f16 where a row keeps its maximum though it grows, in the second tile too
    {{{"dtype", "f16"}}, "b=1,hq=64,hkv=1,sq=1,sk=130,chunks=1"},
    // rows whose scores are all -inf; more rows than warps merge
    {{{0}}, "b=2,hq=4,hkv=1,sq=3,sk=130,chunks=3"},
    {{{"lazy", "0"}}, "b=2,hq=4,hkv=1,sq=3,sk=130,chunks=3"},
    {{{0}}, "b=3,hq=2,hkv=2,sq=1,sk=9,chunks=6"}, // spans of one tile, for one pair of the producer
    {{{0}}, "b=1,hq=1,sq=2,sk=0,chunks=2"},
    {{{0}}, "b=0,hq=2,hkv=1,sq=2,seqlens_k=seed:3,sk=20,chunks=2"},
    {{{0}}, "b=2,hq=2,hkv=1,sq=0,sk=9,chunks=2"},
    // a piece in which most rows see no key, beside one whose largest scores may be far below 0
    {{{0}}, "b=1,hq=1,sq=64,sk=70,causal=1,wl=1,chunks=2,scale=1"},
    {{{0}}, "b=1,hq=2,hkv=1,sq=9,sk=3,causal=1,sinks=1,softcap=2,chunks=1"},
    {{{0}}, "b=1,hq=2,hkv=1,sq=1,sk=3,page=2,chunks=1"},
    // few rows, merged by several warps each before the next item; a last page behind the last row
    {{{0}}, "b=3,hq=3,hkv=1,sq=1,sk=67,page=17,chunks=2"},
    {{{0}}, "b=2,hq=4,hkv=2,sq=33,sk=9,chunks=1"}, // a span of all items, of two tiles of rows each
    {{{0}}, "b=3,hq=33,hkv=1,sq=2,seqlens_k=70/0/9,chunks=2,causal=1,alibi=1"},
    {{{0}}, "b=2,hq=1,sq=1,seqlens_k=130/0,chunks=6"},         // more spans than tiles
    {{{0}}, "b=33,hq=1,sq=1,seqlens_k=seed:3,sk=20,chunks=2"}, // more sequences than lanes
    // decode_latent_few alone: its larger tile of rows, pieces and whole items
    {{{"tile_q", "32"}, {"chains", "2"}}, "b=2,hq=27,hkv=1,sq=2,sk=200,causal=1,chunks=3"},
    // two items of two pieces, one beside items that are not for a pair; rows one after the other
    {{{"pair", "1"}}, "b=2,hq=4,hkv=1,sq=1,sk=128,chunks=4"},
    {{{"pair", "1"}}, "b=1,hq=2,hkv=1,sq=9,sk=200,causal=1,chunks=3"},
    {{{"wide", "1"}}, "b=2,hq=4,hkv=1,sq=1,sk=67,chunks=3"},
    {{{"quick", "1"}}, "b=2,hq=2,hkv=1,sq=0,sk=9,chunks=2"},
    {{{"quick", "1"}}, "b=3,hq=18,hkv=2,sq=1,sk=67,chunks=5"},
};
enum { LATENT_CASES = sizeof latent_cases / sizeof *latent_cases };

// A second launch by itself: the variant in front of it takes all problems, and these.
static const struct Second { const char *name, *front; Case cases[9]; } seconds[] = {
    {"combine_spans", "decode_span",
     {{{{"fused", "0"}, {"overlap", "1"}}, NULL}, // the base variant
      // more pieces than one turn reads, 256
      {{{0}}, "b=1,hq=1,hkv=1,sq=1,sk=4200,chunks=260"},
      {{{"head_dim", "192"}}, "b=2,hq=2,hkv=1,sq=2,sk=190,chunks=9"},
      {{{"tile_q", "32"}}, "b=1,hq=1,sq=33,sk=32,chunks=4,causal=1"}, // a row without a key
      // teams of two warps and of one, the last block with some that have nothing to do
      {{{0}}, "b=3,hq=93,hkv=1,sq=1,sk=40,chunks=130"},
      {{{0}}, "b=5,hq=105,hkv=1,sq=1,sk=40,chunks=200"},
      {{{"dtype_kv", "e4m3"}}, "b=2,hq=6,hkv=2,sq=7,sk=75,chunks=5,causal=1"},
      {{{"dtype", "f16"}}, "b=35,hq=2,hkv=2,sq=1,seqlens_k=seed:3,sk=90,chunks=99"}}}};
enum { SECONDS = sizeof seconds / sizeof *seconds };

static inline const struct Second *second_of(const char *name) {
  for (int i = 0; i < SECONDS; i++)
    if (!strcmp(seconds[i].name, name)) return &seconds[i];
  return NULL;
}

// What a problem may ask for, and the parameter of the templates that have it.
static const struct { const char *text, *param; } rules[] = {
    {",wl=", "window"}, {",softcap=", "softcap"}, {",alibi=", "alibi"}, {",sinks=", "sinks"},
    {",dv=", "head_dim_v"}, {",seqlens_k=", "varlen"}, {",page=", "paged"}};
enum { RULES = sizeof rules / sizeof *rules };

static inline const ParamDecl *decl_of(const Bench *b, const char *name) {
  for (int k = 0; k < b->tmpl->nparams; k++)
    if (!strcmp(b->tmpl->params[k].name, name)) return &b->tmpl->params[k];
  return NULL;
}

static inline bool has_rules(const Bench *b, const char *problem) {
  for (int i = 0; i < RULES; i++)
    if (strstr(problem, rules[i].text) && !decl_of(b, rules[i].param)) return false;
  return true;
}

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

static inline const char *other_dim(const Bench *b, const Params *base, const char *dim) {
  const ParamDecl *decl = decl_of(b, "head_dim_v");
  for (int v = 0; decl && v < decl->nvalues; v++) {
    Params p = with(b, base, "head_dim_v", decl->values[v]);
    if (strcmp(decl->values[v], dim) && is_legal(b, &p)) return decl->values[v];
  }
  return dim;
}

static inline const char *problem_for(const Bench *b, const Params *p, const char *text) {
  const char *tq = value_of(b, p, "tile_q"), *tk = value_of(b, p, "tile_k");
  const char *dim = value_of(b, p, "head_dim"), *dtype = value_of(b, p, "dtype");
  char *out = arena_strdup(b->arena, "");
  while (*text) {
    char *end = (char *)text + 1;
    long key = tk ? atol(tk) : 8, tile = text[1] == 'q' ? tq ? atol(tq) : 5 : 4 * key;
    if (!strncmp(text, "$v", 2)) {
      out = arena_printf(b->arena, "%s%s", out, other_dim(b, p, dim));
      end++;
    } else if (*text == '$') {
      if (text[1] == 'w' || text[1] == 'x') tile = text[1] == 'w' ? key : 2 * key;
      out = arena_printf(b->arena, "%s%ld", out, tile + strtol(text + 2, &end, 10));
    } else {
      out = arena_printf(b->arena, "%s%c", out, *text);
    }
    text = end;
  }
  const char *cluster = value_of(b, p, "cluster");
  char *chunks = strstr(out, ",chunks=");
  if (cluster && strcmp(cluster, "1") && chunks) { // the cluster's blocks are its pieces
    char *behind = chunks + 1 + strcspn(chunks + 1, ",");
    memmove(chunks, behind, strlen(behind) + 1);
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

static inline void bench_problem(Bench *b, const Params *p, const char *text, const Depth *depth) {
  MutantRun m;
  const char *problem = problem_for(b, p, text);
  Status st = mutant_open(&m, b->session, b->dev, b->tmpl->name, p, problem);
  if (st == ST_OK) {
    b->problems++;
    score_problem(&m, b->first, b->steps, depth, &b->score);
  } else {
    bool wrong = !m.run.op || is_known(m.run.op);
    b->wrong += wrong;
    print_message("  %s: %s %s: %s", wrong ? "WRONG" : "not run", b->tmpl->name, problem,
                  diag_text(m.diag));
    for (int i = 0; i < p->n; i++) print_message("    %s=%s\n", p->v[i].name, p->v[i].value);
  }
  mutant_close(&m);
}

static inline const char *const *problems_of(const Bench *b, int *n) {
  bool decode = b->tmpl->kind == KIND_DECODE;
  *n = decode ? DECODE_PROBLEMS : PREFILL_PROBLEMS;
  return decode ? decode_problems : prefill_problems;
}

// The first `count` problems (0: all).
static inline void bench_base(Bench *b, int count, Depth depth) {
  int n;
  const char *const *problems = problems_of(b, &n);
  b->variants++;
  for (int i = 0; i < n && (!count || i < count); i++)
    if (has_rules(b, problems[i])) bench_problem(b, &b->base, problems[i], &depth);
}

// What a Problem says is no parameter of its own.
static inline bool is_swept(const char *name) {
  for (int i = 0; i < RULES; i++)
    if (!strcmp(name, rules[i].param)) return false;
  return strcmp(name, "causal") != 0;
}

static inline void bench_cases(Bench *b, const Case *cases, int n, int schedules) {
  Depth depth = {b->deep ? ROUND : schedules, 1, b->deep};
  for (int i = 0; i < n; i++) {
    bool decode = cases[i].problem && strstr(cases[i].problem, "chunks="), has = true;
    Params p = b->base;
    for (int k = 0; k < 4 && cases[i].set[k][0]; k++) {
      has &= decl_of(b, cases[i].set[k][0]) != NULL;
      p = with(b, &p, cases[i].set[k][0], cases[i].set[k][1]);
    }
    has &= cases[i].problem && decode == (b->tmpl->kind == KIND_DECODE);
    if (!has || !is_legal(b, &p)) continue;
    b->variants++;
    bench_problem(b, &p, cases[i].problem, &depth);
  }
}

static inline void bench_sweep(Bench *b) {
  int n;
  const char *const *problems = problems_of(b, &n);
  Depth depth = {b->deep ? ROUND : 2, 1, b->deep};
  Depth defaults = {ROUND, 1, b->deep};
  b->variants++;
  for (int i = 0; i < n; i++)
    if (i < EVERYWHERE || (strstr(problems[i], ",dv=") && has_rules(b, problems[i])))
      bench_problem(b, &(Params){0}, problems[i], &defaults);
  for (int k = 0; k < b->tmpl->nparams; k++) {
    const ParamDecl *decl = &b->tmpl->params[k];
    for (int v = 0; v < decl->nvalues && is_swept(decl->name); v++) {
      const char *now = value_of(b, &b->base, decl->name);
      Params p = with(b, &b->base, decl->name, decl->values[v]);
      if ((now && !strcmp(now, decl->values[v])) || !is_legal(b, &p)) continue;
      if (!strcmp(decl->name, "cluster") && atoi(decl->values[v]) > 2) continue; // the same lines
      b->variants++;
      for (int i = 0; i < EVERYWHERE; i++) bench_problem(b, &p, problems[i], &depth);
    }
  }
  bench_cases(b, specials, SPECIALS, ROUND);
}

static inline void bench_all(Bench *b) {
  if (!strncmp(b->tmpl->name, "decode_latent", 13)) {
    bench_cases(b, latent_cases, LATENT_CASES, 2);
  } else if (b->first) {
    bench_base(b, 0, (Depth){ROUND, 1, b->deep});
    bench_cases(b, second_of(b->name)->cases, 9, ROUND);
  } else {
    bench_base(b, 0, (Depth){ROUND, 1, b->deep});
    bench_sweep(b);
  }
}

static inline int launches_of(const Bench *b) {
  MutantRun m;
  const char *problem = problem_for(b, &b->base, problems_of(b, &(int){0})[0]);
  mutant_open(&m, b->session, b->dev, b->tmpl->name, &b->base, problem);
  int steps = m.run.op ? m.run.op->nsteps : 1;
  mutant_close(&m);
  return steps;
}

static inline void bench_open(Bench *b, Session *s, Device *dev, const TemplateInfo *t,
                              const char *list) {
  *b = (Bench){.arena = arena_new(), .diag = diag_new(), .session = s, .dev = dev, .tmpl = t,
               .name = t->name, .deep = getenv("MUTANTS_DEEP") != NULL};
  const struct Second *second = second_of(t->name);
  if (second) assert_int_equal(session_template(s, second->front, &b->tmpl, b->diag), ST_OK);
  b->score.arena = b->arena;
  b->score.list = list;
  b->base = smallest(b);
  for (int k = 0; second && k < 2; k++) {
    const char *const *set = second->cases[0].set[k];
    b->base = with(b, &b->base, set[0], set[1]);
  }
  b->first = second != NULL;
  b->steps = launches_of(b);
}

static inline void bench_close(Bench *b) {
  arena_free(b->arena);
  diag_free(b->diag);
}

static inline bool is_scored(const TemplateInfo *t) {
  return t->kind == KIND_PREFILL || t->kind == KIND_DECODE || second_of(t->name);
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
                b->name, b->variants, b->problems, b->score.n, changed, sanitizer, verifier,
                caught);
}

#endif
