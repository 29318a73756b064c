// In which order templates are asked for a problem: what they declare decides.
#include <limits.h>
#include <string.h>

#include "planner.h"

// Rows (query x head) that share a key head fit a tile of decode_mma, and there are keys for
// several chunks: blocks by query tiles alone would leave most SMs idle.
static bool few_queries(const Problem *p) {
  enum { TILE_ROWS = 16, CHUNK_KEYS = 256 };
  int64_t sq = problem_int(p, "seqlen_q", 1), rows = 0;
  if (sq <= 1) return true;
  return problem_whole(p, "rows", &rows) && rows <= TILE_ROWS &&
         problem_int(p, "seqlen_k", 0) > CHUNK_KEYS;
}

// Items (sequence, KV head) for every SM, or of different lengths.
static Regime regime_of(const PlannerQuestion *q, const Problem *p) {
  const char *varlen = q->ask->given ? params_get(q->ask->given, "varlen") : NULL;
  bool differ = problem_varlen(p) || (varlen && (!strcmp(varlen, "1") || !strcmp(varlen, "true")));
  int64_t items = problem_int(p, "batch", 1) * problem_int(p, "heads_kv", 1);
  if (!few_queries(p)) return REGIME_MANY_QUERIES;
  return differ || items >= PLAN_SMS ? REGIME_MANY_ITEMS : REGIME_FEW_ITEMS;
}

typedef struct Standing {
  bool other_kind, later;
  int rank;
} Standing;

// A template says where it stands among those of its kind (template { rank, first }); what the
// kind that the regime is for can't do (pages, V of another width) the other kind may.
static Standing standing(Regime r, const TemplateInfo *t) {
  TemplateKind own = r == REGIME_MANY_QUERIES ? KIND_PREFILL : KIND_DECODE;
  return (Standing){t->kind != own, t->first != r, t->rank ? t->rank : INT_MAX};
}

static bool before(Standing x, Standing y) {
  if (x.other_kind != y.other_kind) return y.other_kind;
  if ((x.rank == INT_MAX) != (y.rank == INT_MAX)) return y.rank == INT_MAX;
  return x.later != y.later ? y.later : x.rank < y.rank;
}

// The problem at a corner of its bucket: each size the least or (its bit is set) the largest one.
static Problem *corner(const PlannerQuestion *q, int bits) {
  static const char *const names[] = {"seqlen_q", "seqlen_k", "heads_kv"};
  Problem *p = problem_copy(q->arena, q->problem);
  int64_t items = problem_int(p, "batch", 1) * problem_int(p, "heads_kv", 1), group = 1;
  const int64_t size[] = {problem_int(p, "seqlen_q", 1), problem_int(p, "seqlen_k", 0), items};
  problem_whole(p, "rows", &group);
  if (size[0] > 0) group /= size[0];
  for (int i = 0; i < 3; i++) {
    int64_t least = planner_bucket(size[i]);
    problem_set_int(p, names[i], bits >> i & 1 && least ? least + (least - 1) : least);
  }
  problem_set_int(p, "batch", 1);
  problem_set_int(p, "heads_q", problem_int(p, "heads_kv", 1) * group);
  return p;
}

static const TemplateInfo *info_of(const PlannerQuestion *q, const char *name) {
  const TemplateInfo *info;
  Diag *quiet = diag_new();
  Status st = session_template(q->session, name, &info, quiet);
  diag_free(quiet);
  return st ? NULL : info;
}

bool planner_stands_before(const PlannerQuestion *q, const char *name, const char *other) {
  enum { CORNERS = 8 };
  const TemplateInfo *x = info_of(q, name), *y = info_of(q, other);
  if (!x || !y || !x->rank) return false;
  if (x->kind == y->kind && (!y->rank || x->rank < y->rank)) return true;
  for (int i = 0; i < CORNERS; i++) {
    Regime r = regime_of(q, corner(q, i));
    if (before(standing(r, x), standing(r, y))) return true;
  }
  return false;
}

// Every attention template in the regime's order; those that stand alike by name.
Status planner_order(PlannerQuestion *q, const TemplateInfo ***out, int *n, Diag *d) {
  const TemplateInfo **all;
  Regime r = regime_of(q, q->problem);
  int nall;
  Status st = session_templates(q->session, &all, &nall, d);
  if (st) return st;
  *out = arena_array(q->arena, const TemplateInfo *, nall + 1);
  *n = 0;
  for (int k = 0; k < nall; k++) {
    if (all[k]->kind != KIND_PREFILL && all[k]->kind != KIND_DECODE) continue;
    int at = (*n)++;
    for (; at > 0 && before(standing(r, all[k]), standing(r, (*out)[at - 1])); at--)
      (*out)[at] = (*out)[at - 1];
    (*out)[at] = all[k];
  }
  return ST_OK;
}
