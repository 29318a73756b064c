#include "verify_ranges.h"

#include <math.h>
#include <stdlib.h>

typedef struct Row {
  int64_t b, h, i;
  KeyRange keys; // that the problem's own masks let it see
  const float *scores, *unmasked;
} Row;

static bool has_weight(const Row *r, int64_t j) { return r->scores[j] != -INFINITY; }
static bool is_masked(const Row *r, int64_t j) {
  return !has_weight(r, j) && r->unmasked[j] != -INFINITY;
}

// The first key of [from, to) for which `is` holds, -1 when there is none.
static int64_t first_key(const Row *r, int64_t from, int64_t to,
                         bool (*is)(const Row *r, int64_t j)) {
  if (from < r->keys.from) from = r->keys.from;
  if (to > r->keys.to) to = r->keys.to;
  for (int64_t j = from; j < to; j++)
    if (is(r, j)) return j;
  return -1;
}

static const char *say(Arena *a, const char *at, const Row *r, int64_t key, const char *what,
                       int64_t first, int64_t last, const char *but) {
  return arena_printf(a,
                      "%s: key %lld of query %lld (batch %lld, head %lld) is %s of queries %lld .. "
                      "%lld but %s",
                      at, (long long)key, (long long)r->i, (long long)r->b, (long long)r->h, what,
                      (long long)first, (long long)last, but);
}

// ends: keys_any()'s from and to, then keys_all()'s.
static const char *wrong_in_block(Arena *a, const HookRanges *h, const Row *r, int64_t first,
                                  int64_t last, const int32_t *ends) {
  int64_t key = -1;
  if (h->any_at) {
    key = first_key(r, 0, ends[0], has_weight);
    int64_t behind = ends[1] > ends[0] ? ends[1] : ends[0];
    if (key < 0) key = first_key(r, behind, r->keys.to, has_weight);
    if (key >= 0)
      return say(a, h->any_at, r, key, "outside keys_any()", first, last, "has weight");
  }
  if (h->all_at) key = first_key(r, ends[2], ends[3], is_masked);
  if (key < 0) return NULL;
  return say(a, h->all_at, r, key, "inside keys_all()", first, last, "visible() masks it");
}

static const char *wrong_in_row(Arena *a, const Problem *p, const HookRanges *h, const Row *r,
                                const int32_t *ends) {
  int64_t len = problem_len_q(p, r->b);
  for (int t = 0; t < RANGE_BLOCKS; t++) {
    int64_t size = (int64_t)1 << t, first = r->i / size * size;
    int64_t last = first + size < len ? first + size - 1 : len - 1;
    const char *wrong = wrong_in_block(a, h, r, first, last, ends + t * RANGE_ENDS);
    if (wrong || size >= len) return wrong;
  }
  return NULL;
}

const char *ranges_wrong(Arena *a, const Problem *p, const HookRanges *h, const RangeRows *rows) {
  for (int64_t s = 0; s < rows->samples; s++) {
    int64_t number = s * rows->every, at = s * rows->seqlen_k;
    Row r = {.i = number % rows->seqlen_q, .h = number / rows->seqlen_q % rows->heads};
    r.b = number / rows->seqlen_q / rows->heads;
    if (r.i >= problem_len_q(p, r.b) || !problem_len_k(p, r.b)) continue;
    r.keys = visible_range(p, r.b, r.i);
    r.scores = rows->scores + at, r.unmasked = h->unmasked + at;
    const char *wrong = wrong_in_row(a, p, h, &r, h->ends + s * RANGE_BLOCKS * RANGE_ENDS);
    if (wrong) return wrong;
  }
  return NULL;
}

void ranges_free(HookRanges *r) {
  free(r->raw);
  free(r->unmasked);
  free(r->ends);
  *r = (HookRanges){.any_at = NULL};
}
